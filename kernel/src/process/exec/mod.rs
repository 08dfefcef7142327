//! Executing programs: execve(2).
//!
//! ```text
//!   path --> open file --> #! line? --> interpreter's path, again
//!                             | no
//!                             v
//!                      ELF headers --> new address space --> the point of no return --> registers
//!                      (elf)           (load, stack)          (commit)
//! ```
//!
//! Everything that can fail is done before the caller loses anything. It suspends only where the arguments are very many. Only where a process has
//! several threads its others must end first; the new address space is then made twice, because nothing is owned across a suspension: once to see
//! that it can be made, and once to stay.

mod elf;
mod layout;
mod load;
mod script;
mod stack;
mod strings;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use bitflags::bitflags;
use frame::Cx;
use linux_raw_sys::general as abi;
use refs::StrongRc;

use super::Name;
use crate::arch;
use crate::credentials::{Credentials, Execution, FileCapabilities, Gid, Uid};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::open::open_program;
use crate::fs::walk::WalkFlags;
use crate::fs::{Executable, FdFlags, FileTable, Inode, MountFlags, OpenFile};
use crate::memory::overcommit::Privilege;
use crate::memory::{AddressSpace, Limits};
use crate::process;
use crate::reclaim::Payer;
use crate::signal::{self, Signal};
use crate::step::{self, Step, Stop};
use crate::user_memory::UserIn;

use layout::Layout;
use load::{Start, Startup, load, read_at, read_elf, read_exactly, write_stack};
use stack::{ProgramStrings, StackImage};

pub use layout::{ADDR_NO_RANDOMIZE, RANDOMIZE_VA_SPACE};
pub use strings::{Strings, total_limit};

/// How many scripts may be interpreted by scripts.
const MAX_SCRIPTS: usize = 5;

bitflags! {
    /// How the path of execveat(2) is meant.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ExecFlags: u32 {
        /// An empty path means the descriptor itself.
        const EMPTY_PATH = abi::AT_EMPTY_PATH;
        /// A symbolic link at the end is an error (ELOOP).
        const NO_FOLLOW = abi::AT_SYMLINK_NOFOLLOW;
    }
}

/// What is to be executed.
pub struct Request {
    /// Where a relative path begins: a descriptor of a directory, or AT_FDCWD.
    pub directory: i32,
    /// The path.
    pub path: Vec<u8>,
    /// How it is meant.
    pub flags: ExecFlags,
    /// The arguments.
    pub argv: Strings,
    /// The environment.
    pub envp: Strings,
}

/// A program that is ready to run, once its stack is written.
struct Prepared {
    space: StrongRc<AddressSpace>,
    start: Start,
    stack: StackImage,
    /// What stands in place of the first argument.
    front: Option<Strings>,
    credentials: Credentials,
    /// What it is instead if somebody has begun to trace the caller meanwhile.
    if_traced: Option<Box<Credentials>>,
    secure: bool,
    name: Name,
    /// Who is charged for the end of the address space.
    payer: Payer,
}

/// Replaces the calling thread's program. On success its registers are those of the new one.
///
/// # Errors
/// As execve(2); nothing has changed then. Where something fails after other threads were ended, the process gets SIGKILL.
pub fn exec_async(cx: &mut Cx, me: &mut Current, request: &Request) -> Result<()> {
    // Asked first: threads that end meanwhile may have been seen half gone.
    let was_alone = is_alone(me, cx)?;
    let old = me.thread(cx)?.tid();
    let mut prepared = prepare_async(cx, me, request)?;
    if !was_alone || owes_futexes(me, cx)? {
        drop(prepared);
        process::de_thread_async(cx, me)?;
        process::exit::release_futexes_async(cx, me);
        prepared = match prepare_async(cx, me, request) {
            Ok(prepared) => prepared,
            Err(error) => {
                let process = me.process(cx)?;
                signal::send::end_process(&process, Signal::KILL.number(), cx);
                return Err(error);
            }
        };
    }
    let old_space = commit(cx, me, prepared)?;
    me.space(cx)?.vm().activate(cx);
    AddressSpace::give_up_async(old_space, cx);
    if FileTable::close_range_async(cx, me, 0..=u32::MAX, FdFlags::CLOSE_ON_EXEC).is_err() {
        // The new program must not have those that are left. (If a signal ended this, it ends already.)
        signal::send::end_process(&*me.process(cx)?, Signal::KILL.number(), cx);
    }
    if me.thread(cx)?.tracing.is_traced() {
        process::trace::executed_async(cx, me, old);
    }
    Ok(())
}

