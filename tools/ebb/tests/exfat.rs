//! exFAT in the guest. These tests start machines: see `command.rs`.

#[path = "../../../formats/exfat/tests/disk/mod.rs"]
#[allow(dead_code, reason = "the tests of the format use the rest")]
mod disk;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use disk::{Disk, Random};

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
        disks.push(format!("{}:ro", path.display()));
        let letter = char::from(b'a' + number);
        script += &format!(
            "if mount -t exfat -o ro /dev/vd{letter} /m; then find /m -maxdepth 8 -exec stat {{}} +; find /m -maxdepth 8 -type f -exec head -c 200000 {{}} \\; ; umount /m; fi >/dev/null 2>&1\n"
        );
    }
    script += "echo survived";
    let options: Vec<&str> = disks.iter().flat_map(|disk| ["--disk", disk]).collect();
    let output = run(&options, &script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "survived\n", "{}", String::from_utf8_lossy(&output.stderr));
}
