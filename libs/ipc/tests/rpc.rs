//! Requests and responses of cooperative tasks, between threads.
#![cfg(not(ebb_loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use ipc::rpc::{Cookie, Group, Port, Request, Seed, Sleepers, Way, dispatch_async, pair};
use ipc::{Endpoint, Error, Geometry, Kind, Message, Packet, Patience, Tag};
use tasks::{Cx, rt};

const WAYS: [Way; 2] = [Way::CallLines, Way::Rings];

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

fn geometry(call_lines: usize, ring_slots: usize) -> Geometry {
    Geometry::new(call_lines, ring_slots).expect("fits")
}

/// Runs both ends, each on a thread of its own.
fn both(
    geometry: Geometry,
    way: Way,
    a: impl FnOnce(&mut Cx, Rc<Port>) + Send,
    b: impl FnOnce(&mut Cx, Rc<Port>) + Send,
) {
    let (seed_a, seed_b) = pair(geometry);
    thread::scope(|scope| {
        scope.spawn(move || rt::run(|cx| a(cx, seed_a.port_by(way))));
        scope.spawn(move || rt::run(|cx| b(cx, seed_b.port_by(way))));
    });
}

fn serve_async(cx: &mut Cx, port: Rc<Port>, handler: impl Fn(&mut Cx, Request)) {
    let mut group = Group::new();
    group.add(port);
    dispatch_async(cx, &mut group, |cx, _, request| handler(cx, request));
}

fn double_async(cx: &mut Cx, request: Request) {
    let answer = word(request.message.words[0] * 2);
    let _ = request.reply_async(cx, &answer);
}

#[test]
fn many_tasks_call_at_once_and_each_gets_its_answer() {
    for way in WAYS {
        both(
            geometry(16, 16),
            way,
            |cx, port| {
                let answered = Cell::new(0);
                rt::finish_async(cx, |scope, cx| {
                    for task in 0..50 {
                        let (port, answered) = (&port, &answered);
                        scope.spawn_async(cx, move |cx| {
                            for call in 0..100 {
                                let number = task * 1000 + call;
                                assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * 2)));
                                answered.set(answered.get() + 1);
                            }
                        });
                    }
                });
                assert_eq!((answered.get(), port.outstanding()), (5000, 0));
            },
            |cx, port| serve_async(cx, port, double_async),
        );
    }
}

#[test]
fn a_task_with_two_requests_outstanding_takes_the_second_answer_first() {
    for way in WAYS {
        both(
            geometry(8, 8),
            way,
            |cx, port| {
                let first = port.send_request_async(cx, &word(1)).expect("sent");
                let second = port.send_request_async(cx, &word(2)).expect("sent");
                // The second is answered first; both orders of taking them are tried.
                assert_eq!(port.recv_response_async(cx, second), Ok(word(20)));
                assert_eq!(port.recv_response_async(cx, first), Ok(word(10)));
                let first = port.send_request_async(cx, &word(1)).expect("sent");
                let second = port.send_request_async(cx, &word(2)).expect("sent");
                assert_eq!(port.recv_response_async(cx, first), Ok(word(10)));
                assert_eq!(port.recv_response_async(cx, second), Ok(word(20)));
                assert_eq!(port.outstanding(), 0);
            },
            |cx, port| {
                for _ in 0..2 {
                    let one = port.recv_async(cx).expect("a request");
                    let two = port.recv_async(cx).expect("a request");
                    assert_eq!((one.message, two.message), (word(1), word(2)));
                    two.reply_async(cx, &word(20)).expect("room");
                    one.reply_async(cx, &word(10)).expect("room");
                }
                assert!(port.recv_async(cx).is_err());
            },
        );
    }
}

/// A port whose peer is played by hand.
fn port_and_raw_peer() -> (Rc<Port>, Endpoint) {
    let (mine, theirs) = ipc::pair(geometry(0, 16));
    let sleepers = std::sync::Arc::new(Sleepers::new(&mine.link));
    (Seed::new(mine, sleepers, || {}).port(), theirs)
}

#[test]
fn a_response_that_nobody_asked_for_is_dropped_and_counted() {
    rt::run(|cx| {
        let (port, mut peer) = port_and_raw_peer();
        for cookie in [1, 0x1_0000, 0xffff_ffff, 0] {
            let packet = Packet { kind: Kind::Response, cookie, message: word(1) };
            peer.sender.send(&packet).expect("room");
        }
        peer.sender.send(&Packet { kind: Kind::Plain, cookie: 9, message: word(1) }).expect("room");
        assert!(port.poll_recv(cx).expect("alive").is_none());
        assert_eq!(port.counts().unknown, 5);
        // What comes behind them is not held up.
        peer.sender.send(&Packet { kind: Kind::Request, cookie: 3, message: word(2) }).expect("room");
        assert_eq!(port.poll_recv(cx).expect("alive").map(|request| request.message), Some(word(2)));
    });
}

