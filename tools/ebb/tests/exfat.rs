//! exFAT in the guest. These tests start machines: see `command.rs`.

#[path = "../../../formats/exfat/tests/disk/mod.rs"]
mod disk;
mod power;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use disk::{Disk, Random};
use power::{cuts, kill_emulator};

fn run(options: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--timeout", "600s", "--cpus", "2"]).args(options).args(["sh", "-c", script]);
    command.stdin(Stdio::null()).output().expect("ebb can be started")
}

/// A disk with BusyBox, many files, some scattered over it, and one that was not written to its end.
fn make(options: &str) -> (Disk, Vec<(String, Vec<u8>)>) {
    let mut disk = Disk::make(options, 64 << 20);
    let mut random = Random::new(5);
    let root = disk.root();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    let busybox = fs::read(busybox.expect("package busybox-static")).unwrap();
    let mut files = vec![("BusyBox".to_owned(), busybox.clone())];
    let file = disk.create(root, "BusyBox", false);
    disk.write(file, &busybox, busybox.len(), false);
    let directory = disk.create(root, "Many Files", true);
    for number in 0..150 {
        let mut content: Vec<u8> = (0..random.below(20_000)).map(|_| random.next() as u8).collect();
        let written = if number % 3 == 0 { content.len() / 2 } else { content.len() };
        content[written..].fill(0);
        let name = format!("\u{e4} file {number}");
        let file = disk.create(directory, &name, false);
        disk.write(file, &content, written, number % 2 == 0);
        files.push((format!("Many Files/{name}"), content));
    }
    disk.check();
    (disk, files)
}

#[test]
#[ignore = "starts a machine"]
fn the_guest_reads_exfat() {
    let directory = tempfile::tempdir().unwrap();
    for options in ["-c 512", "-c 4K", "-c 128K"] {
        let (disk, files) = make(options);
        let image = directory.path().join("image");
        fs::write(&image, &disk.bytes).unwrap();
        let list = directory.path().join("list");
        let text: String =
            files.iter().map(|(path, content)| format!("{}  {path}\n", sum(directory.path(), content))).collect();
        fs::write(&list, text).unwrap();
        let (disk, list) = (format!("{}:ro", image.display()), format!("{}:ro", list.display()));
        let script = "mkdir /m; mount -t exfat -o ro,uid=7,gid=8,fmask=0133,dmask=027 /dev/vda /m && cd /m || exit 1
            dd if=/dev/vdb of=/list 2>/dev/null; tr -d '\\0' </list | grep . >/sums
            sha256sum -c /sums | grep -vc ': OK$'; ls 'MANY files' | wc -l
            stat -c '%a %u %g %Y %n' busybox 'mAnY fIlEs'
            echo x 2>&- >new || echo refused
            cd /; umount /m; mount -t exfat /dev/vda /m && /m/busybox true && echo executed
            grep -c '/m exfat ro' /proc/mounts; grep -c exfat /proc/filesystems
            mount -t exfat -o nonsense=1 /dev/vda /m 2>&- || echo no such option";
        let output = run(&["--disk", &disk, "--disk", &list], script);
        let expected = "0\n150\n644 7 8 1709210097 busybox\n750 7 8 1709210097 mAnY fIlEs\nrefused\nexecuted\n1\n1\nno such option\n";
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{options}: {stderr}");
    }
}

/// That fsck.exfat finds nothing wrong with an image.
fn check(image: &Path) {
    let output = Command::new("/usr/sbin/fsck.exfat").arg("-n").arg(image).output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {told}", image.display());
}

