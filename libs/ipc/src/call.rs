//! Call lines: a call is one cache line that goes there and comes back.
//!
//! The caller writes a request into a line, the callee writes the response into the same line. So a call moves one line each
//! way, where a pair of rings moves two: about a quarter of the time of a round trip between cores.
//!
//! There is no queue of requests beside the lines. Each request names, in its status word, the line on which the *next* one
//! will come; caller and callee start with line 0 and number the requests alike. So the callee looks at exactly one line; lines
//! are answered in any order; a slow answer holds up nothing but its own line.
//!
//! Against a hostile peer: which line is expected, what was last written to each line, and which are being served is private
//! to each end. A status word is either exactly what this end left there (nothing new), exactly what the protocol has next,
//! or the end of the channel.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::Error;
use crate::link::Link;
use crate::message::{Kind, Message, Status, Tag};
use crate::region::Region;

/// Which end of which channel of this program: what one gave out is worth nothing at another. Used again after 2^32 ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct EndId(u32);

impl EndId {
    pub(crate) fn new() -> EndId {
        // Not what loom explores: nothing depends on the order of ends.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        EndId(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The `short` field of a response.
const ANSWERED: u16 = 0;
const REFUSED: u16 = 1;

/// The end of a set of call lines that asks.
#[derive(Debug)]
pub struct Caller {
    id: EndId,
    lines: Region,
    link: Link,
    /// The line of the next request.
    next: u16,
    number: u32,
    /// Lines on which no call is outstanding, but for `next`.
    free: Vec<u16>,
    /// The request that is outstanding on each line, as it was sent; 0 where there is none.
    sent: Box<[u64]>,
    /// Lines whose caller has given up and whose response has not come.
    abandoned: Vec<u16>,
}

/// An outstanding call: says that a request was sent by this [`Caller`] and its response not yet taken. It is a name, not a
/// reference: of two copies one gets the response, the other [`Error::Stale`], which any other caller says of it, too.
#[must_use = "a call that is neither polled nor abandoned occupies its line for ever"]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    end: EndId,
    line: u16,
    number: u32,
}

impl Caller {
    /// `lines` are from 2 to 1024 lines, all zeros.
    pub(crate) fn new(lines: Region, link: Link) -> Caller {
        let count = lines.len_lines() as u16;
        // Processors fetch lines in pairs: one line of each pair is used before the others are.
        let (even, odd) = ((1..count).filter(|line| line % 2 == 0), (1..count).filter(|line| line % 2 == 1));
        let free = odd.rev().chain(even.rev()).collect();
        Caller {
            id: EndId::new(),
            lines,
            link,
            next: 0,
            number: 1,
            free,
            sent: vec![0; count.into()].into(),
            abandoned: Vec::new(),
        }
    }

    /// How many calls may be outstanding at a time.
    pub fn capacity(&self) -> usize {
        self.sent.len().saturating_sub(1)
    }

    /// How many are.
    pub fn outstanding(&self) -> usize {
        self.capacity() - self.free.len().min(self.capacity())
    }

    /// Sends a request.
    ///
    /// # Errors
    /// [`Error::Full`] when as many calls are outstanding as there may be, [`Error::Closed`], [`Error::Corrupt`].
    #[inline(always)]
    pub fn post(&mut self, request: &Message) -> Result<Call, Error> {
        self.link.check()?;
        let Some(following) = self.free.pop().or_else(|| self.reclaim()) else {
            self.link.check()?;
            return Err(Error::Full);
        };
        let (line, number) = (self.next, self.number);
        let status = Status::new(Kind::Request, following, request.tag, number);
        self.sent[usize::from(line)] = status.0;
        self.lines.lines()[usize::from(line)].publish(status, &request.words);
        self.next = following;
        self.number = number.wrapping_add(1);
        Ok(Call { end: self.id, line, number })
    }

    /// Takes the response of a call, if it is there.
    ///
    /// # Errors
    /// [`Error::Stale`] when the call is not outstanding; [`Error::Refused`] when the peer took it and will not answer;
    /// [`Error::Closed`] when the peer is gone and there is no response; [`Error::Corrupt`].
    #[inline(always)]
    pub fn poll(&mut self, call: &Call) -> Result<Option<Message>, Error> {
        let index = usize::from(call.line);
        let sent = self.sent_for(call);
        if sent.0 == 0 {
            return Err(Error::Stale);
        }
        let mut status = self.lines.lines()[index].status();
        if status == sent {
            let Err(error) = self.link.check() else { return Ok(None) };
            // The peer may have answered and then closed: what it did before it closed is visible now.
            status = self.lines.lines()[index].status();
            if status == sent {
                return Err(error);
            }
        }
        if !status.is_but_for_tag(Status::new(Kind::Response, ANSWERED, Tag::default(), call.number)) {
            if status != Status::new(Kind::Response, REFUSED, Tag::default(), call.number) {
                return Err(self.link.corrupt());
            }
            self.sent[index] = 0;
            self.free.push(call.line);
            return Err(Error::Refused);
        }
        let words = self.lines.lines()[index].read();
        self.sent[index] = 0;
        self.free.push(call.line);
        Ok(Some(Message { tag: status.tag(), words }))
    }

