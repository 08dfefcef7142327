//! The requests that a port has sent: a slot for each, found by a cookie.

use alloc::vec::Vec;
use core::mem::replace;

use refs::Waker;

use crate::call::EndId;
use crate::{Call, Error, Message};

/// Names a request that was sent and whose response was not taken. Copies name the same; only one of them gets the response. To another port it
/// names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cookie {
    port: EndId,
    index: u16,
    /// Never used again within this port.
    serial: u64,
}

impl Cookie {
    /// What goes over the wire: the slot, and as much of the serial number as fits. Not 0.
    pub(super) fn wire(self) -> u32 {
        u32::from(self.index) | u32::from(self.serial as u16) << 16
    }
}

/// Where a request is.
pub(super) enum State {
    Free,
    /// Reserved, not sent yet.
    Unsent,
    /// On a call line.
    Line(Call),
    /// Over the ring: the response will name the cookie.
    Ring,
    /// The response is here, or the refusal.
    Arrived(Result<Message, Error>),
}

struct Slot {
    serial: u64,
    state: State,
    /// A task waits for it; its waker, while it is parked.
    awaited: bool,
    waker: Option<Waker>,
}

pub(super) struct Cookies {
    port: EndId,
    slots: Vec<Slot>,
    free: Vec<u16>,
    serial: u64,
}

impl Default for Cookies {
    fn default() -> Self {
        Cookies { port: EndId::new(), slots: Vec::new(), free: Vec::new(), serial: 0 }
    }
}

impl Cookies {
    /// Reserves a slot.
    pub fn reserve(&mut self) -> Result<Cookie, Error> {
        self.serial += 1;
        if self.serial as u16 == 0 {
            self.serial += 1;
        }
        let slot = Slot { serial: self.serial, state: State::Unsent, awaited: false, waker: None };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[usize::from(index)] = slot;
                index
            }
            None => {
                let index = u16::try_from(self.slots.len()).map_err(|_| Error::NoCookie)?;
                self.slots.push(slot);
                index
            }
        };
        Ok(Cookie { port: self.port, index, serial: self.serial })
    }

    /// How many slots are in use.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Where the request is.
    pub fn state(&mut self, cookie: Cookie) -> Result<&mut State, Error> {
        Ok(&mut self.slot(cookie)?.state)
    }

    /// A task says that it will wait for it. A second one may not.
    pub fn claim(&mut self, cookie: Cookie) -> Result<(), Error> {
        let slot = self.slot(cookie)?;
        if replace(&mut slot.awaited, true) { Err(Error::Stale) } else { Ok(()) }
    }

    /// The task that waits for it is about to park.
    pub fn set_waker(&mut self, cookie: Cookie, waker: Waker) {
        if let Ok(slot) = self.slot(cookie) {
            slot.waker = Some(waker);
        }
    }

    /// Gives the slot back, and what was in it.
    pub fn release(&mut self, cookie: Cookie) -> Result<State, Error> {
        let slot = self.slot(cookie)?;
        let state = replace(&mut slot.state, State::Free);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        self.free.push(cookie.index);
        Ok(state)
    }

    /// A response came that names this cookie: stashes it for its owner and wakes the owner if it waits. False if there is no
    /// such request, or none that is to be answered over the ring.
    pub fn deliver(&mut self, wire: u32, response: Result<Message, Error>) -> bool {
        let Some(slot) = self.slots.get_mut(usize::from(wire as u16)) else { return false };
        if !matches!(slot.state, State::Ring) || slot.serial as u16 != (wire >> 16) as u16 {
            return false;
        }
        slot.state = State::Arrived(response);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
        true
    }

    #[inline(always)]
    fn slot(&mut self, cookie: Cookie) -> Result<&mut Slot, Error> {
        match self.slots.get_mut(usize::from(cookie.index)) {
            Some(slot)
                if cookie.port == self.port && slot.serial == cookie.serial && !matches!(slot.state, State::Free) =>
            {
                Ok(slot)
            }
            _ => Err(Error::Stale),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_worth_nothing_once_released_also_after_many_more() {
        let mut cookies = Cookies::default();
        let old = cookies.reserve().expect("free");
        assert!(cookies.release(old).is_ok());
        for _ in 0..200_000 {
            let new = cookies.reserve().expect("free");
            assert!(new != old && new.wire() != 0);
            assert_eq!(cookies.state(old).err(), Some(Error::Stale));
            assert!(cookies.release(new).is_ok());
            assert_eq!(cookies.release(new).err(), Some(Error::Stale));
        }
        assert_eq!(cookies.in_use(), 0);
    }

    #[test]
    fn all_numbers_of_slots_work_and_one_too_many_is_refused() {
        let mut cookies = Cookies::default();
        let all: Vec<Cookie> = (0..=u16::MAX).map(|_| cookies.reserve().expect("free")).collect();
        assert_eq!(cookies.reserve().err(), Some(Error::NoCookie));
        for cookie in &all {
            *cookies.state(*cookie).expect("in use") = State::Ring;
        }
        for cookie in &all {
            let response = Message::new(Default::default(), &[cookie.serial]);
            assert!(cookies.deliver(cookie.wire(), Ok(response)));
            assert!(!cookies.deliver(cookie.wire(), Ok(response)), "delivered twice");
        }
        for cookie in all {
            let State::Arrived(Ok(message)) = cookies.release(cookie).expect("in use") else { panic!("not delivered") };
            assert_eq!(message.words[0], cookie.serial);
        }
        assert!(cookies.reserve().is_ok());
    }

    impl core::fmt::Debug for State {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            f.write_str("State")
        }
    }
}