#[test]
fn a_stale_or_forged_cookie_resumes_nobody() {
    rt::run(|cx| {
        let (port, mut peer) = port_and_raw_peer();
        let cookie_of = |peer: &mut Endpoint| peer.receiver.poll().expect("alive").expect("a request").cookie;
        let answer = |peer: &mut Endpoint, cookie: u32, number: u64| {
            let packet = Packet { kind: Kind::Response, cookie, message: word(number) };
            peer.sender.send(&packet).expect("room");
        };
        let old = port.send_request_async(cx, &word(1)).expect("sent");
        let old_on_wire = cookie_of(&mut peer);
        answer(&mut peer, old_on_wire, 1);
        assert_eq!(port.recv_response_async(cx, old), Ok(word(1)));
        // The slot is used again: neither the old cookie here nor the old one on the wire name the new request.
        let new = port.send_request_async(cx, &word(2)).expect("sent");
        let new_on_wire = cookie_of(&mut peer);
        assert_eq!(port.recv_response_async(cx, old), Err(Error::Stale));
        rt::finish_async(cx, |scope, cx| {
            let resumed = Cell::new(false);
            let resumed = &*Box::leak(Box::new(resumed));
            let port = &port;
            scope.spawn_async(cx, move |cx| {
                assert_eq!(port.recv_response_async(cx, new), Ok(word(22)));
                resumed.set(true);
            });
            answer(&mut peer, old_on_wire, 99);
            for bit in 0..32 {
                if peer.sender.send(&Packet { kind: Kind::Response, cookie: new_on_wire ^ 1 << bit, message: word(99) })
                    == Err(Error::Full)
                {
                    assert!(port.poll_recv(cx).expect("alive").is_none());
                }
            }
            for _ in 0..10 {
                rt::yield_async(cx);
                assert!(port.poll_recv(cx).expect("alive").is_none());
            }
            assert!(!resumed.get());
            answer(&mut peer, new_on_wire, 22);
            // A second answer to the same request is unknown again.
            answer(&mut peer, new_on_wire, 23);
            for _ in 0..10 {
                rt::yield_async(cx);
                assert!(port.poll_recv(cx).expect("alive").is_none());
            }
            assert!(resumed.get());
        });
        assert!(port.counts().unknown >= 30, "{:?}", port.counts());
        assert_eq!(port.outstanding(), 0);
    });
}

#[test]
fn a_hundred_outstanding_requests_answered_in_reverse_find_their_owners() {
    for way in WAYS {
        both(
            geometry(128, 128),
            way,
            |cx, port| {
                rt::finish_async(cx, |scope, cx| {
                    for number in 0..100 {
                        let port = &port;
                        scope.spawn_async(cx, move |cx| {
                            assert_eq!(port.call_async(cx, &word(number)), Ok(word(number + 1000)));
                        });
                    }
                });
                assert_eq!(port.outstanding(), 0);
            },
            |cx, port| {
                let mut held = Vec::new();
                while held.len() < 100 {
                    held.push(port.recv_async(cx).expect("a request"));
                }
                for request in held.into_iter().rev() {
                    let answer = word(request.message.words[0] + 1000);
                    request.reply_async(cx, &answer).expect("alive");
                }
                assert!(port.recv_async(cx).is_err());
            },
        );
    }
}

#[test]
fn a_response_waits_for_an_owner_that_does_something_else() {
    rt::run(|cx| {
        let (port, mut peer) = port_and_raw_peer();
        let cookie = port.send_request_async(cx, &word(1)).expect("sent");
        let on_wire = peer.receiver.poll().expect("alive").expect("a request").cookie;
        peer.sender.send(&Packet { kind: Kind::Response, cookie: on_wire, message: word(2) }).expect("room");
        // Somebody else looks, long before the owner does.
        assert!(port.poll_recv(cx).expect("alive").is_none());
        assert_eq!(port.counts().stashed, 1);
        drop(peer);
        assert_eq!(port.recv_response_async(cx, cookie), Ok(word(2)));
    });
}