fn is_alone(me: &Current, cx: &Cx) -> Result<bool> {
    let process = me.process(cx)?;
    Ok(process.has_one_thread() && me.thread(cx)?.tid() == process.pid)
}

/// Whether the thread may hold robust futexes, whose other users must learn that it is gone, or others wait for the word that it clears when it leaves its memory.
fn owes_futexes(me: &Current, cx: &Cx) -> Result<bool> {
    if process::exit::owes_clear_tid(me, cx) {
        return Ok(true);
    }
    let head = me.thread(cx)?.robust_list.load(Ordering::Relaxed);
    // An empty list leads to itself. What cannot be read now is left to the call that can wait for it.
    Ok(head != 0 && me.memory(cx)?.read(UserIn::<usize>::new(head)) != Ok(head))
}

/// Does everything that can fail. Who has threads may see it outdated by them: such a caller prepares again once it is alone.
fn prepare_async(cx: &mut Cx, me: &mut Current, request: &Request) -> Result<Box<Prepared>> {
    let prepared = step::complete_in_turn_async(cx, me, |cx, me, _| prepare(request, me, cx))?;
    let strings = ProgramStrings { front: prepared.front.as_ref(), argv: &request.argv, envp: &request.envp };
    let mut at = prepared.stack.pointer;
    step::complete_in_turn_async(cx, me, |cx, _, _| {
        write_stack(&prepared.space.get(cx), &prepared.stack, &strings, &mut at, cx)
    })?;
    Ok(prepared)
}

/// Does everything that can fail, but for writing the stack.
fn prepare(request: &Request, me: &Current, cx: &Cx) -> Step<Box<Prepared>> {
    let Request { directory, path, flags, argv, envp } = request;
    let mut walk = WalkFlags::FOLLOW;
    walk.set(WalkFlags::FOLLOW, !flags.contains(ExecFlags::NO_FOLLOW));
    walk.set(WalkFlags::MAY_BE_EMPTY, flags.contains(ExecFlags::EMPTY_PATH));
    let mut file = open_program(*directory, path, walk, me, cx)?;
    let shown_path = path_for_interpreter(*directory, path);
    // A program can rely on having a name.
    let mut front = if argv.count() == 0 { Some(Strings::from_slices(&[b""])?) } else { None };
    let mut script = None;
    let mut first = [0; script::LINE_MAX];
    let mut len = read_at(&file.get(cx), 0, &mut first, me, cx)?;
    for depth in 0.. {
        let Some(shebang) = script::parse(&first[..len]) else { break };
        let shebang = shebang.map_err(|_| Errno::ENOEXEC)?;
        if depth == MAX_SCRIPTS {
            return Err(Errno::ELOOP.into());
        }
        let interpreted = script.as_deref().unwrap_or(&*shown_path);
        let mut replacing = match shebang.argument {
            Some(argument) => Strings::from_slices(&[shebang.interpreter, argument, interpreted])?,
            None => Strings::from_slices(&[shebang.interpreter, interpreted])?,
        };
        // A script that interprets a script is replaced as well.
        if let Some(front) = &front {
            replacing.append_behind(front, 1)?;
        }
        front = Some(replacing);
        let interpreter = shebang.interpreter.to_vec();
        file = open_program(abi::AT_FDCWD, &interpreter, WalkFlags::FOLLOW, me, cx)?;
        script = Some(interpreter);
        len = read_at(&file.get(cx), 0, &mut first, me, cx)?;
    }
    build(file, &first[..len], front, (argv, envp), &shown_path, me, cx)
}

