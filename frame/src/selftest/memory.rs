//! Memory on the real machine: what the simulated one cannot show, and what each operation costs.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::arch::asm;
use core::hint::black_box;

use refs::Cx;

use super::{Outcome, Test, yield_until_async};
use crate::mm::{Access, Fault, PAGE_SIZE, Prot, Sharing, UFrame, VmSpace, free_frames};
use crate::{check, time};

pub(super) const TESTS: &[Test] = &[
    ("translations are forgotten when pages change", translations_are_forgotten),
    ("an address space gives all its memory back", all_memory_comes_back),
    ("long and short copies arrive whole", copies_arrive),
    ("a string is read to its zero and not beyond", strings),
    ("zeroing and copying leave the user's vector registers alone", vector_registers),
    ("what operations on memory cost", costs),
];

const BASE: usize = 0x1000_0000;
const RW: Prot = Prot::READ.union(Prot::WRITE);

fn new_space() -> Result<VmSpace, &'static str> {
    VmSpace::new().ok_or("no memory")
}

fn map(space: &VmSpace, address: usize, prot: Prot, cx: &Cx) -> Result<(), &'static str> {
    let frame = UFrame::zeroed().ok_or("no memory")?;
    space.map(address, frame, prot, cx).map_err(|_| "no memory")
}

fn peek(space: &VmSpace, address: usize, cx: &Cx) -> Result<u8, Fault> {
    let mut byte = [0];
    space.reader(address, 1, cx).read(&mut byte).map(|_| byte[0])
}

fn poke(space: &VmSpace, address: usize, byte: u8, cx: &Cx) -> Result<usize, Fault> {
    space.writer(address, 1, cx).write(&[byte])
}

fn translations_are_forgotten(cx: &mut Cx) -> Outcome {
    let space = new_space()?;
    for pages in [1, 8, 40, 600] {
        let end = BASE + pages * PAGE_SIZE;
        let all = |expected: Option<u8>| {
            (BASE..end).step_by(PAGE_SIZE).all(|address| peek(&space, address, cx).ok() == expected)
        };
        let can_write = || poke(&space, end - 1, 0, cx).is_ok();
        for address in (BASE..end).step_by(PAGE_SIZE) {
            map(&space, address, RW, cx)?;
        }
        check!(all(Some(0)) && can_write(), "{pages} pages are mapped");
        space.protect(BASE..end, Prot::READ, true, cx);
        check!(all(Some(0)) && !can_write(), "{pages} pages cannot be written");
        space.protect(BASE..end, RW, true, cx);
        check!(can_write(), "{pages} pages can be written");
        let child = new_space()?;
        space.fork_range(&child, BASE..end, Sharing::CopyOnWrite, cx).map_err(|_| "no memory")?;
        check!(all(Some(0)) && !can_write(), "{pages} pages are shared copy-on-write");
        drop(child);
        for address in (BASE..end).step_by(PAGE_SIZE) {
            let frame = UFrame::zeroed().ok_or("no memory")?;
            frame.writer(0..1).write(&[1]).map_err(|_| "a fault in a frame")?;
            space.map(address, frame, RW, cx).map_err(|_| "no memory")?;
        }
        check!(all(Some(1)), "{pages} pages are replaced");
        check!(space.unmap(BASE..end, cx) == pages && all(None), "{pages} pages are unmapped");
    }
    Ok(())
}

fn all_memory_comes_back(cx: &mut Cx) -> Outcome {
    crate::mm::trim();
    let before = free_frames();
    for _ in 0..3 {
        let space = new_space()?;
        for index in 0..300 {
            map(&space, index * 77 * PAGE_SIZE * 64, RW, cx)?;
        }
        let child = new_space()?;
        space.fork_range(&child, 0..usize::MAX, Sharing::CopyOnWrite, cx).map_err(|_| "no memory")?;
        child.activate(cx);
        check!(child.mapped_pages() == 300, "{} pages", child.mapped_pages());
    }
    yield_until_async(cx, || {
        crate::mm::gather();
        crate::mm::ask_for_slots();
        free_frames() >= before
    })
    .map_err(|_| format!("{} frames of {before}", free_frames()))
}

