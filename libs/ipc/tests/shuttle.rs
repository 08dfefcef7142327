//! Doorbells and ports in interleavings chosen at random: a ring that gets lost is a deadlock, and shuttle says so.
//! `RUSTFLAGS="--cfg ebb_shuttle --cfg ebb_threads" cargo test --release -p ebb-ipc --test shuttle`.
#![cfg(ebb_shuttle)]

use std::rc::Rc;
use std::time::Duration;

use ipc::rpc::{Group, Port, Seed, Way, dispatch_async};
use ipc::{Doorbell, Error, Geometry, Kind, Link, Message, Packet, Patience, Tag, Waiter};
use shuttle::sync::atomic::Ordering;
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;
use tasks::interleavings::explore;
use tasks::rt::{self, Cx};

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

fn geometry(call_lines: usize, ring_slots: usize) -> Geometry {
    Geometry::new(call_lines, ring_slots).expect("fits")
}

/// What the system's futex does: who sleeps looks at the word under a lock that whoever wakes takes.
#[derive(Clone, Default)]
struct Futex {
    kernel: Arc<(Mutex<()>, Condvar)>,
}

impl Doorbell for Futex {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn arm(&self, link: &Link) -> u64 {
        link.bell_word().load(Ordering::Acquire)
    }

    fn sleep(&self, link: &Link, armed: u64, _deadline: Option<Duration>) {
        let guard = self.kernel.0.lock().expect("not poisoned");
        if link.bell_word().load(Ordering::Acquire) == armed {
            drop(self.kernel.1.wait(guard));
        }
    }

    fn ring(&self, link: &Link) {
        link.peers_bell_word().fetch_add(1, Ordering::Release);
        let _guard = self.kernel.0.lock().expect("not poisoned");
        self.kernel.1.notify_all();
    }

    fn ring_own(&self, link: &Link) {
        link.bell_word().fetch_add(1, Ordering::Release);
        let _guard = self.kernel.0.lock().expect("not poisoned");
        self.kernel.1.notify_all();
    }
}

#[test]
fn no_ring_is_lost_between_ends_that_sleep_at_once() {
    explore(16_000, || {
        const MESSAGES: u64 = 7;
        let bell = Futex::default();
        let (mut a, mut b) = ipc::pair(geometry(0, 4));
        let mut at_b = Waiter::new(bell.clone(), Patience::new(0));
        let receiver = thread::spawn(move || {
            for expected in 0..MESSAGES {
                let link = b.link.clone();
                let packet = at_b.wait(&link, None, || b.receiver.poll()).expect("alive");
                // Maybe the other end waits for the room.
                at_b.notify(&link);
                assert_eq!(packet.message, word(expected));
            }
        });
        let mut at_a = Waiter::new(bell, Patience::new(0));
        let link = a.link.clone();
        for number in 0..MESSAGES {
            let packet = Packet { kind: Kind::Plain, cookie: 0, message: word(number) };
            let sent = at_a.wait(&link, None, || match a.sender.send(&packet) {
                Err(Error::Full) => Ok(None),
                sent => sent.map(Some),
            });
            sent.expect("alive");
            at_a.notify(&link);
        }
        receiver.join().expect("no panic");
    });
}

#[test]
fn an_end_that_sleeps_is_told_when_the_other_closes() {
    explore(16_000, || {
        let bell = Futex::default();
        let (a, mut b) = ipc::pair(geometry(2, 4));
        let mut at_b = Waiter::new(bell.clone(), Patience::new(0));
        let sleeper = thread::spawn(move || {
            let link = b.link.clone();
            assert_eq!(at_b.wait(&link, None, || b.receiver.poll()).err(), Some(Error::Closed));
        });
        a.link.close();
        Waiter::new(bell, Patience::new(0)).notify(&a.link);
        sleeper.join().expect("no panic");
    });
}

/// Runs both ends of a channel, each on a thread of its own, with ports that sleep at once.
fn both(
    geometry: Geometry,
    way: Way,
    a: impl FnOnce(&mut Cx, Rc<Port>) + Send,
    b: impl FnOnce(&mut Cx, Rc<Port>) + Send,
) {
    let (seed_a, seed_b) = ipc::rpc::pair(geometry);
    let port = move |seed: Seed| {
        let port = seed.port_by(way);
        port.set_patience(Patience::new(0));
        port
    };
    thread::scope(|scope| {
        scope.spawn(move || rt::run(|cx| a(cx, port(seed_a))));
        scope.spawn(move || rt::run(|cx| b(cx, port(seed_b))));
    });
}

