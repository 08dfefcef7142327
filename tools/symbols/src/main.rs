//! Puts the names of the kernel's functions into a linked kernel image, for its backtraces: `ebb-symbols IMAGE`.
//!
//! The image has room for them in its section `.ebb.symbols`, so that nothing moves. The table there, all numbers 32 bits, little
//! endian:
//!
//! | what | how often |
//! | --- | --- |
//! | `EbbSyms1` | once (8 bytes) |
//! | number of functions | once |
//! | a function's offset in `.text`, and where in the table its name begins; ascending | per function, and once more for the end |
//! | names, one behind the other | |
//!
//! Running it twice does the same as once.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

const MAGIC: &[u8; 8] = b"EbbSyms1";
const HEADER_BYTES: usize = 12;
const ENTRY_BYTES: usize = 8;
/// Generic names can be endless; what is behind this helps nobody.
const LONGEST_NAME: usize = 120;

fn main() -> ExitCode {
    let Some(image) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: ebb-symbols IMAGE");
        return ExitCode::from(2);
    };
    let filled = std::fs::read(&image).context("reading").and_then(|mut bytes| {
        fill_in(&mut bytes)?;
        std::fs::write(&image, bytes).context("writing")
    });
    match filled {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb-symbols: {}: {error:#}", image.display());
            ExitCode::FAILURE
        }
    }
}

/// Fills in the table of an image.
fn fill_in(image: &mut [u8]) -> Result<()> {
    let file = object::File::parse(&*image).context("not an ELF file")?;
    let text = file.section_by_name(".text").context("no section .text")?;
    let room = file.section_by_name(".ebb.symbols").context("no section .ebb.symbols")?;
    let (start, len) = room.file_range().context("section .ebb.symbols is not in the file")?;
    let place = start as usize..(start + len) as usize;

    let mut functions: Vec<(u64, String)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text || symbol.section_index() == Some(text.index()))
        .filter_map(|symbol| Some((symbol.address().checked_sub(text.address())?, symbol.name().ok()?)))
        .filter(|(offset, name)| *offset < text.size() && !name.is_empty())
        .map(|(offset, name)| (offset, readable(name)))
        .collect();
    functions.sort();
    functions.dedup_by_key(|(offset, _)| *offset);

    let table = table(&functions, place.len())?;
    image.get_mut(place).context("section .ebb.symbols lies outside the file")?[..table.len()].copy_from_slice(&table);
    Ok(())
}

/// A function's name as its author wrote it.
fn readable(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    name.chars().take(LONGEST_NAME).collect()
}

/// The table; where there is not room for all names, the last functions have none.
fn table(functions: &[(u64, String)], room: usize) -> Result<Vec<u8>> {
    let names_at = HEADER_BYTES + ENTRY_BYTES * (functions.len() + 1);
    if names_at > room {
        bail!("the section has room for {room} bytes, and {names_at} are needed without a single name");
    }
    let mut table = Vec::with_capacity(room);
    table.extend_from_slice(MAGIC);
    table.extend_from_slice(&u32::try_from(functions.len())?.to_le_bytes());
    let mut names = Vec::new();
    for (offset, name) in functions {
        table.extend_from_slice(&u32::try_from(*offset)?.to_le_bytes());
        table.extend_from_slice(&u32::try_from(names_at + names.len())?.to_le_bytes());
        if names_at + names.len() + name.len() <= room {
            names.extend_from_slice(name.as_bytes());
        }
    }
    table.extend_from_slice(&u32::MAX.to_le_bytes());
    table.extend_from_slice(&u32::try_from(names_at + names.len())?.to_le_bytes());
    table.extend_from_slice(&names);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(table: &[u8], at: usize) -> usize {
        u32::from_le_bytes(table[at..at + 4].try_into().unwrap()) as usize
    }

    #[test]
    fn names_end_where_the_next_one_begins() {
        let functions = [(0, "first".to_string()), (64, "second".to_string())];
        let table = table(&functions, 4096).unwrap();
        assert_eq!(word(&table, 8), 2);
        assert_eq!(&table[word(&table, 16)..word(&table, 24)], b"first");
        assert_eq!(word(&table, 20), 64);
        assert_eq!(&table[word(&table, 24)..word(&table, 32)], b"second");
    }

    #[test]
    fn what_does_not_fit_has_no_name() {
        let functions = [(0, "first".to_string()), (64, "second".to_string())];
        let table = table(&functions, 12 + 24 + 6).unwrap();
        assert_eq!(word(&table, 24), word(&table, 32));
    }

    #[test]
    fn a_file_that_is_no_elf_file_is_refused() {
        assert!(fill_in(&mut [0; 100]).is_err());
    }
}
