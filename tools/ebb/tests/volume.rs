//! Directories of the host in guests: both see the same files, what one changes the other sees, and what fails is an error. These tests start machines: see `command.rs`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Prints what there is in the directory where it is run: each file with a checksum, each link with its target, all with their permissions.
const TREE: &str = "
    find . -type f -exec sha256sum {} ';' | sort
    find . -type l -exec readlink -n {} ';' -exec echo ' {}' ';' | sort
    find . -type d | sort
    find . ! -type l -exec stat -c '%a %s %h %Y %n' {} ';' | grep -v ' [.]$' | sort";

/// `ebb` with these options, to run a shell's script.
fn ebb(options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.stdin(Stdio::null()).args(["run", "--timeout", "600s"]).args(options);
    command.args(["/bin/busybox", "sh", "-ec", script]);
    command
}

/// What a command says, which must not fail.
#[track_caller]
fn said(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("it can be started");
    assert!(status.success(), "{status:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// What a script says that is run in a directory of the host.
fn said_by_host(directory: &Path, script: &str) -> String {
    said(Command::new("busybox").current_dir(directory).args(["sh", "-ec", script]))
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory can be made")
}

/// The option that makes a directory `/v` of the guest.
fn at_v(directory: &Path) -> String {
    format!("{}:/v", directory.display())
}

/// Bytes that are different everywhere.
fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    (0..len.div_ceil(4)).map(next).flat_map(u32::to_le_bytes).take(len).collect()
}

/// Names that programs may stumble over.
fn hostile_names() -> [Vec<u8>; 6] {
    [
        b"two\nlines".to_vec(),
        vec![b'x'; 255],
        "\u{e4}\u{4e16}\u{1f600}".into(),
        b"\xff\xfe not UTF-8".to_vec(),
        b" \\'\"$;".to_vec(),
        b"-rf".to_vec(),
    ]
}

/// Fills a directory with files of many lengths, links and names.
fn fill(at: &Path) {
    fs::create_dir_all(at.join("deep/er/est")).unwrap();
    for (number, len) in [0, 1, 4095, 4096, 4097, 65_536, 524_287, 524_289, 3 << 20].into_iter().enumerate() {
        fs::write(at.join(format!("deep/{len}")), pattern(len, number as u64)).unwrap();
    }
    for name in hostile_names() {
        fs::write(at.join("deep/er").join(OsStr::from_bytes(&name)), &name).unwrap();
    }
    fs::write(at.join("script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at.join("script"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(at.join("deep/4097"), at.join("deep/er/other name")).unwrap();
    symlink("deep/er", at.join("link")).unwrap();
    symlink("/nowhere/at/all", at.join("dangling")).unwrap();
}

/// Waits until the guest has made a file.
fn wait_for(path: &Path, child: &mut Child) {
    let began = Instant::now();
    while !path.exists() {
        assert!(child.try_wait().unwrap().is_none(), "the guest has ended before {}", path.display());
        assert!(began.elapsed() < Duration::from_secs(300), "the guest does not make {}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_tree_is_the_same_on_both_sides() {
    let place = directory();
    fill(place.path());
    for cpus in ["1", "2"] {
        let found = said(&mut ebb(&["--cpus", cpus, "-v", &at_v(place.path())], &format!("cd /v{TREE}")));
        assert_eq!(found, said_by_host(place.path(), TREE));
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_copy_that_the_guest_makes_is_the_same_on_both_sides() {
    let (from, to) = (directory(), directory());
    fill(from.path());
    let options = ["-v", &format!("{}:/from:ro", from.path().display()), "-v", &at_v(to.path())];
    // Hard links become files of their own.
    let script = format!("cp -a /from/. /v/; rm '/v/deep/er/other name' /v/deep/4097; cd /v{TREE}");
    let found = said(&mut ebb(&options, &script));
    assert_eq!(found, said_by_host(to.path(), TREE));
    fs::remove_file(from.path().join("deep/er/other name")).unwrap();
    fs::remove_file(from.path().join("deep/4097")).unwrap();
    let contents = "find . -type f -exec sha256sum {} ';' | sort";
    assert_eq!(said_by_host(from.path(), contents), said_by_host(to.path(), contents));
}

#[test]
#[ignore = "starts a machine"]
fn what_the_guest_does_is_done_on_the_host() {
    let place = directory();
    let at = |name: &str| place.path().join(name);
    for name in ["gone", "moved", "cut", "replaced"] {
        fs::write(at(name), "0123456789").unwrap();
    }
    fs::create_dir(at("empty")).unwrap();
    let script = "
        cd /v
        echo new >made; echo more >>made; echo x >>cut
        rm gone; rmdir empty; mkdir -p a/b; mv moved a/b/here; mv cut a
        truncate -s 4 a/cut; truncate -s 100000 long
        echo other >replacing; mv replacing replaced
        ln made a/hard; ln -s ../made a/soft
        chmod 4710 made; touch -d '2001-02-03 04:05:06' a/b
        dd if=/dev/zero of=holes bs=4096 seek=10 count=1
        echo middle | dd of=holes bs=1 seek=5000 conv=notrunc
        stat -c '%a %h %U:%G %F' made
        mv a/b a/c; test ! -e a/b; cat a/c/here; sync";
    assert_eq!(said(&mut ebb(&["-v", &at_v(place.path())], script)), "4710 2 root:root regular file\n0123456789");
    let text = |name: &str| fs::read_to_string(at(name)).unwrap();
    assert_eq!(text("made"), "new\nmore\n");
    assert_eq!(
        (text("a/c/here"), text("a/cut"), text("replaced")),
        ("0123456789".into(), "0123".into(), "other\n".into())
    );
    assert_eq!((text("a/hard"), text("a/soft")), ("new\nmore\n".into(), "new\nmore\n".into()));
    for name in ["gone", "moved", "cut", "empty", "a/b", "replacing"] {
        assert!(at(name).symlink_metadata().is_err(), "{name}");
    }
    assert_eq!(at("made").metadata().unwrap().mode(), 0o104_710);
    assert_eq!(at("a/c").metadata().unwrap().mtime(), 981_173_106);
    assert_eq!(fs::read(at("long")).unwrap(), vec![0; 100_000]);
    let mut holes = vec![0; 11 * 4096];
    holes[5000..5007].copy_from_slice(b"middle\n");
    assert!(fs::read(at("holes")).unwrap() == holes);
}

#[test]
#[ignore = "starts a machine"]
fn what_the_host_does_the_next_open_sees() {
    let place = directory();
    let at = |name: &str| place.path().join(name);
    for name in ["grown", "same length", "replaced", "removed", "watched"] {
        fs::write(at(name), "before\n").unwrap();
    }
    let script = "
        cd /v
        cat grown 'same length' replaced removed; test ! -e new
        exec 3<grown; cat <&3
        exec 4<watched; stat -Lc %s /proc/self/fd/4
        >ready
        until [ -e go ]; do sleep 0.1; done
        until [ $(stat -Lc %s /proc/self/fd/4) = 12 ]; do sleep 0.1; done
        cat grown 'same length' replaced new; cat <&3
        test ! -e removed; ls | tr '\\n' ' '";
    let mut command = ebb(&["-v", &at_v(place.path())], script);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    wait_for(&at("ready"), &mut child);
    fs::write(at("grown"), "before\nand after\n").unwrap();
    fs::write(at("same length"), "behind\n").unwrap();
    fs::write(at("watched"), "before after").unwrap();
    fs::write(at("other"), "other\n").unwrap();
    fs::rename(at("other"), at("replaced")).unwrap();
    fs::remove_file(at("removed")).unwrap();
    fs::write(at("new"), "new\n").unwrap();
    fs::write(at("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let expected = "before\nbefore\nbefore\nbefore\nbefore\n7\nbefore\nand after\nbehind\nother\nnew\nand after\n\
        go grown new ready replaced same length watched ";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
#[ignore = "starts a machine"]
fn what_is_written_the_host_sees_before_the_program_ends() {
    let place = directory();
    let script = "
        exec 3>/v/file; echo written >&3; >/v/ready
        until [ -e /v/go ]; do sleep 0.1; done";
    let mut child = ebb(&["-v", &at_v(place.path())], script).spawn().unwrap();
    wait_for(&place.path().join("ready"), &mut child);
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "written\n");
    fs::write(place.path().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "starts a machine"]
fn programs_run_from_a_volume_and_map_its_files() {
    let place = directory();
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/mman.h>
        #include <errno.h>
        #include <unistd.h>
        int main(void) {
            int fd = open("/v/data", O_RDWR);
            char *mapped = mmap(0, 3000000, PROT_READ, MAP_SHARED, fd, 0);
            char *own = mmap(0, 3000000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
            if (mapped == MAP_FAILED || own == MAP_FAILED || memcmp(mapped, own, 3000000)) return 1;
            own[5] = 'O';
            if (pwrite(fd, "written", 7, 2000000) != 7 || memcmp(mapped + 2000000, "written", 7)) return 2;
            if (mapped[5] == 'O' || msync(mapped, 3000000, MS_SYNC)) return 3;
            if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED || errno != ENODEV) return 4;
            return fwrite(mapped + 1999998, 1, 11, stdout) == 11 ? 0 : 5;
        }"#;
    fs::write(place.path().join("map.c"), source).unwrap();
    said(Command::new("musl-gcc").current_dir(place.path()).args(["-static", "-o", "map", "map.c"]));
    fs::write(place.path().join("data"), vec![b'.'; 3_000_000]).unwrap();
    fs::copy("/bin/busybox", place.path().join("busybox")).unwrap();
    let script = "/v/busybox echo a program; for i in 1 2 3; do /v/busybox true; done; /v/map";
    assert_eq!(said(&mut ebb(&["-v", &at_v(place.path())], script)), "a program\n..written..");
    fs::copy("/usr/bin/env", place.path().join("needs-libraries")).unwrap();
    for (words, expected) in [(&["/v/busybox", "echo", "run"][..], "run\n"), (&["/v/needs-libraries", "true"], "")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.stdin(Stdio::null()).args(["run", "-v", &at_v(place.path())]).args(words);
        assert_eq!(said(&mut command), expected);
    }
    assert_eq!(fs::read(place.path().join("data")).unwrap()[2_000_000..2_000_008], *b"written.");
}

#[test]
#[ignore = "starts a machine"]
fn git_works_in_a_volume() {
    let place = directory();
    fill(place.path());
    let option = at_v(place.path());
    let git = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
        command.stdin(Stdio::null()).args(["run", "--timeout", "600s", "-v", &option, "--workdir", "/v"]);
        said(command.args(["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"]).args(arguments))
    };
    git(&["init", "-q", "."]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "all"]);
    assert_eq!(git(&["status", "--porcelain"]), "");
    fs::write(place.path().join("script"), "#!/bin/sh\ntrue\n").unwrap();
    assert_eq!(git(&["status", "--porcelain"]), " M script\n");
    git(&["commit", "-q", "-a", "-m", "more"]);
    let host = |arguments: &[&str]| {
        let mut command = Command::new("git");
        // Whoever runs this need not own the directory.
        command.current_dir(place.path()).args(["-c", "safe.directory=*"]).args(arguments);
        said(&mut command)
    };
    host(&["fsck", "--strict"]);
    assert_eq!(host(&["log", "--format=%s"]), "more\nall\n");
    assert_eq!(host(&["status", "--porcelain"]), "");
}

#[test]
#[ignore = "starts a machine"]
fn a_working_directory_that_the_host_removes_is_empty() {
    let place = directory();
    fs::create_dir(place.path().join("cwd")).unwrap();
    let script = "
        cd /v/cwd; echo >/v/ready; until [ -e /v/go ]; do sleep 0.1; done
        ls && echo empty; mkdir /v/cwd && cd /v/cwd && echo again >file; cat file";
    let mut command = ebb(&["-v", &at_v(place.path())], script);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    wait_for(&place.path().join("ready"), &mut child);
    fs::remove_dir(place.path().join("cwd")).unwrap();
    fs::write(place.path().join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "empty\nagain\n");
}

#[test]
#[ignore = "starts a machine"]
fn an_open_file_outlives_its_name() {
    let place = directory();
    let script = "
        cd /v
        exec 3>file 4<file; echo before >&3; rm file; echo after >&3; cat <&4; test ! -e file
        echo other >file; cat file; echo more >&3; cat <&4
        exec 5<old; mv new old; cat <&5; cat old; stat -Lc '%h %s' /proc/self/fd/4";
    fs::write(place.path().join("old"), "old\n").unwrap();
    fs::write(place.path().join("new"), "new\n").unwrap();
    let found = said(&mut ebb(&["-v", &at_v(place.path())], script));
    assert_eq!(found, "before\nafter\nother\nmore\nold\nnew\n0 18\n");
    assert_eq!(fs::read_to_string(place.path().join("file")).unwrap(), "other\n");
}

#[test]
#[ignore = "starts a machine"]
fn a_directory_of_ten_thousand_files_is_listed_filled_and_emptied() {
    let place = directory();
    let many = place.path().join("many");
    fs::create_dir(&many).unwrap();
    for number in 0..10_000 {
        fs::write(many.join(format!("file {number}")), "").unwrap();
    }
    let script = "
        cd /v/many; ls | wc -l; ls | sort -u | wc -l
        cat 'file 1' 'file 9999'; i=0; while [ $i -lt 500 ]; do echo $i >made$i; i=$((i + 1)); done
        ls | wc -l; find . -name 'made*' | wc -l; cat made499
        rm -r /v/many; ls -a /v | wc -l";
    let found = said(&mut ebb(&["--cpus", "2", "-v", &at_v(place.path())], script));
    assert_eq!(found, "10000\n10000\n10500\n500\n499\n2\n");
    assert!(!many.exists());
}

#[test]
#[ignore = "starts a machine"]
fn writers_on_two_cores_lose_nothing() {
    let place = directory();
    // What is looked at meanwhile is more than the guest keeps at hand.
    let script = "
        cd /v; mkdir many; i=0; while [ $i -lt 1500 ]; do >many/$i; i=$((i + 1)); done
        (while [ ! -e stop ]; do ls -l many >/dev/null; done) &
        for writer in 1 2 3 4; do
            (i=0; while [ $i -lt 200 ]; do
                echo $writer $i >>all; echo $i >$writer.$i; mv $writer.$i $writer
                # What was given the number of a file that is gone is a new file.
                (set -C; echo $i >new.$writer.$i) || echo \"new.$writer.$i was there\"
                i=$((i + 1))
            done; >done.$writer) &
        done
        while [ ! -e done.1 ] || [ ! -e done.2 ] || [ ! -e done.3 ] || [ ! -e done.4 ]; do sleep 0.1; done
        >stop; wait; wc -l <all; cat 1 2 3 4";
    let found = said(&mut ebb(&["--cpus", "2", "-v", &at_v(place.path())], script));
    assert_eq!(found, "800\n199\n199\n199\n199\n");
    let text = fs::read_to_string(place.path().join("all")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 800);
}

#[test]
#[ignore = "starts a machine"]
fn a_file_that_loses_one_of_two_names_stays_the_same_file() {
    let place = directory();
    let script = "
        cd /v; echo abc >x; exec 3<>x; ln x y; rm y; sleep 2
        cat x; printf Z >&3; cat x; stat -Lc %h /proc/self/fd/3
        ln x y; mv y z; printf Y >&3; cat z; rm x; cat z; rm z; stat -Lc %h /proc/self/fd/3; echo new >x; printf X >&3; cat x";
    let found = said(&mut ebb(&["-v", &at_v(place.path())], script));
    assert_eq!(found, "abc\nZbc\n1\nZYc\nZYc\n0\nnew\n");
}

#[test]
#[ignore = "starts a machine"]
fn names_come_and_go_while_others_look_for_them() {
    let place = directory();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/volume/names.c");
    let program = place.path().join("names");
    said(Command::new("musl-gcc").args(["-static", "-O1", "-o"]).arg(program).arg(source));
    assert_eq!(said(&mut ebb(&["--cpus", "2", "-v", &at_v(place.path())], "/v/names")), "done\n");
}

#[test]
#[ignore = "starts a machine"]
fn nothing_of_a_read_only_volume_can_be_changed() {
    let place = directory();
    fill(place.path());
    let before = said_by_host(place.path(), TREE);
    let script = "
        cd /v
        for change in '>new' 'echo x >>script' 'mkdir d' 'rm script' 'mv script s' 'ln script s' 'chmod 600 script' 'touch script' 'rmdir deep/er/est'; do
            sh -c \"$change\" 2>&1 | grep -c 'Read-only file system'
        done
        mount -o remount,rw /v && >/v/new || echo refused; cat script";
    let option = format!("{}:ro", at_v(place.path()));
    let found = said(&mut ebb(&["-v", &option], script));
    assert_eq!(found, format!("{}refused\n#!/bin/sh\n", "1\n".repeat(9)));
    assert_eq!(said_by_host(place.path(), TREE), before);
}

#[test]
#[ignore = "starts a machine"]
fn names_that_the_guest_makes_are_those_that_it_says() {
    let place = directory();
    for (number, name) in hostile_names().into_iter().enumerate() {
        fs::write(place.path().join(format!("{number}")), name).unwrap();
    }
    let script = "
        cd /v; mkdir made; for i in 0 1 2 3 4 5; do name=$(cat $i; echo .); name=${name%.}; echo $i >\"made/$name\"; done
        >\"made/$(cat 1)x\" || echo too long";
    assert_eq!(said(&mut ebb(&["-v", &at_v(place.path())], script)), "too long\n");
    for (number, name) in hostile_names().into_iter().enumerate() {
        let path = place.path().join("made").join(OsStr::from_bytes(&name));
        assert_eq!(fs::read_to_string(path).unwrap(), format!("{number}\n"));
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_directory_is_a_root_of_which_nothing_is_written() {
    let root = directory();
    for name in ["bin", "etc", "data"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    fill(&root.path().join("data"));
    fs::copy("/bin/busybox", root.path().join("bin/busybox")).unwrap();
    fs::write(root.path().join("etc/motd"), "old\n").unwrap();
    let before = said_by_host(root.path(), TREE);
    let other = directory();
    let script = "
        export PATH=/bin
        busybox cat /etc/motd; echo new >/etc/motd; busybox cat /etc/motd; busybox rm -r /data/deep/er; busybox echo x >>/data/script
        busybox test ! -e /data/deep/er; busybox test -p /dev/null || busybox echo there >/v/seen";
    let options = ["--rootfs", root.path().to_str().unwrap(), "-v", &at_v(other.path())];
    assert_eq!(said(&mut ebb(&options, script)), "old\nnew\n");
    assert_eq!(said_by_host(root.path(), TREE), before);
    assert_eq!(fs::read_to_string(other.path().join("seen")).unwrap(), "there\n");
}

#[test]
#[ignore = "starts a machine"]
fn a_missing_directory_is_made_and_what_is_none_is_refused() {
    let place = directory();
    let missing = place.path().join("a/b, c");
    assert_eq!(said(&mut ebb(&["-v", &at_v(&missing)], "echo text >/v/file; df /v | wc -l")), "2\n");
    assert_eq!(fs::read_to_string(missing.join("file")).unwrap(), "text\n");
    let code = |option: &str| ebb(&["-v", option], "true").output().unwrap().status.code();
    assert_eq!(code("/etc/passwd:/v"), Some(119));
    assert_eq!(code(&format!("{}:/v:ro", place.path().join("no").display())), Some(119));
    for bad in ["/tmp", "/tmp:relative", ":/v"] {
        assert_eq!(code(bad), Some(120), "{bad}");
    }
}

#[test]
#[ignore = "starts a machine"]
fn a_volume_is_unmounted_and_mounted_again() {
    let place = directory();
    fill(place.path());
    let script = "
        cd /; mkdir /m
        for i in 1 2 3 4 5; do find /v -type f | wc -l; umount /v; mount -t 9p ebb0 /v; done
        mount -t 9p ebb0 /m; echo here >/v/new; cat /m/new
        mount -t 9p nosuch /m 2>/dev/null || echo none";
    let found = said(&mut ebb(&["-v", &at_v(place.path())], script));
    assert_eq!(found, format!("{}here\nnone\n", "18\n".repeat(5)));
}

#[test]
#[ignore = "starts a machine"]
fn who_watches_a_volume_is_told_what_the_guest_does_there() {
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <sys/inotify.h>
        #include <sys/stat.h>
        #include <unistd.h>
        static int watcher;
        static void show(const char *what) {
            char buffer[4096] __attribute__((aligned(8)));
            ssize_t length = read(watcher, buffer, sizeof buffer);
            printf("%s\n", what);
            for (ssize_t at = 0; at < length;) {
                struct inotify_event *event = (void *)(buffer + at);
                printf("  %d %#x %s\n", event->wd, event->mask, event->len ? event->name : "");
                at += sizeof *event + event->len;
            }
        }
        int main(void) {
            char bytes[4];
            watcher = inotify_init1(IN_NONBLOCK);
            mkdir("d", 0755), mkdir("other", 0755);
            inotify_add_watch(watcher, "d", IN_ALL_EVENTS);
            int fd = open("d/file", O_RDWR | O_CREAT, 0644);
            show("create");
            inotify_add_watch(watcher, "d/file", IN_ALL_EVENTS);
            write(fd, "text", 4), pread(fd, bytes, 4, 0), ftruncate(fd, 2), fchmod(fd, 0600);
            show("change");
            rename("d/file", "other/moved"), rename("other/moved", "d/back");
            show("rename");
            mkdir("d/sub", 0755), rmdir("d/sub"), symlink("x", "d/link"), unlink("d/link");
            show("others");
            unlink("d/back");
            show("unlink");
            write(fd, "more", 4), close(fd);
            show("close");
            rmdir("d");
            show("rmdir");
            return 0;
        }"#;
    let (there, here) = (directory(), directory());
    for at in [there.path(), here.path()] {
        fs::write(at.join("watch.c"), source).unwrap();
        said(Command::new("musl-gcc").current_dir(at).args(["-static", "-o", "watch", "watch.c"]));
    }
    let told = said(&mut ebb(&["-v", &at_v(there.path())], "cd /v; ./watch"));
    assert_eq!(told, said_by_host(here.path(), "./watch"));
    assert!(told.lines().count() > 30, "{told}");
}
