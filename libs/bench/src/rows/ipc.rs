//! Messages between two cores: `ebb-ipc` beside rings and channels, 64 bytes a message.
//!
//! Every contender polls; nobody sleeps. A call is a message there and one back; the far side answers each at once.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use std::hint::{black_box, spin_loop};

use ipc::rpc::Way;

use crate::line::{Goal, Line, Samples, Unit};
use crate::machine::beside;
use crate::ours::ipc as ours;
use crate::peers::{fipc, smol};

/// One message of 64 bytes.
type Message = [u64; 8];

const RING: usize = 128;
const CALLS: usize = 1024;

/// All lines of the table.
pub fn lines() -> Vec<Line> {
    vec![
        calls::<1>("one call there and back", Unit::Cycles).goal(Goal::ShareOf(0.76, "fipc layout, two lines")),
        calls::<4>("calls, 4 in flight", Unit::PerTenThousand).goal(Goal::Least(64.0)),
        calls::<16>("calls, 16 in flight", Unit::PerTenThousand).goal(Goal::Least(85.0)),
        calls::<32>("calls, 32 in flight", Unit::PerTenThousand),
        deep_calls(),
        calls_of_tasks::<1>("calls of tasks, 1 task (experiment 6.4, synchronous)"),
        calls_of_tasks::<16>("calls of tasks, 16 tasks (experiment 6.4, asynchronous)"),
        calls_of_tasks::<48>("calls of tasks, 48 tasks (experiment 6.4, asynchronous)"),
        stream(),
        same_core(),
    ]
}

/// A channel of one direction, as its ends.
trait Channel {
    type Item: Copy + Send;
    const MESSAGE: Self::Item;
    type Sender: Send;
    type Receiver: Send;
    fn new() -> (Self::Sender, Self::Receiver);
    fn try_send(sender: &mut Self::Sender, message: Self::Item) -> bool;
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Self::Item>;
}

struct Fipc;

impl Channel for Fipc {
    type Item = fipc::Message;
    const MESSAGE: Self::Item = [1; 7];
    type Sender = fipc::Sender;
    type Receiver = fipc::Receiver;
    fn new() -> (Self::Sender, Self::Receiver) {
        fipc::ring(RING)
    }
    #[inline(always)]
    fn try_send(sender: &mut Self::Sender, message: Self::Item) -> bool {
        sender.try_send(&message)
    }
    #[inline(always)]
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Self::Item> {
        receiver.try_recv()
    }
}

struct Rtrb;

impl Channel for Rtrb {
    type Item = Message;
    const MESSAGE: Message = [1; 8];
    type Sender = rtrb::Producer<Message>;
    type Receiver = rtrb::Consumer<Message>;
    fn new() -> (Self::Sender, Self::Receiver) {
        rtrb::RingBuffer::new(RING)
    }
    #[inline(always)]
    fn try_send(sender: &mut Self::Sender, message: Message) -> bool {
        sender.push(message).is_ok()
    }
    #[inline(always)]
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Message> {
        receiver.pop().ok()
    }
}

struct Ringbuf;

impl Channel for Ringbuf {
    type Item = Message;
    const MESSAGE: Message = [1; 8];
    type Sender = ringbuf::HeapProd<Message>;
    type Receiver = ringbuf::HeapCons<Message>;
    fn new() -> (Self::Sender, Self::Receiver) {
        use ringbuf::traits::Split;
        ringbuf::HeapRb::new(RING).split()
    }
    #[inline(always)]
    fn try_send(sender: &mut Self::Sender, message: Message) -> bool {
        use ringbuf::traits::Producer;
        sender.try_push(message).is_ok()
    }
    #[inline(always)]
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Message> {
        use ringbuf::traits::Consumer;
        receiver.try_pop()
    }
}

struct Crossbeam;

impl Channel for Crossbeam {
    type Item = Message;
    const MESSAGE: Message = [1; 8];
    type Sender = crossbeam_channel::Sender<Message>;
    type Receiver = crossbeam_channel::Receiver<Message>;
    fn new() -> (Self::Sender, Self::Receiver) {
        crossbeam_channel::bounded(RING)
    }
    #[inline(always)]
    fn try_send(sender: &mut Self::Sender, message: Message) -> bool {
        sender.try_send(message).is_ok()
    }
    #[inline(always)]
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Message> {
        receiver.try_recv().ok()
    }
}

struct Std;

impl Channel for Std {
    type Item = Message;
    const MESSAGE: Message = [1; 8];
    type Sender = mpsc::SyncSender<Message>;
    type Receiver = mpsc::Receiver<Message>;
    fn new() -> (Self::Sender, Self::Receiver) {
        mpsc::sync_channel(RING)
    }
    #[inline(always)]
    fn try_send(sender: &mut Self::Sender, message: Message) -> bool {
        sender.try_send(message).is_ok()
    }
    #[inline(always)]
    fn try_recv(receiver: &mut Self::Receiver) -> Option<Message> {
        receiver.try_recv().ok()
    }
}

#[inline(always)]
fn send<C: Channel>(sender: &mut C::Sender, message: C::Item) {
    while !C::try_send(sender, message) {
        spin_loop();
    }
}

#[inline(always)]
fn recv<C: Channel>(receiver: &mut C::Receiver) -> C::Item {
    loop {
        if let Some(message) = C::try_recv(receiver) {
            return message;
        }
        spin_loop();
    }
}

