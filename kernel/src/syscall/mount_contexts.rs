//! File systems that are configured step by step: fsopen(2), fsconfig(2), fsmount(2), fspick(2).

use alloc::boxed::Box;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::{StrongRc, TempRc, WeakRc};

use super::mounts::{check_privileged, open_async, remount_async};
use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::mount_context::{Configuration, MountContext, Value};
use crate::fs::types::{self, Made, Request};
use crate::fs::walk::{self, PathName, WalkFlags};
use crate::fs::{FdFlags, Mount, MountFlags, OpenFile, OpenFlags, TreeFile, VfsCaller, reserve_fd};
use crate::step::{Patience, Step, complete_async};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_fsopen, "fsopen", Call::Step(fsopen)),
    Entry::partial(
        abi::__NR_fsconfig,
        "fsconfig",
        Call::Async(fsconfig_async),
        "options that are files or bytes; changes of a mount's file system change that mount alone",
    ),
    Entry::new(abi::__NR_fsmount, "fsmount", Call::Step(fsmount)),
    Entry::new(abi::__NR_fspick, "fspick", Call::Step(fspick)),
];

/// The longest name of a type of file system, with its zero.
const LONGEST_TYPE: usize = 4096;
/// The longest name of an option, and the longest string, with the zero.
const LONGEST_STRING: usize = 256;
/// The most bytes of an option.
const MOST_BYTES: i32 = 1 << 20;

fn fd_flags(closes_on_exec: bool) -> FdFlags {
    if closes_on_exec { FdFlags::CLOSE_ON_EXEC } else { FdFlags::empty() }
}

fn install(context: MountContext, closes_on_exec: bool, me: &Current, cx: &Cx) -> Step<usize> {
    let file = OpenFile::new(Box::new(context), OpenFlags::READ_WRITE);
    Ok(reserve_fd(me, cx)?.fill(file, fd_flags(closes_on_exec), cx))
}

fn fsopen(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(1) as u32;
    check_privileged(cx, me)?;
    if flags & !abi::FSOPEN_CLOEXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = me.memory(cx)?.read_c_string(args.string(0), LONGEST_TYPE, Errno::EINVAL)?;
    let kind = types::find(&name, cx)?;
    crate::memory::admit()?;
    install(MountContext::new(kind), flags & abi::FSOPEN_CLOEXEC != 0, me, cx)
}

fn fspick(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let flags = args.int(2) as u32;
    let known = abi::FSPICK_CLOEXEC | abi::FSPICK_SYMLINK_NOFOLLOW | abi::FSPICK_NO_AUTOMOUNT | abi::FSPICK_EMPTY_PATH;
    check_privileged(cx, me)?;
    if flags & !known != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut walking = WalkFlags::empty();
    walking.set(WalkFlags::FOLLOW, flags & abi::FSPICK_SYMLINK_NOFOLLOW == 0);
    walking.set(WalkFlags::MAY_BE_EMPTY, flags & abi::FSPICK_EMPTY_PATH != 0);
    let path = PathName::read(args.string(1), me, cx)?;
    let found = walk::resolve(args.int(0), path.bytes(), walking, me, cx)?;
    if !found.is_root_of_mount() {
        return Err(Errno::EINVAL.into());
    }
    let kind = types::find(found.mount.file_system.get(cx).name.as_bytes(), cx).map_err(|_| Errno::EOPNOTSUPP)?;
    crate::memory::admit()?;
    let context = MountContext::of_mount(kind, found.mount.downgrade());
    install(context, flags & abi::FSPICK_CLOEXEC != 0, me, cx)
}

/// The description of a context.
fn file_of<'cx>(fd: i32, me: &Current, cx: &'cx Cx) -> Result<TempRc<'cx, OpenFile>> {
    let file = me.files(cx)?.get(fd, cx)?;
    if file.kind::<MountContext>().is_some() { Ok(file) } else { Err(Errno::EINVAL) }
}

/// Calls `f` with the context of a description that is still open.
fn with_context<T>(file: WeakRc<OpenFile>, cx: &Cx, f: impl FnOnce(&MountContext) -> Result<T>) -> Result<T> {
    f(file.upgrade(cx).map_err(|_| Errno::EBADF)?.kind::<MountContext>().ok_or(Errno::EINVAL)?)
}

