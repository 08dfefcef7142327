//! Readers and writers.

use super::*;

const BASE: usize = 0x40_0000;

/// An address space with a page of `1`s, a page of `2`s that cannot be written, and nothing behind.
fn space(machine: &Machine) -> VmSpace {
    let space = VmSpace::new().expect("there is memory");
    space.map(BASE, frame_of(1), Prot::READ | Prot::WRITE, &machine.cx).expect("there is memory");
    space.map(BASE + PAGE_SIZE, frame_of(2), Prot::READ, &machine.cx).expect("there is memory");
    space
}

#[test]
fn a_copy_between_slices_ends_with_the_shorter() {
    let mut to = [0; 4];
    let mut reader = Reader::from(&[1, 2, 3, 4, 5, 6][..]);
    let mut writer = Writer::from(&mut to[..]);
    assert_eq!(reader.split(1).copy_to(&mut writer), Ok(1));
    assert_eq!(reader.copy_to(&mut writer), Ok(3));
    assert_eq!((reader.remaining(), writer.remaining()), (2, 0));
    assert_eq!(to, [1, 2, 3, 4]);
}

#[test]
fn skip_and_limit_stay_within_the_bytes() {
    let mut to = [0; 8];
    let mut reader = Reader::from(&[1, 2, 3, 4][..]).limit(3);
    reader.skip(1);
    assert_eq!(reader.read(&mut to), Ok(2));
    reader.skip(usize::MAX);
    assert_eq!((reader.remaining(), reader.read(&mut to)), (0, Ok(0)));
    let mut writer = Writer::from(&mut to[..]).limit(5);
    writer.skip(2);
    assert_eq!((writer.zero(100), writer.remaining()), (Ok(3), 0));
    assert_eq!(to, [2, 3, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn user_memory_is_copied_up_to_the_byte_that_faults() {
    let machine = Machine::new();
    let space = space(&machine);
    let end = BASE + 2 * PAGE_SIZE;
    for len in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 63, 64, 65, 200] {
        let mut bytes = vec![0; len + 5];
        let mut reader = space.reader(end - len, len + 5, &machine.cx);
        assert_eq!(reader.read(&mut bytes), Err(Fault { address: end, access: Access::Read }));
        assert_eq!(reader.remaining(), 5);
        assert!(bytes[..len].iter().all(|byte| *byte == 2) && bytes[len..] == [0; 5]);

        let mut writer = space.writer(BASE + PAGE_SIZE - len, len + 5, &machine.cx);
        let denied = Err(Fault { address: BASE + PAGE_SIZE, access: Access::Write });
        assert_eq!(writer.write(&vec![9; len + 5]), denied);
        assert_eq!(writer.remaining(), 5);
        let mut writer = space.writer(BASE + PAGE_SIZE - len, len + 5, &machine.cx);
        assert_eq!((writer.zero(len + 5), writer.remaining()), (denied, 5));
    }
}

#[test]
fn a_range_that_leaves_user_addresses_faults_there() {
    let machine = Machine::new();
    let space = VmSpace::new().expect("there is memory");
    let cx = &machine.cx;
    for (address, len, fault) in [
        (USER_END, 1, USER_END),
        (usize::MAX - 1, 8, USER_END),
        (usize::MAX, usize::MAX, USER_END),
        (0xffff_8000_0000_0000, 4, USER_END),
    ] {
        let read = space.reader(address, len, cx).read(&mut [0; 8]);
        assert_eq!(read, Err(Fault { address: fault, access: Access::Read }));
        let written = space.writer(address, len, cx).write(&[0; 8]);
        assert_eq!(written, Err(Fault { address: fault, access: Access::Write }));
        let mut reader = space.reader(address, len, cx);
        reader.skip(usize::MAX);
        assert_eq!(reader.remaining(), 0);
    }
    assert_eq!(space.reader(USER_END, 0, cx).read(&mut [0; 8]), Ok(0));
}

#[test]
fn a_copy_from_user_to_user_says_which_side_faulted() {
    let machine = Machine::new();
    let space = space(&machine);
    let cx = &machine.cx;
    let hole = BASE + 8 * PAGE_SIZE;
    let copy = |from, to| space.reader(from, 4, cx).copy_to(&mut space.writer(to, 4, cx));
    assert_eq!(copy(BASE + PAGE_SIZE, BASE), Ok(4));
    assert_eq!(copy(hole, BASE), Err(Fault { address: hole, access: Access::Read }));
    assert_eq!(copy(BASE, hole), Err(Fault { address: hole, access: Access::Write }));
    assert_eq!(copy(BASE, BASE + PAGE_SIZE), Err(Fault { address: BASE + PAGE_SIZE, access: Access::Write }));
    let edge = BASE + 2 * PAGE_SIZE - 3;
    let mut writer = space.writer(BASE + 100, 9, cx);
    let result = space.reader(edge, 9, cx).copy_to(&mut writer);
    assert_eq!(result, Err(Fault { address: edge + 3, access: Access::Read }));
    assert_eq!(writer.remaining(), 6);
}

#[test]
fn each_cursor_keeps_to_its_own_address_space() {
    let machine = Machine::new();
    let cx = &machine.cx;
    let (one, two) = (space(&machine), space(&machine));
    assert_eq!(one.writer(BASE, 600, cx).write(&[7; 600]), Ok(600));
    let mut reader = one.reader(BASE, 600, cx);
    let mut writer = two.writer(BASE + PAGE_SIZE - 500, 600, cx);
    // The second page of the target cannot be written.
    let denied = Err(Fault { address: BASE + PAGE_SIZE, access: Access::Write });
    assert_eq!((reader.copy_to(&mut writer), reader.remaining(), writer.remaining()), (denied, 100, 100));
    let mut bytes = [0; 501];
    assert_eq!(two.reader(BASE + PAGE_SIZE - 501, 501, cx).read(&mut bytes), Ok(501));
    assert!(bytes[0] == 1 && bytes[1..] == [7; 500]);
    let mut from_one = one.reader(BASE, 1, cx);
    two.activate(cx);
    let mut byte = [0];
    assert_eq!((from_one.read(&mut byte), byte), (Ok(1), [7]));
}

#[test]
fn a_string_is_read_to_its_zero_and_not_beyond() {
    let machine = Machine::new();
    let space = space(&machine);
    let cx = &machine.cx;
    let edge = BASE + PAGE_SIZE;
    for len in 0..200 {
        // The string ends right before a page that is not there.
        space.unmap(edge..edge + PAGE_SIZE, cx);
        let start = edge - len - 1;
        let mut text = vec![b'x'; len];
        text.push(0);
        assert_eq!(space.writer(start, len + 1, cx).write(&text), Ok(len + 1));
        let mut to = [7; 256];
        let mut reader = space.reader(start, 4096, cx);
        assert_eq!(reader.read_until_zero(&mut to), Ok(len));
        assert_eq!(to[..len], text[..len]);
        let mut zero = [1];
        assert_eq!((reader.read(&mut zero), zero), (Ok(1), [0]));
        if len > 0 {
            let room = len / 2;
            assert_eq!(space.reader(start, 4096, cx).read_until_zero(&mut to[..room]), Ok(room));
        }
    }
    assert_eq!(space.writer(edge - 3, 3, cx).write(b"abc"), Ok(3));
    let unterminated = space.reader(edge - 3, 4096, cx).read_until_zero(&mut [0; 256]);
    assert_eq!(unterminated, Err(Fault { address: edge, access: Access::Read }));
    let beyond = space.reader(USER_END, 4096, cx).read_until_zero(&mut [0; 8]);
    assert_eq!(beyond, Err(Fault { address: USER_END, access: Access::Read }));
    assert_eq!(Reader::from(&b"ab\0c"[..]).read_until_zero(&mut [0; 8]), Ok(2));
    assert_eq!(Reader::from(&b"abcd"[..]).read_until_zero(&mut [0; 3]), Ok(3));
}

#[test]
fn words_for_futexes_are_aligned_and_checked() {
    let machine = Machine::new();
    let space = space(&machine);
    let cx = &machine.cx;
    assert_eq!(space.load_u32(BASE, cx), Ok(0x0101_0101));
    assert_eq!(space.load_u32(BASE + 2, cx), Err(Fault { address: BASE + 2, access: Access::Read }));
    assert!(space.load_u32(USER_END, cx).is_err() && space.load_u32(usize::MAX & !3, cx).is_err());
    assert_eq!(space.compare_exchange_u32(BASE, 0, 5, cx), Ok(0x0101_0101));
    assert_eq!(space.compare_exchange_u32(BASE, 0x0101_0101, 5, cx), Ok(0x0101_0101));
    assert_eq!(space.load_u32(BASE, cx), Ok(5));
    assert!(space.compare_exchange_u32(BASE + PAGE_SIZE, 0, 0, cx).is_err(), "the page cannot be written");
}
