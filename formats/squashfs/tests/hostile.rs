//! Damaged images: every operation on them ends, with an answer or an error, and without a panic (in the profile `dev` with overflow checks).

mod image;
#[path = "../../erofs/tests/trees/mod.rs"]
mod trees;

use image::{Device, make_image, visit};
use trees::{Ids, Random};

/// Options of mksquashfs for the images that are damaged, and how many damaged ones are made of each. Most of an image is compressed, where nearly every damage is found at once: so in some the metadata is not.
const LAYOUTS: &[(&str, u64)] = &[
    ("-comp gzip -noI -noX -b 16K", 2000),
    ("-comp lz4 -noI -noX -b 4096", 2000),
    ("-comp zstd -noI -noX -b 16K -always-use-fragments", 1500),
    ("-comp xz -noI -noX -no-fragments -b 8K", 1000),
    ("-comp gzip", 1000),
    ("-comp lz4", 1000),
    ("-comp zstd", 1000),
    ("-comp xz", 1000),
];

#[test]
fn no_damage_leads_to_a_panic_or_an_endless_loop() {
    let tree = trees::small(4, Ids::Small);
    // Each with a core of its own, if there are so many.
    std::thread::scope(|scope| {
        for (options, count) in LAYOUTS {
            let path = tree.path();
            scope.spawn(move || damage_many(&make_image(path, options), options, *count));
        }
    });
}

/// Damages an image again and again, and does all there is to do with it.
fn damage_many(device: &[u8], options: &str, count: u64) {
    let metadata = metadata_pages(device);
    let mut failures = 0;
    for seed in 0..count {
        let mut device = device.to_vec();
        damage(&mut device, &metadata, &mut Random::new(seed + 1));
        // Some of them with nothing at hand at the start of each operation, which takes long.
        let device = if seed % 40 == 0 { Device::new(device) } else { Device::new(device).warm() };
        let mut failed = 0;
        match device.open() {
            Ok(image) => visit(&device, &image, 300, &mut failed),
            Err(_) => failed = 1,
        }
        failures += u64::from(failed > 0);
    }
    assert!(failures > count / 10, "{options}: only {failures} of {count} images were found to be damaged");
}

/// The pages that are not only content: those that an operation on an undamaged image reads first.
fn metadata_pages(device: &[u8]) -> Vec<usize> {
    let device = Device::new(device.to_vec());
    let image = device.open().unwrap();
    let mut failed = 0;
    visit(&device, &image, usize::MAX, &mut failed);
    assert_eq!(failed, 0);
    device.missed()
}

/// Changes some bytes, mostly in metadata: random ones, extreme numbers, or a copy of another place.
fn damage(device: &mut [u8], metadata: &[usize], random: &mut Random) {
    for _ in 0..1 + random.below(12) {
        let page = match random.below(5) {
            0 => random.below(device.len() as u64 / 4096) as usize,
            // The tables stand at the end.
            1 | 2 => *metadata.last().unwrap() - random.below(3) as usize,
            _ => metadata[random.below(metadata.len() as u64) as usize],
        };
        let at = (page * 4096 + random.below(4096 - 16) as usize).min(device.len() - 16);
        match random.below(5) {
            0 => device[at] = random.next() as u8,
            1 => device[at] ^= 1 << random.below(8),
            2 => device[at & !3..(at & !3) + 4].fill(0xff),
            3 => device[at & !1..(at & !1) + 2].copy_from_slice(&(random.next() as u16).to_le_bytes()),
            _ => {
                let from = random.below(device.len() as u64 - 16) as usize & !3;
                device.copy_within(from..from + 8, at & !3);
            }
        }
    }
    // Sometimes the superblock, but for its magic number.
    if random.below(8) == 0 {
        device[4 + random.below(92) as usize] = random.next() as u8;
    }
}