#[test]
fn two_sides_whose_rings_are_full_in_both_directions_do_not_deadlock() {
    let side = |cx: &mut Cx, port: Rc<Port>| {
        rt::finish_async(cx, |scope, cx| {
            for task in 0..20u64 {
                let port = port.clone();
                scope.spawn_async(cx, move |cx| {
                    for call in 0..50 {
                        let number = task << 8 | call;
                        assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * 2)));
                    }
                });
            }
            let port = port.clone();
            scope.spawn_async(cx, move |cx| {
                for _ in 0..1000 {
                    let request = port.recv_async(cx).expect("a request");
                    double_async(cx, request);
                }
            });
        });
    };
    // Rings of four slots, twenty tasks on each side that want to fill them.
    both(geometry(0, 4), Way::Rings, side, side);
}

#[test]
fn answers_to_requests_of_two_channels_go_to_their_own() {
    let (client_1, server_1) = pair(geometry(4, 4));
    let (client_2, server_2) = pair(geometry(4, 4));
    let client = |seed: Seed, factor: u64, way| {
        move || {
            rt::run(|cx| {
                let port = seed.port_by(way);
                for number in 0..2000 {
                    assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * factor)));
                }
            });
        }
    };
    thread::scope(|scope| {
        scope.spawn(client(client_1, 3, Way::Rings));
        scope.spawn(client(client_2, 5, Way::CallLines));
        scope.spawn(|| {
            rt::run(|cx| {
                let mut group = Group::new();
                let first = group.add(server_1.port());
                let second = group.add(server_2.port());
                assert_eq!((first, second, group.len()), (0, 1, 2));
                let held: RefCell<Vec<(usize, Request)>> = RefCell::default();
                dispatch_async(cx, &mut group, |cx, index, request| {
                    // Answered later, and in the wrong order, by whoever comes when two are held or nobody else does.
                    held.borrow_mut().push((index, request));
                    rt::yield_async(cx);
                    loop {
                        let Some((index, request)) = held.borrow_mut().pop() else { break };
                        let answer = word(request.message.words[0] * if index == first { 3 } else { 5 });
                        request.reply_async(cx, &answer).expect("alive");
                    }
                });
                assert!(group.is_empty());
            });
        });
    });
}

#[test]
fn a_member_that_floods_does_not_starve_the_others() {
    rt::run(|cx| {
        let mut group = Group::new();
        let mut peers = Vec::new();
        for _ in 0..3 {
            let (port, peer) = port_and_raw_peer();
            group.add(port);
            peers.push(peer);
        }
        let fill = |peer: &mut Endpoint| {
            while peer.sender.send(&Packet { kind: Kind::Plain, cookie: 0, message: word(0) }).is_ok() {}
        };
        let mut served = [0; 3];
        for _ in 0..300 {
            fill(&mut peers[0]);
            // The others send one at a time.
            for peer in &mut peers[1..] {
                let _ = peer.sender.send(&Packet { kind: Kind::Plain, cookie: 0, message: word(1) });
            }
            let (index, _) = group.poll_recv(cx).expect("there is always something");
            served[index] += 1;
        }
        assert_eq!(served, [100, 100, 100]);
    });
}

#[test]
fn everybody_who_waits_is_told_when_the_peer_goes_and_nothing_is_left() {
    for way in WAYS {
        both(
            geometry(64, 64),
            way,
            |cx, port| {
                let told = Cell::new(0);
                rt::finish_async(cx, |scope, cx| {
                    // More than there is room for: some wait for an answer, some to be able to ask.
                    for number in 0..100 {
                        let (port, told) = (&port, &told);
                        scope.spawn_async(cx, move |cx| {
                            // Refused, if the peer drops it after it has closed and before this end looks.
                            let answer = port.call_async(cx, &word(number));
                            assert!(matches!(answer, Err(Error::Closed | Error::Refused)), "{answer:?}");
                            told.set(told.get() + 1);
                        });
                    }
                });
                assert_eq!((told.get(), port.outstanding(), port.is_dead()), (100, 0, true));
                assert_eq!(port.send_request_async(cx, &word(1)).err(), Some(Error::Closed));
            },
            |cx, port| {
                let mut held = Vec::new();
                for _ in 0..50 {
                    held.push(port.recv_async(cx).expect("a request"));
                }
                port.mark_dead();
                // What came before is still there to be taken.
                while port.recv_async(cx).is_ok() {}
            },
        );
    }
}

