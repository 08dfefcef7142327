//! [`Dump`]: all that there is of a kind, one message after another, and [`Dumping`], which makes datagrams of them as they are received.
//!
//! A piece is made when the last one was received: at most [`PIECE`] bytes, unless one message is longer, and at most [`LOOKS`] things are looked at for it. So a dump costs its socket a place in a list,
//! however long the list is, and no call works for long.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;

use super::message::{Asker, Header, Message, NLM_F_MULTI, NLMSG_DONE, Request};

/// The most bytes of several messages: readers have had room for so many ever since (4 KiB, less what Linux needs beside them).
const PIECE: usize = 3776;
/// So many things are looked at for one piece.
const LOOKS: usize = 64;

/// What comes next in a dump.
pub enum Next {
    /// A message.
    Message(Vec<u8>),
    /// One that the asker does not want.
    Skipped,
    /// Nothing any more.
    End,
}

/// A dump that is being made.
pub trait Dump: Send {
    /// Looks at the next thing.
    fn next(&mut self, cx: &Cx) -> Next;
}

/// A list that was made when it was asked for: of what there are few of.
pub struct Listed<I>(pub I);

impl<I: Iterator<Item = Vec<u8>> + Send> Dump for Listed<I> {
    fn next(&mut self, _cx: &Cx) -> Next {
        self.0.next().map_or(Next::End, Next::Message)
    }
}

/// A dump with what its datagrams need.
pub struct Dumping {
    source: Box<dyn Dump>,
    header: Header,
    asker: Asker,
    /// The message that did not fit into the last piece.
    carried: Option<Vec<u8>>,
    is_over: bool,
}

impl Dumping {
    /// The answer to a request.
    pub fn new(request: &Request<'_>, source: Box<dyn Dump>) -> Self {
        Dumping { source, header: request.header, asker: request.asker, carried: None, is_over: false }
    }

    /// The next datagram; it is empty if nothing that was looked at is wanted. And whether it is the last one.
    pub fn piece(&mut self, cx: &Cx) -> (Vec<u8>, bool) {
        let mut piece = self.carried.take().unwrap_or_default();
        for _ in 0..LOOKS {
            if self.is_over {
                break;
            }
            match self.source.next(cx) {
                Next::Message(message) if piece.is_empty() => piece = message,
                Next::Message(message) if piece.len() + message.len() <= PIECE => piece.extend_from_slice(&message),
                Next::Message(message) => {
                    self.carried = Some(message);
                    return (piece, false);
                }
                Next::Skipped => {}
                Next::End => self.is_over = true,
            }
        }
        if !self.is_over || !piece.is_empty() {
            return (piece, false);
        }
        let request = Request { header: self.header, body: &[], asker: self.asker };
        (Message::new(&request, NLMSG_DONE, NLM_F_MULTI, &[0; 4]).finish(), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Every(u32, u32);

    impl Dump for Every {
        fn next(&mut self, _cx: &Cx) -> Next {
            self.0 += 1;
            match self.0 {
                at if at > self.1 => Next::End,
                at if at % 2 == 0 => Next::Message(alloc::vec![at as u8; 1000]),
                _ => Next::Skipped,
            }
        }
    }

    fn pieces(source: Box<dyn Dump>) -> Vec<usize> {
        let header = Header { len: 16, kind: 18, flags: 0x301, sequence: 7, port: 0 };
        let request = Request { header, body: &[], asker: Asker { port: 9, ..Asker::default() } };
        let mut dumping = Dumping::new(&request, source);
        let mut lens = Vec::new();
        frame::with_context(|cx| {
            loop {
                let (piece, is_last) = dumping.piece(cx);
                lens.push(piece.len());
                if is_last {
                    return lens;
                }
            }
        })
    }

    #[test]
    fn a_dump_comes_in_pieces_and_ends_with_done() {
        assert_eq!(pieces(Box::new(Every(0, 9))), [3000, 1000, 20]);
        assert_eq!(pieces(Box::new(Every(0, 0))), [20]);
    }

    #[test]
    fn what_nobody_wants_is_looked_at_some_at_a_time() {
        struct Nothing(usize);
        impl Dump for Nothing {
            fn next(&mut self, _cx: &Cx) -> Next {
                self.0 += 1;
                if self.0 > 250 { Next::End } else { Next::Skipped }
            }
        }
        assert_eq!(pieces(Box::new(Nothing(0))), [0, 0, 0, 20]);
    }
}