/// Three tasks call at once; `check` sees each number and its answer.
fn call_async(cx: &mut Cx, port: &Port, check: fn(u64, Result<Message, Error>)) {
    rt::finish_async(cx, |scope, cx| {
        for number in 0..3 {
            scope.spawn_async(cx, move |cx| check(number, port.call_async(cx, &word(number))));
        }
    });
    assert_eq!(port.outstanding(), 0);
}

#[test]
fn tasks_that_call_over_few_places_all_get_their_answers() {
    for way in [Way::CallLines, Way::Rings] {
        explore(4_000, move || {
            both(
                geometry(2, 4),
                way,
                |cx, port| call_async(cx, &port, |number, answer| assert_eq!(answer, Ok(word(number * 2)))),
                |cx, port| {
                    while let Ok(request) = port.recv_async(cx) {
                        let answer = word(request.message.words[0] * 2);
                        request.reply_async(cx, &answer).expect("room");
                    }
                },
            );
        });
    }
}

#[test]
fn tasks_that_wait_for_a_peer_that_goes_are_all_told() {
    for way in [Way::CallLines, Way::Rings] {
        explore(4_000, move || {
            both(
                geometry(2, 4),
                way,
                |cx, port| {
                    // Refused, if the peer drops it after it has closed and before this end looks.
                    call_async(cx, &port, |_, answer| {
                        assert!(matches!(answer, Err(Error::Closed | Error::Refused)), "{answer:?}");
                    });
                    assert!(port.is_dead());
                },
                |cx, port| {
                    let held = port.recv_async(cx).expect("a request");
                    port.mark_dead();
                    drop(held);
                },
            );
        });
    }
}

#[test]
fn calls_that_are_canceled_while_answers_come_mix_up_no_others() {
    for way in [Way::CallLines, Way::Rings] {
        explore(4_000, move || {
            both(
                geometry(3, 4),
                way,
                |cx, port| {
                    rt::finish_async(cx, |scope, cx| {
                        for number in 0..2 {
                            let port = &port;
                            scope.spawn_async(cx, move |cx| {
                                let answer = port.call_x_async(cx, &word(number));
                                assert!(
                                    matches!(answer, Err(Error::Canceled)) || answer == Ok(word(number * 2)),
                                    "{answer:?}"
                                );
                            });
                        }
                        rt::yield_async(cx);
                        scope.cancel_async(cx);
                    });
                    assert_eq!(port.outstanding(), 0);
                    assert_eq!(port.call_async(cx, &word(7)), Ok(word(14)));
                },
                |cx, port| {
                    while let Ok(request) = port.recv_async(cx) {
                        let answer = word(request.message.words[0] * 2);
                        request.reply_async(cx, &answer).expect("room");
                    }
                },
            );
        });
    }
}

#[test]
fn a_group_serves_members_that_ring_at_once() {
    explore(2_000, || {
        let ((client_1, server_1), (client_2, server_2)) =
            (ipc::rpc::pair(geometry(2, 4)), ipc::rpc::pair(geometry(2, 4)));
        let sleeps_at_once = |seed: Seed| {
            let port = seed.port();
            port.set_patience(Patience::new(0));
            port
        };
        thread::scope(|threads| {
            for (client, number) in [(client_1, 1), (client_2, 2)] {
                threads.spawn(move || {
                    rt::run(|cx| {
                        let port = sleeps_at_once(client);
                        for call in [number, number * 10] {
                            assert_eq!(port.call_async(cx, &word(call)), Ok(word(call * 2)));
                        }
                    });
                });
            }
            threads.spawn(move || {
                rt::run(|cx| {
                    let mut group = Group::new();
                    group.add(sleeps_at_once(server_1));
                    group.add(sleeps_at_once(server_2));
                    dispatch_async(cx, &mut group, |cx, _, request| {
                        let answer = word(request.message.words[0] * 2);
                        request.reply_async(cx, &answer).expect("room");
                    });
                });
            });
        });
    });
}
