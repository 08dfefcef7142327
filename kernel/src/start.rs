//! From the framework's start to the first process.
//!
//! The kernel's command line is Linux's: `quiet` keeps messages from the console, `norandmaps` gives programs the same addresses each time, `init=PATH` names the first program (else `/init`, then
//! `/sbin/init`, `/bin/init`, `/bin/sh`), `panic=SECONDS` has the machine restart after a panic, what follows `--` are its arguments, and every other `NAME=VALUE` goes to its environment.
//! Words are separated by spaces; double quotes keep spaces in a word.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use frame::irq::IrqCx;
use frame::power::{self, PowerOff};
use frame::{BootInfo, Config, Cx};
use linux_raw_sys::general as abi;
use tasks::{Body, Next};

use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::open::{OpenHow, Opened, open_step};
use crate::fs::{self, FdFlags, OpenFlags, reserve_fd};
use crate::process::exec::{ExecFlags, RANDOMIZE_VA_SPACE, Request, Strings, exec_async};
use crate::sched::{self, Parameters, SCHEDULER};
use crate::step::{Patience, complete_async};
use crate::{
    block, cgroup, drivers, event, futex, ipc, log, memory, net, process, reboot, reclaim, signal, step, time,
};

/// What the framework needs to know of this kernel.
pub static CONFIG: Config =
    Config { frames: &allocators::buddy::FRAMES, slabs: &allocators::slab::SLABS, tasks: &SCHEDULER, start };

const CONSOLE: &[u8] = b"/dev/console";
const DEFAULT_INITS: [&str; 4] = ["/init", "/sbin/init", "/bin/init", "/bin/sh"];
const DEFAULT_ENVIRONMENT: [&str; 2] = ["HOME=/", "TERM=linux"];

/// Spawns the task that unpacks the root file system and becomes process 1.
fn start(info: &'static BootInfo) {
    let options = Options::parse(info.command_line);
    if options.quiet {
        // It is a level.
        let _ = log::set_console_level(log::QUIET);
    }
    if options.fixed_layout {
        // It is a way to lay programs out.
        let _ = RANDOMIZE_VA_SPACE.set(0);
    }
    sched::start(frame::cpu::count());
    step::start();
    fs::start();
    fs::tmpfs::start();
    reclaim::start();
    cgroup::start();
    let shown = time::clock::start();
    frame::time::on_alarm(timer_went_off);
    frame::cpu::on_interrupt(|cx| sched::was_called(frame::cpu::current(cx)));
    frame::cpu::on_dead_left(time::look_again_soon);
    drivers::random::start(shown.clone());
    memory::start(shown);
    drivers::tty::start();
    net::unix::garbage::start();
    futex::start();
    signal::broadcast::start();
    event::late_wakes::start();
    ipc::sem::left::start();
    fs::notify::start();
    fs::proc::set_command_line(info.command_line);
    let first = First { info, options, process: None };
    // The task's name is entered in its thread once it is one.
    let _ = tasks::spawn(&SCHEDULER, Box::new(first), |words, _| sched::initialise(words, Parameters::default(), None));
}

/// The hardware's timer went off: does what is due, and ends the time slice of what this core runs.
fn timer_went_off(cx: &IrqCx) {
    let core = frame::cpu::current(cx);
    if time::went_off(cx) {
        sched::slice_ended(core);
    }
    if sched::is_busy(core) {
        time::keep_seconds(core);
    }
}

/// The command line, understood.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    quiet: bool,
    fixed_layout: bool,
    init: Option<String>,
    arguments: Vec<String>,
    environment: Vec<String>,
}

impl Options {
    fn parse(line: &str) -> Self {
        let mut options = Options::default();
        let mut words = words(line).into_iter();
        for word in words.by_ref() {
            match word.split_once('=') {
                _ if word == "--" => break,
                _ if word == "quiet" => options.quiet = true,
                _ if word == "norandmaps" => options.fixed_layout = true,
                Some(("init", path)) => options.init = Some(path.into()),
                // Names with a point are parameters of modules on Linux.
                Some((name, _)) if !name.contains('.') => options.environment.push(word),
                _ => {}
            }
        }
        options.arguments = words.collect();
        options
    }
}

/// From how many pages on blocks of the heap are refused while programs run: `scarce=PAGES`, else as where memory is short.
#[cfg(feature = "scarce")]
fn refused_pages(line: &str) -> usize {
    let said = words(line).into_iter().find_map(|word| word.strip_prefix("scarce=")?.parse().ok());
    said.unwrap_or(frame::mm::LARGE_PAGES)
}

/// The words of a command line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' | '\t' | '\n' if !quoted => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The first task: it makes the root, becomes process 1, and runs that from then on.
struct First {
    info: &'static BootInfo,
    options: Options,
    process: Option<Box<Current>>,
}

