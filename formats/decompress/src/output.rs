//! [`Output`]: what is being made, which is the dictionary as well.

use crate::Error;

/// What is being made, and how far it is.
pub(crate) struct Output<'a> {
    /// As long as the longest output.
    pub bytes: &'a mut [u8],
    /// How much of it is made.
    pub done: usize,
}

impl Output<'_> {
    pub fn room(&self) -> usize {
        self.bytes.len() - self.done
    }

    pub fn push(&mut self, byte: u8) -> Result<(), Error> {
        *self.bytes.get_mut(self.done).ok_or(Error::Malformed)? = byte;
        self.done += 1;
        Ok(())
    }

    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let to = self.bytes.get_mut(self.done..).and_then(|rest| rest.get_mut(..bytes.len()));
        to.ok_or(Error::Malformed)?.copy_from_slice(bytes);
        self.done += bytes.len();
        Ok(())
    }

    pub fn fill(&mut self, byte: u8, len: usize) -> Result<(), Error> {
        let to = self.bytes.get_mut(self.done..).and_then(|rest| rest.get_mut(..len));
        to.ok_or(Error::Malformed)?.fill(byte);
        self.done += len;
        Ok(())
    }

    /// The byte `distance` before the end, at least 1.
    pub fn before(&self, distance: usize) -> Result<u8, Error> {
        self.done.checked_sub(distance).and_then(|at| self.bytes.get(at)).copied().ok_or(Error::Malformed)
    }

    /// That there are so many bytes to repeat.
    pub fn check(&self, distance: usize) -> Result<(), Error> {
        if distance == 0 || distance > self.done { Err(Error::Malformed) } else { Ok(()) }
    }

    /// Makes `len` bytes that repeat the `distance` bytes before them.
    pub fn repeat(&mut self, distance: usize, len: usize) -> Result<(), Error> {
        self.check(distance)?;
        if len > self.room() {
            return Err(Error::Malformed);
        }
        let from = self.done - distance;
        let mut copied = 0;
        // What was copied can be copied again: the source doubles each time.
        while copied < len {
            let now = (distance + copied).min(len - copied);
            self.bytes.copy_within(from..from + now, self.done + copied);
            copied += now;
        }
        self.done += len;
        Ok(())
    }
}
