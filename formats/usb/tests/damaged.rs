//! Descriptors and reports that were damaged anywhere: they are read without harm, and what is believed of them keeps the promises.

use usb::{Configuration, Decoder, Device, Kind, LONGEST_REPORT, Layout, string};

/// So many damaged ones of each whole one.
const VARIANTS: usize = 30_000;

struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn damage(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = [0, 0x7f, 0x80, 0xff][self.below(4)],
                2 => bytes[at] = self.below(256) as u8,
                3 => {
                    let other = self.below(bytes.len());
                    let len = (bytes.len() - other).min(bytes.len() - at).min(6);
                    bytes.copy_within(other..other + len, at);
                }
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes
    }
}

/// Descriptors of reports: a keyboard, a mouse with a wheel, two numbered reports with keys for media.
fn layouts() -> [Vec<u8>; 3] {
    let keyboard = vec![
        5, 1, 9, 6, 0xa1, 1, 0x75, 1, 0x95, 8, 5, 7, 0x19, 0xe0, 0x29, 0xe7, 0x15, 0, 0x25, 1, 0x81, 2, 0x95, 1, 0x75,
        8, 0x81, 1, 0x95, 5, 0x75, 1, 5, 8, 0x19, 1, 0x29, 5, 0x91, 2, 0x95, 1, 0x75, 3, 0x91, 1, 0x95, 6, 0x75, 8,
        0x15, 0, 0x25, 0xff, 5, 7, 0x19, 0, 0x29, 0xff, 0x81, 0, 0xc0,
    ];
    let mouse = vec![
        5, 1, 9, 2, 0xa1, 1, 9, 1, 0xa1, 0, 5, 9, 0x19, 1, 0x29, 5, 0x15, 0, 0x25, 1, 0x95, 5, 0x75, 1, 0x81, 2, 0x95,
        1, 0x75, 3, 0x81, 1, 5, 1, 9, 0x30, 9, 0x31, 9, 0x38, 0x15, 0x81, 0x25, 0x7f, 0x65, 0x11, 0x55, 0x0e, 0x75, 8,
        0x95, 3, 0x81, 6, 0xc0, 0xc0,
    ];
    let media = vec![
        5, 0x0c, 9, 1, 0xa1, 1, 0x85, 1, 0x19, 0, 0x2a, 0x3c, 2, 0x15, 0, 0x26, 0x3c, 2, 0x95, 1, 0x75, 0x10, 0xa4,
        0x81, 0, 0xb4, 0xc0, 5, 1, 9, 0x80, 0xa1, 1, 0x85, 2, 0x19, 0x81, 0x29, 0x83, 0x25, 1, 0x75, 1, 0x95, 3, 0x81,
        2, 0x95, 5, 0x81, 1, 0xc0,
    ];
    [keyboard, mouse, media]
}

fn read_reports(descriptor: &[u8], random: &mut Random) {
    let Ok(layout) = Layout::read(descriptor) else { return };
    assert!(layout.longest(Kind::Input).max(layout.longest(Kind::Output)) <= LONGEST_REPORT);
    for field in &layout.fields {
        let bytes = layout.report_bytes(field.kind, field.report).expect("it is a report's");
        assert!((field.bit + field.size * field.count).div_ceil(8) as usize <= bytes);
        assert!(field.logical.0 <= field.logical.1);
    }
    let mut decoder = Decoder::new(layout);
    let all = decoder.capabilities();
    for _ in 0..4 {
        let len = random.below(decoder.layout().longest(Kind::Input) + 2);
        let report: Vec<u8> =
            (0..len).map(|at| if at == 0 { random.below(4) } else { random.below(256) } as u8).collect();
        decoder.decode(&report, |event| {
            assert!(all.kinds() >> event.kind & 1 != 0, "{event:?}");
            let bits = match event.kind {
                1 => return assert!(all.has_key(event.code) && (0..=1).contains(&event.value), "{event:?}"),
                2 => all.relative,
                3 => {
                    let range = all.ranges.iter().find(|range| range.code == event.code);
                    assert!(range.is_some(), "{event:?}");
                    all.absolute
                }
                4 => all.other,
                kind => panic!("no event of type {kind}"),
            };
            assert!(bits >> event.code & 1 != 0, "{event:?}");
        });
    }
    if let Some((number, bytes)) = decoder.lights(random.below(1 << 16) as u64) {
        assert_eq!(decoder.layout().report_bytes(Kind::Output, number), Some(bytes.len()));
    }
}

#[test]
fn damaged_reports_do_no_harm() {
    let mut random = Random(1);
    for whole in layouts() {
        for len in 0..=whole.len() {
            read_reports(&whole[..len], &mut random);
        }
        for _ in 0..VARIANTS {
            let bytes = random.damage(&whole);
            read_reports(&bytes, &mut random);
        }
    }
}

#[test]
fn damaged_descriptors_do_no_harm() {
    let configuration = [
        9, 2, 59, 0, 2, 1, 8, 0xa0, 50, 9, 4, 0, 0, 1, 3, 1, 1, 0, 9, 0x21, 0x11, 1, 0, 1, 0x22, 0x3f, 0, 7, 5, 0x81,
        3, 8, 0, 7, 9, 4, 1, 0, 1, 3, 0, 0, 0, 9, 0x21, 0x11, 1, 0, 1, 0x22, 0x3f, 0, 7, 5, 0x82, 3, 8, 0, 7,
    ];
    let device = [18, 1, 0, 2, 0, 0, 0, 64, 0x27, 6, 1, 0, 0, 0, 1, 4, 11, 1];
    let mut random = Random(2);
    for _ in 0..VARIANTS {
        if let Some(configuration) = Configuration::read(&random.damage(&configuration)) {
            assert!(configuration.interfaces.len() <= 16);
            let endpoints = configuration.interfaces.iter().flat_map(|interface| &interface.endpoints);
            endpoints.for_each(|endpoint| assert!((1..=15).contains(&endpoint.number) && endpoint.packet_bytes < 2048));
        }
        let _ = Device::read(&random.damage(&device));
        let text = string(&random.damage(&[10, 3, b'Q', 0, b'E', 0, b'M', 0, b'U', 0])).unwrap_or_default();
        assert!(text.chars().all(|letter| !letter.is_control()));
    }
}
