//! Disks in guests: what a program writes is in the image, what is in the image a program reads, and what fails is an error. These tests start machines: see `command.rs`.

use ebb_guest::artifacts::KERNEL;
use ebb_guest::{Cpus, Guest, Image, Input, Kernel, Machine, Program};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const MIB: usize = 1 << 20;

/// Runs a shell's script on a machine with these disks.
fn run(disks: &[&str], cpus: &str, script: &str) -> Output {
    run_with(&["--cpus", cpus], disks, script)
}

/// Runs a shell's script on a machine with these options and disks.
fn run_with(options: &[&str], disks: &[&str], script: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ebb"));
    command.stdin(Stdio::null()).args(["run", "--timeout", "600s"]).args(options);
    for disk in disks {
        command.args(["--disk", disk]);
    }
    command.args(["sh", "-ec", script]).output().expect("ebb can be started")
}

/// What the script says, which must not fail.
#[track_caller]
fn said(disks: &[&str], cpus: &str, script: &str) -> String {
    said_with(&["--cpus", cpus], disks, script)
}

#[track_caller]
fn said_with(options: &[&str], disks: &[&str], script: &str) -> String {
    let output = run_with(options, disks, script);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("text")
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

fn image(directory: &Path, name: &str, bytes: &[u8]) -> String {
    let path = directory.join(name);
    fs::write(&path, bytes).expect("an image can be written");
    path.to_str().expect("the path is text").to_owned()
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory can be made")
}

/// Part of an image, as it is now.
fn part(path: &str, at: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    File::open(path).and_then(|file| file.read_exact_at(&mut bytes, at as u64)).expect("the image is as long");
    bytes
}

#[test]
#[ignore = "starts a machine"]
fn what_is_written_in_the_guest_is_in_the_image_and_the_reverse() {
    let directory = directory();
    for options in [&["--cpus", "1"][..], &["--cpus", "2"], &["--cpus", "1", "--iommu"], &["--cpus", "2", "--iommu"]] {
        let source = pattern(8 * MIB, 1);
        // Not a whole number of pages.
        let from = image(directory.path(), "from", &source);
        let to = image(directory.path(), "to", &vec![0; 40 * MIB + 512]);
        let script = "
            dd if=/dev/vda of=/dev/vdb bs=1M conv=fsync
            dd if=/dev/vda of=/dev/vdb bs=64k seek=160 iflag=direct oflag=direct
            dd if=/dev/vda of=/dev/vdb bs=4k seek=5120 oflag=direct count=64
            dd if=/dev/vda of=/dev/vdb bs=512 seek=61441 count=77 conv=fsync
            dd if=/dev/vda of=/dev/vdb bs=512 seek=81920 conv=notrunc count=1
            cmp -n 8388608 /dev/vda /dev/vdb
            sync
            wc -c </dev/vdb";
        assert_eq!(said_with(options, &[&format!("{from}:ro"), &to], script).trim(), (40 * MIB + 512).to_string());
        assert!(part(&to, 0, 8 * MIB) == source);
        assert!(part(&to, 10 * MIB, 8 * MIB) == source);
        assert!(part(&to, 20 * MIB, 64 * 4096) == source[..64 * 4096]);
        assert!(part(&to, 61441 * 512, 77 * 512) == source[..77 * 512]);
        assert!(part(&to, 40 * MIB, 512) == source[..512], "the last sector");
        assert!(part(&to, 30 * MIB, 512) == [0; 512]);
    }
}

#[test]
#[ignore = "starts a machine"]
fn programs_on_two_cores_write_side_by_side() {
    let directory = directory();
    let disk = image(directory.path(), "disk", &vec![0; 64 * MIB]);
    let script = "
        dd if=/dev/urandom of=/tmp/data bs=1M count=4 2>/dev/null
        for part in 0 1 2 3 4 5 6 7; do
            ( dd if=/tmp/data of=/dev/vda bs=64k seek=$((part * 64)) 2>/dev/null
              dd if=/tmp/data of=/dev/vda bs=512k seek=$((part * 8 + 64)) oflag=direct 2>/dev/null
              dd if=/dev/vda bs=4k skip=$((part * 1024)) count=1024 2>/dev/null | cmp - /tmp/data
              dd if=/dev/vda bs=1M skip=$((part * 4 + 32)) count=4 iflag=direct 2>/dev/null | cmp - /tmp/data ) &
            pids=\"$pids $!\"
        done
        for pid in $pids; do wait $pid; done
        sync
        head -c 16 /tmp/data | od -An -tx1 -v | tr -d ' \\n'";
    for options in [&["--cpus", "2"][..], &["--cpus", "2", "--iommu"]] {
        let start = said_with(options, &[&disk], script);
        let first = part(&disk, 0, 4 * MIB);
        let hex: String = first[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(start, hex);
        for number in 0..16 {
            assert!(part(&disk, number * 4 * MIB, 4 * MIB) == first, "part {number}");
        }
    }
}

#[test]
#[ignore = "starts a machine"]
fn the_kernel_says_once_that_devices_are_trusted_where_there_is_no_iommu() {
    let directory = directory();
    let disk = image(directory.path(), "disk", &vec![0; MIB]);
    let script = "dmesg | grep -c 'there is no IOMMU' || true";
    assert_eq!(said_with(&[], &[&disk], script).trim(), "1");
    assert_eq!(said_with(&["--iommu"], &[&disk], script).trim(), "0");
}

/// An entry of a master boot record.
fn put_entry(disk: &mut [u8], record: usize, index: usize, kind: u8, start: u32, sectors: u32) {
    let at = record * 512 + 446 + index * 16;
    disk[at + 4] = kind;
    disk[at + 8..at + 12].copy_from_slice(&start.to_le_bytes());
    disk[at + 12..at + 16].copy_from_slice(&sectors.to_le_bytes());
    disk[record * 512 + 510..record * 512 + 512].copy_from_slice(&[0x55, 0xaa]);
}

#[test]
#[ignore = "starts a machine"]
fn partitions_are_windows_onto_the_disk() {
    let directory = directory();
    let mut bytes = pattern(16 * MIB, 2);
    bytes[..512].fill(0);
    put_entry(&mut bytes, 0, 0, 0x83, 2048, 4096);
    put_entry(&mut bytes, 0, 1, 0x05, 16384, 8192);
    bytes[16384 * 512..16385 * 512].fill(0);
    // It does not begin with a page.
    put_entry(&mut bytes, 16384, 0, 0x83, 63, 1000);
    let disk = image(directory.path(), "disk", &bytes);
    let script = "
        cat /proc/partitions | tail -n +3 | tr -s ' '
        blockdev --getsize64 /dev/vda1; blockdev --getss /dev/vda1
        cat /sys/block/vda/vda5/start /sys/class/block/vda1/size /sys/dev/block/254:0/ro
        dd if=/dev/vda5 bs=1000 count=3 2>/dev/null | md5sum
        dd if=/dev/vda bs=512 skip=16447 count=1000 2>/dev/null | cmp - /dev/vda5
        echo changed | dd of=/dev/vda1 bs=1 seek=700 conv=notrunc 2>/dev/null
        dd if=/dev/vda bs=1 skip=1049276 count=7 2>/dev/null; echo
        dd if=/dev/zero of=/dev/vda5 bs=4k 2>/dev/null || echo full
        sync";
    let text = said(&[&disk], "1", script);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let names = ["254 0 16384 vda", "254 1 2048 vda1", "254 2 1 vda2", "254 5 500 vda5"];
    assert_eq!(lines[..4], names, "{text}");
    assert_eq!(lines[4..9], ["2097152", "512", "16447", "4096", "0"], "{text}");
    assert_eq!(lines[10..], ["changed", "full"], "{text}");
    assert_eq!(part(&disk, 1_049_276, 8), b"changed\n");
    assert!(part(&disk, 16447 * 512, 1000 * 512) == vec![0; 1000 * 512]);
    assert!(part(&disk, 17447 * 512, 512) == bytes[17447 * 512..17448 * 512], "nothing behind its end");
}

#[test]
#[ignore = "starts a machine"]
fn lsblk_lists_disks_and_partitions() {
    let directory = directory();
    let mut bytes = vec![0; 16 * MIB];
    put_entry(&mut bytes, 0, 0, 0x83, 2048, 4096);
    let disk = image(directory.path(), "disk", &bytes);
    let output = Command::new(env!("CARGO_BIN_EXE_ebb"))
        .args(["run", "--disk", &format!("{disk}:ro"), "lsblk", "-bnr", "-o", "NAME,MAJ:MIN,SIZE,RO,TYPE,PHY-SEC"])
        .output()
        .expect("ebb can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let expected = "vda 254:0 16777216 1 disk 512\nvda1 254:1 2097152 1 part 512\n";
    assert_eq!(text, expected, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "starts a machine"]
fn a_disk_that_is_read_only_stays_as_it_is() {
    let directory = directory();
    let bytes = pattern(MIB, 3);
    let disk = image(directory.path(), "disk", &bytes);
    let read_only = format!("{disk}:ro");
    let script =
        "cat /sys/block/vda/ro; if echo x | dd of=/dev/vda; then echo written; fi; head -c 4 /dev/vda >/dev/null";
    let output = run(&[&read_only], "1", script);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Operation not permitted"));
    assert!(fs::read(&disk).expect("it is there") == bytes);
}

#[test]
#[ignore = "starts a machine"]
fn an_image_that_cannot_be_used_is_said_with_what_helps() {
    let directory = directory();
    let missing = directory.path().join("missing").to_str().expect("text").to_owned();
    let empty = image(directory.path(), "empty", b"");
    for (disk, message) in
        [(missing.as_str(), "truncate -s"), (&empty, "not even one sector"), ("/dev/null", "neither")]
    {
        let output = run(&[disk], "1", "true");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(119), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
    let sealed = image(directory.path(), "sealed", &[0; 4096]);
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o444)).expect("its mode can be set");
    // Root may write it all the same.
    if File::options().write(true).open(&sealed).is_err() {
        let output = run(&[&sealed], "1", "true");
        assert!(String::from_utf8_lossy(&output.stderr).contains(":ro"));
    }
}

/// A guest with a disk of which some accesses fail, as QEMU is told by `rules`.
fn guest_with_bad_disk(directory: &Path, disk: &str, rules: &str) -> Guest {
    let config = image(directory, "rules", rules.as_bytes());
    let kernel = Kernel::open(&KERNEL.find(None).expect("the kernel is built")).expect("it is a kernel");
    let mut machine = Machine { cpus: Cpus::TESTED, ..Machine::new(kernel) };
    let options = [
        "-blockdev".to_owned(),
        format!("driver=file,node-name=file,filename={disk}"),
        "-blockdev".to_owned(),
        format!("driver=blkdebug,node-name=debug,image=file,config={config}"),
        "-blockdev".to_owned(),
        "driver=raw,node-name=bad,file=debug".to_owned(),
        "-device".to_owned(),
        "virtio-blk-pci,drive=bad,disable-legacy=on,werror=report,rerror=report".to_owned(),
    ];
    machine.qemu_options.extend(options);
    let mut image = Image::empty();
    image.add_busybox().expect("busybox is installed");
    image.complete();
    image.add_agent(None).expect("the agent is built");
    Guest::boot(machine, &image).expect("the machine starts")
}

#[test]
#[ignore = "starts a machine"]
fn a_disk_that_fails_is_an_error_and_no_more() {
    let directory = directory();
    let bytes = pattern(4 * MIB, 4);
    let disk = image(directory.path(), "disk", &bytes);
    // Sector 2048 can neither be read nor written.
    let rules = ["read_aio", "write_aio"]
        .map(|event| format!("[inject-error]\nevent = \"{event}\"\nsector = \"2048\"\nerrno = \"5\"\n"))
        .concat();
    let mut guest = guest_with_bad_disk(directory.path(), &disk, &rules);
    let mut said = |script: &str| {
        let program = Program::new(PathBuf::from("/bin/sh")).args(["-c", script]);
        let output = guest.run(&program, Input::Null, None).expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let status = "2>/tmp/why; echo $?; grep -c 'Input/output error\\|I/O error' /tmp/why";
    let error = "1\n1\n";
    assert_eq!(said(&format!("dd if=/dev/vda of=/dev/null bs=512 skip=2048 count=1 {status}")), error);
    assert_eq!(said(&format!("dd if=/dev/vda of=/dev/null bs=512 skip=2048 count=1 iflag=direct {status}")), error);
    assert_eq!(said("dd if=/dev/vda bs=1M count=1 2>/dev/null | wc -c"), "1048576\n", "what is before it is read");
    assert_eq!(said(&format!("dd if=/dev/zero of=/dev/vda bs=4k seek=256 count=1 conv=fsync {status}")), error);
    assert_eq!(said(&format!("dd if=/dev/zero of=/dev/vda bs=4k seek=256 count=1 oflag=direct {status}")), error);
    assert_eq!(said(&format!("dd if=/dev/zero of=/dev/vda bs=4k seek=257 count=1 conv=fsync {status}")), "0\n0\n");
    guest.shutdown().expect("it ends in order");
    assert!(part(&disk, 0, MIB) == bytes[..MIB]);
    assert!(part(&disk, 257 * 4096, 4096) == [0; 4096]);
}

#[test]
#[ignore = "starts a machine"]
fn a_direct_read_of_a_file_that_fails_leaves_nothing_behind() {
    let directory = directory();
    let bytes = pattern(4 * MIB, 9);
    let files = directory.path().join("files");
    fs::create_dir(&files).expect("a directory can be made");
    fs::write(files.join("f"), &bytes).expect("there is room");
    let disk = directory.path().join("ext4").to_str().expect("text").to_owned();
    let made = Command::new("/usr/sbin/mke2fs")
        .args(["-q", "-F", "-t", "ext4", "-d"])
        .arg(&files)
        .args([&disk, "32M"])
        .status();
    assert!(made.expect("mke2fs is installed (`make setup`)").success());
    let page = &bytes[700 * 4096..701 * 4096];
    let at = fs::read(&disk).expect("it is there").chunks(4096).position(|other| other == page).expect("the page");
    let rule = format!("[inject-error]\nevent = \"read_aio\"\nsector = \"{}\"\nerrno = \"5\"\n", at * 8);
    let mut guest = guest_with_bad_disk(directory.path(), &disk, &rule);
    let mut said = |script: &str| {
        let program = Program::new(PathBuf::from("/bin/sh")).args(["-c", script]);
        let output = guest.run(&program, Input::Null, None).expect("it runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    said("mkdir -p /mnt && mount -t ext4 /dev/vda /mnt");
    let read = "dd if=/mnt/f of=/tmp/read bs=512k iflag=direct 2>/tmp/why";
    let sum = "head -c 2097152 /tmp/read | md5sum; md5sum </tmp/read";
    assert_eq!(said(&format!("{read}; echo $?; grep -c 'Input/output error\\|I/O error' /tmp/why")), "1\n1\n");
    let before = said(sum);
    // Some are killed.
    let free = "for i in $(seq 60); do dd if=/mnt/f of=/dev/null bs=512k iflag=direct 2>/dev/null & \
         [ $((i % 2)) = 0 ] && kill -9 $!; wait $!; done; awk '/^MemFree/ { print $2 }' /proc/meminfo";
    let kib = |text: String| text.lines().last().and_then(|line| line.parse::<i64>().ok()).expect("a number");
    let (first, second) = (kib(said(free)), kib(said(free)));
    assert!((first - second).abs() < 1024, "{first} {second}");
    said(read);
    assert_eq!(said(sum), before);
    assert_eq!(said("umount /mnt; echo $?"), "0\n");
    guest.shutdown().expect("it ends in order");
}
