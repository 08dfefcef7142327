//! The QEMU process of one machine.

use crate::error::Doing;
use crate::kernel::PowerState;
use crate::{Disk, Error, Machine, Result, Volume};
use crate::{network, volume};
use ebb_protocol::flow::PORT_NAME;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The emulator's command.
pub const QEMU: &str = "qemu-system-x86_64";

/// How long QEMU may take from its start until it has opened its serial ports.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How long QEMU may take to end after its guest has.
const EXIT_LIMIT: Duration = Duration::from_secs(120);

/// The path of QEMU, if it is installed.
pub fn find_qemu() -> Option<PathBuf> {
    find_in_path(QEMU)
}

/// The arguments that choose the firmware: where QEMU brings `qboot`, that. It does nothing but start a kernel, which takes a hundredth of the
/// instructions that the usual firmware takes.
pub fn firmware(qemu: &Path) -> Vec<OsString> {
    let rom = qemu.canonicalize().ok().and_then(|qemu| Some(qemu.parent()?.parent()?.join("share/qemu/qboot.rom")));
    rom.filter(|rom| rom.is_file()).map_or_else(Vec::new, |rom| vec!["-bios".into(), rom.into()])
}

/// A program of the host's by its name.
pub(crate) fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// The ways into a machine.
pub(crate) struct Ports {
    /// The kernel's console.
    pub console: UnixStream,
    /// The two lines to the agent, of which it chooses one.
    pub serial: UnixStream,
    /// The same.
    pub port: UnixStream,
}

/// A running QEMU; ends when dropped.
pub(crate) struct Qemu {
    child: Child,
    stderr: PathBuf,
    /// The ways into it, once.
    pub ports: Option<Ports>,
}

impl Qemu {
    /// Starts QEMU; `directory` is a private directory for its sockets.
    pub fn start(machine: &Machine, image: &Path, init: &str, directory: &Path) -> Result<Self> {
        let qemu = find_qemu().ok_or(Error::QemuMissing(QEMU))?;
        let accel = machine.accel.choose(machine.cpus)?;
        machine.disks.iter().try_for_each(Disk::check)?;
        machine.volumes.iter().try_for_each(Volume::check)?;
        if !machine.volumes.is_empty() && !machine.kernel.has_volumes() {
            return Err(Error::NoVolumes);
        }
        let doing = || "starting QEMU".to_owned();
        let listen = |name| listen(&directory.join(name)).doing(doing);
        let (console, serial, port) = (listen("console")?, listen("serial")?, listen("port")?);
        let stderr = directory.join("stderr");

        // Where it exists, `setpriv` ends QEMU with this process, however that ends.
        let mut command = match find_in_path("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL", "--"]).arg(&qemu);
                command
            }
            None => Command::new(&qemu),
        };
        let quiet = machine.console != crate::ConsoleUse::Shown;
        command
            // An IOMMU that remaps interrupts needs the machine's controller to be QEMU's own.
            .args(["-M", if machine.has_iommu { "q35,kernel-irqchip=split" } else { "q35" }])
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none"])
            .args(["-accel", accel, "-cpu", &machine.cpu, "-m", &format!("{}M", machine.memory.0)])
            .args(["-smp", &machine.cpus.to_string()])
            .args(firmware(&qemu))
            .arg("-kernel")
            .arg(machine.kernel.path())
            .arg("-initrd")
            .arg(image)
            .arg("-append")
            .arg(machine.kernel.command_line(quiet, &machine.kernel_options, init, &machine.agent_words()))
            .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04"]);
        for name in ["console", "serial", "port"] {
            let path = directory.join(name);
            command.arg("-chardev").arg(format!("socket,id={name},path={}", path.display()));
        }
        // Before the devices that are behind it.
        if machine.has_iommu {
            command.args(["-device", "intel-iommu,intremap=on"]);
        }
        let behind = if machine.has_iommu { "on" } else { "off" };
        // Port 0 would be a console.
        command
            .args(["-serial", "chardev:console", "-serial", "chardev:serial"])
            .args(["-device", &format!("virtio-serial-pci,max_ports=2,disable-legacy=on,iommu_platform={behind}")])
            .args(["-device", &format!("virtserialport,nr=1,chardev=port,name={PORT_NAME}")]);
        if machine.has_rng {
            let device = format!("virtio-rng-pci,rng=rng,disable-legacy=on,iommu_platform={behind}");
            command.args(["-object", "rng-builtin,id=rng", "-device", &device]);
        }
        if machine.has_balloon {
            let device = "virtio-balloon-pci,free-page-reporting=on,deflate-on-oom=on,disable-legacy=on";
            command.args(["-device", &format!("{device},iommu_platform={behind}")]);
        }
        command.args(network::arguments(&machine.network, &machine.published_ports, machine.has_iommu));
        command.args(crate::input_device::arguments(&machine.input));
        for (number, disk) in machine.disks.iter().enumerate() {
            command.args(disk.arguments(number, machine.cpus.count(), machine.has_iommu));
        }
        let volumes = machine.volumes.iter().map(|volume| (&volume.host, volume.is_read_only));
        let root = machine.root_directory.iter().map(|directory| (directory, true));
        for (number, (host, is_read_only)) in volumes.chain(root).enumerate() {
            command.args(volume::arguments(number, host, is_read_only, machine.has_iommu));
        }
        command
            .args(&machine.qemu_options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&stderr).doing(doing)?)
            // A Ctrl-C in the terminal is for the guest's program, not for QEMU.
            .process_group(0);
        let child = command.spawn().doing(doing)?;
        let mut qemu = Self { child, stderr, ports: None };
        let deadline = Instant::now() + START_LIMIT;
        let console = qemu.accept(&console, deadline, machine)?;
        let serial = qemu.accept(&serial, deadline, machine)?;
        let port = qemu.accept(&port, deadline, machine)?;
        qemu.ports = Some(Ports { console, serial, port });
        Ok(qemu)
    }

    /// A process that is no machine: it waits until it is dropped.
    #[cfg(test)]
    pub fn stand_in(directory: &Path) -> Self {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat(1)");
        Self { child, stderr: directory.join("stderr"), ports: None }
    }

    fn accept(&mut self, listener: &UnixListener, deadline: Instant, machine: &Machine) -> Result<UnixStream> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).doing(|| "starting QEMU".into())?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::Io { doing: "waiting for QEMU".into(), error }),
            }
            if self.child.try_wait().doing(|| "waiting for QEMU".into())?.is_some() || Instant::now() > deadline {
                let said = self.complaint().unwrap_or_else(|| "QEMU does not start".into());
                if lacks_memory(&said) {
                    return Err(Error::TooLittleMemory { given: machine.memory.0, why: said });
                }
                return Err(Error::Died { why: said, log: None });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// What QEMU itself wrote about an error.
    pub fn complaint(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.stderr).ok()?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Waits until QEMU has ended by itself; `None` if it does not.
    pub fn wait(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + EXIT_LIMIT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }

    /// How the machine ended, once its line is down.
    pub fn power_state(&mut self, machine: &Machine) -> (PowerState, String) {
        match self.wait() {
            Some(status) => (machine.kernel.power_state(status.code()), format!("QEMU ended ({status})")),
            None => (PowerState::Failed, "QEMU closed the line but still runs".into()),
        }
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether QEMU says that the host cannot give the machine its memory.
pub(crate) fn lacks_memory(complaint: &str) -> bool {
    complaint.contains("cannot set up guest memory") || complaint.contains("annot allocate memory")
}

fn listen(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