/// Calls, so many in flight at a time; per call.
fn call<C: Channel>(s: &mut Samples, in_flight: usize) {
    let (mut requests, mut served) = C::new();
    let (mut answers, mut answered) = C::new();
    let stop = AtomicBool::new(false);
    let server = || {
        while !stop.load(Ordering::Relaxed) {
            match C::try_recv(&mut served) {
                Some(request) => send::<C>(&mut answers, request),
                None => spin_loop(),
            }
        }
    };
    beside(server, || {
        s.batches(CALLS, || {
            (0..in_flight).for_each(|_| send::<C>(&mut requests, C::MESSAGE));
            for _ in in_flight..CALLS {
                black_box(recv::<C>(&mut answered));
                send::<C>(&mut requests, C::MESSAGE);
            }
            (0..in_flight).for_each(|_| _ = black_box(recv::<C>(&mut answered)));
        });
        stop.store(true, Ordering::Relaxed);
    });
}

/// A stream in one direction, with one answer at the end of each batch; per message.
fn flow<C: Channel>(s: &mut Samples) {
    let (mut stream, mut received) = C::new();
    let (mut answers, mut answered) = C::new();
    let stop = AtomicBool::new(false);
    let server = || {
        let mut count = 0;
        while !stop.load(Ordering::Relaxed) {
            match C::try_recv(&mut received) {
                Some(message) => {
                    let message = black_box(message);
                    count += 1;
                    if count % CALLS == 0 {
                        send::<C>(&mut answers, message);
                    }
                }
                None => spin_loop(),
            }
        }
    };
    beside(server, || {
        s.batches(CALLS, || {
            (0..CALLS).for_each(|_| send::<C>(&mut stream, C::MESSAGE));
            black_box(recv::<C>(&mut answered));
        });
        stop.store(true, Ordering::Relaxed);
    });
}

fn alone<C: Channel>(s: &mut Samples) {
    let (mut sender, mut receiver) = C::new();
    s.each(|| {
        send::<C>(&mut sender, C::MESSAGE);
        black_box(recv::<C>(&mut receiver));
    });
}

fn calls<const IN_FLIGHT: usize>(title: &'static str, unit: Unit) -> Line {
    let line = Line::new(title)
        .unit(unit)
        .ours("ebb-ipc call lines", |s| ours::calls(s, IN_FLIGHT, CALLS))
        .ours("ebb-ipc rings", |s| ours::ring_calls(s, IN_FLIGHT, CALLS));
    beside_peers::<IN_FLIGHT>(line)
}

/// So many that rings are the better way.
fn deep_calls() -> Line {
    let line = Line::new("calls, 64 in flight")
        .unit(Unit::PerTenThousand)
        .goal(Goal::Least(250.0))
        .ours("ebb-ipc rings", |s| ours::ring_calls(s, 64, CALLS))
        .ours("ebb-ipc call lines", |s| ours::calls(s, 64, CALLS));
    beside_peers::<64>(line)
}

fn beside_peers<const IN_FLIGHT: usize>(line: Line) -> Line {
    line.peer("fipc layout, two lines", |s| call::<Fipc>(s, IN_FLIGHT))
        .peer("rtrb", |s| call::<Rtrb>(s, IN_FLIGHT))
        .peer("ringbuf", |s| call::<Ringbuf>(s, IN_FLIGHT))
        .peer("crossbeam-channel", |s| call::<Crossbeam>(s, IN_FLIGHT))
        .peer("std sync_channel", |s| call::<Std>(s, IN_FLIGHT))
}

fn calls_of_tasks<const TASKS: usize>(title: &'static str) -> Line {
    Line::new(title)
        .unit(Unit::PerTenThousand)
        .ours("ebb-ipc call_async, call lines", |s| ours::rpc_of_tasks(s, TASKS, CALLS, Way::CallLines))
        .ours("ebb-ipc call_async, rings", |s| ours::rpc_of_tasks(s, TASKS, CALLS, Way::Rings))
        .ours("ebb-tasks looking at call lines", |s| ours::lines_of_tasks(s, TASKS, CALLS))
        .peer("smol on the fipc layout", |s| {
            with_fipc_server(|send, recv| smol::callers(s, TASKS, CALLS, send, recv));
        })
}

/// Runs `here` with a way to send a request and one to take a response, while the other core answers.
fn with_fipc_server(here: impl FnOnce(&dyn Fn(), &dyn Fn() -> bool)) {
    let ((mut requests, mut served), (mut answers, mut answered)) = (Fipc::new(), Fipc::new());
    let stop = AtomicBool::new(false);
    let server = || {
        while !stop.load(Ordering::Relaxed) {
            match served.try_recv() {
                Some(request) => send::<Fipc>(&mut answers, request),
                None => spin_loop(),
            }
        }
    };
    beside(server, || {
        let (requests, answered) = (RefCell::new(&mut requests), RefCell::new(&mut answered));
        here(&|| send::<Fipc>(&mut requests.borrow_mut(), Fipc::MESSAGE), &|| {
            answered.borrow_mut().try_recv().is_some()
        });
        stop.store(true, Ordering::Relaxed);
    });
}

fn stream() -> Line {
    Line::new("a stream in one direction")
        .unit(Unit::PerTenThousand)
        .goal(Goal::Least(250.0))
        .ours("ebb-ipc ring", |s| ours::stream(s, CALLS))
        .peer("fipc layout", flow::<Fipc>)
        .peer("rtrb", flow::<Rtrb>)
        .peer("ringbuf", flow::<Ringbuf>)
        .peer("crossbeam-channel", flow::<Crossbeam>)
        .peer("std sync_channel", flow::<Std>)
}

fn same_core() -> Line {
    Line::new("a message sent and received on one core")
        .ours("ebb-ipc ring", ours::alone)
        .peer("fipc layout", alone::<Fipc>)
        .peer("rtrb", alone::<Rtrb>)
        .peer("ringbuf", alone::<Ringbuf>)
        .peer("crossbeam-channel", alone::<Crossbeam>)
        .peer("std sync_channel", alone::<Std>)
}
