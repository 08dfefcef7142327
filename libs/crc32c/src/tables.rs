//! CRC-32C by tables, eight bytes at a time.

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 != 0 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        tables[0][i] = value;
        i += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[slice - 1][i];
            tables[slice][i] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        slice += 1;
    }
    tables
}

static TABLES: [[u32; 256]; 8] = tables();

pub fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    let mut crc = seed;
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let low = crc ^ u32::from_le_bytes([eight[0], eight[1], eight[2], eight[3]]);
        let at = |table: usize, byte: u32| TABLES[table][(byte & 0xff) as usize];
        crc = at(7, low) ^ at(6, low >> 8) ^ at(5, low >> 16) ^ at(4, low >> 24);
        crc ^= at(3, eight[4].into()) ^ at(2, eight[5].into()) ^ at(1, eight[6].into()) ^ at(0, eight[7].into());
    }
    for byte in rest {
        crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xff) as usize];
    }
    crc
}
