//! `/proc/PID` and `/proc/PID/task/TID`.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::Ordering;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{StrongRc, TempRc};

use super::node::{self, FIRST_POSITION};
use super::text::Text;
use super::{
    Entry, Target, What, Who, fd, inode, maps, parse_id, private_text, setting, status, system, text, vma_text,
};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::path::UNREACHABLE;
use crate::fs::{
    Creation, DirectoryEntry, Executable, FileKind, FsContext, Inode, InodeOps, Jump, Metadata, OpenFile, Path,
    VfsCaller,
};
use crate::memory::AddressSpace;
use crate::process::{Blocked, Name, THREADS};
use crate::step::Step;
use crate::user_memory::{UserIn, UserMemory};

/// What each process has; a thread has the same but for `task`.
pub const ENTRIES: &[Entry] = &[
    text("stat", status::stat),
    text("status", status::status),
    text("statm", status::statm),
    text("cmdline", cmdline),
    setting("comm", comm, set_comm),
    private_text("environ", environ),
    private_text("auxv", auxv),
    vma_text("maps", maps::maps),
    vma_text("smaps", maps::smaps),
    text("limits", limits),
    Entry { name: "mounts", permissions: 0o444, what: What::Mounts(system::mounts) },
    Entry { name: "net", permissions: 0o777, what: What::Link(|_, _, _| Ok(b"../net".to_vec())) },
    Entry { name: "mountinfo", permissions: 0o444, what: What::Mounts(system::mountinfo) },
    text("oom_score", |text, _, _, _| {
        text.add(format_args!("0\n"));
        Ok(())
    }),
    setting("oom_score_adj", oom_score_adj, set_oom_score_adj),
    setting("coredump_filter", core_filter, set_core_filter),
    Entry { name: "mem", permissions: 0o600, what: What::Memory },
    Entry { name: "pagemap", permissions: 0o400, what: What::PageMap },
    text("cgroup", cgroup),
    text("wchan", |text, _, _, _| {
        text.add(format_args!("0"));
        Ok(())
    }),
    private_text("syscall", syscall),
    text("sessionid", |text, target, _, cx| {
        text.add(format_args!("{}", target.process(cx)?.login.session()));
        Ok(())
    }),
    setting("loginuid", login_user, set_login_user),
    text("personality", |text, _, _, _| {
        text.add(format_args!("00000000\n"));
        Ok(())
    }),
    text("schedstat", status::schedstat),
    private_text("io", |text, _, _, _| {
        for name in ["rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"] {
            text.add(format_args!("{name}: 0\n"));
        }
        Ok(())
    }),
    Entry { name: "exe", permissions: 0o777, what: What::Jump(exe, exe_name) },
    Entry { name: "cwd", permissions: 0o777, what: What::Jump(working, working_name) },
    Entry { name: "root", permissions: 0o777, what: What::Jump(root, root_name) },
    Entry { name: "fd", permissions: 0o500, what: What::Special(fd::links) },
    Entry { name: "fdinfo", permissions: 0o500, what: What::Special(fd::infos) },
    // Last, because threads do not have it.
    Entry { name: "task", permissions: 0o555, what: What::Special(|target| Box::new(Threads { target })) },
];

/// The number of a process' directory. Its entries' follow.
pub fn number(id: u32) -> u64 {
    (u64::from(id) + 1) << 32
}

/// Set in the numbers below a thread's directory.
const THREAD: u64 = 1 << 31;

/// The number from which on those of the target's files count.
pub fn base_number(who: &Who) -> u64 {
    number(who.id) | if who.thread.is_some() { THREAD } else { 0 }
}

/// The directory of a process or of a thread.
pub fn directory(target: Target) -> Box<dyn InodeOps> {
    Box::new(Directory { target })
}

struct Directory {
    target: Target,
}

/// The process whose directory it is; `None` for any other inode.
pub fn who_of(inode: &Inode) -> Option<Who> {
    let ops: &dyn Any = &*inode.ops;
    let who = ops.downcast_ref::<Directory>()?.target.who().ok()?;
    who.thread.is_none().then_some(*who)
}

impl Directory {
    fn entries(&self) -> Result<(&'static [Entry], u64)> {
        let who = self.target.who()?;
        let entries = if who.thread.is_some() { &ENTRIES[..ENTRIES.len() - 1] } else { ENTRIES };
        Ok((entries, base_number(who) + 1))
    }
}

