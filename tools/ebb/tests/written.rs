//! File systems on disks that guests write: what was written is there, the host's e2fsck finds nothing wrong, and what was synchronised survives a machine that is gone from one moment to the next.
//! These tests start machines: see `command.rs`.

mod power;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use power::{cuts, kill_emulator};

/// Kinds of file systems: for mke2fs(8) and mount(8), and bytes of a block.
const KINDS: [(&str, &str); 6] =
    [("ext4", "4096"), ("ext4", "1024"), ("ext4", "2048"), ("ext3", "4096"), ("ext3", "1024"), ("ext2", "1024")];

/// Makes an image.
fn image(at: &Path, (kind, block): (&str, &str), size: &str) -> String {
    let path = at.join(format!("{kind}.{block}"));
    let mut command = Command::new("/usr/sbin/mke2fs");
    command.args(["-q", "-F", "-t", kind, "-b", block]).arg(&path).arg(size);
    assert!(command.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("package e2fsprogs").success());
    path.to_str().unwrap().to_owned()
}

fn ebb(image: &str, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--timeout", "300s", "--cpus", "2", "--disk", image, "sh", "-c", script]);
    command.stdin(Stdio::null());
    command
}

/// What a script says.
#[track_caller]
fn said(image: &str, script: &str) -> String {
    let output = ebb(image, script).output().expect("ebb can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Has e2fsck look at an image, and change nothing.
#[track_caller]
fn check(image: &str) {
    let output = Command::new("/usr/sbin/e2fsck").args(["-f", "-n", image]).output().expect("package e2fsprogs");
    assert!(output.status.success(), "{image}: {}", String::from_utf8_lossy(&output.stdout));
}

/// What a file of an image is, as the host sees it.
fn content(image: &str, path: &str) -> Vec<u8> {
    let mut command = Command::new("/usr/sbin/debugfs");
    command.args(["-R", &format!("cat {path}"), image]).output().expect("package e2fsprogs").stdout
}

#[test]
#[ignore = "starts a machine"]
fn what_was_unmounted_can_be_mounted_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), ("ext4", "4096"), "16M");
    let script = "set -e; mkdir /m; i=0
        while [ $i -lt 100 ]; do mount -t ext4 /dev/vda /m; mkdir /m/$i; echo $i >/m/$i/f; umount /m; i=$((i+1)); done
        mount -t ext4 /dev/vda /m; cat /m/*/f | wc -l; umount /m";
    assert_eq!(said(&image, script), "100\n");
    check(&image);
}

#[test]
#[ignore = "starts a machine"]
fn what_is_mounted_to_be_read_is_written_between_two_remounts() {
    let directory = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let image = image(directory.path(), kind, "16M");
        let mount =
            format!("set -e; mkdir /m; mount -t {} -o ro /dev/vda /m; touch /m/a 2>/dev/null && exit 9", kind.0);
        let before = fs::read(&image).unwrap();
        said(&image, &format!("{mount}; umount /m"));
        assert!(before == fs::read(&image).unwrap(), "{kind:?}: reading has changed the disk");
        let script = format!(
            "{mount}; mount -o remount,rw /m; seq 20000 >/m/a; exec 5>/m/b; mount -o remount,ro /m 2>/dev/null && exit 8; exec 5>&-
            exec 5</m/b; rm /m/b; mount -o remount,ro /m 2>/dev/null && exit 8; exec 5<&-
            mount -o remount,ro /m; touch /m/c 2>/dev/null && exit 7; grep -c ' /m .* ro,' /proc/mounts; echo READY; sleep 200"
        );
        cut_when_ready(&image, &script);
        // As after umount(8).
        check(&image);
        let text: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
        assert!(content(&image, "a") == text.as_bytes(), "{kind:?}");
        said(&image, &format!("{mount}; mount -o remount,rw /m; echo more >>/m/a; umount /m"));
        check(&image);
        assert!(content(&image, "a") == (text + "more\n").as_bytes(), "{kind:?}");
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_had_lost_its_name_is_gone_after_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "4096"), ("ext3", "1024")] {
        let image = image(directory.path(), kind, "48M");
        let mount = format!("mkdir /m; mount -t {} /dev/vda /m && cd /m", kind.0);
        let script = format!(
            "set -e; {mount}; dd if=/dev/zero of=f bs=1M count=30 2>/dev/null; exec 5<f; rm f; sync; echo READY; sleep 200"
        );
        cut_when_ready(&image, &script);
        // There is room for another as large.
        said(&image, &format!("set -e; {mount}; dd if=/dev/zero of=g bs=1M count=30 2>/dev/null; cd /; umount /m"));
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_bypasses_the_cache_or_was_synchronised_through_an_overlay_is_on_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "4096"), ("ext2", "1024")] {
        let image = image(directory.path(), kind, "48M");
        // O_DIRECT; an overlay's upper layer; and what both kinds of reading see.
        let script = format!(
            "set -e; mkdir /m /v; mount -t {} /dev/vda /m; cd /m
            mkdir upper work lower; mount -t overlay -o lowerdir=lower,upperdir=upper,workdir=work none /v; sync
            seq 100000 >/tmp/a; dd if=/tmp/a of=direct bs=64k oflag=direct conv=notrunc count=4 2>/dev/null
            dd if=direct bs=4k iflag=direct 2>/dev/null | cmp -n 262144 - /tmp/a
            dd if=/tmp/a of=direct bs=512 seek=1 skip=7 count=1 oflag=direct conv=notrunc 2>/dev/null
            dd if=direct bs=1 skip=512 count=512 2>/dev/null >/tmp/b; dd if=/tmp/a bs=512 skip=7 count=1 2>/dev/null | cmp - /tmp/b
            echo synchronised >/tmp/s; dd if=/tmp/s of=/v/f conv=fsync 2>/dev/null; echo READY; sleep 200",
            kind.0
        );
        cut_when_ready(&image, &script);
        if kind.0 == "ext4" {
            said(&image, "mkdir /m; mount -t ext4 /dev/vda /m; umount /m");
            check(&image);
        }
        let text: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        assert_eq!(content(&image, "upper/f"), b"synchronised\n", "{kind:?}");
        assert_eq!(content(&image, "direct")[1024..], text.as_bytes()[1024..4 * 65536], "{kind:?}");
    }
}

/// A root file system with BusyBox as its shell.
fn root_with_busybox(at: &Path) -> PathBuf {
    let root = at.join("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    fs::copy(busybox.expect("package busybox-static"), root.join("bin/busybox")).unwrap();
    std::os::unix::fs::symlink("busybox", root.join("bin/sh")).unwrap();
    root
}

fn image_of(root: &Path, at: &Path) -> String {
    let image = at.join("root.ext4");
    let mut command = Command::new("/usr/sbin/mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-d"]).arg(root).arg(&image).arg("32M").stdout(Stdio::null());
    assert!(command.status().expect("package e2fsprogs").success());
    image.to_str().unwrap().to_owned()
}

#[test]
#[ignore = "starts a machine"]
fn a_root_that_stays_has_its_own_shell_and_an_empty_directory_for_what_runs() {
    let directory = tempfile::tempdir().unwrap();
    let root = root_with_busybox(directory.path());
    fs::create_dir_all(root.join("run")).unwrap();
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/passwd"), "nobody:x:65534:65534::/:/bin/none\nroot:x:0:0:root:/root:/bin/own\n").unwrap();
    let script = "#!/bin/sh\necho own $1; busybox ls -1A /run; echo x >/run/left; echo kept >/kept; busybox ls -1A /run; exit 5\n";
    fs::write(root.join("bin/own"), script).unwrap();
    fs::set_permissions(root.join("bin/own"), fs::Permissions::from_mode(0o755)).unwrap();
    let image = image_of(&root, directory.path());
    for _ in 0..2 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.args(["shell", "--rootfs", &format!("{image}:rw")]).stdin(Stdio::null());
        let output = command.output().expect("ebb can be started");
        let said = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        assert_eq!((said.as_str(), output.status.code()), ("own -l\nlock\nleft\nlock\n", Some(5)));
        check(&image);
        assert_eq!(content(&image, "kept"), b"kept\n");
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_root_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let root = root_with_busybox(directory.path());
    let image = &image_of(&root, directory.path());
    let run = |options: &[&str], access: &str, script: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.args(["run", "--timeout", "300s"]).args(options).args(["--rootfs", &format!("{image}{access}")]);
        command.args(["/bin/busybox", "sh", "-c", script]).stdin(Stdio::null()).output().expect("ebb can be started")
    };
    let first = run(&[], ":rw", "echo one >/one; (busybox sleep 1000 >/dev/null 2>&1 &); echo two >/two");
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    check(image);
    assert_eq!(content(image, "one"), b"one\n");
    // The agent starts itself there, and leaves nothing of itself.
    let second = run(&["--reclaim-within", "5ms"], ":rw", "busybox cat /one /two; busybox rm /one; busybox ls -A /");
    assert_eq!(String::from_utf8_lossy(&second.stdout), "one\ntwo\nbin\ndev\nlost+found\nproc\nsys\ntmp\ntwo\n");
    check(image);
    // In memory only.
    let third = run(&[], "", "busybox rm /two; busybox ls /two");
    assert!(!third.status.success());
    assert_eq!(content(image, "two"), b"two\n");
    // Switched off in the midst of it: it says what to do.
    run(&[], ":rw", "echo three >/three; busybox sync; busybox poweroff -f");
    let fourth = run(&[], "", "busybox true");
    assert!(String::from_utf8_lossy(&fourth.stderr).contains(":rw"), "{}", String::from_utf8_lossy(&fourth.stderr));
    let fifth = run(&[], ":rw", "busybox cat /three");
    assert_eq!(String::from_utf8_lossy(&fifth.stdout), "three\n");
    check(image);
}

#[test]
#[ignore = "starts a machine"]
fn what_a_guest_writes_is_there_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    for kind in KINDS {
        let image = image(directory.path(), kind, "64M");
        let mount = format!("mkdir /m; mount -t {} /dev/vda /m && cd /m", kind.0);
        let first = said(
            &image,
            &format!(
                "set -e; {mount}
                echo hello >a; mkdir d e; echo x >>a; cp a d/b; ln a c; mv d/b e/q; chmod 600 c; chown 5:6 a
                dd if=/dev/urandom of=big bs=64k count=64 2>/dev/null; truncate -s 1234567 big; truncate -s 3000000 big
                dd if=/dev/zero of=sparse bs=1 seek=5000000 count=3 2>/dev/null
                i=0; while [ $i -lt 300 ]; do echo $i >d/f$i; i=$((i+1)); done
                i=0; while [ $i -lt 300 ]; do rm d/f$i; i=$((i+2)); done
                mkdir x; rmdir x; ln -s /nowhere/$(printf '%0100d' 1) long; cp big gone; sync; rm gone
                sha256sum big; cd /; umount /m"
            ),
        );
        check(&image);
        assert_eq!(content(&image, "c"), b"hello\nx\n");
        let again = said(
            &image,
            &format!(
                "{mount}; sha256sum big; ls d | wc -l; cat a e/q; stat -c '%a %u %g %h %s' a; readlink long; cd /; umount /m"
            ),
        );
        let link = format!("/nowhere/{:0100}", 1);
        assert_eq!(again, format!("{first}150\nhello\nx\nhello\nx\n600 5 6 2 8\n{link}\n"), "{kind:?}");
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_full_disk_stays_whole() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "4096"), ("ext4", "1024"), ("ext2", "4096")] {
        let image = image(directory.path(), kind, "12M");
        let script = format!(
            "mkdir /m; mount -t {} /dev/vda /m; cd /m; echo kept >kept
            for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=64k count=400 2>/dev/null || echo full; mkdir d$i; cp -r d$i f$i/ 2>/dev/null; done
            rm f*; sync; dd if=/dev/zero of=again bs=64k count=64 2>/dev/null && echo again; cat kept; cd /; umount /m",
            kind.0
        );
        let output = said(&image, &script);
        assert!(output.contains("full") && output.ends_with("again\nkept\n"), "{kind:?}: {output}");
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_was_appended_until_the_disk_was_full_is_there() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "4096"), ("ext4", "1024"), ("ext3", "4096"), ("ext2", "4096")] {
        let image = image(directory.path(), kind, "24M");
        // Several at a time, and one with holes between what it appends; then what is left goes to small files. `free` says how many blocks nobody got.
        let script = format!(
            "mkdir /m; mount -t {0} /dev/vda /m; cd /m; dd if=/dev/urandom of=/tmp/r bs=1000 count=77 2>/dev/null
            for f in a b c; do (while cat /tmp/r >>$f; do :; done) 2>/dev/null & done
            (i=0; while dd if=/tmp/r of=d bs=4k count=1 seek=$i conv=notrunc; do i=$((i+3)); done) 2>/dev/null &
            wait; i=0; while echo $i >s$i; do i=$((i+1)); done 2>/dev/null
            sync; echo free $(stat -f -c %a .); sha256sum * 2>/dev/null >/tmp/a; ls -l >/tmp/la
            cd /; umount /m; mount -t {0} /dev/vda /m; cd /m; sha256sum * 2>/dev/null >/tmp/b; ls -l >/tmp/lb; cmp /tmp/a /tmp/b && cmp /tmp/la /tmp/lb && echo same; cd /; umount /m",
            kind.0
        );
        let output = said(&image, &script);
        let free = output.lines().find_map(|line| line.strip_prefix("free ")?.parse::<u64>().ok());
        assert!(free.is_some_and(|free| free < 8), "{kind:?}: {output}");
        assert!(output.ends_with("same\n"), "{kind:?}: {output}");
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_large_write_into_a_hole_has_all_its_blocks() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext3", "4096"), ("ext2", "1024"), ("ext4", "1024")] {
        let image = image(directory.path(), kind, "48M");
        let script = format!(
            "mkdir /m; mount -t {} /dev/vda /m; cd /m; dd if=/dev/urandom of=f bs=8M seek=1 count=1 2>/dev/null
            dd if=/dev/zero of=g bs=100000 seek=5 count=1 2>/dev/null; sha256sum f; cd /; umount /m; mount -t {} /dev/vda /m; cd /m; sha256sum f; cd /; umount /m",
            kind.0, kind.0
        );
        let output = said(&image, &script);
        let sums: Vec<&str> = output.lines().collect();
        assert!(sums.len() == 2 && sums[0] == sums[1], "{kind:?}: {output}");
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_has_no_room_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "1024"), ("ext3", "1024")] {
        let image = image(directory.path(), kind, "8M");
        // Some blocks are free, but none for a node of the tree as well.
        let script = format!(
            "mkdir /m; mount -t {} /dev/vda /m; cd /m
            for i in 1 2 3 4 5 6 7 8 9; do dd if=/dev/zero of=s$i bs=20k count=1; done
            for k in 0 4000 1000; do dd if=/dev/zero of=x bs=1k count=1 seek=$k conv=notrunc; done
            dd if=/dev/zero of=fill bs=1k; rm s2 s4; sync; sleep 1
            dd if=/dev/zero of=x bs=100k seek=1 count=1 conv=notrunc; cd /; umount /m",
            kind.0
        );
        said(&image, &format!("({script}) 2>/dev/null"));
        check(&image);
    }
}

/// Has files grow within a page that a mapping writes to, each in its own way, and writes there; "full" with the disk full before it writes. Which files there are it says.
const GROWS: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <signal.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static char *begin(const char *name, int *fd) {
        char first[1024];
        memset(first, 'a', sizeof first);
        *fd = open(name, O_RDWR | O_CREAT, 0644);
        if (*fd < 0 || write(*fd, first, sizeof first) != sizeof first) _exit(2);
        char *map = mmap(0, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
        if (map == MAP_FAILED) _exit(3);
        map[0] = 'b';
        return map;
    }
    static void fill(char *map, int end) { for (int at = 1024; at < end; at += 100) map[at] = 'c'; }
    int main(int count, char **args) {
        int fd;
        if (count > 1) {
            char *map = begin("full", &fd), block[1024] = { 1 };
            if (ftruncate(fd, 8192)) return 4;
            int others = open("others", O_WRONLY | O_CREAT, 0644);
            while (write(others, block, sizeof block) > 0);
            pid_t child = fork();
            if (child == 0) { fill(map, 4096); _exit(0); }
            int status;
            waitpid(child, &status, 0);
            puts(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS ? "refused" : "written");
            return 0;
        }
        char *map = begin("truncated", &fd);
        if (ftruncate(fd, 8192)) return 5;
        fill(map, 4096);
        map = begin("written", &fd);
        if (pwrite(fd, "w", 1, 3500) != 1) return 6;
        fill(map, 3500);
        map = begin("behind", &fd);
        if (pwrite(fd, "w", 1, 10000) != 1) return 7;
        fill(map, 4096);
        map = begin("shorter", &fd);
        if (ftruncate(fd, 500) || ftruncate(fd, 4096)) return 8;
        fill(map, 4096);
        map = begin("ahead", &fd);
        if (posix_fallocate(fd, 0, 8192)) return 9;
        fill(map, 4096);
        puts("truncated written behind shorter ahead");
        return 0;
    }"#;

#[test]
#[ignore = "starts a machine"]
fn what_a_mapping_writes_where_a_file_has_grown_is_kept_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("grows.c");
    fs::write(&source, GROWS).unwrap();
    let mut compiler = Command::new("musl-gcc");
    compiler.args(["-static", "-O1", "-o"]).arg(directory.path().join("grows")).arg(&source);
    assert!(compiler.status().expect("musl-gcc is installed (`make setup`)").success());
    for kind in [("ext4", "1024"), ("ext4", "2048"), ("ext3", "1024"), ("ext2", "1024"), ("ext4", "4096")] {
        let image = image(directory.path(), kind, "12M");
        let again = format!("cd /; umount /m; mount -t {} /dev/vda /m; cd /m", kind.0);
        // Not all kinds have room kept for a file in advance: EOPNOTSUPP ends there what posix_fallocate(3) is to do.
        let script = format!(
            "mkdir /m; mount -t {0} /dev/vda /m; cd /m; /v/grows >/dev/null; [ $? = 0 -o {0} != ext4 ] || echo failed; ls >/tmp/list; sha256sum * 2>/dev/null >/tmp/a
            {again}; sha256sum * 2>/dev/null >/tmp/b; cmp /tmp/a /tmp/b; grep -c . /tmp/list; /v/grows full; sha256sum full >/tmp/a; {again}; sha256sum full >/tmp/b; cmp /tmp/a /tmp/b; cd /; umount /m",
            kind.0
        );
        let mut machine = ebb(&image, &script);
        // Options come before the program.
        let arguments: Vec<_> = machine.get_args().map(ToOwned::to_owned).collect();
        let volume = format!("{}:/v:ro", directory.path().to_str().unwrap());
        machine = Command::new(env!("CARGO_BIN_EXE_ebb"));
        machine.stdin(Stdio::null()).arg(&arguments[0]).args(["-v", &volume]).args(&arguments[1..]);
        let output = machine.output().expect("ebb can be started");
        let said = String::from_utf8_lossy(&output.stdout);
        let outcome = if kind.1 == "4096" { "written" } else { "refused" };
        assert_eq!(said, format!("6\n{outcome}\n"), "{kind:?}: {}", String::from_utf8_lossy(&output.stderr));
        check(&image);
    }
}

/// Writes, synchronises and renames files without an end, and says which are on the disk. What is found at the start must be whole.
const WORK: &str = "mkdir -p /m; mount -t KIND /dev/vda /m || exit 1; cd /m; mkdir -p w
for f in w/s*; do [ -f $f ] || continue; a=$(head -n1 $f); [ \"$(tail -n1 $f)\" = \"end $a\" ] || echo \"BAD $f\"; done
echo READY; i=0
while :; do i=$((i+1)); r=$(( (i*7+CUT) % 23 ))
{ echo CUT.$i; dd if=/dev/zero bs=1000 count=$r 2>/dev/null | tr '\\0' x; echo; echo end CUT.$i; } >w/t$r
sync w/t$r && mv w/t$r w/s$r && sync w/s$r w && echo \"KEPT $r $i\"
[ $((i%3)) = 0 ] && { mkdir -p w/d$i; cp w/s$r w/d$i/x; rm -rf w/d$((i-9)); }
done";

#[test]
#[ignore = "starts a machine"]
fn what_was_synchronised_survives_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    for kind in [("ext4", "4096"), ("ext4", "1024"), ("ext3", "4096")] {
        let image = image(directory.path(), kind, "48M");
        let mut all_kept = 0;
        for cut in 1..=cuts() {
            let script = WORK.replace("KIND", kind.0).replace("CUT", &cut.to_string());
            // It complains that its machine has gone.
            let mut machine = ebb(&image, &script);
            let machine = machine.stdout(Stdio::piped()).stderr(Stdio::null());
            let mut machine = machine.spawn().expect("ebb can be started");
            let mut lines = BufReader::new(machine.stdout.take().unwrap()).lines().map_while(Result::ok);
            let mut kept = std::collections::BTreeMap::new();
            let mut note = |line: &str| {
                assert!(!line.starts_with("BAD"), "{kind:?}, cut {cut}: {line}");
                if let Some((slot, number)) = line.strip_prefix("KEPT ").and_then(|rest| rest.split_once(' ')) {
                    kept.insert(slot.to_owned(), number.parse::<u64>().unwrap());
                }
            };
            let is_ready = lines.by_ref().any(|line| {
                note(&line);
                line == "READY"
            });
            assert!(is_ready, "{kind:?}, cut {cut}: it cannot be mounted");
            std::thread::sleep(Duration::from_millis(150 + u64::from(cut * 397 % 1700)));
            kill_emulator(machine.id());
            lines.for_each(|line| note(&line));
            let _ = machine.wait();
            // A copy is replayed by e2fsck, the image itself by the next machine.
            let copy = directory.path().join("copy").to_str().unwrap().to_owned();
            fs::copy(&image, &copy).unwrap();
            let mut repair = Command::new("/usr/sbin/e2fsck");
            let outcome = repair.args(["-f", "-y", &copy]).output().expect("package e2fsprogs");
            assert!(outcome.status.code().is_some_and(|code| code <= 1), "{kind:?}, cut {cut}");
            all_kept += kept.len();
            for (slot, number) in kept {
                let found = content(&copy, &format!("w/s{slot}"));
                let text = String::from_utf8_lossy(&found);
                let is = text.lines().next().and_then(|line| line.strip_prefix(&format!("{cut}.")));
                let is = is.and_then(|number| number.parse::<u64>().ok());
                assert!(is.is_some_and(|is| is >= number), "{kind:?}, cut {cut}: slot {slot} has {is:?}, not {number}");
            }
        }
        assert!(all_kept > 0, "{kind:?}: nothing was synchronised");
        let mount = format!("mkdir /m; mount -t {} /dev/vda /m && umount /m", kind.0);
        said(&image, &mount);
        check(&image);
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_replaces_a_file_is_whole_after_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    for (cut, kind) in [("ext4", "4096"), ("ext3", "4096"), ("ext4", "1024")].into_iter().enumerate() {
        let image = image(directory.path(), kind, "48M");
        // Nothing is synchronised after the first, but changes are committed every five seconds.
        let script = format!(
            "mkdir /m; mount -t {} /dev/vda /m; cd /m; seq 3000 >f; echo end >>f; sync; echo READY
            while :; do seq 3000 >t; echo end >>t; mv t f; done",
            kind.0
        );
        let mut machine = ebb(&image, &script);
        let mut machine = machine.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("ebb can be started");
        let mut lines = BufReader::new(machine.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line == "READY"));
        std::thread::sleep(Duration::from_millis(6000 + 777 * cut as u64));
        kill_emulator(machine.id());
        let _ = machine.wait();
        let outcome = Command::new("/usr/sbin/e2fsck").args(["-f", "-y", &image]).output().expect("package e2fsprogs");
        assert!(outcome.status.code().is_some_and(|code| code <= 1), "{kind:?}");
        let text: String = (1..=3000).map(|number| format!("{number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&content(&image, "f")), text + "end\n", "{kind:?}");
    }
}

/// Runs a script until it says that it is ready; then the power is gone.
#[track_caller]
fn cut_when_ready(image: &str, script: &str) {
    let mut machine = ebb(image, script);
    let mut machine = machine.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("ebb can be started");
    let mut lines = BufReader::new(machine.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "READY"), "{script}");
    kill_emulator(machine.id());
    let _ = machine.wait();
}
