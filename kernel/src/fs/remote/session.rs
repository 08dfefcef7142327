//! [`Session`]: what this kernel has agreed with a server: which *fid* is which file, and asking.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::Cx;
use frame::mm::UFrame;
use ninep::{Attributes, Error, NO_TAG, Reply, Request, Space};
use refs::{SpinLock, StrongRc, WaitList, WeakRc};
use tasks::{Body, Next, StaticRef};

use super::channel::{Channel, Data, Exchange, ExchangeOwner};
use super::device::Limited;
use crate::block::{Refused, wait_async};
use crate::error::{Errno, Result};
use crate::sched::{self, Parameters};
use crate::step::Stop;

/// Fids are below this, so that one and a place in a file fit a word: see [`super::device`].
pub const MOST_FIDS: u32 = 1 << 24;
/// What is known of a file holds for so many nanoseconds, and is asked anew then.
const VALID: u64 = 1_000_000_000;
/// As long as so many questions of the slowest kind take, at least: else a path of many names would never come to its end.
const VALID_QUESTIONS: u64 = 64;
/// That there is no file of a name holds for less: open(2) of a name that is new at the server is to find it. It must hold for as long as a step takes that looks for several.
const ABSENT_VALID: u64 = 50_000_000;
const ABSENT_QUESTIONS: u64 = 8;
/// But never longer than this, however slow the server.
const LONGEST_VALID: u64 = 10_000_000_000;
/// Bytes of a message beside its data.
const MESSAGE_BYTES: usize = 64;

/// Numbers for files.
struct Fids {
    next: u32,
    free: Vec<u32>,
    /// Those that the server is to be told it can forget.
    closing: Vec<u32>,
}

/// A server that has been spoken to. It lives for ever; of one that is gone all fails.
pub struct Session {
    pub(super) channel: &'static dyn Channel,
    pub(super) limits: Limited,
    fids: SpinLock<Fids>,
    closing: WaitList,
    /// How long the slowest answer of late took, in nanoseconds.
    slowest: AtomicU64,
    is_bad: AtomicBool,
    /// Itself.
    pub(super) this: StaticRef<Session>,
    /// Of the root directory.
    pub root: Attributes,
    /// How much there is.
    pub space: Space,
}

/// The fid of the root directory, which is for ever.
pub const ROOT: u32 = 0;

/// A number that stands for a file of the server's. With its last owner the server is told that it can forget it.
pub struct Fid {
    session: &'static Session,
    /// The number.
    pub number: u32,
}

impl Drop for Fid {
    fn drop(&mut self) {
        if self.number != ROOT {
            self.session.fids.with(|fids| fids.closing.push(self.number));
            self.session.closing.wake_all();
        }
    }
}

/// The frames of an exchange, and what came of it.
type Outcome = (Vec<UFrame>, Result<Vec<u8>>);

/// Who waits for a reply.
struct Waiting {
    outcome: SpinLock<Option<Outcome>>,
    done: WaitList,
}

struct OfWaiting(WeakRc<Waiting>);

impl ExchangeOwner for OfWaiting {
    fn completed(self: Box<Self>, frames: Vec<UFrame>, reply: Result<Vec<u8>>, cx: &Cx) {
        if let Ok(waiting) = self.0.upgrade(cx) {
            *waiting.outcome.lock(cx) = Some((frames, reply));
            waiting.done.wake_all();
        }
    }
}

/// A reply, with the frames that belong to it.
pub struct Answer {
    request_kind: u8,
    bytes: Vec<u8>,
    /// Where its data are.
    pub frames: Vec<UFrame>,
}

impl Answer {
    /// What is in it.
    ///
    /// # Errors
    /// The server's.
    pub fn reply(&self) -> core::result::Result<Reply<'_>, Error> {
        Reply::to(self.request_kind, &self.bytes)
    }

    /// How many bytes of data it brought, of the `most` that were asked for.
    ///
    /// # Errors
    /// The server's.
    pub fn data_len(&self, most: usize) -> core::result::Result<usize, Error> {
        Reply::data_len(self.request_kind, &self.bytes, most)
    }
}