impl InodeOps for Directory {
    fn refresh(&self, metadata: &mut Metadata, cx: &Cx) {
        (metadata.uid, metadata.gid) = self.target.owner(cx);
    }

    fn is_stale(&self, _cx: &Cx) -> bool {
        self.target.is_gone()
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        if self.target.is_gone() {
            return Err(Errno::ENOENT.into());
        }
        let (entries, first_number) = self.entries()?;
        Ok(node::lookup(entries, this, first_number, &self.target, name, cx)?)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        _cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        if self.target.is_gone() {
            return Err(Errno::ENOENT.into());
        }
        let (entries, first_number) = self.entries()?;
        node::list(entries, first_number, from, each);
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOENT.into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

/// `/proc/PID/task`.
struct Threads {
    target: Target,
}

impl InodeOps for Threads {
    fn is_stale(&self, _cx: &Cx) -> bool {
        self.target.is_gone()
    }

    fn lookup<'cx>(
        &self,
        this: &TempRc<'cx, Inode>,
        name: &[u8],
        _me: &dyn VfsCaller,
        cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        let who = self.target.who()?;
        let id = parse_id(name).ok_or(Errno::ENOENT)?;
        let thread = THREADS.get(id, cx).filter(|thread| thread.process == who.process).ok_or(Errno::ENOENT)?;
        let who = Who { id, process: who.process, thread: Some(thread.downgrade()) };
        let target = Target::Process(who);
        Ok(inode((this, name), base_number(&who), FileKind::Directory, 0o555, &target, cx, || directory(target))?)
    }

    fn list(
        &self,
        _this: &Inode,
        from: u64,
        _me: Option<&dyn VfsCaller>,
        cx: &Cx,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Step<()> {
        let process = self.target.process(cx).map_err(|_| Errno::ENOENT)?;
        let mut ids: Vec<u32> = Vec::new();
        ids.try_reserve_exact(process.thread_count(cx)).map_err(|_| Errno::ENOMEM)?;
        ids.extend(process.threads(cx).filter_map(|thread| thread.upgrade(cx).ok()).map(|thread| thread.tid()));
        ids.sort_unstable();
        let first = from.saturating_sub(FIRST_POSITION);
        for id in ids.into_iter().filter(|&id| u64::from(id) >= first) {
            let name = alloc::format!("{id}");
            let entry = DirectoryEntry {
                name: name.as_bytes(),
                number: number(id) | THREAD,
                kind: FileKind::Directory,
                next: FIRST_POSITION + u64::from(id) + 1,
            };
            if !each(entry) {
                break;
            }
        }
        Ok(())
    }

    fn create<'cx>(
        &self,
        _this: &TempRc<'cx, Inode>,
        _name: &[u8],
        _what: &Creation<'_>,
        _cx: &'cx Cx,
    ) -> Step<TempRc<'cx, Inode>> {
        Err(Errno::ENOENT.into())
    }

    fn may_change_metadata(&self) -> Result<()> {
        Err(Errno::EPERM)
    }
}

impl Target {
    /// The address space. ESRCH for what has none any more.
    pub(super) fn space<'cx>(&self, cx: &'cx Cx) -> Result<TempRc<'cx, AddressSpace>> {
        let thread = self.thread(cx)?;
        let space = thread.space.lock(cx).as_ref().map(StrongRc::downgrade);
        Ok(space.ok_or(Errno::ESRCH)?.upgrade(cx)?)
    }

    fn places<'cx>(&self, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, FsContext>> {
        let thread = self.thread(cx).map_err(|_| Errno::ENOENT);
        let places = thread.map(|thread| thread.fs.lock(cx).as_ref().map(StrongRc::downgrade));
        self.check_access(me, cx)?;
        let places = places?;
        Ok(places.ok_or(Errno::ENOENT)?.upgrade(cx)?)
    }
}

/// The name of a place as the caller sees it; of one that is out of the caller's reach, as who started the system sees it.
pub fn name_for(path: &Path<'_>, me: &Current, cx: &Cx) -> Result<Vec<u8>> {
    let places = me.fs(cx)?;
    let name = path.name(&places.root(cx)?, cx)?;
    Ok(name.strip_prefix(UNREACHABLE).map(<[u8]>::to_vec).unwrap_or(name))
}

