//! Keyboards, mice and tablets at USB: what a program is told of them, and what comes when the emulator's user types and moves. These tests start machines: see `command.rs`.

use ebb_guest::artifacts::KERNEL;
use ebb_guest::{Cpus, Exit, Guest, Image, Input, InputDevice, Kernel, Machine, OutputStream, Program};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALL: [InputDevice; 3] = [InputDevice::Keyboard, InputDevice::Mouse, InputDevice::Tablet];

/// A guest with `/bin/events` (`user/input/events.c`), and the monitor of its emulator.
struct Desk {
    guest: Guest,
    monitor: Monitor,
    _directory: tempfile::TempDir,
}

struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("QEMU answers");
        line
    }

    fn ask(&mut self, question: &str) {
        writeln!(self.0.get_mut(), "{question}").expect("QEMU listens");
        loop {
            let line = self.line();
            assert!(!line.contains("\"error\""), "{question}: {line}");
            // Else it is news.
            if line.contains("\"return\"") {
                return;
            }
        }
    }

    /// Does what a user does: `"key", "a", true` presses a key.
    fn events(&mut self, events: &[String]) {
        let list = events.join(", ");
        self.ask(&format!(r#"{{"execute": "input-send-event", "arguments": {{"events": [{list}]}}}}"#));
    }

    fn key(&mut self, name: &str, is_down: bool) {
        let key = format!(r#"{{"type": "qcode", "data": "{name}"}}"#);
        self.events(&[format!(r#"{{"type": "key", "data": {{"down": {is_down}, "key": {key}}}}}"#)]);
    }

    fn unplug(&mut self, id: &str) {
        self.ask(&format!(r#"{{"execute": "device_del", "arguments": {{"id": "{id}"}}}}"#));
    }

    fn plug(&mut self, driver: &str, id: &str) {
        let arguments = format!(r#"{{"driver": "{driver}", "id": "{id}", "bus": "usb.0"}}"#);
        self.ask(&format!(r#"{{"execute": "device_add", "arguments": {arguments}}}"#));
    }
}

fn motion(kind: &str, axis: &str, value: i32) -> String {
    format!(r#"{{"type": "{kind}", "data": {{"axis": "{axis}", "value": {value}}}}}"#)
}

fn button(name: &str, is_down: bool) -> String {
    format!(r#"{{"type": "btn", "data": {{"button": "{name}", "down": {is_down}}}}}"#)
}

/// The Linux to compare with, and its modules, where `make setup` has brought it.
fn linux() -> Option<(PathBuf, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/linux");
    let of = |directory: &str| fs::read_dir(root.join(directory)).ok()?.next()?.ok().map(|entry| entry.path());
    Some((of("boot")?, of("lib/modules")?))
}

/// Modules of Linux's, in the order in which they are to be loaded.
const MODULES: [&str; 8] = [
    "usb/common/usb-common",
    "usb/core/usbcore",
    "usb/host/xhci-hcd",
    "usb/host/xhci-pci",
    "hid/hid",
    "hid/usbhid/usbhid",
    "hid/hid-generic",
    "input/evdev",
];

impl Desk {
    fn boot(change: impl FnOnce(&mut Machine)) -> Self {
        let kernel = Kernel::open(&KERNEL.find(None).expect("the kernel is built")).expect("it is a kernel");
        Self::boot_kernel(kernel, &[], change)
    }

    fn boot_kernel(kernel: Kernel, modules: &[PathBuf], change: impl FnOnce(&mut Machine)) -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let (socket, program) = (directory.path().join("monitor"), directory.path().join("events"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../user/input/events.c");
        let mut compiler = Command::new("gcc");
        compiler.args(["-static", "-O1", "-Wall", "-o"]).args([&program, &source]);
        assert!(compiler.status().expect("gcc is installed").success());
        let monitor = format!("unix:{},server=on,wait=off", socket.to_str().expect("the path is text"));
        let mut machine = Machine { cpus: Cpus::TESTED, input: ALL.into(), ..Machine::new(kernel) };
        machine.qemu_options = vec!["-qmp".into(), monitor];
        change(&mut machine);
        let mut image = Image::empty();
        image.add_busybox().expect("busybox is installed");
        image.complete();
        image.add_agent(None).expect("the agent is built");
        image.add_file("bin/events", &program).expect("it was made");
        for (number, module) in modules.iter().enumerate() {
            image.add_file(format!("modules/{number}.ko"), module).expect("it is there");
        }
        let guest = Guest::boot(machine, &image).expect("the machine starts");
        let monitor = Monitor(BufReader::new(UnixStream::connect(socket).expect("QEMU listens")));
        let mut desk = Desk { guest, monitor, _directory: directory };
        desk.monitor.line();
        desk.monitor.ask(r#"{"execute": "qmp_capabilities"}"#);
        desk
    }

    /// What a script says in the guest. When it says that it is ready, `then` happens.
    fn run(&mut self, script: &str, mut then: impl FnMut(&mut Monitor)) -> String {
        eprintln!("{script}");
        let Desk { guest, monitor, .. } = self;
        let program = Program::new("/bin/sh").args(["-c", script]);
        let mut text = String::new();
        let exit = guest.stream(&program, Input::Null, None, |stream, bytes| {
            text.push_str(&String::from_utf8_lossy(bytes));
            if stream == OutputStream::Stdout && text.starts_with("ready\n") && !text.contains("(") {
                text.push('(');
                then(monitor);
            }
            Ok(())
        });
        assert_eq!(exit.expect("it runs"), Exit::Code(0), "{text}");
        text.replace('(', "")
    }
}

/// Everything that is compared: what is said of each device, and what comes of what is done. (Linux has other input devices as well.)
fn all_that_is_said(desk: &mut Desk) -> Vec<String> {
    let quiet = |_: &mut Monitor| ();
    let link = "for name in Keyboard Mouse Tablet; do
        for it in /sys/class/input/event*; do
            grep -q \"USB $name\" $it/device/name && ln -s /dev/input/${it##*/} /$name
        done
    done; ls /Keyboard /Mouse /Tablet";
    let mut said = vec![desk.run(link, quiet)];
    for device in ["Keyboard", "Mouse", "Tablet"] {
        said.push(desk.run(&format!("events describe /{device}"), quiet));
    }
    said.push(desk.run("events write /Keyboard", quiet));
    said.push(desk.run("events read /Keyboard 8", |monitor| {
        for (key, is_down) in
            [("shift", true), ("a", true), ("f12", true), ("a", false), ("kp_5", true), ("kp_5", false), ("f12", false)]
        {
            monitor.key(key, is_down);
        }
        monitor.key("shift", false);
    }));
    said.push(desk.run("events repeat /Keyboard", |monitor| monitor.key("pgdn", true)));
    desk.monitor.key("pgdn", false);
    // Each is waited for: what comes before the last was fetched, QEMU adds to that. Buttons are the tablet's as long as there is one.
    for (device, motions) in [
        ("Mouse", vec![motion("rel", "x", 5), motion("rel", "y", -7)]),
        ("Tablet", vec![motion("abs", "x", 16384), motion("abs", "y", 100)]),
        ("Tablet", vec![button("left", true), button("right", true)]),
        ("Tablet", vec![motion("abs", "x", 32767)]),
        ("Tablet", vec![button("wheel-up", true), button("right", false)]),
    ] {
        let script = format!("events read /{device} 1");
        said.push(desk.run(&script, |monitor| monitor.events(&motions)));
    }
    said.push(desk.run("events gone /Tablet", |monitor| monitor.unplug("input2")));
    for motions in [vec![button("left", true)], vec![button("wheel-down", true)], vec![button("left", false)]] {
        said.push(desk.run("events read /Mouse 1", |monitor| monitor.events(&motions)));
    }
    said.push(desk.run("events gone /Keyboard", |monitor| monitor.unplug("input0")));
    said.push(desk.run("while [ -e /Keyboard ]; do sleep 0.1; done; [ -e /Mouse ]", quiet));
    said
}

#[test]
#[ignore = "starts machines"]
fn what_programs_are_told_is_what_linux_tells() {
    let ebb = all_that_is_said(&mut Desk::boot(|_| {}));
    let Some((kernel, modules)) = linux() else {
        eprintln!("there is no Linux to compare with: `make setup` brings one");
        return;
    };
    let modules = MODULES.map(|module| modules.join("kernel/drivers").join(module).with_extension("ko"));
    let kernel = Kernel::open(&kernel).expect("it is a kernel");
    let mut desk = Desk::boot_kernel(kernel, &modules, |_| {});
    let load = "set -e; mount | grep -q /sys || mount -t sysfs sysfs /sys
        for module in 0 1 2 3 4 5 6 7; do insmod /modules/$module.ko; done
        for name in Keyboard Mouse Tablet; do
            until grep -q \"USB $name\" /sys/class/input/event*/device/name; do sleep 0.1; done
        done";
    desk.run(load, |_| ());
    let linux = all_that_is_said(&mut desk);
    for (ebb, linux) in ebb.iter().zip(&linux) {
        assert_eq!(ebb, linux, "Ebb, then Linux");
    }
}

#[test]
#[ignore = "starts machines"]
fn devices_come_and_go_behind_an_iommu_too() {
    for has_iommu in [false, true] {
        let mut desk =
            Desk::boot(|machine| (machine.has_iommu, machine.input) = (has_iommu, vec![InputDevice::Tablet]));
        let said = desk.run("events read /dev/input/event0 1", |monitor| {
            monitor.events(&[motion("abs", "x", 1000), motion("abs", "y", 2000)]);
        });
        assert_eq!(said, "ready\n3 0 1000\n3 1 2000\n0 0 0\njust now\n");
        for round in 0..10 {
            desk.monitor.plug("usb-kbd", "another");
            desk.run("until [ -e /dev/input/event1 ]; do sleep 0.1; done", |_| ());
            let said = desk.run("events read /dev/input/event1 1", |monitor| monitor.key("b", true));
            assert_eq!(said, "ready\n4 4 458757\n1 30 1\n0 0 0\njust now\n", "round {round}");
            let name = desk.run("cat /sys/class/input/event1/device/name /sys/class/input/input1/event1/dev", |_| ());
            assert_eq!(name, "QEMU QEMU USB Keyboard\n13:65\n");
            let said = desk.run("events gone /dev/input/event1", |monitor| monitor.unplug("another"));
            assert!(said.contains("poll: 18\nread: No such device\n"), "{said}");
            desk.run("until ! [ -e /dev/input/event1 ]; do sleep 0.1; done; ! [ -e /sys/class/input/event1 ]", |_| ());
        }
        let text = desk.run("cat /proc/bus/input/devices", |_| ());
        assert!(text.starts_with("I: Bus=0003 Vendor=0627 Product=0001 Version="), "{text}");
        assert!(text.contains("N: Name=\"QEMU QEMU USB Tablet\"\n") && text.contains("B: ABS=3\n"), "{text}");
        desk.guest.shutdown().expect("it ends in order");
    }
}
