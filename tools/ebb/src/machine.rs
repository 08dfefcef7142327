//! The options that say which machine to start; the same for every subcommand.

use clap::Args;
use ebb_guest::{
    Accel, ConsoleUse, Cpus, Disk, Error, InputDevice, Kernel, Machine, Mebibytes, Network, PublishedPort, Result,
    Volume, artifacts,
};
use std::path::PathBuf;

/// Which machine to start.
#[derive(Args)]
pub struct MachineArguments {
    /// Memory of the machine.
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    memory: Mebibytes,

    /// Cores of the machine, 1 to 8 [default: as many as this process may use of the host's, at most 8].
    #[arg(long, value_name = "N")]
    cpus: Option<Cpus>,

    /// A raw image that the machine has as a disk, /dev/vda the first; :ro keeps the guest from writing it. May be repeated.
    #[arg(long, value_name = "IMAGE[:ro]")]
    disk: Vec<Disk>,

    /// A directory of this machine that the guest has as well, read and written; :ro keeps the guest from writing it. One that is missing is made. May be repeated.
    #[arg(short, long, value_name = "HOST:GUEST[:ro]")]
    volume: Vec<Volume>,

    /// The network that the machine has a card at: user is QEMU's own, which needs no rights; tap=NAME a device that was made for you [default: none, or user with --publish].
    #[arg(long, value_name = "none|user|tap=NAME")]
    network: Option<Network>,

    /// Leads a port of this machine to one of the guest's. May be repeated.
    #[arg(short, long, value_name = "[ADDRESS:]HOST:GUEST[/tcp|udp]")]
    publish: Vec<PublishedPort>,

    /// Gives the machine an IOMMU, which keeps its devices from memory that they were not given.
    #[arg(long)]
    iommu: bool,

    /// Gives memory that the machine does not use back to this one, and lets it ask for more (a balloon).
    #[arg(long)]
    balloon: bool,

    /// Gives the machine a source of this one's random numbers, /dev/hwrng.
    #[arg(long)]
    rng: bool,

    /// What the machine has in front of it, at USB: /dev/input/event0 the first. What is typed comes through QEMU.
    #[arg(long, value_name = "keyboard|mouse|tablet,...", value_delimiter = ',')]
    input: Vec<InputDevice>,

    /// Who executes the machine's instructions: auto takes kvm where it works.
    #[arg(long, value_name = "auto|tcg|kvm", default_value = "auto")]
    accel: Accel,

    /// The kernel to boot: Ebb, or for comparison a Linux bzImage [default: EBB_KERNEL, or what was built with this command].
    #[arg(long, value_name = "FILE")]
    kernel: Option<PathBuf>,

    /// Show the kernel's log on standard error.
    #[arg(long)]
    kernel_log: bool,
}

impl MachineArguments {
    /// The machine that these options describe.
    pub fn machine(&self) -> Result<Machine> {
        let kernel = Kernel::open(&artifacts::KERNEL.find(self.kernel.as_deref())?)?;
        let console = if self.kernel_log { ConsoleUse::Shown } else { ConsoleUse::Kept };
        let cpus = self.cpus.unwrap_or_else(Cpus::of_host);
        let disks = self.disk.clone();
        let (volumes, has_iommu, accel) = (self.volume.clone(), self.iommu, self.accel);
        let (has_balloon, has_rng) = (self.balloon, self.rng);
        let network = match (&self.network, self.publish.is_empty()) {
            (Some(network), true) => network.clone(),
            (None, true) => Network::None,
            (None | Some(Network::User), false) => Network::User,
            (Some(Network::None | Network::Tap(_)), false) => return Err(Error::NoPublishing),
        };
        Ok(Machine {
            memory: self.memory,
            cpus,
            disks,
            volumes,
            has_iommu,
            has_balloon,
            has_rng,
            network,
            published_ports: self.publish.clone(),
            input: self.input.clone(),
            accel,
            console,
            ..Machine::new(kernel)
        })
    }
}
