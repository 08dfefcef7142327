//! Damaged images: every operation on them ends, with an answer or an error, and without a panic (in the profile `dev` with overflow checks).

mod image;
mod trees;

use image::{Cache, make_image, visit};
use trees::{Ids, Random};

/// Options of mkfs.erofs for the images that are damaged, and how many damaged ones are made of each.
const PLAIN_LAYOUTS: &[(&[&str], u64)] = &[
    (&["-Enosbcrc"], 1500),
    (&["-Enosbcrc,force-inode-extended", "-x1000"], 1000),
    (&["-Enosbcrc", "--chunksize=4096"], 1000),
    (&["-Enosbcrc,force-chunk-indexes", "--chunksize=8192"], 1000),
];

const COMPRESSED_LAYOUTS: &[(&[&str], u64)] = &[
    (&["-Enosbcrc", "-zlz4"], 1500),
    (&["-Enosbcrc", "-zlz4hc", "-C65536"], 1500),
    (&["-Enosbcrc,legacy-compress", "-zlz4", "-C16384"], 1500),
    (&["-Enosbcrc,ztailpacking", "-zlz4"], 1500),
];

const NEWER_LAYOUTS: &[(&[&str], u64)] = &[
    (&["-Enosbcrc,fragments", "-zlz4", "-C16384"], 1500),
    (&["-Enosbcrc,all-fragments,dedupe", "-zlz4", "-C16384"], 1500),
    (&["-Enosbcrc", "-zlz4", "--zD=1", "--xattr-prefix=user.n"], 1500),
];

#[test]
fn no_damage_to_a_plain_image_leads_to_a_panic_or_an_endless_loop() {
    damage_images(PLAIN_LAYOUTS);
}

#[test]
fn no_damage_to_a_compressed_image_leads_to_a_panic_or_an_endless_loop() {
    damage_images(COMPRESSED_LAYOUTS);
    if image::is_mkfs_newer() {
        damage_images(NEWER_LAYOUTS);
    }
}

fn damage_images(layouts: &[(&[&str], u64)]) {
    let tree = trees::small(4, Ids::Small);
    for (options, count) in layouts {
        let device = make_image(tree.path(), options);
        let metadata = metadata_blocks(&device);
        let mut failures = 0;
        for seed in 0..*count {
            let mut device = device.clone();
            damage(&mut device, &metadata, &mut Random::new(seed + 1));
            // Half of them with an empty cache at the start of each operation.
            let cache = if seed % 2 == 0 { Cache::new(device) } else { Cache::new(device).warm() };
            let mut failed = 0;
            match cache.open() {
                Ok(image) => visit(&cache, &image, 300, &mut failed),
                Err(_) => failed = 1,
            }
            failures += u64::from(failed > 0);
        }
        assert!(failures > count / 10, "{options:?}: only {failures} of {count} images were found to be damaged");
    }
}

/// The blocks that are not only content: those that an operation on an undamaged image reads first.
fn metadata_blocks(device: &[u8]) -> Vec<usize> {
    let cache = Cache::new(device.to_vec());
    let image = cache.open().unwrap();
    let mut failed = 0;
    visit(&cache, &image, usize::MAX, &mut failed);
    cache.first_blocks()
}

/// Changes some bytes, mostly in metadata: random ones, extreme numbers, or a copy of another place.
fn damage(device: &mut [u8], metadata: &[usize], random: &mut Random) {
    for _ in 0..1 + random.below(12) {
        let block = if random.below(5) == 0 {
            random.below(device.len() as u64 / 4096) as usize
        } else {
            metadata[random.below(metadata.len() as u64) as usize]
        };
        let at = block * 4096 + random.below(4096 - 16) as usize;
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
        device[1024 + 4 + random.below(124) as usize] = random.next() as u8;
    }
}
