//! Channels between processes. The peer is this test program again, told by its environment what to play.
#![cfg(all(target_os = "linux", feature = "std", feature = "tasks", not(ebb_loom)))]

use std::cell::Cell;
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use ipc::linux::{Connection, Notice, Sign, accept, offer, ring_over, watch};
use ipc::rpc::{self, Way};
use ipc::{Error, Geometry, Kind, Message, Packet, Tag};
use tasks::rt;

/// Tests here count this process's descriptors and mappings: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// Starts this program as the peer that plays `role`; its standard input is the socket.
fn peer(role: &str) -> (Child, UnixStream) {
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    let child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "plays_the_peer_when_told_to", "--nocapture"])
        .env("IPC_TEST_ROLE", role)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()
        .expect("started");
    (child, ours)
}

fn connected(role: &str) -> (Child, Connection) {
    let (child, stream) = peer(role);
    (child, offer(stream, Geometry::default()).expect("offered"))
}

fn word(word: u64) -> Message {
    Message::new(Tag::new(1), &[word])
}

#[test]
fn plays_the_peer_when_told_to() {
    let Ok(role) = env::var("IPC_TEST_ROLE") else { return };
    // SAFETY: standard input is the socket, and nothing else in this process uses it.
    let stream = unsafe { UnixStream::from_raw_fd(0) };
    if role == "serves tasks" {
        return serve_tasks(stream);
    }
    let mut connection = accept(stream).expect("offered");
    match role.as_str() {
        "doubles" => connection.serve(|request| word(request.words[0] * 2)).expect("an honest peer"),
        "takes and never answers" => {
            let end = &mut connection.endpoint;
            let link = end.link.clone();
            let mut held = Vec::new();
            while let Ok(request) = connection.waiter.wait(&link, None, || end.callee.poll()) {
                held.push(request);
                // Tells that it has taken them.
                let packet = Packet { kind: Kind::Plain, cookie: 0, message: word(held.len() as u64) };
                match end.sender.send(&packet) {
                    Ok(()) => connection.waiter.notify(&link),
                    // The one who asked had no patience and has gone.
                    Err(Error::Closed) => break,
                    Err(error) => panic!("no room: {error}"),
                }
            }
        }
        "scribbles" => {
            let mut seed = 88172645463325252u64;
            let mut random = move || {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed
            };
            let maps = fs::read_to_string("/proc/self/maps").expect("maps");
            let line = maps.lines().find(|line| line.contains("memfd:ipc")).expect("the channel");
            let (from, to) = line.split_whitespace().next().and_then(|range| range.split_once('-')).expect("a range");
            let parse = |number| usize::from_str_radix(number, 16).expect("hexadecimal");
            let (from, to) = (parse(from), parse(to));
            // Until it is killed.
            loop {
                let at = from + random() as usize % ((to - from) / 8) * 8;
                let value = match random() % 4 {
                    0 => random(),
                    1 => (random() % 4) | ((random() % 130) << 2) | ((random() % 64) << 32),
                    2 => 0,
                    _ => random() % 300,
                };
                // SAFETY: within the mapping, aligned, and only touched atomically.
                unsafe { std::sync::atomic::AtomicU64::from_ptr(at as *mut u64) }
                    .store(value, std::sync::atomic::Ordering::Relaxed);
            }
        }
        other => panic!("no role {other}"),
    }
}

/// Answers even numbers at once; holds the others for ever.
fn serve_tasks(stream: UnixStream) {
    rt::run(|cx| {
        let port = rpc::accept(stream).expect("offered").port();
        let mut held = Vec::new();
        while let Ok(request) = port.recv_async(cx) {
            let number = request.message.words[0];
            if number % 2 == 0 {
                request.reply_async(cx, &word(number * 2)).expect("alive");
            } else {
                held.push(request);
            }
        }
    });
}