/// Makes the address space of the program in `file`, whose first bytes are `first`.
fn build(
    file: StrongRc<OpenFile>,
    first: &[u8],
    front: Option<Strings>,
    (argv, envp): (&Strings, &Strings),
    path: &[u8],
    me: &Current,
    cx: &Cx,
) -> Step<Box<Prepared>> {
    let executable = Executable::new(file)?;
    let file = executable.file();
    let elf = read_elf(&file.get(cx), first, me, cx)?;
    let interpreter = match &elf.interpreter {
        Some(range) => Some(open_interpreter(&file.get(cx), range.clone(), me, cx)?),
        None => None,
    };
    let thread = me.thread(cx)?;
    let (credentials, secure, if_traced) = credentials_for(&file.get(cx), me, cx)?;
    // A program with more rights than its caller is not to be found where the caller wants it.
    let personality = if secure { 0 } else { thread.personality.load(Ordering::Relaxed) };
    let layout = Layout::choose(thread.limit(abi::RLIMIT_STACK, cx).0, personality, cx);
    let limits = Limits {
        address_space: thread.limit(abi::RLIMIT_AS, cx).0,
        data: thread.limit(abi::RLIMIT_DATA, cx).0,
        privilege: Privilege::None,
    };
    let startup = Startup {
        strings: ProgramStrings { front: front.as_ref(), argv, envp },
        path,
        user: (credentials.users().real, credentials.users().effective),
        group: (credentials.groups().real, credentials.groups().effective),
        secure,
        layout,
    };
    let owner = AddressSpace::new()?;
    let space = owner.get(cx);
    let interpreter = interpreter.as_ref().map(|(file, elf)| (file, elf));
    let (start, image, stack) = load(&space, file, &elf, interpreter, &startup, limits, cx)?;
    space.set_image(StrongRc::new(executable).unsize(|executable| executable), image, cx);
    let payer = me.process(cx)?.payer(cx);
    space.begin_charge(&payer, cx)?;
    drop(space);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let name = Name::new(name);
    Ok(Box::new(Prepared { space: owner, payer, start, stack, front, credentials, if_traced, secure, name }))
}

/// The name under which an interpreter finds a script: see execveat(2).
fn path_for_interpreter(directory: i32, path: &[u8]) -> Cow<'_, [u8]> {
    if directory == abi::AT_FDCWD || path.first() == Some(&b'/') {
        return Cow::Borrowed(path);
    }
    let separator = if path.is_empty() { "" } else { "/" };
    let mut name = alloc::format!("/dev/fd/{directory}{separator}").into_bytes();
    name.extend_from_slice(path);
    Cow::Owned(name)
}

fn open_interpreter(
    file: &OpenFile,
    range: core::ops::Range<u64>,
    me: &Current,
    cx: &Cx,
) -> Step<(StrongRc<OpenFile>, elf::Elf)> {
    // The headers bound it to 4096 bytes.
    let mut path = read_exactly(file, range, me, cx)?;
    if path.pop() != Some(0) {
        return Err(Errno::ENOEXEC.into());
    }
    let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
    let file = open_program(abi::AT_FDCWD, path, WalkFlags::FOLLOW, me, cx)?;
    let mut first = [0; elf::HEADER_SIZE];
    let opened = file.get(cx);
    let len = read_at(&opened, 0, &mut first, me, cx)?;
    // Linux says ELIBBAD for an interpreter that is no program.
    let elf = read_elf(&opened, &first[..len], me, cx).map_err(|stop| match stop {
        Stop::Error(_) => Errno::ELIBBAD.into(),
        stop => stop,
    })?;
    drop(opened);
    Ok((file, elf))
}