fn executable<'cx>(target: &Target, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
    let space = target.space(cx).map_err(|_| Errno::ENOENT);
    target.check_access(me, cx)?;
    let object = space?.executable(cx).ok_or(Errno::ENOENT)?.upgrade(cx)?;
    Ok(object.downcast_ref::<Executable>().ok_or(Errno::ENOENT)?.file().get(cx))
}

fn exe(target: &Target, me: &Current, cx: &Cx) -> Result<Jump> {
    Ok(Jump::Location(executable(target, me, cx)?.location.share()))
}

fn exe_name(target: &Target, me: &Current, cx: &Cx) -> Result<Vec<u8>> {
    let file = executable(target, me, cx)?;
    name_for(&file.location.path(cx)?, me, cx)
}

fn working(target: &Target, me: &Current, cx: &Cx) -> Result<Jump> {
    Ok(Jump::Location(target.places(me, cx)?.working(cx)?.keep()?))
}

fn working_name(target: &Target, me: &Current, cx: &Cx) -> Result<Vec<u8>> {
    name_for(&target.places(me, cx)?.working(cx)?, me, cx)
}

fn root(target: &Target, me: &Current, cx: &Cx) -> Result<Jump> {
    Ok(Jump::Location(target.places(me, cx)?.root(cx)?.keep()?))
}

fn root_name(target: &Target, me: &Current, cx: &Cx) -> Result<Vec<u8>> {
    name_for(&target.places(me, cx)?.root(cx)?, me, cx)
}

/// The most that is shown of arguments and environment.
const MAX_STRINGS: usize = 1 << 20;

/// Adds bytes of the process' memory, as far as they are there.
fn add_memory(text: &mut Text, space: &AddressSpace, range: core::ops::Range<usize>, cx: &Cx) {
    let memory = UserMemory::new(space, cx);
    let mut reader = memory.reader(UserIn::<u8>::new(range.start).slice(range.len().min(MAX_STRINGS)));
    let mut chunk = [0; 256];
    loop {
        let before = reader.remaining();
        let outcome = reader.read(&mut chunk);
        text.add_bytes(&chunk[..before - reader.remaining()]);
        if !matches!(outcome, Ok(1..)) {
            return;
        }
    }
}

fn cmdline(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    // A zombie has none, and so have the kernel's own tasks.
    if let Ok(space) = target.space(cx) {
        add_memory(text, &space, space.image(cx).arguments, cx);
    }
    Ok(())
}

fn environ(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if let Ok(space) = target.space(cx) {
        add_memory(text, &space, space.image(cx).environment, cx);
    }
    Ok(())
}

fn auxv(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if let Ok(space) = target.space(cx) {
        for word in space.image(cx).auxiliary {
            text.add_bytes(&word.to_ne_bytes());
        }
    }
    Ok(())
}

/// Which call the thread waits in, with its arguments, and where it is in user mode.
fn syscall(text: &mut Text, target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    target.check_access(me, cx).map_err(|error| if error == Errno::EACCES { Errno::EPERM } else { error })?;
    let thread = target.thread(cx)?;
    let blocked = if thread.downgrade() == me.thread {
        Blocked::of_caller(&me.context.registers)
    } else if thread.task(cx).is_some_and(|task| task.is_parked()) {
        thread.blocked_call.get()
    } else {
        text.add(format_args!("running\n"));
        return Ok(());
    };
    match blocked.call {
        Some((number, arguments)) => {
            text.add(format_args!("{number}"));
            for argument in arguments {
                text.add(format_args!(" {argument:#x}"));
            }
        }
        None => text.add(format_args!("-1")),
    }
    text.add(format_args!(" {:#x} {:#x}\n", blocked.stack, blocked.instruction));
    Ok(())
}

fn comm(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add_bytes(target.thread(cx)?.name(cx).bytes());
    text.add(format_args!("\n"));
    Ok(())
}

fn set_comm(bytes: &[u8], target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    if target.who()?.process != me.process {
        return Err(Errno::EINVAL);
    }
    target.thread(cx)?.set_name(Name::new(bytes.strip_suffix(b"\n").unwrap_or(bytes)), cx);
    Ok(())
}

fn oom_score_adj(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let adjust = target.process(cx)?.oom_score_adjust.load(Ordering::Relaxed);
    text.add(format_args!("{adjust}\n"));
    Ok(())
}

