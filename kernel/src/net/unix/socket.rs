//! [`Socket`]: an endpoint as an open file.

use frame::Cx;
use frame::mm::{Reader, Writer};
use linux_raw_sys::ioctl::FIONREAD;
use refs::{StrongRc, TempRc, Waker, WeakRc};

use super::{Credentials, Endpoint, Sending};
use crate::error::Errno;
use crate::fs::{Events, File, VfsCaller};
use crate::step::{Step, Stop};
use crate::user_memory::Argument;

/// An open socket: it owns its endpoint.
pub struct Socket {
    endpoint: StrongRc<Endpoint>,
}

impl Socket {
    /// The socket of an endpoint.
    pub fn new(endpoint: StrongRc<Endpoint>) -> Self {
        Socket { endpoint }
    }

    /// The name of the endpoint.
    pub(super) fn name(&self) -> WeakRc<Endpoint> {
        self.endpoint.downgrade()
    }

    /// The endpoint.
    pub fn endpoint<'cx>(&'cx self, cx: &'cx Cx) -> TempRc<'cx, Endpoint> {
        self.endpoint.get(cx)
    }
}

impl File for Socket {
    fn kernel_bytes(&self, cx: &Cx) -> usize {
        1024 + self.endpoint.get(cx).inbox.lock(cx).bytes()
    }

    fn read(&self, _offset: u64, to: &mut Writer<'_>, _me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let mut sink = |bytes: &[u8]| {
            let before = to.remaining();
            let fault = to.write(bytes).err();
            (before - to.remaining(), fault)
        };
        Ok(self.endpoint.get(cx).receive(&mut sink, false, None, cx)?.copied)
    }

    fn write(&self, _offset: u64, from: &mut Reader<'_>, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        let sending = Sending { files: &[], credentials: Credentials::of(me, cx)? };
        let endpoint = self.endpoint.get(cx);
        let mut sent = 0;
        loop {
            match endpoint.send(from, &sending, None, None, cx) {
                Ok(count) => sent += count,
                // What was sent counts more than why it stopped.
                Err(Stop::Block | Stop::Fault(_)) if sent > 0 => break,
                Err(stop) => return Err(stop),
            }
            if from.remaining() == 0 {
                break;
            }
        }
        Ok(sent)
    }

    fn poll(&self, interest: Events, waker: Option<Waker>, cx: &Cx) -> Events {
        self.endpoint.get(cx).poll(waker, cx) & (interest | Events::ERROR | Events::HANG_UP)
    }

    fn ioctl(&self, request: u32, argument: Argument, me: &dyn VfsCaller, cx: &Cx) -> Step<usize> {
        if request != FIONREAD {
            return Err(Errno::ENOTTY.into());
        }
        let waiting = self.endpoint.get(cx).waiting_bytes(cx) as i32;
        me.memory(cx)?.write(argument.output::<i32>(), &waiting)?;
        Ok(0)
    }
}
