//! A program's run, with a guest whose messages are written down beforehand.

use super::*;
use crate::Kernel;
use ebb_protocol::{Decoder, GroupFiles};

const SIGINT: u8 = 2;
const SIGTERM: u8 = 15;

/// A guest without a machine, and the agent's end of its line.
fn guest() -> (Guest, UnixStream) {
    let directory = tempfile::tempdir().expect("a directory");
    let (line, agent) = UnixStream::pair().expect("a pair of sockets");
    let (sender, events) = channel();
    let guest = Guest {
        machine: Machine::new(Kernel::Ebb("never-loaded".into())),
        qemu: Qemu::stand_in(directory.path()),
        line: LineWriter::new(Line::Serial, &line).expect("a writer"),
        events,
        sender,
        log: Log::default(),
        log_reader: None,
        console: None,
        boot_time: Duration::ZERO,
        kernel_boot_time: Duration::ZERO,
        runs: 0,
        statistics: None,
        _directory: directory,
    };
    (guest, agent)
}

/// Runs a program; meanwhile the agent says this, and signals come.
fn run(guest: &mut Guest, events: impl IntoIterator<Item = Event>) -> Result<Exit> {
    for event in events {
        guest.sender.send(event).expect("the guest holds the other end");
    }
    guest.stream(&Program::new("/program"), Input::Null, None, |_, _| Ok(()))
}

fn signal(number: u8) -> Event {
    Event::Interrupt(Interrupt::Signal(number))
}

/// The signals that the agent was told to deliver.
fn delivered(guest: Guest, mut agent: UnixStream) -> Vec<u8> {
    drop(guest);
    let mut bytes = Vec::new();
    agent.read_to_end(&mut bytes).expect("what was sent");
    let mut decoder = Decoder::new();
    decoder.push(&bytes);
    let mut signals = Vec::new();
    while let Some(frame) = decoder.next_frame().expect("a whole line") {
        if let ToGuest::Signal(number) = ToGuest::from_frame(&frame).expect("a message") {
            signals.push(number);
        }
    }
    signals
}

#[test]
fn signals_go_to_the_program_as_long_as_it_runs() {
    let (mut guest, agent) = guest();
    let exit = Exit::Code(3);
    let ended = run(
        &mut guest,
        [signal(SIGINT), signal(SIGTERM), Event::Message(ToHost::Ended), Event::Message(ToHost::Exited(exit))],
    );
    assert_eq!(ended.expect("a program that ended"), exit);
    assert_eq!(delivered(guest, agent), [SIGINT, SIGTERM]);
}

#[test]
fn a_signal_after_the_programs_end_ends_the_wait_for_what_it_left_behind() {
    let (mut guest, agent) = guest();
    let ended = run(
        &mut guest,
        [
            Event::Message(ToHost::Ended),
            signal(SIGTERM),
            // Too late: nobody waits for it any more.
            Event::Message(ToHost::Exited(Exit::Code(0))),
        ],
    );
    assert!(matches!(ended, Err(Error::Interrupted(SIGTERM))), "{ended:?}");
    assert!(delivered(guest, agent).is_empty());
}

#[test]
fn the_next_program_gets_its_signals_again() {
    let (mut guest, agent) = guest();
    let whole = || [Event::Message(ToHost::Ended), Event::Message(ToHost::Exited(Exit::Code(0)))];
    run(&mut guest, whole()).expect("the first program's end");
    run(&mut guest, [signal(SIGINT)].into_iter().chain(whole())).expect("the second program's end");
    assert_eq!(delivered(guest, agent), [SIGINT]);
}

#[test]
fn statistics_are_those_of_the_last_program_and_are_taken_once() {
    let (mut guest, _agent) = guest();
    let files = GroupFiles { killed: 3, ..GroupFiles::default() };
    let whole = || Event::Message(ToHost::Exited(Exit::Code(0)));
    run(&mut guest, [Event::Message(ToHost::Statistics(files)), whole()]).expect("the first program's end");
    assert_eq!(guest.take_statistics().map(|statistics| statistics.kill.processes), Some(3));
    assert_eq!(guest.take_statistics(), None);
    let files = GroupFiles::default();
    run(&mut guest, [Event::Message(ToHost::Statistics(files)), whole()]).expect("the second program's end");
    run(&mut guest, [whole()]).expect("the third program's end");
    assert_eq!(guest.take_statistics(), None);
}

#[test]
fn a_bound_that_cannot_be_is_told_and_the_guest_remains_usable() {
    let (mut guest, _agent) = guest();
    let refused = Event::Message(ToHost::StartError(StartError::BoundTooSmall { needed_us: 111 }));
    let ended = run(&mut guest, [refused]);
    assert!(matches!(ended, Err(Error::BoundTooSmall(needed)) if needed == Duration::from_micros(111)), "{ended:?}");
    let ended = run(&mut guest, [Event::Message(ToHost::StartError(StartError::NoReclaim))]);
    assert!(matches!(ended, Err(Error::NoReclaim)), "{ended:?}");
    run(&mut guest, [Event::Message(ToHost::Exited(Exit::Code(0)))]).expect("the next program's end");
}