impl Body for First {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        if let Some(process) = &mut self.process {
            return process.run_async(cx);
        }
        match self.begin_async(cx) {
            Ok(process) => self.process.insert(Box::new(process)).run_async(cx),
            Err(()) => power::off(PowerOff::Panic),
        }
    }
}

impl First {
    /// Everything before the first instruction of the first program. What fails is said on the console, quiet or not.
    fn begin_async(&self, cx: &mut Cx) -> core::result::Result<Current, ()> {
        reboot::at_end(drivers::send_the_rest, cx);
        block::start_async(cx, drivers::virtio::block::find());
        drivers::virtio::rng::start();
        drivers::virtio::balloon::start();
        drivers::virtio::console::start_async(cx);
        net::inet::start(drivers::virtio::net::find(), cx);
        fs::remote::start_async(cx, drivers::virtio::ninep::find());
        fs::filesystems::mount_root(self.info.take_initramfs(cx), cx).map_err(|error| match error {
            Errno::ENOMEM => frame::println!("ebb: panic: no memory for the root file system"),
            _ => frame::println!("ebb: panic: the root file system cannot be unpacked: {error:?}"),
        })?;
        drivers::usb::start_async(cx);
        sched::load_average::start(cx);
        let mut process = process::become_init(cx).map_err(|error| {
            frame::println!("ebb: panic: process 1 cannot be made: {error:?}");
        })?;
        if let Err(error) = open_console_async(cx, &mut process) {
            crate::log!("process 1 starts without a console: {error:?}");
        }
        self.execute_async(cx, &mut process).map_err(|(path, error)| {
            frame::println!("ebb: panic: the first program, {path}, cannot be run: {error:?}");
        })?;
        #[cfg(feature = "scarce")]
        frame::mm::refuse_blocks_from(refused_pages(self.info.command_line));
        Ok(process)
    }

    fn execute_async(&self, cx: &mut Cx, process: &mut Current) -> core::result::Result<(), (String, Errno)> {
        if let Some(path) = &self.options.init {
            return self.execute_path_async(cx, process, path).map_err(|error| (path.clone(), error));
        }
        let mut outcome = Err((DEFAULT_INITS[0].into(), Errno::ENOENT));
        for path in DEFAULT_INITS {
            match self.execute_path_async(cx, process, path) {
                Ok(()) => return Ok(()),
                Err(Errno::ENOENT) => {}
                Err(error) => {
                    outcome = Err((path.into(), error));
                    break;
                }
            }
        }
        outcome
    }

    fn execute_path_async(&self, cx: &mut Cx, process: &mut Current, path: &str) -> Result<()> {
        let arguments = core::iter::once(path).chain(self.options.arguments.iter().map(String::as_str));
        let environment = DEFAULT_ENVIRONMENT.into_iter().chain(self.options.environment.iter().map(String::as_str));
        let arguments: Vec<&[u8]> = arguments.map(str::as_bytes).collect();
        let environment: Vec<&[u8]> = environment.map(str::as_bytes).collect();
        let request = Request {
            directory: abi::AT_FDCWD,
            path: path.as_bytes().to_vec(),
            flags: ExecFlags::empty(),
            argv: Strings::from_slices(&arguments)?,
            envp: Strings::from_slices(&environment)?,
        };
        exec_async(cx, process, &request)
    }
}

/// Opens the console as descriptors 0, 1 and 2.
fn open_console_async(cx: &mut Cx, process: &mut Current) -> Result<()> {
    let how = OpenHow::new(OpenFlags::READ_WRITE | OpenFlags::NO_CONTROLLING_TTY, 0);
    for _ in 0..3 {
        complete_async(cx, process, Patience::Forever, |cx, me, _| {
            let reserved = reserve_fd(me, cx)?;
            match open_step(abi::AT_FDCWD, CONSOLE, &how, me, cx)? {
                Opened::File(file) => Ok(reserved.fill_shared(file, FdFlags::empty(), cx)),
                Opened::Fifo(..) | Opened::Leased(..) => Err(Errno::ENODEV.into()),
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_linux_s() {
        let options =
            Options::parse("console=ttyS0 quiet panic=-1 \"A=b c\" usb.x=1 init=/bin/agent -- serve \"one two\"");
        assert_eq!(options.init.as_deref(), Some("/bin/agent"));
        assert!(options.quiet);
        assert_eq!(options.arguments, ["serve", "one two"]);
        assert_eq!(options.environment, ["console=ttyS0", "panic=-1", "A=b c"]);
    }

    #[test]
    fn an_empty_line_is_no_word() {
        assert!(words("  ").is_empty());
        assert_eq!(words("a \"\" b"), ["a", "", "b"]);
    }
}
