//! A file system that is shut down (EXT4_IOC_SHUTDOWN): what was written before is there, what was not is not, nothing can be done meanwhile, and the host's e2fsck finds nothing wrong.
//! These tests start machines: see `command.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Shuts a file system down: `godown DIRECTORY HOW`.
const GODOWN: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
int main(int count, char **words) {
    unsigned how = atoi(words[2]);
    int fd = open(words[1], O_RDONLY);
    if (fd < 0 || ioctl(fd, _IOR('X', 125, unsigned), &how) != 0) {
        perror("godown");
        return 1;
    }
    return 0;
}
"#;

/// Writes the first byte of a file through a mapping: `msync FILE`.
const MSYNC: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
int main(int count, char **words) {
    int fd = open(words[1], O_RDWR);
    char *mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || mapped == MAP_FAILED)
        return 1;
    mapped[0] = 'M';
    if (msync(mapped, 4096, MS_SYNC) != 0) {
        perror("msync");
        return 1;
    }
    return 0;
}
"#;

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("it can be started");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a script says in a machine with this disk and directory.
#[track_caller]
fn said(image: &Path, place: &Path, script: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.args(["run", "--timeout", "300s", "--cpus", "2", "--disk"]).arg(image);
    command.arg("-v").arg(format!("{}:/t:ro", place.display()));
    let output = command.args(["sh", "-c", script]).stdin(Stdio::null()).output().expect("ebb can be started");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// A directory with these programs, and an image with an empty ext4.
fn place_and_image(directory: &Path, programs: &[(&str, &str)]) -> (PathBuf, PathBuf) {
    let (place, image) = (directory.join("t"), directory.join("image"));
    fs::create_dir(&place).unwrap();
    for (name, text) in programs {
        let source = format!("{name}.c");
        fs::write(place.join(&source), text).unwrap();
        run(Command::new("musl-gcc").current_dir(&place).args(["-static", "-o", name, &source]));
    }
    run(Command::new("/usr/sbin/mke2fs").args(["-q", "-F", "-t", "ext4"]).arg(&image).arg("64M"));
    (place, image)
}

#[test]
#[ignore = "starts a machine"]
fn what_was_synchronised_through_a_mapping_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (place, image) = place_and_image(directory.path(), &[("godown", GODOWN), ("msync", MSYNC)]);
    let script =
        "mkdir /m; mount -t ext4 /dev/vda /m; echo xyz >/m/f; sync; /t/msync /m/f && /t/godown /m 2 && umount /m
        mount -t ext4 -o ro /dev/vda /m; cat /m/f";
    assert_eq!(said(&image, &place, script), "Myz\n");
}

#[test]
#[ignore = "starts a machine"]
fn what_is_shut_down_has_what_was_written_before() {
    let directory = tempfile::tempdir().unwrap();
    let (place, image) = place_and_image(directory.path(), &[("godown", GODOWN)]);
    let script = "mkdir /m; on() { mount -t ext4 /dev/vda /m || exit; }; on
        echo kept >/m/kept; sync; echo lost >/m/lost; mkdir /m/gone; /t/godown /m 2 || exit
        echo more 2>&1 >/m/more; rm /m/kept 2>&1; mkdir /m/d 2>&1; sync /m/lost 2>&1; ls /m/never 2>&1
        /t/godown /m 2 && umount /m; on
        cat /m/kept; ls /m
        /t/godown /m 1 && umount /m; on; mkdir /m/one; /t/godown /m 1 && umount /m; on
        echo synced >/m/two; /t/godown /m 0 && umount /m; on
        cat /m/two; ls /m; /t/godown /m 3 2>&1; /t/godown /tmp 2 2>&1; umount /m";
    let said = said(&image, &place, script);
    let said: Vec<_> = said.lines().collect();
    let failed = said.iter().take_while(|line| **line != "kept");
    let failed: Vec<_> = failed.map(|line| line.rsplit(": ").next().unwrap_or_default()).collect();
    assert_eq!(failed, ["Input/output error"; 5], "{said:#?}");
    let rest: Vec<_> = said[failed.len()..].iter().map(|line| line.trim()).collect();
    let expected = [
        "kept",
        "kept",
        "lost+found",
        "synced",
        "kept",
        "lost+found",
        "one",
        "two",
        "godown: Invalid argument",
        "godown: Not a tty",
    ];
    assert_eq!(rest, expected, "{said:#?}");
    run(Command::new("/usr/sbin/e2fsck").args(["-f", "-n"]).arg(&image));
}
