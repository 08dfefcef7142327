//! The texts of messages, between the caller's memory and the kernel's.

use frame::Cx;
use frame::mm::PAGE_SIZE;

use crate::current::Current;
use crate::error::Result;
use crate::ipc::msg::Text;
use crate::step::{Interruption, Patience, Stop, TimeSlice, complete_async};
use crate::user_memory::{UserIn, UserOut};

/// So many bytes from an address on lie in its page.
fn left_in_page(address: usize) -> usize {
    PAGE_SIZE - address % PAGE_SIZE
}

/// Reads a text. It goes on where a page was missing, or others had their turn.
///
/// # Errors
/// EFAULT; ENOMEM; a signal that ends the process.
pub fn read_text_async(cx: &mut Cx, me: &mut Current, from: UserIn<u8>, len: usize) -> Result<Text> {
    let mut text = Text::default();
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let mut time_slice = TimeSlice::default();
        while text.bytes() < len {
            crate::memory::admit()?;
            let from = from.add(text.bytes());
            let room = text.room(len)?;
            let count = room.len().min(left_in_page(from.address()));
            memory.read_into(from.slice(count), &mut room[..count])?;
            text.filled(count);
            if text.bytes() < len && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    })?;
    Ok(text)
}

/// Writes the first `len` bytes of a text, likewise.
///
/// # Errors
/// Those.
pub fn write_text_async(cx: &mut Cx, me: &mut Current, to: UserOut<u8>, text: &Text, len: usize) -> Result<()> {
    let mut written = 0;
    complete_async(cx, me, Patience::Forever, |cx, me, _| {
        let memory = me.memory(cx)?;
        let mut time_slice = TimeSlice::default();
        while written < len {
            let to = to.add(written);
            let bytes = text.from(written);
            let count = bytes.len().min(len - written).min(left_in_page(to.address()));
            memory.write_slice(to.slice(count), &bytes[..count])?;
            written += count;
            if written < len && time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    })
}
