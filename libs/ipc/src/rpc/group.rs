//! Several ports served together: [`Group`], and the dispatch loop on it.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use refs::Cx;
use tasks::rt;

use super::port::{Port, Request};
use super::waiting::{OnCancel, wait_async};
use crate::{Error, Patience};

/// What came from a member, and the member's index.
pub type FromMember = (usize, Result<Request, Error>);

/// Ports that are polled in turns: after a request from one, all others are asked before it is asked again.
#[derive(Debug, Default)]
pub struct Group {
    members: Vec<Option<Rc<Port>>>,
    next: usize,
    patience: RefCell<Patience>,
}

impl Group {
    /// A group without members.
    pub fn new() -> Group {
        Group::default()
    }

    /// Adds a port; its index stays as long as it is a member.
    pub fn add(&mut self, port: Rc<Port>) -> usize {
        let index = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        if index == self.members.len() {
            self.members.push(None);
        }
        self.members[index] = Some(port);
        index
    }

    /// Takes a member out.
    pub fn remove(&mut self, index: usize) -> Option<Rc<Port>> {
        self.members.get_mut(index)?.take()
    }

    /// The member of that index.
    pub fn get(&self, index: usize) -> Option<&Rc<Port>> {
        self.members.get(index)?.as_ref()
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members.iter().flatten().count()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next request of any member, and says which one's it is. A member that fails is taken out of the group, and its
    /// error is what comes from it last.
    pub fn poll_recv(&mut self, cx: &Cx) -> Option<FromMember> {
        let count = self.members.len();
        for offset in 0..count {
            let index = (self.next + offset) % count;
            let Some(port) = &self.members[index] else { continue };
            let polled = port.poll_recv(cx);
            if let Some(result) = polled.transpose() {
                self.next = index + 1;
                if result.is_err() {
                    self.members[index] = None;
                }
                return Some((index, result));
            }
        }
        None
    }

    /// Waits for the next request of any member, as [`poll_recv`](Self::poll_recv) takes it; `None` when there are no members.
    pub fn recv_async(&mut self, cx: &mut Cx) -> Option<FromMember> {
        // Without cancellation nothing goes wrong: an error of a member is a result.
        self.next_async(cx, OnCancel::GoesOn).unwrap_or(None)
    }

    /// Waits for the next request of any member, unless the task's block is asked to end; `None` when there are no members.
    ///
    /// # Errors
    /// [`Error::Canceled`], even if something has come, which stays for the next who looks.
    pub fn recv_x_async(&mut self, cx: &mut Cx) -> Result<Option<FromMember>, Error> {
        self.next_async(cx, OnCancel::Ends)
    }

    fn next_async(&mut self, cx: &mut Cx, on_cancel: OnCancel) -> Result<Option<FromMember>, Error> {
        on_cancel.check(cx)?;
        if let Some(polled) = self.poll_recv(cx) {
            return Ok(Some(polled));
        }
        if self.is_empty() {
            return Ok(None);
        }
        let members: Vec<Rc<Port>> = self.members.iter().flatten().cloned().collect();
        let patience = core::mem::take(&mut self.patience);
        let enter = |waker, cx: &Cx| members.iter().for_each(|port| port.enter(waker, cx));
        let received = wait_async(cx, on_cancel, &patience, enter, |cx| Ok(self.poll_recv(cx)));
        self.patience = patience;
        received.map(Some)
    }
}

/// Serves a group: each request is handled by a task of its own, so that one that takes long holds up no other. Ends when the
/// group has no members left (each is taken out when its peer is gone) or the run-time is to stop, and when all handlers have ended.
///
/// A handler gets the index of the member and the request; if there is no memory for another task the request is refused. If a
/// handler panics its request is refused too, and the panic leaves this function as it leaves any block
/// ([`finish_async`](rt::finish_async)).
pub fn dispatch_async(cx: &mut Cx, group: &mut Group, handler: impl Fn(&mut Cx, usize, Request)) {
    let handler = &handler;
    rt::finish_async(cx, |scope, cx| {
        while !rt::should_stop(cx) {
            let Some((index, request)) = group.recv_async(cx) else { break };
            if let Ok(request) = request {
                // What is not started is dropped, and so refused.
                let _ = scope.try_spawn_async(cx, move |cx| handler(cx, index, request));
                // Requests may come without end: the handlers that wait for this core have their turn too.
                rt::yield_async(cx);
            }
        }
    });
}
