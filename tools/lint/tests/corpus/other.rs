//! A crate between the context and the corpus: names that come from further away.

pub use context::park_async as wait;
pub use context::{Cx, File};

pub mod deep {
    pub mod deeper {
        pub use context::Disk;
    }
}

pub fn twice_async(cx: &mut Cx) {
    wait(cx);
    wait(cx);
}

pub fn read_all_async<F: File + ?Sized>(cx: &mut Cx, file: &F) -> usize {
    file.read_twice_async(cx)
}
