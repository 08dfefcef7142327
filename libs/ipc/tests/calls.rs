//! What call lines do, with both ends in one thread.
#![cfg(not(ebb_loom))]

use ipc::{Call, Endpoint, Error, Geometry, Message, Request, Tag, pair};

fn ends(call_lines: usize) -> (Endpoint, Endpoint) {
    pair(Geometry::new(call_lines, 0).expect("a fit geometry"))
}

fn ask(end: &mut Endpoint, word: u64) -> Call {
    end.caller.post(&Message::new(Tag::new(7), &[word])).expect("a free line")
}

fn taken(end: &mut Endpoint) -> Request {
    end.callee.poll().expect("alive").expect("a request")
}

fn answer(end: &mut Endpoint, request: Request, word: u64) {
    end.callee.reply(request, &Message::new(Tag::new(9), &[word])).expect("our own request");
}

fn word_of(end: &mut Endpoint, call: &Call) -> Option<u64> {
    end.caller.poll(call).expect("alive").map(|message| message.words[0])
}

#[test]
fn all_words_and_the_tag_arrive_both_ways() {
    let (mut a, mut b) = ends(4);
    let request = Message::new(Tag::MAX, &[1, u64::MAX, 3, 4, 5, 6, 7]);
    let call = a.caller.post(&request).expect("posted");
    let taken = taken(&mut b);
    assert_eq!(taken.message, request);
    let response = Message::new(Tag::new(0), &[7, 6, 5, 4, 3, 2, u64::MAX]);
    b.callee.reply(taken, &response).expect("replied");
    assert_eq!(a.caller.poll(&call), Ok(Some(response)));
}

#[test]
fn each_of_two_calls_gets_its_own_answer_when_the_second_is_answered_first() {
    let (mut a, mut b) = ends(4);
    let (first, second) = (ask(&mut a, 1), ask(&mut a, 2));
    let (one, two) = (taken(&mut b), taken(&mut b));
    answer(&mut b, two, 20);
    assert_eq!(word_of(&mut a, &first), None);
    assert_eq!(word_of(&mut a, &second), Some(20));
    answer(&mut b, one, 10);
    assert_eq!(word_of(&mut a, &first), Some(10));
}

#[test]
fn requests_come_in_order_whatever_the_order_of_the_answers() {
    let (mut a, mut b) = ends(8);
    let mut number = 0;
    let mut seen = 0;
    for round in 0..1000 {
        let calls: Vec<Call> = (0..1 + round % 7)
            .map(|_| {
                number += 1;
                ask(&mut a, number)
            })
            .collect();
        let mut requests: Vec<Request> = calls.iter().map(|_| taken(&mut b)).collect();
        for request in &requests {
            seen += 1;
            assert_eq!(request.message.words[0], seen);
        }
        if round % 2 == 0 {
            requests.reverse();
        }
        for request in requests {
            let word = request.message.words[0];
            answer(&mut b, request, word * 2);
        }
        let words: Vec<u64> = calls.iter().map(|call| word_of(&mut a, call).expect("answered")).collect();
        assert_eq!(words.last(), Some(&(number * 2)));
        assert!(words.is_sorted());
    }
    assert_eq!((a.caller.outstanding(), b.callee.serving()), (0, 0));
}

#[test]
fn a_slow_answer_holds_up_only_its_own_line() {
    let (mut a, mut b) = ends(3);
    let slow = ask(&mut a, 0);
    let slow_request = taken(&mut b);
    for word in 1..5000 {
        let call = ask(&mut a, word);
        let request = taken(&mut b);
        answer(&mut b, request, word);
        assert_eq!(word_of(&mut a, &call), Some(word));
    }
    assert_eq!(word_of(&mut a, &slow), None);
    answer(&mut b, slow_request, 99);
    assert_eq!(word_of(&mut a, &slow), Some(99));
}

#[test]
fn a_call_too_many_is_refused_and_room_comes_back() {
    let (mut a, mut b) = ends(5);
    let calls: Vec<Call> = (0..4).map(|word| ask(&mut a, word)).collect();
    assert_eq!(a.caller.post(&Message::default()), Err(Error::Full));
    assert_eq!((a.caller.outstanding(), a.caller.capacity()), (4, 4));
    let request = taken(&mut b);
    answer(&mut b, request, 5);
    assert_eq!(a.caller.post(&Message::default()), Err(Error::Full), "the answer was not taken yet");
    assert_eq!(word_of(&mut a, &calls[0]), Some(5));
    assert!(a.caller.post(&Message::default()).is_ok());
}

#[test]
fn an_answer_is_given_once() {
    let (mut a, mut b) = ends(4);
    let call = ask(&mut a, 1);
    let request = taken(&mut b);
    answer(&mut b, request, 2);
    assert_eq!(word_of(&mut a, &call), Some(2));
    assert_eq!(a.caller.poll(&call), Err(Error::Stale));
    // The line's next call is not what the old name stands for.
    let (_next, _next_but_one) = (ask(&mut a, 3), ask(&mut a, 4));
    assert_eq!(a.caller.poll(&call), Err(Error::Stale));
}

#[test]
fn a_request_is_answered_only_where_it_was_taken() {
    let (mut a, mut b) = ends(4);
    let (mut other_a, mut other_b) = ends(4);
    let call = ask(&mut a, 1);
    let other_call = ask(&mut other_a, 1);
    let other_call_2 = ask(&mut other_a, 2);
    let _mine = taken(&mut b);
    let _ = taken(&mut other_b);
    let theirs = taken(&mut other_b);
    assert_eq!(b.callee.reply(theirs, &Message::default()), Err(Error::Stale));
    assert_eq!(word_of(&mut a, &call), None);
    assert_eq!(word_of(&mut other_a, &other_call), None);
    assert_eq!(word_of(&mut other_a, &other_call_2), None);
}

