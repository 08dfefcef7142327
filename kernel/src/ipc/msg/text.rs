//! [`Text`]: what a message says, in pieces, so that a long text is filled, copied and freed in bounded steps.

use alloc::vec::Vec;
use core::mem::take;

use crate::error::{Errno, Result};
use crate::pieces::{Pieces, free_in_pieces};

/// A piece has so many bytes; the last one has as many as are left. Four messages as long as they may be by default find room in one.
const PIECE: usize = 32 * 1024;

/// So many pieces are freed at a time.
const FREED_AT_ONCE: usize = 4;

/// What a message says. It grows from its start, and does not change any more once others see it.
#[derive(Default)]
pub struct Text {
    /// All but the last have [`PIECE`] bytes.
    pieces: Vec<Vec<u8>>,
    /// How many bytes were filled.
    len: usize,
}

impl Text {
    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.len
    }

    /// The bytes to be filled next, of a text that is to have `whole`; empty if it has.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn room(&mut self, whole: usize) -> Result<&mut [u8]> {
        let begun = self.pieces.len() * PIECE;
        if begun <= self.len && self.len < whole {
            let mut piece = Vec::new();
            let len = PIECE.min(whole - begun);
            self.pieces.try_reserve_exact(whole.div_ceil(PIECE) - self.pieces.len()).map_err(|_| Errno::ENOMEM)?;
            piece.try_reserve_exact(len).map_err(|_| Errno::ENOMEM)?;
            piece.resize(len, 0);
            self.pieces.push(piece);
        }
        let from = self.len - (self.pieces.len().max(1) - 1) * PIECE;
        Ok(self.pieces.last_mut().and_then(|last| last.get_mut(from..)).unwrap_or_default())
    }

    /// So many bytes of the [room](Self::room) were filled.
    pub fn filled(&mut self, count: usize) {
        self.len += count;
    }

    /// Bytes from a place on, as many as lie together; none behind the end.
    pub fn from(&self, place: usize) -> &[u8] {
        self.pieces.get(place / PIECE).and_then(|piece| piece.get(place % PIECE..)).unwrap_or_default()
    }
}

/// What is left of a long text.
struct Rest(Vec<Vec<u8>>);

impl Pieces for Rest {
    fn free_piece(&mut self) -> bool {
        self.0.truncate(self.0.len().saturating_sub(FREED_AT_ONCE));
        !self.0.is_empty()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        if self.pieces.len() > 1 {
            free_in_pieces(Rest(take(&mut self.pieces)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_filled_and_read_in_pieces() {
        let whole = 2 * PIECE + 5;
        let mut text = Text::default();
        let mut next = 0;
        while text.bytes() < whole {
            let room = text.room(whole).unwrap();
            let count = room.len().min(1000);
            room[..count].fill(next);
            next += 1;
            text.filled(count);
        }
        assert_eq!(text.bytes(), whole);
        assert!(text.room(whole).unwrap().is_empty());
        assert_eq!(text.from(0).len(), PIECE);
        assert_eq!((text.from(999)[0], text.from(1000)[0]), (0, 1));
        assert_eq!(text.from(2 * PIECE + 4).len(), 1);
        assert!(text.from(whole).is_empty() && text.from(3 * PIECE).is_empty());
    }

    #[test]
    fn an_empty_text_needs_no_memory() {
        let mut text = Text::default();
        assert!(text.room(0).unwrap().is_empty());
        assert!(text.from(0).is_empty());
    }
}
