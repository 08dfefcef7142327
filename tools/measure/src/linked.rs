//! Which source lines are left in the linked kernel.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gimli::{EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, SectionKind};

/// All (file, line) pairs of which an instruction is left, with the call sites of inlined code.
pub fn lines(kernel: &Path) -> Result<BTreeSet<(PathBuf, u32)>> {
    let bytes = std::fs::read(kernel).with_context(|| format!("{} (build it: `make build`)", kernel.display()))?;
    let file = object::File::parse(&*bytes).context("not an ELF file")?;
    let load = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>> {
        Ok(match file.section_by_name(id.name()) {
            Some(section) => section.uncompressed_data()?,
            None => Cow::Borrowed(&[]),
        })
    };
    let sections = gimli::DwarfSections::load(load)?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, RunTimeEndian::Little));
    // What the linker has left out keeps its rows, at addresses where no code is.
    let code: Vec<_> = file
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .map(|section| section.address()..section.address() + section.size())
        .collect();
    let mut addresses = BTreeSet::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let Some(program) = unit.line_program.clone() else { continue };
        let mut rows = program.rows();
        while let Some((_, row)) = rows.next_row()? {
            if !row.end_sequence() && code.iter().any(|section| section.contains(&row.address())) {
                addresses.insert(row.address());
            }
        }
    }
    let context = addr2line::Context::from_dwarf(dwarf)?;
    let mut lines = BTreeSet::new();
    for address in addresses {
        let mut frames = context.find_frames(address).skip_all_loads()?;
        while let Some(frame) = frames.next()? {
            if let Some(location) = frame.location
                && let (Some(file), Some(line)) = (location.file, location.line)
            {
                lines.insert((PathBuf::from(file), line));
            }
        }
    }
    Ok(lines)
}
