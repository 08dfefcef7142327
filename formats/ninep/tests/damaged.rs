//! Replies that were damaged anywhere: they are read without harm, and what is believed of them keeps the promises.

use ninep::{DATA_AT, HEADER_BYTES, LONGEST_TARGET, Reply, VERSION, entries, is_name};

/// The most data that is asked for.
const MOST: usize = 4096;
/// So many damaged ones of each whole one.
const VARIANTS: usize = 40_000;

fn message(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let fields = fields.concat();
    let len = (fields.len() + HEADER_BYTES) as u32;
    [&len.to_le_bytes()[..], &[kind, 1, 0], &fields].concat()
}

fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes(), bytes].concat()
}

fn entry(number: u64, name: &[u8]) -> Vec<u8> {
    [&[0x80, 1, 0, 0, 0][..], &number.to_le_bytes(), &(number + 1).to_le_bytes(), &[4], &text(name)].concat()
}

/// A whole reply of each kind, with the kind of its request.
fn whole() -> Vec<(u8, Vec<u8>)> {
    let qid = [0x80_u8, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
    let longs = |count: u64| (1..=count).flat_map(u64::to_le_bytes).collect::<Vec<u8>>();
    let names = [entry(1, b"."), entry(2, b".."), entry(3, b"name"), entry(4, &[b'x'; 255])].concat();
    vec![
        (100, message(101, &[&8192_u32.to_le_bytes(), &text(VERSION)])),
        (104, message(105, &[&qid])),
        (110, message(111, &[&1_u16.to_le_bytes(), &qid])),
        (24, message(25, &[&0x7ff_u64.to_le_bytes(), &qid, &[0; 12], &longs(15)])),
        (8, message(9, &[&[0; 8], &longs(6)])),
        (22, message(23, &[&text(b"../a/b")])),
        (116, message(117, &[&100_u32.to_le_bytes(), &[7; 100]])),
        (40, message(41, &[&(names.len() as u32).to_le_bytes(), &names])),
        (12, message(7, &[&13_u32.to_le_bytes()])),
    ]
}

/// Reads a reply as one to every question.
fn read(kind: u8, bytes: &[u8]) {
    if let Ok(mut reply) = Reply::to(kind, bytes) {
        let _ = (reply.version(), reply.walked(), reply.space());
        let _ = (reply.qid(), reply.word());
        if let Ok(attributes) = reply.attributes() {
            assert!(attributes.size <= i64::MAX as u64);
            assert!(attributes.modified.nanoseconds < 1_000_000_000);
        }
        if let Ok(target) = reply.target() {
            assert!((1..=LONGEST_TARGET).contains(&target.len()) && !target.contains(&0));
        }
    }
    if let Ok(len) = Reply::data_len(kind, bytes, MOST) {
        assert!(len <= MOST);
        let (said, ..) = Reply::header(bytes).expect("it has a header");
        assert_eq!(said as usize, DATA_AT + len);
    }
    let data = bytes.get(DATA_AT..).unwrap_or_default();
    let mut bytes_of_names = 0;
    let _ = entries(data, |entry| {
        assert!(is_name(entry.name));
        bytes_of_names += entry.name.len();
    });
    assert!(bytes_of_names <= data.len());
}

#[test]
fn damaged_replies_do_no_harm() {
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (kind, whole) in whole() {
        read(kind, &whole);
        for len in 0..whole.len() {
            read(kind, &whole[..len]);
        }
        for _ in 0..VARIANTS {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(3) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at] = [0, 0x7f, 0x80, 0xff][random(4)],
                    _ => bytes.truncate(at.max(1)),
                }
            }
            read(kind, &bytes);
        }
    }
}