fn ask_channel_async(
    cx: &mut Cx,
    channel: &'static dyn Channel,
    request: &Request<'_>,
    frames: Vec<UFrame>,
    data: Data,
) -> Result<Answer> {
    let is_version = matches!(request, Request::Version { .. });
    let message = request.encode(if is_version { NO_TAG } else { 0 });
    let waiting = StrongRc::new(Waiting { outcome: SpinLock::new(None), done: WaitList::new() });
    wait_async(cx, |waker, cx| {
        if let Some(waker) = waker {
            channel.room().register(waker, cx);
        }
        let owner = Box::new(OfWaiting(waiting.downgrade()));
        let exchange = Exchange { message: message.clone(), frames: frames.clone(), data, owner };
        match channel.submit(exchange, cx) {
            Ok(()) => Ok(()),
            Err((_, Refused::Full)) => Err(Stop::BlockOnDevice),
            Err((_, Refused::Gone)) => Err(Errno::EIO.into()),
        }
    })?;
    drop(frames);
    let (frames, reply) = wait_async(cx, |waker, cx| {
        let waiting = waiting.get(cx);
        if let Some(waker) = waker {
            waiting.done.register(waker, cx);
        }
        let outcome = waiting.outcome.lock(cx).take();
        outcome.ok_or(Stop::BlockOnDevice)
    })?;
    Ok(Answer { request_kind: request.kind(), bytes: reply?, frames })
}

/// Begins to speak to a server.
///
/// # Errors
/// The server's; EIO where it speaks another language.
pub fn begin_async(cx: &mut Cx, channel: &'static dyn Channel) -> Result<&'static Session> {
    let broken = |error| match error {
        Error::Refused(number) => Errno::of_number(number).unwrap_or(Errno::EIO),
        Error::Broken(_) => Errno::EIO,
    };
    let wanted = channel.most_frames() * frame::mm::PAGE_SIZE + MESSAGE_BYTES;
    let version = Request::Version { message_bytes: wanted as u32 };
    let agreed = ask_channel_async(cx, channel, &version, Vec::new(), Data::None)?;
    let bytes = agreed.reply().and_then(Reply::version).map_err(broken)? as usize;
    let frames = (bytes.saturating_sub(MESSAGE_BYTES) / frame::mm::PAGE_SIZE).min(channel.most_frames());
    if frames == 0 {
        return Err(Errno::EIO);
    }
    let attach = Request::Attach { fid: ROOT, uid: 0 };
    let attached = ask_channel_async(cx, channel, &attach, Vec::new(), Data::None)?;
    attached.reply().map_err(broken)?;
    let attributes = ask_channel_async(cx, channel, &Request::Attributes { fid: ROOT }, Vec::new(), Data::None)?;
    let root = attributes.reply().and_then(Reply::attributes).map_err(broken)?;
    let space = ask_channel_async(cx, channel, &Request::Space { fid: ROOT }, Vec::new(), Data::None)?;
    let space = space.reply().and_then(Reply::space).map_err(broken)?;
    let session: &'static Session = Box::leak(Box::new(Session {
        channel,
        limits: Limited::new(frames),
        fids: SpinLock::new(Fids { next: ROOT + 1, free: Vec::new(), closing: Vec::new() }),
        closing: WaitList::new(),
        slowest: AtomicU64::new(0),
        is_bad: AtomicBool::new(false),
        this: StaticRef::none(),
        root,
        space,
    }));
    session.this.set(Some(session));
    let task = Box::new(Closer(session));
    tasks::spawn(&sched::SCHEDULER, task, |words, _| sched::initialise(words, Parameters::default(), None));
    Ok(session)
}

impl Session {
    /// Asks and waits for the answer.
    ///
    /// # Errors
    /// EIO: the server is gone.
    pub fn ask_async(
        &'static self,
        cx: &mut Cx,
        request: &Request<'_>,
        frames: Vec<UFrame>,
        data: Data,
    ) -> Result<Answer> {
        ask_channel_async(cx, self.channel, request, frames, data)
    }

