//! [`Urgent`]: the byte that was sent with MSG_OOB last. It lies among the others; unless SO_OOBINLINE is set it is received apart from them, and what is received with others ends before it.

use frame::Cx;

use super::Endpoint;
use super::endpoint::{Phase, State};
use crate::error::{Errno, Result};
use crate::net::{Received, Receiving, Sink};
use crate::step::Step;

/// Where it is.
pub(super) struct Urgent {
    /// Its place in the stream.
    at: u64,
    /// It was received with MSG_OOB.
    is_read: bool,
}

impl Urgent {
    /// Whether it can be received.
    pub(super) fn is_unread(&self) -> bool {
        !self.is_read
    }
}

impl State {
    /// The last byte in `input` is the urgent one from now on. One before it that is next to be received and was not is lost, as on Linux.
    pub(super) fn mark_urgent(&mut self) {
        if self.is_at_urgent() && !self.urgent_inline && self.input.len() > 1 {
            self.take(1);
        }
        let at = self.received + self.input.len() as u64 - 1;
        self.urgent = Some(Urgent { at, is_read: false });
    }

    /// Whether the urgent byte is the next one (SIOCATMARK).
    pub(super) fn is_at_urgent(&self) -> bool {
        self.urgent.as_ref().is_some_and(|urgent| urgent.at == self.received)
    }

    /// How many bytes are before the next urgent byte that ends what is received: all, if there is none.
    pub(super) fn before_urgent(&self) -> usize {
        match &self.urgent {
            Some(urgent) if urgent.at > self.received => self.input.len().min((urgent.at - self.received) as usize),
            _ => self.input.len(),
        }
    }

    /// How many bytes can be received with the others.
    pub(super) fn readable(&self) -> usize {
        self.input.len() - usize::from(self.skips_urgent())
    }

    /// Whether the next byte is received apart from the others.
    pub(super) fn skips_urgent(&self) -> bool {
        self.is_at_urgent() && !self.urgent_inline && !self.input.is_empty()
    }

    /// Takes bytes out. An urgent one among them is one no more.
    pub(super) fn take(&mut self, count: usize) {
        self.input.skip(count);
        self.received += count as u64;
        if self.urgent.as_ref().is_some_and(|urgent| urgent.at < self.received) {
            self.urgent = None;
        }
    }
}

impl Endpoint {
    /// Receives the urgent byte.
    ///
    /// # Errors
    /// EINVAL: there is none, it was received, or it is one of the others. ENOTCONN.
    pub(super) fn receive_urgent(&self, sink: &mut Sink<'_>, receiving: &Receiving, cx: &Cx) -> Step<Received> {
        let mut state = self.state.lock(cx);
        if matches!(state.phase, Phase::Listening(_)) {
            return Err(Errno::ENOTCONN.into());
        }
        let at = match &state.urgent {
            Some(urgent) if urgent.is_unread() && !state.urgent_inline => urgent.at,
            _ => return Err(Errno::EINVAL.into()),
        };
        let byte = state.input.byte((at - state.received) as usize).ok_or(Errno::EINVAL)?;
        let (copied, fault) = if receiving.room == 0 { (0, None) } else { sink(&[byte]) };
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        if let Some(urgent) = &mut state.urgent
            && !receiving.peeks()
        {
            urgent.is_read = true;
        }
        Ok(Received { copied, len: 1, flags: linux_raw_sys::net::MSG_OOB, ..Received::default() })
    }

    /// Whether the next byte is the urgent one (SIOCATMARK).
    pub fn is_at_mark(&self, cx: &Cx) -> bool {
        self.state.lock(cx).is_at_urgent()
    }

    /// How many bytes can be received in one go (SIOCINQ).
    ///
    /// # Errors
    /// EINVAL: it listens.
    pub fn waiting_bytes(&self, cx: &Cx) -> Result<usize> {
        let state = self.state.lock(cx);
        match state.phase {
            Phase::Listening(_) => Err(Errno::EINVAL),
            _ if state.urgent_inline => Ok(state.input.len()),
            _ if state.is_at_urgent() => Ok(0),
            _ => Ok(state.before_urgent()),
        }
    }
}