fn set_oom_score_adj(bytes: &[u8], target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    let wanted = core::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse::<i32>().ok());
    let wanted = wanted.filter(|wanted| (-1000..=1000).contains(wanted)).ok_or(Errno::EINVAL)?;
    target.check_access(me, cx)?;
    let process = target.process(cx)?;
    let is_lower = wanted < process.oom_score_adjust.load(Ordering::Relaxed);
    if is_lower && !me.has(Capability::SysResource, cx) {
        return Err(Errno::EACCES);
    }
    process.oom_score_adjust.store(wanted, Ordering::Relaxed);
    Ok(())
}

fn login_user(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    text.add(format_args!("{}", target.process(cx)?.login.user()));
    Ok(())
}

/// Only a process itself says for whom it works, and once it does, only with CAP_AUDIT_CONTROL.
fn set_login_user(bytes: &[u8], target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    if target.who()?.process != me.process {
        return Err(Errno::EPERM);
    }
    let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let user = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Errno::EINVAL)?;
    let login = &target.process(cx)?.login;
    if login.is_set() && !me.has(Capability::AuditControl, cx) {
        return Err(Errno::EPERM);
    }
    login.set(user);
    Ok(())
}

/// What of its memory core files have. Nothing for a zombie.
fn core_filter(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    if target.thread(cx).is_ok() {
        let filter = target.process(cx)?.core_filter.load(Ordering::Relaxed);
        text.add(format_args!("{filter:08x}\n"));
    }
    Ok(())
}

fn set_core_filter(bytes: &[u8], target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let text = core::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?.trim();
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let filter = u32::from_str_radix(digits, radix).map_err(|_| Errno::EINVAL)?;
    target.process(cx)?.core_filter.store(filter, Ordering::Relaxed);
    Ok(())
}

/// Its control group. A zombie keeps its own, which may be removed.
fn cgroup(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let process = target.process(cx)?;
    let group = process.control_group(cx);
    text.add_bytes(b"0::");
    match &group {
        Some(group) => text.add_bytes(&group.path(cx)?),
        None => text.add_bytes(b"/"),
    }
    let is_removed = group.is_some_and(|group| group.is_removed());
    text.add_bytes(if is_removed { b" (deleted)\n" } else { b"\n" });
    Ok(())
}

const LIMITS: [(&str, u32, &str); 16] = [
    ("Max cpu time", abi::RLIMIT_CPU, "seconds"),
    ("Max file size", abi::RLIMIT_FSIZE, "bytes"),
    ("Max data size", abi::RLIMIT_DATA, "bytes"),
    ("Max stack size", abi::RLIMIT_STACK, "bytes"),
    ("Max core file size", abi::RLIMIT_CORE, "bytes"),
    ("Max resident set", abi::RLIMIT_RSS, "bytes"),
    ("Max processes", abi::RLIMIT_NPROC, "processes"),
    ("Max open files", abi::RLIMIT_NOFILE, "files"),
    ("Max locked memory", abi::RLIMIT_MEMLOCK, "bytes"),
    ("Max address space", abi::RLIMIT_AS, "bytes"),
    ("Max file locks", abi::RLIMIT_LOCKS, "locks"),
    ("Max pending signals", abi::RLIMIT_SIGPENDING, "signals"),
    ("Max msgqueue size", abi::RLIMIT_MSGQUEUE, "bytes"),
    ("Max nice priority", abi::RLIMIT_NICE, ""),
    ("Max realtime priority", abi::RLIMIT_RTPRIO, ""),
    ("Max realtime timeout", abi::RLIMIT_RTTIME, "us"),
];

fn limits(text: &mut Text, target: &Target, _me: &Current, cx: &Cx) -> Result<()> {
    let process = target.process(cx)?;
    let limits = process.limits.lock(cx).clone();
    text.add(format_args!("{:<25} {:<20} {:<20} {:<10}\n", "Limit", "Soft Limit", "Hard Limit", "Units"));
    for (name, resource, unit) in LIMITS {
        let limit = limits.get(resource)?;
        let [soft, hard] = [limit.soft, limit.hard].map(|value| match value {
            u64::MAX => "unlimited".into(),
            value => alloc::format!("{value}"),
        });
        text.add(format_args!("{name:<25} {soft:<20} {hard:<20} {unit:<10}\n"));
    }
    Ok(())
}
