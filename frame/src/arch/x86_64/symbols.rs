//! Names for addresses of kernel code, and backtraces.
//!
//! The section `.ebb.symbols` has room for a table that `tools/symbols` fills in after linking (its format is described there); an image without it
//! prints bare addresses. The kernel has no frame pointers, because they cost instructions: a backtrace lists the words
//! on the stack that point behind a call instruction. Words that were left by earlier calls show up as well.

use core::ops::Range;

use super::kernel_map;
use super::stacks;

/// Room for the table.
const ROOM: usize = 512 << 10;
/// What the table begins with, once it is filled in.
const MAGIC: [u8; 8] = *b"EbbSyms1";
/// The most lines of a backtrace.
const MAX_LINES: usize = 40;

#[repr(C, align(16))]
struct Table([u8; ROOM]);

#[used]
#[unsafe(link_section = ".ebb.symbols")]
static TABLE: Table = Table([0; ROOM]);

fn table() -> &'static [u8] {
    // Read as volatile: the compiler must not believe that the table is as it was when it was compiled.
    // SAFETY: the static is initialised and constant at run time.
    let magic = unsafe { core::ptr::read_volatile((&raw const TABLE.0).cast::<[u8; 8]>()) };
    if magic == MAGIC { core::hint::black_box(&TABLE.0) } else { &[] }
}

fn word(table: &[u8], at: usize) -> Option<usize> {
    let bytes = table.get(at..at + 4)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
}

/// The name of the function that `address` is in, and how far behind its start. The table is: magic, number of symbols, then for each symbol, ascending, its offset in the text and
/// the place of its name in the table; names end where the next one begins.
fn symbol(address: usize) -> Option<(&'static str, usize)> {
    let table = table();
    let offset = address.checked_sub(kernel_map::text().start)?;
    let count = word(table, 8)?;
    let entry = |index: usize| Some((word(table, 12 + 8 * index)?, word(table, 16 + 8 * index)?));
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if entry(middle)?.0 <= offset { low = middle + 1 } else { high = middle }
    }
    let (start, name) = entry(low.checked_sub(1)?)?;
    let name_end = entry(low)?.1;
    Some((core::str::from_utf8(table.get(name..name_end)?).ok()?, offset - start))
}

fn print_line(address: usize) {
    match symbol(address) {
        Some((name, offset)) => crate::println!("  {address:#x} {name}+{offset:#x}"),
        None => crate::println!("  {address:#x}"),
    }
}

/// Whether the word on a stack is probably a return address: the bytes before it are a call.
fn follows_call(word: usize, text: &Range<usize>) -> bool {
    if !text.contains(&word) || word - text.start < 8 {
        return false;
    }
    // SAFETY: the eight bytes are in the kernel's text.
    let before: [u8; 8] = unsafe { ((word - 8) as *const [u8; 8]).read_unaligned() };
    // call rel32; call through memory with 32-bit or 8-bit displacement; call register or memory.
    before[3] == 0xe8
        || before[2] == 0xff && before[3] & 0x38 == 0x10
        || before[5] == 0xff && before[6] & 0x38 == 0x10
        || before[6] == 0xff && before[7] & 0x38 == 0x10
        || before[4] == 0xff && before[5] & 0x38 == 0x10
}

/// Lists what was called, from the innermost function outward: `ip` (0 if it is not known), and what is on the stack from
/// `rsp` upward.
pub fn print_backtrace(ip: usize, rsp: usize) {
    crate::println!("backtrace (outer calls below; may show calls that have returned):");
    if ip != 0 {
        print_line(ip);
    }
    let Some(stack) = stacks::rest_of(rsp) else { return };
    let text = kernel_map::text();
    let words = (stack.start.next_multiple_of(8)..stack.end).step_by(8);
    // SAFETY: the words are on a mapped stack, between its pointer and its top.
    let return_addresses = words.map(|at| unsafe { (at as *const usize).read() });
    let mut lines = 0;
    let mut last = (0, 0_usize);
    for address in return_addresses.filter(|word| follows_call(*word, &text)).map(|word| word - 1) {
        if address == last.0 {
            last.1 += 1;
            continue;
        }
        print_repetitions(last.1);
        last = (address, 0);
        if lines == MAX_LINES {
            return;
        }
        lines += 1;
        print_line(address);
    }
    print_repetitions(last.1);
}

fn print_repetitions(times: usize) {
    if times > 0 {
        crate::println!("  ... and {times} times more");
    }
}
