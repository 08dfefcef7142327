//! What may be large is freed in pieces, between which interrupts come in and others have their turn.
//!
//! Dropping a value with a million parts takes as long as a million drops, wherever that happens. So whoever owns such a thing hands it to
//! [`free_in_pieces`] in its destructor: the value goes where dead objects go, and each time that those are freed, one piece of it is.

use refs::StrongRc;

/// What can be freed in pieces.
pub trait Pieces: Send + Sync + 'static {
    /// Frees a piece, some ten thousand instructions at most; whether there is more.
    fn free_piece(&mut self) -> bool;
}

/// What is left of something.
struct Rest<T: Pieces>(Option<T>);

impl<T: Pieces> Drop for Rest<T> {
    fn drop(&mut self) {
        if let Some(mut rest) = self.0.take()
            && rest.free_piece()
        {
            free_in_pieces(rest);
        }
    }
}

/// Frees something later, piece by piece. It is all gone before the program that gave it up goes on.
pub fn free_in_pieces<T: Pieces>(whole: T) {
    drop(StrongRc::new(Rest(Some(whole))));
}