/// Who the program acts for, and whether that is more than the caller could (set-user-ID, set-group-ID); and who it acts for if it is known only later that the caller is traced.
fn credentials_for(file: &OpenFile, me: &Current, cx: &Cx) -> Step<(Credentials, bool, Option<Box<Credentials>>)> {
    let thread = me.thread(cx)?;
    let mut credentials = thread.credentials.lock(cx).clone();
    let inode = file.location.inode.get(cx);
    let (mode, uid, gid) = inode.access_bits(cx);
    let no_new_privileges = thread.no_new_privileges.load(Ordering::Relaxed);
    let is_trusted = !file.location.mount.get(cx).flags().contains(MountFlags::NO_SUID);
    let sets_ids = is_trusted && !no_new_privileges;
    let has_group = mode & (abi::S_ISGID | abi::S_IXGRP) == abi::S_ISGID | abi::S_IXGRP;
    let kept = Inode::kept(&inode, cx);
    let attribute = kept.attributes(cx)?.as_ref().and_then(|all| all.get(FileCapabilities::ATTRIBUTE)).cloned();
    let program = Execution {
        user: (sets_ids && mode & abi::S_ISUID != 0).then_some(Uid::new(uid)),
        group: (sets_ids && has_group).then_some(Gid::new(gid)),
        file: attribute.filter(|_| is_trusted).and_then(|bytes| FileCapabilities::decode(&bytes).ok()),
        shares_root: shares_root(me, cx)?,
        no_new_privileges,
        is_traced: process::trace::is_traced_by_lesser(&thread, cx),
    };
    let may_gain = program.user.is_some() || program.group.is_some() || program.file.is_some();
    let mut if_traced = may_gain.then(|| Box::new(credentials.clone()));
    let secure = credentials.execute(&program)?;
    if let Some(credentials) = &mut if_traced {
        credentials.execute(&Execution { is_traced: true, ..program })?;
    }
    Ok((credentials, secure, if_traced))
}

/// Whether another process could change the program's root directory under it (CLONE_FS).
fn shares_root(me: &Current, cx: &Cx) -> Result<bool> {
    let own_threads = me.process(cx)?.thread_count(cx);
    let thread = me.thread(cx)?;
    let fs = thread.fs.lock(cx);
    Ok(fs.as_ref().is_some_and(|fs| fs.owners() as usize > own_threads))
}

/// The point of no return. What the caller saw of memory until now is returned, to be given up.
#[cfg_attr(false, ebb_lint::never_suspends)]
fn commit(cx: &mut Cx, me: &mut Current, prepared: Box<Prepared>) -> Result<StrongRc<AddressSpace>> {
    let Prepared { space, start, stack, credentials, if_traced, secure, name, payer, .. } = *prepared;
    space.get(cx).set_auxiliary(stack.auxiliary, cx);
    process::unshare(me, abi::CLONE_FILES, cx)?;
    let thread = me.thread(cx)?;
    let process = me.process(cx)?;
    let new_space = space.downgrade();

    // Who gained something cannot be looked into, and everybody else can again.
    let is_own = credentials.users().real == credentials.users().effective
        && credentials.groups().real == credentials.groups().effective
        && credentials.capabilities().permitted.is_subset(thread.credentials.lock(cx).capabilities().permitted);
    process.dumpable.store(u32::from(is_own), Ordering::Relaxed);
    if !is_own {
        thread.parent_death_signal.store(0, Ordering::Relaxed);
    }
    *thread.credentials.lock(cx) = credentials;
    // Whoever begins to trace it asks again, once he does, whether he may: either he finds what it has gained, or it is found here that he traces it.
    if let Some(if_traced) = if_traced
        && process::trace::is_traced_by_lesser(&thread, cx)
    {
        *thread.credentials.lock(cx) = *if_traced;
    }
    // Behind that: whoever gets hold of the new address space and looks then whether he may, on another core, finds who the new program acts for.
    let old_space = thread.space.lock(cx).replace(space).ok_or(Errno::ESRCH)?;
    // It may have been moved to another group since the new address space was charged.
    if process.payer(cx) != payer {
        process.charge_containers(cx);
    }
    // A parent that waits in vfork(2) has its memory back from here on.
    thread.release_vfork();
    if secure {
        thread.personality.fetch_and(!ADDR_NO_RANDOMIZE, Ordering::Relaxed);
    }
    thread.set_name(name, cx);
    thread.clear_tid.store(0, Ordering::Relaxed);
    thread.robust_list.store(0, Ordering::Relaxed);
    *thread.signals.alt_stack.lock(cx) = Default::default();
    process.reset_actions(cx);
    process.timers.delete_all_posix(&process, cx);
    process.reset_exit_signal();
    process.barriers.store(0, Ordering::Relaxed);
    process.has_executed.store(true, Ordering::Relaxed);

    me.space = new_space;
    me.restart = None;
    me.restartable = None;
    me.context.registers = arch::start(start.entry, start.stack);
    arch::reset(&mut me.context, cx);
    drop((thread, process));
    Ok(old_space)
}