    /// Gives a call up. Its line is used again once the peer has answered: until then the peer owns it.
    pub fn abandon(&mut self, call: &Call) {
        if self.sent_for(call).0 != 0 && !self.abandoned.contains(&call.line) {
            self.abandoned.push(call.line);
        }
    }

    /// The request of a call as it was sent, if it is outstanding; else 0.
    #[inline(always)]
    fn sent_for(&self, call: &Call) -> Status {
        let sent = Status(self.sent.get(usize::from(call.line)).copied().unwrap_or(0));
        if call.end == self.id && sent.long() == call.number { sent } else { Status(0) }
    }

    /// A line whose abandoned call has been answered meanwhile.
    #[cold]
    fn reclaim(&mut self) -> Option<u16> {
        let mut at = 0;
        while at < self.abandoned.len() {
            let line = self.abandoned[at];
            let sent = Status(self.sent[usize::from(line)]);
            let call = Call { end: self.id, line, number: sent.long() };
            if sent.0 != 0 && matches!(self.poll(&call), Ok(None)) {
                at += 1;
            } else {
                // Answered, taken by somebody who did not give up after all, or the channel is dead.
                self.abandoned.swap_remove(at);
            }
        }
        self.free.pop()
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}

/// The end of a set of call lines that answers.
#[derive(Debug)]
pub struct Callee {
    id: EndId,
    lines: Region,
    link: Link,
    /// The line on which the next request comes.
    next: u16,
    number: u32,
    /// What is in each line as far as this end knows: its last response, or the request that it is serving.
    known: Box<[u64]>,
    serving: usize,
}

/// A request that was taken and has to be answered: the right to answer it, once.
#[must_use = "the one who asked waits for an answer"]
#[derive(Debug)]
pub struct Request {
    end: EndId,
    line: u16,
    number: u32,
    /// What was asked.
    pub message: Message,
}

impl Callee {
    /// `lines` are as for [`Caller::new`].
    pub(crate) fn new(lines: Region, link: Link) -> Callee {
        let known = vec![0; lines.len_lines()].into();
        Callee { id: EndId::new(), lines, link, next: 0, number: 1, known, serving: 0 }
    }

    /// Takes the next request, if it is there.
    ///
    /// # Errors
    /// [`Error::Closed`] when the peer is gone and there is no request left, [`Error::Corrupt`].
    #[inline(always)]
    pub fn poll(&mut self) -> Result<Option<Request>, Error> {
        let index = usize::from(self.next);
        // An end without call lines receives nothing.
        let Some(&known) = self.known.get(index) else { return self.link.check().map(|()| None) };
        let mut status = self.lines.lines()[index].status();
        if status.0 == known {
            let Err(error) = self.link.check() else { return Ok(None) };
            status = self.lines.lines()[index].status();
            if status.0 == known {
                return Err(error);
            }
        }
        let following = status.short();
        let expected = Status::new(Kind::Request, following, status.tag(), self.number);
        let following_is_fit = following != self.next
            && self.known.get(usize::from(following)).is_some_and(|known| Status(*known).kind() != Some(Kind::Request));
        if status != expected || !following_is_fit {
            return Err(self.link.corrupt());
        }
        let words = self.lines.lines()[index].read();
        let message = Message { tag: status.tag(), words };
        let request = Request { end: self.id, line: self.next, number: self.number, message };
        self.known[index] = status.0;
        self.serving += 1;
        self.next = following;
        self.number = self.number.wrapping_add(1);
        Ok(Some(request))
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Error::Stale`] when the request was not taken here. Whether the peer is still there is not told: an answer to
    /// nobody is no error.
    #[inline(always)]
    pub fn reply(&mut self, request: Request, response: &Message) -> Result<(), Error> {
        self.finish(&request, ANSWERED, response)
    }

    /// Says that a request will not be answered: the one who asked gets [`Error::Refused`].
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    pub fn refuse(&mut self, request: Request) -> Result<(), Error> {
        self.finish(&request, REFUSED, &Message::default())
    }

    #[inline(always)]
    fn finish(&mut self, request: &Request, short: u16, response: &Message) -> Result<(), Error> {
        let index = usize::from(request.line);
        let known = Status(self.known.get(index).copied().unwrap_or(0));
        if request.end != self.id || known.kind() != Some(Kind::Request) || known.long() != request.number {
            return Err(Error::Stale);
        }
        let status = Status::new(Kind::Response, short, response.tag, request.number);
        self.known[index] = status.0;
        self.serving -= 1;
        self.lines.lines()[index].publish(status, &response.words);
        Ok(())
    }

    /// How many requests were taken and not answered.
    pub fn serving(&self) -> usize {
        self.serving
    }

    /// The connection that this is part of.
    pub fn link(&self) -> &Link {
        &self.link
    }
}