#[test]
fn an_abandoned_line_is_used_again_once_it_was_answered() {
    let (mut a, mut b) = ends(3);
    let (given_up, kept) = (ask(&mut a, 1), ask(&mut a, 2));
    a.caller.abandon(&given_up);
    a.caller.abandon(&given_up);
    assert_eq!(a.caller.post(&Message::default()), Err(Error::Full), "the peer still owns the line");
    let (one, two) = (taken(&mut b), taken(&mut b));
    answer(&mut b, one, 1);
    let third = ask(&mut a, 3);
    assert_eq!(a.caller.poll(&given_up), Err(Error::Stale));
    answer(&mut b, two, 2);
    let request = taken(&mut b);
    answer(&mut b, request, 3);
    assert_eq!((word_of(&mut a, &kept), word_of(&mut a, &third)), (Some(2), Some(3)));
    assert_eq!(a.caller.outstanding(), 0);
}

#[test]
fn what_was_said_before_closing_still_arrives_and_then_the_end_is_told() {
    let (mut a, mut b) = ends(4);
    let (first, second) = (ask(&mut a, 1), ask(&mut a, 2));
    let request = taken(&mut b);
    answer(&mut b, request, 10);
    drop(b);
    assert_eq!(word_of(&mut a, &first), Some(10));
    assert_eq!(a.caller.poll(&second), Err(Error::Closed));
    assert_eq!(a.caller.post(&Message::default()), Err(Error::Closed));
    assert_eq!(Error::Closed.errno(), 32);
}

#[test]
fn requests_sent_before_closing_are_still_served() {
    let (mut a, mut b) = ends(4);
    let (_first, _second) = (ask(&mut a, 1), ask(&mut a, 2));
    drop(a);
    let (one, _two) = (taken(&mut b), taken(&mut b));
    assert!(b.callee.reply(one, &Message::default()).is_ok(), "an answer to nobody is no error");
    assert_eq!(b.callee.poll().err(), Some(Error::Closed));
}

#[test]
fn both_ends_can_ask() {
    let (mut a, mut b) = ends(4);
    let (from_a, from_b) = (ask(&mut a, 1), ask(&mut b, 2));
    let (at_a, at_b) = (taken(&mut a), taken(&mut b));
    assert_eq!((at_a.message.words[0], at_b.message.words[0]), (2, 1));
    answer(&mut a, at_a, 22);
    answer(&mut b, at_b, 11);
    assert_eq!((word_of(&mut a, &from_a), word_of(&mut b, &from_b)), (Some(11), Some(22)));
}

#[test]
fn an_end_without_call_lines_refuses_calls() {
    let (mut a, mut b) = ends(0);
    assert_eq!(a.caller.post(&Message::default()), Err(Error::Full));
    assert!(matches!(b.callee.poll(), Ok(None)));
}

#[test]
fn geometries_that_do_not_work_are_refused() {
    for (lines, slots) in [(1, 0), (1025, 0), (0, 3), (0, 2), (0, 1 << 21)] {
        assert_eq!(Geometry::new(lines, slots), Err(Error::BadRegion), "{lines} {slots}");
    }
    for (lines, slots) in [(0, 0), (2, 4), (1024, 1 << 20)] {
        assert!(Geometry::new(lines, slots).is_ok(), "{lines} {slots}");
    }
}

#[test]
fn threads_get_the_right_answers_out_of_order() {
    const CALLS: u64 = 20_000;
    let (mut a, mut b) = ends(16);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut held = Vec::new();
            loop {
                let idle = match b.callee.poll() {
                    Ok(Some(request)) => {
                        held.push(request);
                        false
                    }
                    Ok(None) => true,
                    Err(_) => break,
                };
                if held.len() > 5 || (idle && !held.is_empty()) {
                    let request = held.swap_remove(held.len() / 2);
                    let word = request.message.words[0];
                    answer(&mut b, request, !word);
                } else if idle {
                    std::thread::yield_now();
                }
            }
        });
        let mut right = 0;
        let mut sent = 0;
        let mut calls: Vec<(u64, Call)> = Vec::new();
        while right < CALLS {
            while calls.len() < 15 && sent < CALLS {
                calls.push((sent, ask(&mut a, sent)));
                sent += 1;
            }
            let before = calls.len();
            calls.retain(|(word, call)| match word_of(&mut a, call) {
                Some(got) => {
                    assert_eq!(got, !word);
                    right += 1;
                    false
                }
                None => true,
            });
            if calls.len() == before {
                std::thread::yield_now();
            }
        }
        drop(a);
    });
}

#[test]
fn what_one_channel_gave_out_is_worth_nothing_at_another() {
    let ((mut a, mut b), (mut c, mut d)) = (pair(Geometry::default()), pair(Geometry::default()));
    // The first on each channel: the same line, the same number.
    let (call, other) = (ask(&mut a, 1), ask(&mut c, 2));
    let (request, others) = (taken(&mut b), taken(&mut d));
    let answer = |word| Message::new(Tag::default(), &[word]);
    assert_eq!(b.callee.reply(others, &answer(99)), Err(Error::Stale));
    assert_eq!(b.callee.reply(request, &answer(10)), Ok(()));
    assert_eq!(a.caller.poll(&other), Err(Error::Stale));
    a.caller.abandon(&other);
    assert_eq!(a.caller.poll(&call), Ok(Some(answer(10))));
}