    /// Asks for something without data, and what comes of it.
    ///
    /// # Errors
    /// The server's; EIO.
    pub fn tell_async<T>(
        &'static self,
        cx: &mut Cx,
        request: &Request<'_>,
        read: impl FnOnce(Reply<'_>) -> core::result::Result<T, Error>,
    ) -> Result<T> {
        let began = frame::time::now();
        let answer = self.ask_async(cx, request, Vec::new(), Data::None)?;
        if matches!(request, Request::Walk { .. } | Request::Attributes { .. }) {
            self.note_time(frame::time::now().saturating_sub(began));
        }
        answer.reply().and_then(read).map_err(|error| self.error(error))
    }

    /// What a program is told; what cannot be is noted once.
    pub fn error(&self, error: Error) -> Errno {
        match error {
            Error::Refused(number) => Errno::of_number(number).unwrap_or(Errno::EIO),
            Error::Broken(what) => {
                if !self.is_bad.swap(true, Ordering::Relaxed) {
                    crate::log!("the host's directory {}: {what}", self.channel.name().escape_ascii());
                }
                Errno::EIO
            }
        }
    }

    /// An answer took so many nanoseconds. The slowest goes down again by an eighth with each answer.
    fn note_time(&self, took: u64) {
        let slowest = self.slowest.load(Ordering::Relaxed);
        self.slowest.store(took.max(slowest - slowest / 8), Ordering::Relaxed);
    }

    /// Whether what was known at a time (nanoseconds since boot) holds still.
    pub fn is_valid(&self, since: u64) -> bool {
        since != 0 && self.is_younger(since, VALID, VALID_QUESTIONS)
    }

    /// Whether it still holds that at that time there was no file of some name.
    pub fn is_still_absent(&self, since: u64) -> bool {
        self.is_younger(since, ABSENT_VALID, ABSENT_QUESTIONS)
    }

    fn is_younger(&self, since: u64, least: u64, questions: u64) -> bool {
        let slowest = self.slowest.load(Ordering::Relaxed);
        let limit = least.max(questions.saturating_mul(slowest)).min(LONGEST_VALID);
        frame::time::now().saturating_sub(since) < limit
    }

    /// A number that stands for nothing yet.
    ///
    /// # Errors
    /// ENFILE.
    fn new_fid(&'static self, cx: &Cx) -> Result<u32> {
        let mut fids = self.fids.lock(cx);
        if let Some(number) = fids.free.pop() {
            return Ok(number);
        }
        let number = fids.next;
        if number >= MOST_FIDS {
            return Err(Errno::ENFILE);
        }
        fids.next += 1;
        Ok(number)
    }

    /// The root directory's.
    pub fn root_fid(&'static self) -> StrongRc<Fid> {
        StrongRc::new(Fid { session: self, number: ROOT })
    }

    /// A fid for what `name` is in a directory, or (without a name) one more for the same file.
    ///
    /// # Errors
    /// ENOENT; the server's.
    pub fn walk_async(&'static self, cx: &mut Cx, from: u32, name: Option<&[u8]>) -> Result<StrongRc<Fid>> {
        let new = self.new_fid(cx)?;
        let walked = self.tell_async(cx, &Request::Walk { fid: from, new, name }, |reply| reply.walked());
        match walked {
            Ok(qid) if qid.is_some() == name.is_some() => Ok(StrongRc::new(Fid { session: self, number: new })),
            outcome => {
                // The server does not know it.
                self.fids.lock(cx).free.push(new);
                outcome.and(Err(Errno::ENOENT))
            }
        }
    }

    /// What stat(2) tells.
    ///
    /// # Errors
    /// The server's.
    pub fn attributes_async(&'static self, cx: &mut Cx, fid: u32) -> Result<Attributes> {
        self.tell_async(cx, &Request::Attributes { fid }, |reply| reply.attributes())
    }
}

/// Tells the server which fids it can forget.
struct Closer(&'static Session);

impl Body for Closer {
    fn run_async(&mut self, cx: &mut Cx) -> Next {
        let waker = tasks::prepare(cx);
        self.0.closing.register(waker, cx);
        let Some(number) = self.0.fids.lock(cx).closing.pop() else {
            tasks::park_async(cx);
            return Next::Again;
        };
        tasks::finish_wait(cx);
        // Whatever the server says, it has no such fid then; one that is gone has none at all.
        let _ = self.0.ask_async(cx, &Request::Clunk { fid: number }, Vec::new(), Data::None);
        self.0.fids.lock(cx).free.push(number);
        Next::Again
    }
}
