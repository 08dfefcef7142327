//! File systems on disks: the guest reads from them what the host has put there, as a root too, and survives what is damaged. These tests start machines: see `command.rs`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs a program; what it says.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn ebb(options: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--timeout", "600s", "--cpus", "2"]).args(options).args(["sh", "-c", script]);
    command
}

fn run(options: &[&str], script: &str) -> Output {
    ebb(options, script).stdin(Stdio::null()).output().expect("ebb can be started")
}

/// A directory that is to be stored, with BusyBox in it.
fn source(at: &Path) -> PathBuf {
    let root = at.join("root");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::create_dir_all(root.join("many/deep")).unwrap();
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
    fs::copy(busybox.expect("package busybox-static"), root.join("bin/busybox")).unwrap();
    symlink("busybox", root.join("bin/sh")).unwrap();
    symlink("../many/f7", root.join("bin/link")).unwrap();
    for number in 0..400 {
        fs::write(root.join(format!("many/f{number}")), format!("file {number}\n").repeat(number)).unwrap();
    }
    let noise: Vec<u8> = (0..800_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(root.join("noise"), &noise).unwrap();
    fs::write(root.join("text"), "words that come again\n".repeat(30_000)).unwrap();
    fs::hard_link(root.join("text"), root.join("many/deep/same")).unwrap();
    let holes = fs::File::create(root.join("holes")).unwrap();
    holes.set_len(9_000_000).unwrap();
    root
}

/// Images of the directory: a name, the type for mount(8), and the file.
fn images(at: &Path, root: &Path) -> Vec<(&'static str, &'static str, String)> {
    let mut made = Vec::new();
    let mut image = |name: &'static str, kind: &'static str, make: &dyn Fn(&Path) -> Command| {
        let path = at.join(name);
        said(&mut make(&path));
        made.push((name, kind, path.to_str().unwrap().to_owned()));
    };
    for (name, options) in [("plain", &[][..]), ("lz4", &["-zlz4hc", "-C65536", "-Eztailpacking"][..])] {
        image(name, "erofs", &|path| {
            let mut command = Command::new("mkfs.erofs");
            command.args(options).args([path, root]);
            command
        });
    }
    let squash = [
        ("squash-zlib", "-comp gzip"),
        ("squash-lz4", "-comp lz4 -b 4096 -always-use-fragments"),
        ("squash-xz", "-comp xz -b 1M"),
        ("squash-zstd", "-comp zstd -b 256K -no-fragments"),
        ("squash-plain", "-noI -noD -noF -noX"),
    ];
    for (name, options) in squash {
        image(name, "squashfs", &|path| {
            let mut command = Command::new("mksquashfs");
            command.args([root, path]).args(["-quiet", "-no-progress"]).args(options.split(' '));
            command
        });
    }
    let ext = [
        ("ext4", "ext4", &["-b", "4096"][..]),
        ("small-blocks", "ext4", &["-b", "1024"][..]),
        ("ext2", "ext2", &["-b", "4096"][..]),
        ("ext3", "ext3", &["-b", "2048"][..]),
    ];
    for (name, kind, options) in ext {
        image(name, kind, &|path| {
            let mut command = Command::new("/usr/sbin/mke2fs");
            command.args(["-q", "-t", kind]).args(options).arg("-d").args([root, path]).arg("64M");
            command
        });
    }
    made
}

/// What is said of each file.
const LIST: &str = "find . -name lost+found -prune -o -type f -print | sort | xargs sha256sum; readlink bin/link; ls many | wc -l; stat -c %h text";

#[test]
#[ignore = "starts a machine"]
fn the_guest_reads_what_the_host_has_stored() {
    let directory = tempfile::tempdir().unwrap();
    let root = source(directory.path());
    let expected = said(Command::new("sh").arg("-c").arg(LIST).current_dir(&root));
    for (name, kind, image) in images(directory.path(), &root) {
        let disk = format!("{image}:ro");
        let script = format!(
            "mkdir /m; mount -t {kind} -o ro /dev/vda /m && cd /m && {LIST}; cd /
            /m/bin/busybox true && echo executed
            echo x 2>&- >/m/new || echo refused
            umount /m && echo gone
            mount -t {kind} -o ro /dev/vda /m && /m/bin/busybox cat /m/many/f3"
        );
        let output = said(&mut ebb(&["--disk", &disk], &script));
        let file = "file 3\n".repeat(3);
        assert_eq!(output, format!("{expected}executed\nrefused\ngone\n{file}"), "{name}");
    }
}

#[test]
#[ignore = "starts a machine"]
fn an_image_is_a_root_that_stays_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let root = source(directory.path());
    for (name, _, image) in images(directory.path(), &root) {
        let before = fs::read(&image).unwrap();
        let script = "cat /many/f1; echo new >/many/f1; rm /many/f2; mkdir /made; cat /many/f1; ls /many | busybox wc -l; busybox sha256sum /text | busybox cut -c1-8";
        let script = script.replace("cat ", "busybox cat ").replace("ls ", "busybox ls ").replace("rm ", "busybox rm ");
        let script = script.replace("mkdir ", "busybox mkdir ");
        let output = said(&mut ebb(&["--rootfs", &image], &script));
        let digest = said(Command::new("sha256sum").arg(root.join("text")));
        assert_eq!(output, format!("file 1\nnew\n400\n{}\n", &digest[..8]), "{name}");
        assert!(fs::read(&image).unwrap() == before, "{name} was written");
    }
}

#[test]
#[ignore = "starts a machine"]
fn what_is_damaged_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let root = source(directory.path());
    let mut state = 7_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (name, kind, image) in images(directory.path(), &root) {
        let whole = fs::read(&image).unwrap();
        let mut disks = Vec::new();
        let mut script = "mkdir /m\n".to_owned();
        for number in 0..8 {
            let mut bytes = whole.clone();
            // Metadata is mostly at the start.
            for _ in 0..1 + random(40) {
                let reach = if random(3) == 0 { bytes.len() } else { bytes.len().min(400_000) };
                bytes[1024 + random(reach - 1024)] ^= 1 << random(8);
            }
            let path = directory.path().join(format!("{name}.{number}"));
            fs::write(&path, bytes).unwrap();
            disks.push(format!("{}:ro", path.display()));
            let letter = char::from(b'a' + number);
            script += &format!(
                "if mount -t {kind} -o ro /dev/vd{letter} /m; then find /m -maxdepth 8 -exec stat {{}} +; find /m -maxdepth 8 -type f -exec head -c 200000 {{}} \\; ; /m/bin/busybox true; umount /m; fi >/dev/null 2>&1\n"
            );
        }
        script += "echo survived";
        let options: Vec<&str> = disks.iter().flat_map(|disk| ["--disk", disk]).collect();
        let output = run(&options, &script);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "survived\n", "{name}: {stderr}");
    }
}
