//! Every interleaving and every weak-memory outcome of short runs of the protocols:
//! `RUSTFLAGS="--cfg ebb_loom" cargo test --release -p ebb-ipc --no-default-features --test loom`.
#![cfg(ebb_loom)]

use ipc::{Error, Geometry, Kind, Message, Packet, Tag, pair};
use loom::thread;

fn message(word: u64) -> Message {
    Message::new(Tag::new(word as u32), &[word, word + 1, word + 2, 0, 0, 0, word + 6])
}

fn check(builder_preemptions: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder_preemptions);
    builder.check(run);
}

#[test]
fn a_call_is_whole_on_both_sides() {
    check(3, || {
        let (mut a, mut b) = pair(Geometry::new(2, 0).expect("fits"));
        let server = thread::spawn(move || {
            for expected in [10, 20] {
                let request = loop {
                    if let Some(request) = b.callee.poll().expect("alive") {
                        break request;
                    }
                    thread::yield_now();
                };
                assert_eq!(request.message, message(expected));
                b.callee.reply(request, &message(expected + 1)).expect("our own");
            }
            b
        });
        for word in [10, 20] {
            let call = a.caller.post(&message(word)).expect("a free line");
            let answer = loop {
                if let Some(answer) = a.caller.poll(&call).expect("alive") {
                    break answer;
                }
                thread::yield_now();
            };
            assert_eq!(answer, message(word + 1));
        }
        drop(server.join().expect("no panic"));
    });
}

#[test]
fn an_answer_before_closing_is_never_lost() {
    check(3, || {
        let (mut a, b) = pair(Geometry::new(2, 0).expect("fits"));
        let call = a.caller.post(&message(1)).expect("a free line");
        let server = thread::spawn(move || {
            let mut b = b;
            let request = b.callee.poll().expect("alive").expect("posted before");
            b.callee.reply(request, &message(2)).expect("our own");
            // `b` is dropped: the channel closes.
        });
        let answer = loop {
            if let Some(answer) = a.caller.poll(&call).expect("the answer comes before the end") {
                break answer;
            }
            thread::yield_now();
        };
        assert_eq!(answer, message(2));
        server.join().expect("no panic");
        assert_eq!(a.caller.post(&message(3)), Err(Error::Closed));
    });
}

#[test]
fn a_ring_never_overwrites_what_was_not_received() {
    check(2, || {
        let (mut a, mut b) = pair(Geometry::new(0, 4).expect("fits"));
        let packet = |word| Packet { kind: Kind::Plain, cookie: word as u32, message: message(word) };
        let sender = thread::spawn(move || {
            for word in 0..6 {
                while a.sender.send(&packet(word)) == Err(Error::Full) {
                    thread::yield_now();
                }
            }
            a
        });
        for word in 0..6 {
            let got = loop {
                if let Some(got) = b.receiver.poll().expect("alive") {
                    break got;
                }
                thread::yield_now();
            };
            assert_eq!(got, packet(word));
        }
        drop(sender.join().expect("no panic"));
    });
}

#[test]
fn a_sleeper_is_seen_or_sees() {
    check(3, || {
        let (mut a, mut b) = pair(Geometry::new(0, 4).expect("fits"));
        let sender = thread::spawn(move || {
            a.sender.send(&Packet { kind: Kind::Plain, cookie: 0, message: message(1) }).expect("room");
            (a.link.peer_sleeps(), a)
        });
        b.link.will_sleep();
        let saw = b.receiver.poll().expect("alive").is_some();
        let (rung, _a) = sender.join().expect("no panic");
        assert!(saw || rung, "the sleeper neither saw the message nor was it rung");
    });
}
