//! execve(2) and execveat(2).

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::exec::{ExecFlags, Request, Strings, exec_async, total_limit};
use crate::step::{Patience, complete_async};
use crate::user_memory::UserIn;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_execve, "execve", Call::Async(execve_async)),
    Entry::new(abi::__NR_execveat, "execveat", Call::Async(execveat_async)),
];

fn execve_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (argv, envp) = (args.input::<UserIn<u8>>(1), args.input::<UserIn<u8>>(2));
    execute_async(cx, me, abi::AT_FDCWD, args.string(0), argv, envp, ExecFlags::empty().bits())
}

fn execveat_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let (argv, envp) = (args.input::<UserIn<u8>>(2), args.input::<UserIn<u8>>(3));
    execute_async(cx, me, args.int(0), args.string(1), argv, envp, args.int(4) as u32)
}

fn execute_async(
    cx: &mut Cx,
    me: &mut Current,
    directory: i32,
    path: UserIn<u8>,
    argv: UserIn<UserIn<u8>>,
    envp: UserIn<UserIn<u8>>,
    flags: u32,
) -> Result<usize> {
    let limit = total_limit(me.thread(cx)?.limit(abi::RLIMIT_STACK, cx).0);
    let path = complete_async(cx, me, Patience::Forever, |cx, me, _| me.memory(cx)?.read_path(path))?;
    let flags = ExecFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    if path.is_empty() && !flags.contains(ExecFlags::EMPTY_PATH) {
        return Err(Errno::ENOENT);
    }
    let argv = read_strings_async(cx, me, argv, limit)?;
    let envp = read_strings_async(cx, me, envp, limit - argv.total().min(limit))?;
    exec_async(cx, me, &Request { directory, path, flags, argv, envp })?;
    Ok(0)
}

fn read_strings_async(cx: &mut Cx, me: &mut Current, array: UserIn<UserIn<u8>>, limit: usize) -> Result<Strings> {
    let mut strings = Strings::new();
    complete_async(cx, me, Patience::Forever, |cx, me, _| strings.read_on(&me.memory(cx)?, array, limit))?;
    Ok(strings)
}