fn copies_arrive(cx: &mut Cx) -> Outcome {
    let space = new_space()?;
    map(&space, BASE, RW, cx)?;
    map(&space, BASE + PAGE_SIZE, RW, cx)?;
    let end = BASE + 2 * PAGE_SIZE;
    let source: Vec<u8> = (0..5000_usize).map(|index| (index * 7 % 251) as u8).collect();
    let mut back = Vec::new();
    for len in (0..300).chain([511, 512, 513, 700, 767, 768, 769, 1000, 4095, 4096, 4097, 5000]) {
        for start in [BASE, BASE + 1, BASE + 4093, end - len] {
            if start + len > end {
                continue;
            }
            check!(space.writer(start, len, cx).write(&source[..len]) == Ok(len), "{len} bytes to {start:#x}");
            back.clear();
            back.resize(len, 0);
            check!(space.reader(start, len, cx).read(&mut back) == Ok(len), "{len} bytes from {start:#x}");
            check!(back == source[..len], "{len} bytes at {start:#x} differ");
        }
        // The same ends where the memory does.
        let expected = Err(Fault { address: end, access: Access::Write });
        let mut writer = space.writer(end - len, len + 3, cx);
        check!(writer.write(&[1; 5003][..len + 3]) == expected && writer.remaining() == 3, "{len} bytes to the end");
        let expected = Err(Fault { address: end, access: Access::Read });
        let mut reader = space.reader(end - len, len + 3, cx);
        back.resize(len + 3, 0);
        check!(reader.read(&mut back) == expected && reader.remaining() == 3, "{len} bytes from the end");
    }
    Ok(())
}

fn strings(cx: &mut Cx) -> Outcome {
    let space = new_space()?;
    map(&space, BASE, RW, cx)?;
    let end = BASE + PAGE_SIZE;
    let text: Vec<u8> = (0..100_usize).map(|index| (index % 255 + 1) as u8 | (0x80 * (index % 3 == 0) as u8)).collect();
    for len in 0..100 {
        // Right before memory that is not there, and well before.
        for start in [end - len - 1, end - len - 1 - 40, BASE + len] {
            space.writer(start, len, cx).write(&text[..len]).map_err(|_| "a fault")?;
            space.writer(start + len, 1, cx).write(&[0]).map_err(|_| "a fault")?;
            let mut to = [7; 128];
            let mut reader = space.reader(start, 4096, cx);
            let found = reader.read_until_zero(&mut to);
            check!(found == Ok(len) && to[..len] == text[..len], "{len} bytes at {start:#x}: {found:?}");
            let mut zero = [1];
            check!(reader.read(&mut zero) == Ok(1) && zero == [0], "{len} bytes at {start:#x}: the cursor");
            for room in [0, 1, 7, 8, 9, 63] {
                let found = space.reader(start, 4096, cx).read_until_zero(&mut to[..room]);
                check!(found == Ok(room.min(len)), "{len} bytes into {room}: {found:?}");
            }
        }
        space.writer(end - len, len, cx).write(&text[..len]).map_err(|_| "a fault")?;
        let mut reader = space.reader(end - len, 4096, cx);
        let found = reader.read_until_zero(&mut [0; 128]);
        let fault = Fault { address: end, access: Access::Read };
        check!(found == Err(fault) && reader.remaining() == 4096 - len, "{len} bytes without a zero: {found:?}");
    }
    Ok(())
}

/// What is in the first vector registers, where there are any of that size.
fn read_registers() -> [[u8; 32]; 4] {
    let mut registers = [[0; 32]; 4];
    // SAFETY: writes only these 128 bytes; the caller found that the registers are enabled.
    unsafe {
        asm!("vmovdqu [{0}], ymm0", "vmovdqu [{0} + 32], ymm1", "vmovdqu [{0} + 64], ymm2", "vmovdqu [{0} + 96], ymm3",
            in(reg) &raw mut registers, options(nostack));
    }
    registers
}

fn vector_registers(cx: &mut Cx) -> Outcome {
    if crate::user::fpu_size().1 & 4 == 0 {
        return Ok(());
    }
    let expected: [[u8; 32]; 4] = core::array::from_fn(|register| [register as u8 * 16 + 1; 32]);
    // SAFETY: the registers are enabled, and the kernel is compiled without them; no user code's state is loaded in a test.
    unsafe {
        asm!("vmovdqu ymm0, [{0}]", "vmovdqu ymm1, [{0} + 32]", "vmovdqu ymm2, [{0} + 64]", "vmovdqu ymm3, [{0} + 96]",
            in(reg) &raw const expected, options(nostack));
    }
    let space = new_space()?;
    map(&space, BASE, RW, cx)?;
    check!(read_registers() == expected, "after a page was zeroed");
    let frame = space.query(BASE, cx).ok_or("not mapped")?.frame.duplicate().ok_or("no memory")?;
    check!(read_registers() == expected, "after a page was copied");
    check!(frame.reader(0..PAGE_SIZE).copy_to(&mut space.writer(BASE, PAGE_SIZE, cx)) == Ok(PAGE_SIZE), "a copy");
    check!(read_registers() == expected, "after a copy to user memory");
    check!(frame.reader(0..PAGE_SIZE).copy_to(&mut space.writer(BASE + 900, PAGE_SIZE, cx)).is_err(), "no fault");
    check!(read_registers() == expected, "after a copy that faulted");
    Ok(())
}

