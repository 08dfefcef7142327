//! Files as disks in guests: file systems in files of every kind of file system, one in another, and the commands that mount them. These tests start machines: see `command.rs`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program, which must not fail; what it says.
#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// Runs a script in a guest with these options.
#[track_caller]
fn guest(options: &[&str], script: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    said(command.args(["run", "--timeout", "300s", "--cpus", "2"]).args(options).args(["sh", "-ec", script]))
}

/// Makes an ext4 image of that size.
fn image(at: &Path, name: &str, size: &str) -> String {
    let path = at.join(name);
    said(Command::new("/usr/sbin/mke2fs").args(["-q", "-F", "-t", "ext4"]).arg(&path).arg(size));
    path.to_str().unwrap().to_owned()
}

/// Has e2fsck look at an image, and change nothing.
#[track_caller]
fn check(image: &str) {
    said(Command::new("/usr/sbin/e2fsck").args(["-f", "-n", image]));
}

/// What a file of an image is, as the host sees it.
fn content(image: &str, path: &str) -> String {
    said(Command::new("/usr/sbin/debugfs").args(["-R", &format!("cat {path}"), image]))
}

#[test]
#[ignore = "starts a machine"]
fn a_file_system_in_a_file_of_memory_keeps_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let image = image(directory.path(), "image", "16M");
    let script = "dd if=/dev/vda of=/img bs=64k 2>/dev/null; mkdir /m; i=0
        while [ $i -lt 20 ]; do mount -t ext4 -o loop /img /m; echo $i >/m/f$i; umount /m; i=$((i+1)); done
        losetup -a | wc -l
        mount -t ext4 -o loop /img /m; cat /m/f* | wc -l; echo kept >/m/note; umount /m
        dd if=/img of=/dev/vda bs=64k 2>/dev/null; sync";
    assert_eq!(guest(&["--disk", &image], script), "0\n20\n");
    check(&image);
    assert_eq!(content(&image, "/note"), "kept\n");
}

#[test]
#[ignore = "starts a machine"]
fn a_file_system_is_in_a_file_of_another_and_that_again() {
    let directory = tempfile::tempdir().unwrap();
    let outer = image(directory.path(), "outer", "96M");
    let (middle, inner) = (image(directory.path(), "middle", "48M"), image(directory.path(), "inner", "16M"));
    let script = "mkdir /a /b /c; mount -t ext4 /dev/vda /a
        dd if=/dev/vdb of=/a/middle bs=64k 2>/dev/null; mount -t ext4 -o loop /a/middle /b
        dd if=/dev/vdc of=/b/inner bs=64k 2>/dev/null; mount -t ext4 -o loop /b/inner /c
        umount /b 2>/dev/null && echo 'unmounted under another'
        dd if=/dev/zero of=/c/zeros bs=64k count=100 2>/dev/null; echo deep >/c/note; sync
        umount /c; mount -t ext4 -o loop /b/inner /c; cat /c/note; umount /c; umount /b; umount /a; echo done";
    let disks = ["--disk", &outer, "--disk", &middle, "--disk", &inner];
    assert_eq!(guest(&disks, script), "deep\ndone\n");
    check(&outer);
    // As the file systems are in each other, the host finds them.
    let extract = |from: &str, name: &str, to: &str| {
        let to = directory.path().join(to).to_str().unwrap().to_owned();
        said(Command::new("/usr/sbin/debugfs").args(["-R", &format!("dump {name} {to}"), from]));
        check(&to);
        to
    };
    let found = extract(&extract(&outer, "/middle", "middle.found"), "/inner", "inner.found");
    assert_eq!(content(&found, "/note"), "deep\n");
}

#[test]
#[ignore = "starts a machine"]
fn images_in_a_directory_of_the_host_and_read_only_ones_can_be_mounted() {
    let directory = tempfile::tempdir().unwrap();
    let shared = directory.path().join("shared");
    fs::create_dir_all(shared.join("source")).unwrap();
    fs::write(shared.join("source/text"), "words\n".repeat(5000)).unwrap();
    let image = image(&shared, "ext4.img", "16M");
    said(Command::new("mkfs.erofs").arg("-zlz4hc").arg(shared.join("erofs.img")).arg(shared.join("source")));
    let volume = format!("{}:/v", shared.display());
    let script = "mkdir /m; mount -t erofs -o loop,ro /v/erofs.img /m; cat /m/text | wc -l; umount /m
        mount -t ext4 -o loop /v/ext4.img /m; echo kept >/m/note; sync; umount /m
        loop=$(losetup -f); losetup -o 4096 $loop /v/source/text; head -c 5 $loop; losetup -d $loop";
    assert_eq!(guest(&["-v", &volume], script), "5000\ns\nwor");
    check(&image);
    assert_eq!(content(&image, "/note"), "kept\n");
}
