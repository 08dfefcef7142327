//! Doorbells that are eventfds: what a ring leaves, and calls between threads that sleep on them.
#![cfg(all(target_os = "linux", feature = "std", not(ebb_loom)))]

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

use ipc::linux::{EventFd, clock};
use ipc::{Doorbell, Endpoint, Error, Geometry, Message, Patience, Tag, Waiter, pair};

const LONG: Duration = Duration::from_secs(60);

fn ends() -> (Endpoint, Endpoint) {
    pair(Geometry::new(4, 0).expect("a fit geometry"))
}

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

/// How often the eventfd was rung since it was last read.
fn rings(fd: BorrowedFd<'_>) -> u64 {
    let mut count = [0; 8];
    match File::from(fd.try_clone_to_owned().expect("a copy")).read(&mut count) {
        Ok(length) => assert_eq!(length, 8),
        Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
    }
    u64::from_ne_bytes(count)
}

/// Waits without spinning.
fn sleeper(bell: EventFd) -> Waiter<EventFd> {
    Waiter::new(bell, Patience::new(0))
}

#[test]
fn what_happens_when_an_end_rings_the_other_or_itself() {
    let (end, _other) = ends();
    let (a, b) = EventFd::pair().expect("two eventfds");
    assert_eq!((rings(a.fd()), rings(b.fd())), (0, 0));
    a.ring(&end.link);
    a.ring(&end.link);
    assert_eq!((rings(a.fd()), rings(b.fd())), (0, 2));
    a.ring_own(&end.link);
    assert_eq!((rings(a.fd()), rings(b.fd())), (1, 0));
    b.ring(&end.link);
    assert_eq!((rings(b.peers_fd()), rings(a.fd())), (1, 0), "they are the same eventfd");
}

#[test]
fn what_happens_when_a_ring_comes_before_the_sleep() {
    let (end, _other) = ends();
    let (a, b) = EventFd::pair().expect("two eventfds");
    let armed = a.arm(&end.link);
    b.ring(&end.link);
    b.ring(&end.link);
    // Without a deadline: it would never end if the ring were lost.
    a.sleep(&end.link, armed, None);
    assert_eq!(rings(a.fd()), 0, "the sleep has used up both rings");
}

#[test]
fn what_happens_when_a_bell_is_made_of_copied_descriptors() {
    let (end, _other) = ends();
    let (a, b) = EventFd::pair().expect("two eventfds");
    let copy = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().expect("a copy");
    let copied = EventFd::from_fds(copy(b.fd()), copy(b.peers_fd()));
    drop(b);
    copied.ring(&end.link);
    assert_eq!(rings(a.fd()), 1);
    a.ring(&end.link);
    assert_eq!(rings(copied.fd()), 1);
}

#[test]
fn what_happens_when_nobody_rings() {
    let (end, _other) = ends();
    let (a, _b) = EventFd::pair().expect("two eventfds");
    let deadline = clock() + Duration::from_millis(20);
    let mut looks = 0;
    let result = sleeper(a).wait(&end.link, Some(deadline), || {
        looks += 1;
        Ok(None::<()>)
    });
    assert_eq!(result, Err(Error::TimedOut));
    assert!(clock() >= deadline);
    assert!(looks < 10, "{looks} looks are no sleep");
}

#[test]
fn what_happens_when_both_ends_of_a_channel_sleep_on_eventfds() {
    const CALLS: u64 = 500;
    let (mut a, mut b) = ends();
    let (bell_a, bell_b) = EventFd::pair().expect("two eventfds");
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut waiter = sleeper(bell_b);
            let link = b.link.clone();
            let mut served = 0;
            loop {
                match waiter.wait(&link, Some(clock() + LONG), || b.callee.poll()) {
                    Ok(request) => {
                        // Every other answer goes to a peer that has said it will sleep.
                        while served % 2 == 0 && !link.peer_sleeps() && link.check().is_ok() {
                            thread::yield_now();
                        }
                        let answer = word(!request.message.words[0]);
                        b.callee.reply(request, &answer).expect("our own request");
                        waiter.notify(&link);
                        served += 1;
                    }
                    Err(error) => return (served, error),
                }
            }
        });
        let mut waiter = sleeper(bell_a);
        let link = a.link.clone();
        for number in 0..CALLS {
            let call = a.caller.post(&word(number)).expect("a free line");
            waiter.notify(&link);
            let answer = waiter.wait(&link, Some(clock() + LONG), || a.caller.poll(&call));
            assert_eq!(answer.map(|message| message.words[0]), Ok(!number));
        }
        link.close();
        waiter.bell().ring(&link);
        assert_eq!(server.join().expect("no panic"), (CALLS, Error::Closed));
    });
}
