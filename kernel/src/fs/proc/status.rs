//! `/proc/PID/stat`, `status`, `statm`, `schedstat`: what `ps` and `top` read.

use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;

use super::Target;
use super::text::Text;
use crate::credentials::Ids;
use crate::current::Current;
use crate::error::Result;
use crate::fs::core_text::{CoreList, CoreMask};
use crate::memory::{Image, Sizes};
use crate::process::{JobState, Life, Process, Thread, Usage};
use crate::sched::{self, Class, Parameters};
use crate::signal::SignalSet;

/// Nanoseconds in one of the 100 ticks of a second in which times are told.
const TICK: u64 = 10_000_000;
const PAGE_KIB: usize = 4;

/// What a process or thread is doing: the letter and the word.
fn state(target: &Target, process: &Process, me: &Current, cx: &Cx) -> (char, &'static str) {
    if process.life() != Life::Alive {
        return ('Z', "zombie");
    }
    if target.thread(cx).is_ok_and(|thread| thread.tracing.is_standing()) {
        return ('t', "tracing stop");
    }
    if matches!(process.job_state(cx), JobState::Stopped(_)) {
        return ('T', "stopped");
    }
    let is_running = target
        .thread(cx)
        .is_ok_and(|thread| thread.downgrade() == me.thread || !thread.task(cx).is_some_and(|task| task.is_parked()));
    if is_running { ('R', "running") } else { ('S', "sleeping") }
}

/// The memory of a process; nothing of one that has none any more.
fn memory(target: &Target, cx: &Cx) -> (Sizes, Image) {
    target.space(cx).map_or(Default::default(), |space| (space.sizes(cx), space.image(cx)))
}

/// The time of the thread where the target is one, else of the process.
fn usage(target: &Target, process: &Process, cx: &Cx) -> Result<Usage> {
    Ok(match target.who()?.thread {
        Some(thread) => thread.upgrade(cx)?.usage(cx),
        None => process.usage(cx),
    })
}

fn parameters(thread: Option<&TempRc<'_, Thread>>, cx: &Cx) -> Parameters {
    thread.and_then(|thread| thread.task(cx)).map_or(Parameters::default(), sched::parameters)
}

fn policy(class: Class) -> u32 {
    match class {
        Class::Other => abi::SCHED_NORMAL,
        Class::Batch => abi::SCHED_BATCH,
        Class::Idle => abi::SCHED_IDLE,
        Class::Fifo => abi::SCHED_FIFO,
        Class::RoundRobin => abi::SCHED_RR,
    }
}

pub fn stat(text: &mut Text, target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    let process = target.process(cx)?;
    let thread = target.thread(cx).ok();
    let session = crate::process::session(process.session(), cx);
    let (terminal, foreground) = session.map_or((0, -1), |session| {
        let foreground = session.foreground.load(Ordering::Relaxed) as i32;
        (session.terminal.load(Ordering::Relaxed), if foreground == 0 { -1 } else { foreground })
    });
    let usage = usage(target, &process, cx)?;
    let children = process.children_usage(cx);
    let parameters = parameters(thread.as_ref(), cx);
    let (sizes, image) = memory(target, cx);
    let (ignored, handled) = process.with_actions(cx, |actions| actions.get(cx).summary(cx));
    let (pending, blocked) = thread.as_ref().map_or((SignalSet::EMPTY, SignalSet::EMPTY), |thread| {
        (thread.signals.pending.set(), thread.signals.blocked())
    });
    let resident_limit = process.limits.lock(cx).soft(abi::RLIMIT_RSS);
    let priority =
        if parameters.priority > 0 { -1 - i32::from(parameters.priority) } else { 20 + i32::from(parameters.nice) };

    text.add(format_args!("{} (", target.who()?.id));
    text.add_bytes(process.name(cx).bytes());
    text.add(format_args!(
        ") {} {} {} {} {terminal} {foreground} 0 {} 0 {} 0 {} {} {} {} {priority} {} {} 0 {} {} {} {resident_limit}",
        state(target, &process, me, cx).0,
        process.parent_pid(),
        process.group(),
        process.session(),
        usage.minor_faults,
        children.minor_faults,
        usage.user / TICK,
        usage.system / TICK,
        children.user / TICK,
        children.system / TICK,
        parameters.nice,
        process.thread_count(cx).max(1),
        process.started / TICK,
        sizes.total * frame::mm::PAGE_SIZE,
        sizes.resident,
    ));
    text.add(format_args!(
        " {} {} {} 0 0 {} {} {} {} 0 0 0 {} 0 {} {} 0 0 0 {} {} 0 {} {} {} {} {}\n",
        image.code.start,
        image.code.end,
        image.stack,
        pending.0 & 0x7fff_ffff,
        blocked.0 & 0x7fff_ffff,
        ignored.0 & 0x7fff_ffff,
        handled.0 & 0x7fff_ffff,
        process.exit_signal().map_or(0, |signal| signal.number()),
        parameters.priority,
        policy(parameters.class),
        image.data.start,
        image.data.end,
        image.arguments.start,
        image.arguments.end,
        image.environment.start,
        image.environment.end,
        if process.life() == Life::Alive { 0 } else { process.exit_status().0 },
    ));
    Ok(())
}