fn fsconfig_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (fd, command) = (args.int(0), args.int(1) as u32);
    let (key, value, aux) = (args.string(2).non_null(), args.string(3).non_null(), args.int(4));
    let (has_key, has_value) = (key.is_some(), value.is_some());
    use abi::fsconfig_command as commands;
    let is_command = |which: commands| which as u32 == command;
    let is_creation = is_command(commands::FSCONFIG_CMD_CREATE) || is_command(commands::FSCONFIG_CMD_CREATE_EXCL);
    let is_path = is_command(commands::FSCONFIG_SET_PATH) || is_command(commands::FSCONFIG_SET_PATH_EMPTY);
    if fd < 0 {
        return Err(Errno::EINVAL);
    }
    let is_well_formed = if is_command(commands::FSCONFIG_SET_FLAG) {
        has_key && !has_value && aux == 0
    } else if is_command(commands::FSCONFIG_SET_STRING) {
        has_key && has_value && aux == 0
    } else if is_command(commands::FSCONFIG_SET_BINARY) {
        has_key && has_value && (1..=MOST_BYTES).contains(&aux)
    } else if is_path {
        has_key && has_value && (aux == abi::AT_FDCWD || aux >= 0)
    } else if is_command(commands::FSCONFIG_SET_FD) {
        has_key && !has_value && aux >= 0
    } else if is_creation || is_command(commands::FSCONFIG_CMD_RECONFIGURE) {
        !has_key && !has_value && aux == 0
    } else {
        return Err(Errno::EOPNOTSUPP);
    };
    if !is_well_formed {
        return Err(Errno::EINVAL);
    }
    let file = file_of(fd, me, cx)?.downgrade();
    if is_creation {
        return create_async(cx, me, file, is_command(commands::FSCONFIG_CMD_CREATE_EXCL));
    }
    let Some(key) = key else { return reconfigure_async(cx, me, file) };
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let key = memory.read_c_string(key, LONGEST_STRING, Errno::EINVAL)?;
        let text = match value.filter(|_| is_command(commands::FSCONFIG_SET_STRING)) {
            Some(value) => Some(memory.read_c_string(value, LONGEST_STRING, Errno::EINVAL)?),
            None => None,
        };
        let value = match &text {
            Some(text) => Value::String(text),
            None if is_command(commands::FSCONFIG_SET_FLAG) => Value::Flag,
            None => Value::Other,
        };
        crate::memory::admit()?;
        Ok(with_context(file, cx, |context| context.set(&key, value, cx))?)
    })?;
    Ok(0)
}

/// FSCONFIG_CMD_CREATE; `is_exclusive`: what is there already is not to be shared.
fn create_async(cx: &mut Cx, me: &mut Current, file: WeakRc<OpenFile>, is_exclusive: bool) -> Result<usize> {
    check_privileged(cx, me)?;
    let configuration = with_context(file, cx, |context| context.begin_making(cx))?;
    let made = make_async(cx, me, &configuration).and_then(|mount| {
        let is_shared = is_exclusive && mount.with(|mount| mount.file_system.with(|system| system.has_other_mounts()));
        if is_shared { Err(Errno::EBUSY) } else { Ok(mount) }
    });
    let outcome = made.as_ref().map(|_| 0).map_err(|error| *error);
    with_context(file, cx, |context| {
        context.end_making(made.map_err(|error| message(&configuration, error)), cx);
        Ok(())
    })?;
    outcome
}

/// A mount of what a context says, which is nowhere yet.
fn make_async(cx: &mut Cx, me: &mut Current, configuration: &Configuration) -> Result<StrongRc<Mount>> {
    let Configuration { kind, source, options, is_read_only } = configuration;
    let request = Request { kind, source, options, is_read_only: *is_read_only };
    if source.is_empty() && kind.needs_source() {
        return Err(Errno::EINVAL);
    }
    let read_only = if *is_read_only { MountFlags::READ_ONLY } else { MountFlags::empty() };
    match complete_async(cx, me, Patience::Forever, |cx, me, _| request.begin(me, cx))? {
        Made::Instance((file_system, root), access) => {
            Ok(StrongRc::new(Mount::new(file_system, root, source.clone(), read_only | access)))
        }
        Made::Opening(opening) => open_async(cx, me, opening, source.clone(), read_only),
    }
}

/// What a program is told of an instance that could not be made; nothing where the error says it all.
fn message(configuration: &Configuration, error: Errno) -> &'static str {
    let is_device = configuration.kind.needs_source();
    match error {
        Errno::EINVAL if is_device && configuration.source.is_empty() => "No source specified",
        Errno::ENOENT | Errno::ENOTBLK if is_device => "Can't lookup blockdev",
        _ => "",
    }
}

/// FSCONFIG_CMD_RECONFIGURE.
fn reconfigure_async(cx: &mut Cx, me: &mut Current, file: WeakRc<OpenFile>) -> Result<usize> {
    check_privileged(cx, me)?;
    let changes = with_context(file, cx, |context| context.changes(cx))?;
    let outcome = apply_async(cx, me, &changes.options, changes.mount, changes.is_read_only);
    if outcome.is_err() {
        with_context(file, cx, |context| {
            context.fail(cx);
            Ok(())
        })?;
    }
    outcome.map(|()| 0)
}

fn apply_async(
    cx: &mut Cx,
    me: &mut Current,
    options: &[u8],
    mount: WeakRc<Mount>,
    is_read_only: Option<bool>,
) -> Result<()> {
    {
        let shown = mount.upgrade(cx).map_err(|_| Errno::EINVAL)?;
        types::change_options(&shown.file_system.get(cx), options, cx)?;
    }
    let Some(is_read_only) = is_read_only else { return Ok(()) };
    remount_async(cx, me, mount, Some(is_read_only), &|mut flags| {
        flags.set(MountFlags::READ_ONLY, is_read_only);
        flags
    })
}

fn fsmount(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (flags, attributes) = (args.int(1) as u32, args.int(2) as u32);
    check_privileged(cx, me)?;
    if flags & !abi::FSMOUNT_CLOEXEC != 0 {
        return Err(Errno::EINVAL.into());
    }
    let own = MountFlags::of_attributes(attributes)?;
    let file = file_of(args.int(0), me, cx)?;
    let context = file.kind::<MountContext>().ok_or(Errno::EINVAL)?;
    crate::memory::admit()?;
    let reserved = reserve_fd(me, cx)?;
    let payer = me.payer(cx)?;
    let open = context.mount(own, cx, |mount| TreeFile::of_mount(mount, &payer, cx))?;
    Ok(reserved.fill(open, fd_flags(flags & abi::FSMOUNT_CLOEXEC != 0), cx))
}