#[test]
fn all_tasks_that_wait_for_a_process_go_on_when_it_is_killed() {
    let _alone = ALONE.lock();
    for way in [Way::CallLines, Way::Rings] {
        let (mut child, stream) = peer("serves tasks");
        let answered = Cell::new(0);
        rt::run(|cx| {
            let port = rpc::offer(stream, Geometry::new(64, 64).expect("fits")).expect("offered").port_by(way);
            let closed = Cell::new(0);
            let (port, closed, answered) = (&port, &closed, &answered);
            rt::finish_async(cx, |scope, cx| {
                for number in 0..100 {
                    scope.spawn_async(cx, move |cx| match port.call_async(cx, &word(number)) {
                        Ok(answer) => {
                            assert_eq!(answer, word(number * 2));
                            answered.set(answered.get() + 1);
                        }
                        Err(error) => {
                            assert_eq!(error, Error::Closed);
                            closed.set(closed.get() + 1);
                        }
                    });
                }
                // The even ones come back (also through call lines: 50 odd ones leave 13 for them); the others wait.
                while answered.get() < 50 {
                    rt::yield_async(cx);
                }
                assert_eq!(port.outstanding(), 50);
                child.kill().expect("killed");
            });
            assert_eq!((closed.get(), port.outstanding(), port.is_dead()), (50, 0, true));
        });
        child.wait().expect("reaped");
    }
    while channels_mapped() != 0 {
        std::thread::yield_now();
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

fn channels_mapped() -> usize {
    fs::read_to_string("/proc/self/maps").expect("maps").lines().filter(|line| line.contains("memfd:ipc")).count()
}

#[test]
fn calls_reach_another_process_and_come_back() {
    let _alone = ALONE.lock();
    let (mut child, mut connection) = connected("doubles");
    for number in 0..2000 {
        assert_eq!(connection.call(&word(number), LONG), Ok(word(number * 2)));
    }
    drop(connection);
    assert!(child.wait().expect("ended").success(), "the peer did not end when the channel was closed");
}

#[test]
fn a_call_ends_with_epipe_when_the_peer_is_killed_and_nothing_is_left() {
    let _alone = ALONE.lock();
    // The watcher's own descriptors come with the first connection.
    let (mut child, connection) = connected("doubles");
    drop(connection);
    child.wait().expect("ended");
    let before = descriptors();
    for _ in 0..5 {
        let (mut child, mut connection) = connected("takes and never answers");
        let end = &mut connection.endpoint;
        let link = end.link.clone();
        let calls: Vec<_> = (0..100).map(|number| end.caller.post(&word(number)).expect("a line")).collect();
        connection.waiter.notify(&link);
        // Wait until the peer holds them all, asleep if need be.
        for taken in 1..=100 {
            let packet = connection.waiter.wait(&link, None, || end.receiver.poll()).expect("alive");
            assert_eq!(packet.message, word(taken));
        }
        child.kill().expect("killed");
        let outcome = connection.waiter.wait(&link, None, || end.caller.poll(&calls[50]));
        assert_eq!(outcome, Err(Error::Closed));
        assert!(calls.iter().all(|call| end.caller.poll(call) == Err(Error::Closed)));
        assert_eq!(connection.call(&word(1), LONG), Err(Error::Closed));
        child.wait().expect("reaped");
        drop(connection);
        drop(link);
    }
    assert_eq!(descriptors(), before);
    // The watcher may still be about to let go of the last one.
    while channels_mapped() != 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_call_to_a_peer_that_never_answers_times_out() {
    let _alone = ALONE.lock();
    let (mut child, mut connection) = connected("takes and never answers");
    assert_eq!(connection.call(&word(1), Some(Duration::from_millis(20))), Err(Error::TimedOut));
    assert!(connection.endpoint.link.check().is_ok(), "the channel itself is fine");
    drop(connection);
    assert!(child.wait().expect("ended").success());
}

#[test]
fn every_call_to_a_process_that_scribbles_ends() {
    let _alone = ALONE.lock();
    let mut breaches = 0;
    for _ in 0..8 {
        let (mut child, mut connection) = connected("scribbles");
        for number in 0..1000 {
            match connection.call(&word(number), Some(Duration::from_millis(50))) {
                Ok(_) | Err(Error::TimedOut | Error::Full) => {}
                Err(Error::Corrupt | Error::Closed) => {
                    breaches += 1;
                    break;
                }
                Err(other) => panic!("{other} is not the peer's doing"),
            }
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }
    assert_eq!(breaches, 8);
}

#[test]
fn what_is_offered_is_checked() {
    let _alone = ALONE.lock();
    let (mut liar, victim) = UnixStream::pair().expect("a socket pair");
    liar.write_all(b"no memory").expect("written");
    assert_eq!(accept(victim).err().map(|error| error.kind()), Some(std::io::ErrorKind::InvalidData));
    let (liar, victim) = UnixStream::pair().expect("a socket pair");
    let file = fs::File::open("/dev/null").expect("a file");
    ipc::linux::send_fd(&liar, file.as_fd()).expect("sent");
    assert_eq!(accept(victim).err().map(|error| error.kind()), Some(std::io::ErrorKind::InvalidData));
    let mut rest = Vec::new();
    assert_eq!((&liar).read_to_end(&mut rest).ok(), Some(0), "the refused socket was left open");
}

#[test]
fn a_sleeping_thread_wakes_when_the_other_panics() {
    let (mut a, b) = ipc::linux::thread_pair(Geometry::default());
    let other = std::thread::spawn(move || {
        let mut b = b;
        let end = &mut b.endpoint;
        let link = end.link.clone();
        let _request = b.waiter.wait(&link, None, || end.callee.poll()).expect("a request");
        panic!("as the test wants it");
    });
    assert_eq!(a.call(&word(1), None), Err(Error::Closed));
    assert!(other.join().is_err());
}

#[test]
fn what_happens_when_a_watched_peer_rings_and_then_goes() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (ours, theirs) = UnixStream::pair().expect("a socket pair");
    // More rings than the socket holds: none of them blocks.
    for _ in 0..5000 {
        ring_over(&theirs);
    }
    let (send, notices) = mpsc::channel();
    let watch = watch(Sign::Socket(Arc::new(ours)), move |notice| send.send(notice).expect("the test listens"));
    let watch = watch.expect("watched");
    let next = || notices.recv_timeout(Duration::from_secs(60)).expect("a notice");
    assert_eq!(next(), Notice::Rung);
    drop(theirs);
    while next() != Notice::Died {}
    drop(watch);
    assert_eq!(notices.recv(), Err(mpsc::RecvError), "the watch has ended, and nothing came after the death");
}