pub fn statm(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let (sizes, _) = memory(target, cx);
    let shared = sizes.file.min(sizes.resident);
    text.add(format_args!(
        "{} {} {shared} {} 0 {} 0\n",
        sizes.total,
        sizes.resident,
        sizes.code,
        sizes.data + sizes.stack
    ));
    Ok(())
}

pub fn schedstat(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let process = target.process(cx)?;
    let usage = usage(target, &process, cx)?;
    let switches = usage.voluntary_switches + usage.involuntary_switches;
    text.add(format_args!("{} 0 {switches}\n", usage.user + usage.system));
    Ok(())
}

pub fn status(text: &mut Text, target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    let process = target.process(cx)?;
    let thread = target.thread(cx).ok();
    let (letter, word) = state(target, &process, me, cx);
    text.add(format_args!("Name:\t"));
    for &byte in process.name(cx).bytes() {
        match byte {
            b'\n' => text.add_bytes(b"\\n"),
            b'\\' => text.add_bytes(b"\\\\"),
            byte => text.add_bytes(&[byte]),
        }
    }
    if let Some(umask) = thread.as_ref().and_then(|thread| {
        let places = thread.fs.lock(cx).as_ref()?.downgrade();
        Some(places.upgrade(cx).ok()?.umask.load(Ordering::Relaxed))
    }) {
        text.add(format_args!("\nUmask:\t{umask:04o}"));
    }
    text.add(format_args!(
        "\nState:\t{letter} ({word})\nTgid:\t{}\nNgid:\t0\nPid:\t{}\nPPid:\t{}\nTracerPid:\t{}\n",
        process.pid,
        target.who()?.id,
        process.parent_pid(),
        thread.as_ref().map_or(0, |thread| thread.tracing.tracer_id(cx))
    ));
    let credentials = thread.as_ref().map(|thread| thread.credentials.lock(cx).clone()).unwrap_or_default();
    let who = &credentials;
    let Ids { real, effective, saved, file_system } = *who.users();
    for (end, id) in [("Uid:\t", real), ("\t", effective), ("\t", saved), ("\t", file_system)] {
        text.add(format_args!("{end}{}", id.number()));
    }
    let Ids { real, effective, saved, file_system } = *who.groups();
    for (end, id) in [("\nGid:\t", real), ("\t", effective), ("\t", saved), ("\t", file_system)] {
        text.add(format_args!("{end}{}", id.number()));
    }
    text.add_bytes(b"\n");
    let descriptors = thread.as_ref().and_then(|thread| {
        let files = thread.files.lock(cx).as_ref()?.downgrade();
        files.upgrade(cx).ok()?.handles.lock(cx).indices().last()
    });
    text.add(format_args!("FDSize:\t{}\nGroups:\t", descriptors.map_or(0, |last| (last + 1).next_multiple_of(64))));
    for group in who.supplementary() {
        text.add(format_args!("{group} "));
    }
    text.add(format_args!(
        "\nNStgid:\t{}\nNSpid:\t{}\nNSpgid:\t{}\nNSsid:\t{}\n",
        process.pid,
        target.who()?.id,
        process.group(),
        process.session()
    ));
    if thread.is_some() {
        add_memory(text, target, cx);
    }
    add_signals(text, &process, thread.as_ref(), cx);
    let sets = who.capabilities();
    text.add(format_args!(
        "CapInh:\t{:016x}\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\nCapBnd:\t{:016x}\nCapAmb:\t{:016x}\n",
        sets.inheritable.bits(),
        sets.permitted.bits(),
        sets.effective.bits(),
        sets.bounding.bits(),
        sets.ambient.bits()
    ));
    let no_new_privileges = thread.as_ref().is_some_and(|thread| thread.no_new_privileges.load(Ordering::Relaxed));
    let usage = usage(target, &process, cx)?;
    let cores = thread.as_ref().and_then(|thread| thread.task(cx)).map_or_else(sched::all_cores, sched::cores);
    text.add(format_args!(
        "NoNewPrivs:\t{}\nSeccomp:\t0\nCpus_allowed:\t{}\nCpus_allowed_list:\t{}\nMems_allowed:\t1\nMems_allowed_list:\t0\n\
         voluntary_ctxt_switches:\t{}\nnonvoluntary_ctxt_switches:\t{}\n",
        u32::from(no_new_privileges),
        CoreMask(cores, frame::cpu::count()),
        CoreList(cores),
        usage.voluntary_switches,
        usage.involuntary_switches
    ));
    Ok(())
}