#[test]
fn a_request_that_is_dropped_is_refused() {
    for way in WAYS {
        both(
            geometry(8, 4),
            way,
            |cx, port| {
                rt::finish_async(cx, |scope, cx| {
                    for number in 0..40 {
                        let port = &port;
                        scope.spawn_async(cx, move |cx| {
                            let expected = if number % 2 == 0 { Ok(word(number * 2)) } else { Err(Error::Refused) };
                            assert_eq!(port.call_async(cx, &word(number)), expected);
                        });
                    }
                });
                assert_eq!(port.outstanding(), 0);
            },
            |cx, port| {
                serve_async(cx, port.clone(), |cx, request| {
                    if request.message.words[0] % 2 == 0 {
                        double_async(cx, request);
                    }
                });
                assert_eq!(port.counts().refused, 20);
            },
        );
    }
}

#[test]
fn a_killed_cookie_ends_the_wait_and_its_late_response_is_dropped() {
    for way in WAYS {
        both(
            geometry(4, 4),
            way,
            |cx, port| {
                rt::finish_async(cx, |scope, cx| {
                    let cookie: Cookie = port.send_request_async(cx, &word(1)).expect("sent");
                    let waiting = &port;
                    scope.spawn_async(cx, move |cx| {
                        assert_eq!(waiting.recv_response_async(cx, cookie), Err(Error::Stale));
                    });
                    assert_eq!(port.recv_response_async(cx, cookie), Err(Error::Stale), "somebody waits already");
                    port.kill_request_cookie(cookie).expect("outstanding");
                    assert_eq!(port.kill_request_cookie(cookie), Err(Error::Stale));
                });
                // Only now may the peer answer the first; then all room is there again.
                port.send_async(cx, &word(7)).expect("room");
                for number in 0..20 {
                    assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * 2)));
                }
                assert_eq!((port.outstanding(), port.counts().unknown), (0, u64::from(way == Way::Rings)));
            },
            |cx, port| {
                // Between lines and ring there is no order: calls may come before the signal.
                let (mut late, mut signal) = (None, None);
                while late.is_none() || signal.is_none() {
                    let request = port.recv_async(cx).expect("the signal at least");
                    if !request.wants_reply() {
                        signal = Some(request);
                    } else if late.is_none() {
                        late = Some(request);
                    } else {
                        double_async(cx, request);
                    }
                }
                let (late, signal) = (late.expect("taken above"), signal.expect("taken above"));
                assert_eq!(signal.reply_async(cx, &word(0)), Err(Error::Stale));
                late.reply_async(cx, &word(2)).expect("room");
                serve_async(cx, port, double_async);
            },
        );
    }
}

#[test]
fn no_ring_is_lost_when_both_sides_sleep_at_every_chance() {
    for way in WAYS {
        both(
            geometry(4, 4),
            way,
            |cx, port| {
                port.set_patience(Patience::new(0));
                rt::finish_async(cx, |scope, cx| {
                    for _ in 0..6 {
                        let port = &port;
                        scope.spawn_async(cx, move |cx| {
                            for number in 0..1500 {
                                assert_eq!(port.call_async(cx, &word(number)), Ok(word(number * 2)));
                            }
                        });
                    }
                });
            },
            |cx, port| {
                port.set_patience(Patience::new(0));
                while let Ok(request) = port.recv_async(cx) {
                    double_async(cx, request);
                }
            },
        );
    }
}

#[test]
fn a_handler_that_panics_refuses_its_request() {
    let outcome = thread::spawn(|| {
        let (seed, server) = pair(geometry(4, 4));
        let server = thread::spawn(move || {
            rt::run(|cx| serve_async(cx, server.port(), |_, _| panic!("as the test wants it")));
        });
        let answer = rt::run(|cx| seed.port().call_async(cx, &word(1)));
        (answer, server.join().is_err())
    });
    assert_eq!(outcome.join().expect("no panic here"), (Err(Error::Refused), true));
}

