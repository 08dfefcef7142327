//! execve(2) and execveat(2).

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::process::exec::{ExecFlags, Request, Strings, exec_async, total_limit};
use crate::step::{Patience, complete_async};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::new(abi::__NR_execve, "execve", Call::Async(execve_async)),
    Entry::new(abi::__NR_execveat, "execveat", Call::Async(execveat_async)),
];

fn execve_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let Args([path, argv, envp, ..]) = *args;
    execute_async(cx, me, abi::AT_FDCWD, path, argv, envp, ExecFlags::empty())
}

fn execveat_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let Args([_, path, argv, envp, flags, _]) = *args;
    let flags = ExecFlags::from_bits(flags as u32).ok_or(Errno::EINVAL)?;
    execute_async(cx, me, args.int(0), path, argv, envp, flags)
}

fn execute_async(
    cx: &mut Cx,
    me: &mut Current,
    directory: i32,
    path: usize,
    argv: usize,
    envp: usize,
    flags: ExecFlags,
) -> Result<usize> {
    let limit = total_limit(me.thread(cx)?.limit(abi::RLIMIT_STACK, cx).0);
    let path = complete_async(cx, me, Patience::Forever, |cx, me, _| me.memory(cx)?.read_path(path))?;
    let argv = read_strings_async(cx, me, argv, limit)?;
    let used = argv.bytes().len() + argv.count() * size_of::<usize>();
    let envp = read_strings_async(cx, me, envp, limit - used.min(limit))?;
    exec_async(cx, me, &Request { directory, path, flags, argv, envp })?;
    Ok(0)
}

fn read_strings_async(cx: &mut Cx, me: &mut Current, array: usize, limit: usize) -> Result<Strings> {
    let mut strings = Strings::new();
    complete_async(cx, me, Patience::Forever, |cx, me, _| strings.read_on(&me.memory(cx)?, array, limit))?;
    Ok(strings)
}