fn add_memory(text: &mut Text, target: &Target, cx: &Cx) {
    let (sizes, _) = memory(target, cx);
    let file = sizes.file.min(sizes.resident);
    for (name, pages) in [
        ("VmPeak", sizes.total),
        ("VmSize", sizes.total),
        ("VmLck", sizes.locked),
        ("VmPin", 0),
        ("VmHWM", sizes.peak_resident),
        ("VmRSS", sizes.resident),
        ("RssAnon", sizes.resident - file),
        ("RssFile", file),
        ("RssShmem", 0),
        ("VmData", sizes.data),
        ("VmStk", sizes.stack),
        ("VmExe", sizes.code),
        ("VmLib", sizes.file.saturating_sub(sizes.code)),
        ("VmPTE", 0),
        ("VmSwap", 0),
    ] {
        text.add(format_args!("{name}:\t{:8} kB\n", pages * PAGE_KIB));
    }
}

fn add_signals(text: &mut Text, process: &Process, thread: Option<&TempRc<'_, Thread>>, cx: &Cx) {
    let (ignored, handled) = process.with_actions(cx, |actions| actions.get(cx).summary(cx));
    let (pending, blocked) = thread.map_or((SignalSet::EMPTY, SignalSet::EMPTY), |thread| {
        (thread.signals.pending.set(), thread.signals.blocked())
    });
    let limit = process.limits.lock(cx).soft(abi::RLIMIT_SIGPENDING);
    text.add(format_args!("Threads:\t{}\n", process.thread_count(cx)));
    text.add(format_args!("SigQ:\t{}/{limit}\n", process.pending.len(cx)));
    for (name, set) in [
        ("SigPnd", pending),
        ("ShdPnd", process.pending.set()),
        ("SigBlk", blocked),
        ("SigIgn", ignored),
        ("SigCgt", handled),
    ] {
        text.add(format_args!("{name}:\t{:016x}\n", set.0));
    }
}
