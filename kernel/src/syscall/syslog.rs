//! syslog(2): the kernel's log.

use frame::Cx;
use linux_raw_sys::general as abi;

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::log;
use crate::step::{Patience, Step, Stop, complete_async};
use crate::user_memory::{Out, UserSlice};

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[Entry::new(abi::__NR_syslog, "syslog", Call::Async(syslog_async))];

// SYSLOG_ACTION_*.
const CLOSE: i32 = 0;
const OPEN: i32 = 1;
const READ: i32 = 2;
const READ_ALL: i32 = 3;
const READ_CLEAR: i32 = 4;
const CLEAR: i32 = 5;
const CONSOLE_OFF: i32 = 6;
const CONSOLE_ON: i32 = 7;
const CONSOLE_LEVEL: i32 = 8;
const SIZE_UNREAD: i32 = 9;
const SIZE_BUFFER: i32 = 10;

fn syslog_async(cx: &mut Cx, me: &mut Current, args: &Args) -> Result<usize> {
    let action = args.int(0);
    let is_open = matches!(action, READ_ALL | SIZE_BUFFER) && log::DMESG_RESTRICT.get() == 0;
    if !is_open {
        me.require(Capability::Syslog, cx)?;
    }
    let (at, len) = (args.output::<u8>(1), args.int(2));
    match action {
        READ | READ_ALL | READ_CLEAR => {
            let len = usize::try_from(len).ok().filter(|_| !at.is_null()).ok_or(Errno::EINVAL)?;
            let to = at.slice(len);
            if len == 0 {
                return Ok(0);
            }
            complete_async(cx, me, Patience::Forever, |cx, me, waker| {
                if action != READ {
                    return read_all(action, to, me, cx);
                }
                if let Some(waker) = waker {
                    log::WRITTEN.register(waker, cx);
                }
                let (text, behind) = log::unread(len);
                if text.is_empty() {
                    return Err(Stop::Block);
                }
                me.memory(cx)?.write_slice(to, &text)?;
                log::set_read(behind);
                Ok(text.len())
            })
        }
        CLEAR => {
            log::clear();
            Ok(0)
        }
        CONSOLE_OFF => {
            log::turn_console_off();
            Ok(0)
        }
        CONSOLE_ON => {
            log::turn_console_on();
            Ok(0)
        }
        CONSOLE_LEVEL => {
            log::set_console_level(u8::try_from(len).map_err(|_| Errno::EINVAL)?)?;
            Ok(0)
        }
        SIZE_UNREAD => Ok(log::unread(usize::MAX).0.len()),
        SIZE_BUFFER => Ok(log::CAPACITY),
        CLOSE | OPEN => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}

fn read_all(action: i32, to: UserSlice<u8, Out>, me: &Current, cx: &Cx) -> Step<usize> {
    let text = log::text(to.len())?;
    me.memory(cx)?.write_slice(to, &text)?;
    if action == READ_CLEAR {
        log::clear();
    }
    Ok(text.len())
}