#[test]
#[ignore = "starts a machine"]
fn the_guest_writes_exfat() {
    let directory = tempfile::tempdir().unwrap();
    for options in ["-c 512", "-c 4K", "-c 32K"] {
        let (disk, _) = make(options);
        let image = directory.path().join("image");
        fs::write(&image, &disk.bytes).unwrap();
        let disk = image.display().to_string();
        let script = "mkdir /m; mount -t exfat /dev/vda /m && cd /m || exit 1
            grep -c '/m exfat rw' /proc/mounts
            # Files: made, appended to, cut, sparse, replaced, renamed.
            mkdir -p new/deep/er; seq 1 20000 >new/numbers; seq 20001 30000 >>new/numbers; seq 1 30000 | cmp - new/numbers && echo appended
            dd if=/dev/zero of=new/sparse bs=1 count=0 seek=300000 2>/dev/null; stat -c %s new/sparse
            echo end | dd of=new/sparse bs=1 seek=400000 conv=notrunc 2>/dev/null; stat -c %s new/sparse
            tr -d '\\0' <new/sparse
            truncate -s 5 new/numbers; od -c new/numbers | head -n 1
            truncate -s 9 new/numbers; od -An -c new/numbers
            mv new/numbers new/deep/Digits; mv new/deep/Digits new/deep/DIGITS; ls new/deep
            echo old >target; echo new >source; mv source TARGET; cat target; ls | grep -i target
            for i in $(seq 1 300); do echo $i >new/deep/er/file-$i; done
            for i in $(seq 1 3 300); do rm new/deep/er/FILE-$i; done; ls new/deep/er | wc -l; cat new/deep/er/* | wc -l
            mv new/deep/er moved; ls moved | wc -l; rmdir moved 2>&- || echo not empty
            # A file that is open has no name and is written.
            exec 3<>moved/file-2; rm moved/file-2; seq 1 5000 >&3; wc -l </proc/self/fd/3 2>&- ; exec 3>&-
            # What there is not.
            ln -s a link 2>&- || echo no symlink; ln target hard 2>&- || echo no link; mkfifo pipe 2>&- || echo no fifo
            echo >'a:b' 2>&- || echo no colon
            chmod 555 target; stat -c %a target; chmod 600 target; stat -c %a target; chmod 755 target; stat -c %a target
            chown 7 target 2>&- || echo no owner
            touch -d '2020-02-03 04:05:06' target; stat -c %Y target
            cp 'Many Files/'* new/ && rm -r 'Many Files' && ls new | wc -l
            sync; cd /; umount /m; mount -t exfat /dev/vda /m; cd /m
            cat TARGET; stat -c '%a %Y' target; ls moved | wc -l; ls new | wc -l; tr -d '\\0' <new/sparse; od -An -c new/deep/digits
            cd /; umount /m; echo done";
        let output = run(&["--disk", &disk], script);
        let expected = "1\nappended\n300000\n400004\nend\n0000000   1  \\n   2  \\n   3\n   1  \\n   2  \\n   3  \\0  \\0  \\0  \\0\nDIGITS\ner\nnew\nTARGET\n200\n200\n200\nnot empty\n5000\nno symlink\nno link\nno fifo\nno colon\n555\n555\n755\nno owner\n1580702706\n152\nnew\n755 1580702706\n199\n152\nend\n   1  \\n   2  \\n   3  \\0  \\0  \\0  \\0\ndone\n";
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{options}: {stderr}");
        check(&image);
        let bytes = fs::read(&image).unwrap();
        assert_eq!(bytes[106] & 2, 0, "it was unmounted");
    }
}

/// Says what is there, which must be whole; then writes, synchronises and renames files without an end, and says which are on the disk.
const WORK: &str = "mkdir -p /m; mount -t exfat /dev/vda /m || exit 1; cd /m; mkdir -p w
for f in w/s*; do [ -f $f ] || continue; a=$(head -n1 $f); [ \"$(tail -n1 $f)\" = \"end $a\" ] || echo \"BAD $f\"; echo \"HAS ${f#w/s} $a\"; done
echo READY; i=0
while [ CUT != last ]; do i=$((i+1)); r=$(( (i*7+CUT) % 23 ))
{ echo CUT.$i; dd if=/dev/zero bs=1000 count=$r 2>/dev/null | tr '\\0' x; echo; echo end CUT.$i; } >w/t$r
sync w/t$r && mv w/t$r w/s$r && sync w/s$r w && echo \"KEPT $r $i\"
[ $((i%3)) = 0 ] && { mkdir -p w/d$i; cp w/s$r w/d$i/x; mv w/d$i/x w/d$i/another-name; rm -rf w/d$((i-9)); }
done; cd /; umount /m";

#[test]
#[ignore = "starts a machine"]
fn what_was_synchronised_survives_a_power_cut() {
    let directory = tempfile::tempdir().unwrap();
    for options in ["-c 512", "-c 4K", "-c 32K"] {
        let image = directory.path().join("image");
        fs::write(&image, Disk::make(options, 64 << 20).bytes).unwrap();
        // For each slot the cut before which it was written last, and how many were before.
        let mut kept: BTreeMap<String, (u32, u64)> = BTreeMap::new();
        for cut in 1..=cuts() + 1 {
            let is_last = cut > cuts();
            let script = WORK.replace("CUT", &if is_last { "last".to_owned() } else { cut.to_string() });
            let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
            command.args(["run", "--timeout", "300s", "--cpus", "2", "--disk"]).arg(&image).args(["sh", "-c", &script]);
            let machine = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut machine = machine.spawn().expect("ebb can be started");
            let mut lines = BufReader::new(machine.stdout.take().unwrap()).lines().map_while(Result::ok);
            let mut found = BTreeMap::new();
            for line in lines.by_ref().take_while(|line| line != "READY") {
                assert!(!line.starts_with("BAD"), "{options}, cut {cut}: {line}");
                let (slot, number) = line.strip_prefix("HAS ").and_then(|rest| rest.split_once(' ')).unwrap();
                let (cut, number) = number.split_once('.').unwrap();
                found.insert(slot.to_owned(), (cut.parse::<u32>().unwrap(), number.parse::<u64>().unwrap()));
            }
            for (slot, written) in &kept {
                let is = found.get(slot);
                assert!(is.is_some_and(|is| is >= written), "{options}, cut {cut}: {slot} has {is:?}, not {written:?}");
            }
            if !is_last {
                std::thread::sleep(Duration::from_millis(150 + u64::from(cut * 397 % 1700)));
                kill_emulator(machine.id());
            }
            for line in lines {
                if let Some((slot, number)) = line.strip_prefix("KEPT ").and_then(|rest| rest.split_once(' ')) {
                    kept.insert(slot.to_owned(), (cut, number.parse().unwrap()));
                }
            }
            let _ = machine.wait();
            // A chain may be longer than its file: those clusters nobody has.
            let output = Command::new("/usr/sbin/fsck.exfat").arg("-n").arg(&image).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            let is_bad = |line: &&str| line.starts_with("ERROR") && !line.contains("more clusters are allocated");
            assert_eq!(told.lines().find(is_bad), None, "{options}, cut {cut}");
        }
        assert!(!kept.is_empty(), "{options}: nothing was synchronised");
    }
}

/// The SHA-256 of content.
fn sum(at: &Path, content: &[u8]) -> String {
    let path = at.join("content");
    fs::write(&path, content).unwrap();
    let output = Command::new("sha256sum").arg(&path).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap().to_owned()
}

#[test]
#[ignore = "starts a machine"]
fn damaged_exfat_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let (disk, _) = make("-c 4K");
    let mut random = Random::new(9);
    let mut disks = Vec::new();
    let mut script = "mkdir /m\n".to_owned();
    for number in 0..8_u8 {
        let mut bytes = disk.bytes.clone();
        for _ in 0..1 + random.below(30) {
            let (start, len) = disk.metadata[random.below(disk.metadata.len() as u64) as usize];
            bytes[start + random.below(len as u64) as usize] ^= 1 << random.below(8);
        }
        disk::mend(&mut bytes, &disk.metadata, number % 4 != 0);
        let path = directory.path().join(number.to_string());
        fs::write(&path, bytes).unwrap();
        disks.push(path.display().to_string());
        let letter = char::from(b'a' + number);
        script += &format!(
            "if mount -t exfat -o ro /dev/vd{letter} /m; then find /m -maxdepth 8 -exec stat {{}} +; find /m -maxdepth 8 -type f -exec head -c 200000 {{}} \\; ; umount /m; fi >/dev/null 2>&1
             if mount -t exfat /dev/vd{letter} /m; then cd /m; mkdir -p a/b; for i in 1 2 3 4 5 6 7 8 9; do echo $i >a/$i; cp BusyBox a/b/$i; mv a/$i \"Many Files/$i\"; done; for f in */*; do echo x >>\"$f\"; truncate -s 3000 \"$f\"; done; rm -r 'Many Files'; cd /; umount /m; fi >/dev/null 2>&1\n"
        );
    }
    script += "echo survived";
    let options: Vec<&str> = disks.iter().flat_map(|disk| ["--disk", disk]).collect();
    let output = run(&options, &script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "survived\n", "{}", String::from_utf8_lossy(&output.stderr));
}