/// The dispatch experiment of Quigley's thesis (section 6.1): requests of two kinds go to a dispatcher; those of the second kind
/// need a third party, which sleeps 10 ms over each. How many of the first kind overtake one of the second?
#[test]
fn quick_requests_overtake_slow_ones_in_the_dispatch_experiment() {
    const ITERATIONS: u64 = 60_000;
    const SLOW_EVERY: u64 = 400;
    const WORKERS: u64 = 64;
    let slow = Tag::new(2);
    let (client, dispatcher) = pair(Geometry::default());
    let (to_third, third) = pair(Geometry::default());
    let (mut quick_over_slow, mut slow_over_slow, mut finished_slow) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            rt::run(|cx| {
                let third = third.port();
                while let Ok(request) = third.recv_async(cx) {
                    thread::sleep(Duration::from_millis(10));
                    let answer = request.message;
                    request.reply_async(cx, &answer).expect("alive");
                }
            });
        });
        scope.spawn(|| {
            rt::run(|cx| {
                let to_third = to_third.port();
                serve_async(cx, dispatcher.port(), |cx, request| {
                    let answer = if request.message.tag == slow {
                        to_third.call_async(cx, &request.message).expect("alive")
                    } else {
                        request.message
                    };
                    request.reply_async(cx, &answer).expect("alive");
                });
            });
        });
        rt::run(|cx| {
            let port = client.port();
            let next = Cell::new(0);
            // The slow ones that are out, and by how many later ones of each kind each was overtaken.
            let out: RefCell<Vec<(u64, u64, u64)>> = RefCell::default();
            let totals = Cell::new((0, 0, 0));
            rt::finish_async(cx, |scope, cx| {
                for _ in 0..WORKERS {
                    let (port, next, out, totals) = (&port, &next, &out, &totals);
                    scope.spawn_async(cx, move |cx| {
                        while next.get() < ITERATIONS {
                            let number = next.get();
                            next.set(number + 1);
                            let is_slow = number % SLOW_EVERY == 0;
                            if is_slow {
                                out.borrow_mut().push((number, 0, 0));
                            }
                            let tag = if is_slow { slow } else { Tag::new(1) };
                            let request = Message::new(tag, &[number]);
                            assert_eq!(port.call_async(cx, &request), Ok(request));
                            let mut out = out.borrow_mut();
                            for (_, by_quick, by_slow) in out.iter_mut().filter(|(earlier, ..)| *earlier < number) {
                                *if is_slow { by_slow } else { by_quick } += 1;
                            }
                            if is_slow {
                                let at = out.iter().position(|(slow, ..)| *slow == number).expect("entered above");
                                let (_, by_quick, by_slow) = out.swap_remove(at);
                                let (quick, slow, count) = totals.get();
                                totals.set((quick + by_quick, slow + by_slow, count + 1));
                            }
                        }
                    });
                }
            });
            (quick_over_slow, slow_over_slow, finished_slow) = totals.get();
            assert_eq!(port.outstanding(), 0);
        });
    });
    println!(
        "{quick_over_slow} times a quick request overtook one of {finished_slow} slow ones; a slow one: {slow_over_slow}"
    );
    assert_eq!(finished_slow, ITERATIONS / SLOW_EVERY);
    // The third party answers in order; what is left is the order in which this side's tasks run.
    assert!(slow_over_slow <= finished_slow, "{slow_over_slow} slow requests overtook slow ones");
    assert!(quick_over_slow > 10 * finished_slow, "only {quick_over_slow} overtook {finished_slow}");
}

#[test]
fn a_cookie_is_worth_nothing_at_another_port() {
    rt::run(|cx| {
        let ends = [pair(Geometry::default()), pair(Geometry::default())];
        let [(a, b), (c, d)] = ends.map(|(near, far)| (near.port_by(Way::Rings), far.port()));
        let (own, other) = (a.send_request_async(cx, &word(1)).unwrap(), c.send_request_async(cx, &word(2)).unwrap());
        b.recv_async(cx).unwrap().reply_async(cx, &word(10)).unwrap();
        d.recv_async(cx).unwrap().reply_async(cx, &word(20)).unwrap();
        assert_eq!(a.recv_response_async(cx, other), Err(Error::Stale));
        assert_eq!(a.kill_request_cookie(other), Err(Error::Stale));
        assert_eq!(a.recv_response_async(cx, own), Ok(word(10)));
        assert_eq!(c.recv_response_async(cx, other), Ok(word(20)));
    });
}

#[test]
fn a_peer_that_asks_on_and_takes_no_refusal_ends_the_channel() {
    let (mut peer, own) = ipc::pair(Geometry::default());
    let sleepers = std::sync::Arc::new(ipc::rpc::Sleepers::new(&own.link));
    let port = ipc::rpc::Seed::new(own, sleepers, || ()).port_by(Way::Rings);
    let request = ipc::Packet { kind: ipc::Kind::Request, cookie: 1, message: word(0) };
    rt::run(|cx| {
        let mut asked = 0;
        let ended = loop {
            match peer.sender.send(&request) {
                Ok(()) => asked += 1,
                Err(Error::Full) => {}
                Err(error) => panic!("{error}"),
            }
            // Each is dropped, which refuses it.
            match port.poll_recv(cx) {
                Ok(_) => assert!(asked < 70_000, "the refusals pile up"),
                Err(error) => break error,
            }
        };
        assert_eq!((ended, asked > 1 << 16), (Error::Corrupt, true));
    });
}
