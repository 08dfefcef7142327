//! `/proc/PID/maps` and `smaps`.

use core::any::Any;

use frame::Cx;
use frame::mm::Prot;

use super::Target;
use super::process::name_for;
use super::text::Text;
use crate::current::Current;
use crate::error::Result;
use crate::fs::OpenFile;
use crate::memory::{AreaFlags, AreaName, AreaReport};

/// The column where names begin.
const NAME_COLUMN: usize = 73;

pub fn maps(text: &mut Text, target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    target.check_access(me, cx)?;
    if let Ok(space) = target.space(cx) {
        for area in space.report(cx) {
            add_area(text, &area, me, cx);
        }
    }
    Ok(())
}

pub fn smaps(text: &mut Text, target: &Target, me: &Current, cx: &Cx) -> Result<()> {
    target.check_access(me, cx)?;
    let Ok(space) = target.space(cx) else { return Ok(()) };
    for area in space.report(cx) {
        add_area(text, &area, me, cx);
        let resident = space.vm().mapped_in(area.range.clone(), cx) * 4;
        let locked = if area.flags.contains(AreaFlags::LOCKED) { resident } else { 0 };
        for (name, kib) in [
            ("Size", area.range.len() / 1024),
            ("KernelPageSize", 4),
            ("MMUPageSize", 4),
            ("Rss", resident),
            ("Pss", resident),
            ("Shared_Clean", 0),
            ("Shared_Dirty", 0),
            ("Private_Clean", 0),
            ("Private_Dirty", resident),
            ("Referenced", resident),
            ("Anonymous", if is_file(&area.name, cx) { 0 } else { resident }),
            ("Swap", 0),
            ("Locked", locked),
        ] {
            text.add(format_args!("{:<16}{kib:8} kB\n", alloc::format!("{name}:")));
        }
    }
    Ok(())
}

fn is_file(name: &AreaName, cx: &Cx) -> bool {
    let AreaName::Object(object) = name else { return false };
    object.upgrade(cx).is_ok_and(|object| {
        let object: &dyn Any = &*object;
        object.is::<OpenFile>()
    })
}

fn add_area(text: &mut Text, area: &AreaReport, me: &Current, cx: &Cx) {
    let right = |prot, letter| if area.prot.contains(prot) { letter } else { '-' };
    let start = text.len();
    let object = match &area.name {
        AreaName::Object(object) => object.upgrade(cx).ok(),
        _ => None,
    };
    let file = object.as_ref().and_then(|object| {
        let object: &dyn Any = &**object;
        object.downcast_ref::<OpenFile>()
    });
    let (device, number) = file.as_ref().map_or((0, 0), |file| {
        let inode = file.location.inode.get(cx);
        (inode.file_system.get(cx).device, inode.number)
    });
    text.add(format_args!(
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {number} ",
        area.range.start,
        area.range.end,
        right(Prot::READ, 'r'),
        right(Prot::WRITE, 'w'),
        right(Prot::EXECUTE, 'x'),
        if area.flags.contains(AreaFlags::SHARED) { 's' } else { 'p' },
        area.offset,
        0,
        device,
    ));
    let special: &[u8] = match &area.name {
        AreaName::Heap => b"[heap]",
        AreaName::Stack => b"[stack]",
        AreaName::Object(_) => b"/dev/zero (deleted)",
        _ => b"",
    };
    let name = file.and_then(|file| name_for(&file.location.path(cx).ok()?, me, cx).ok());
    let name = name.as_deref().unwrap_or(special);
    if !name.is_empty() {
        text.pad_to(start + NAME_COLUMN);
        for &byte in name {
            // A newline would end the line.
            if byte == b'\n' { text.add_bytes(b"\\012") } else { text.add_bytes(&[byte]) }
        }
    }
    text.add_bytes(b"\n");
}