/// Nanoseconds for one round; under `-icount shift=0` that is instructions.
fn each(rounds: u64, mut round: impl FnMut()) -> u64 {
    round();
    let start = time::now();
    for _ in 0..rounds {
        round();
    }
    (time::now() - start) / rounds
}

fn costs(cx: &mut Cx) -> Outcome {
    let say = |what: &str, cost: u64| crate::println!("selftest: {what} takes {cost} ns");
    say("a loop", each(1000, || _ = black_box(0)));
    say("a frame taken and given back", each(1000, || _ = black_box(UFrame::for_overwrite())));
    say("a zeroed frame", each(1000, || _ = black_box(UFrame::zeroed())));
    say(
        "100 frames and back",
        each(100, || {
            _ = black_box(core::array::from_fn::<_, 100, _>(|_| UFrame::for_overwrite()));
        }),
    );
    say("a box of 64 bytes", each(1000, || _ = black_box(Box::new([0_u64; 8]))));
    say("a block of 32 KiB", each(100, || _ = black_box(Vec::<u8>::with_capacity(32 << 10))));

    let space = new_space()?;
    for page in 0..4 {
        map(&space, BASE + page * PAGE_SIZE, RW, cx)?;
    }
    space.activate(cx);
    let mut bytes = [0; 2 * PAGE_SIZE];
    for len in [1, 8, 16, 24, 64, 144, 512, 4096] {
        let read = each(1000, || _ = black_box(space.reader(BASE, len, cx).read(&mut bytes)));
        let write = each(1000, || _ = black_box(space.writer(BASE, len, cx).write(&bytes)));
        crate::println!("selftest: {len} bytes from user memory take {read} ns, to user memory {write} ns");
    }
    say("a path of 20 bytes", {
        space.writer(BASE + 100, 21, cx).write(b"/usr/share/some/file\0").map_err(|_| "a fault")?;
        each(1000, || _ = black_box(space.reader(BASE + 100, 4096, cx).read_until_zero(&mut bytes)))
    });
    let frame = UFrame::zeroed().ok_or("no memory")?;
    say(
        "4096 bytes from a frame to user memory",
        each(100, || {
            _ = black_box(frame.reader(0..PAGE_SIZE).copy_to(&mut space.writer(BASE, PAGE_SIZE, cx)));
        }),
    );
    say("a query", each(1000, || _ = black_box(space.query(BASE, cx))));
    say(
        "a page mapped and unmapped",
        each(1000, || {
            _ = black_box(space.map(BASE + (8 << 20), frame.clone(), RW, cx));
            space.unmap(BASE + (8 << 20)..BASE + (8 << 20) + PAGE_SIZE, cx);
        }),
    );
    say(
        "a page mapped and unmapped beside others",
        each(1000, || {
            _ = black_box(space.map(BASE + (32 << 12), frame.clone(), RW, cx));
            space.unmap(BASE + (32 << 12)..BASE + (33 << 12), cx);
        }),
    );
    say("a change of rights", each(1000, || space.set_prot(BASE, RW, cx)));
    say("an empty address space", each(100, || _ = black_box(VmSpace::new())));

    // A small process: text, data, heap, libraries, stack.
    let parts = [(0x40_0000, 60), (0x60_0000, 10), (0x100_0000, 20), (0x7f00_0000_0000, 40), (0x7fff_0000_0000, 4)];
    let process = new_space()?;
    for (start, pages) in parts {
        for page in 0..pages {
            map(&process, start + page * PAGE_SIZE, RW, cx)?;
        }
    }
    process.activate(cx);
    let mut dropping = 0;
    let both = each(100, || {
        if let Some(child) = VmSpace::new() {
            for (start, pages) in parts {
                let range = start..start + pages * PAGE_SIZE;
                _ = black_box(process.fork_range(&child, range, Sharing::CopyOnWrite, cx));
            }
            let start = time::now();
            drop(child);
            dropping += time::now() - start;
        }
    });
    dropping /= 101;
    crate::println!(
        "selftest: a fork of 134 pages takes {} ns, their end {dropping} ns",
        both.saturating_sub(dropping)
    );
    Ok(())
}
