//! Frames with metadata of the client's own type: [`Frame`] and [`Segment`].

use core::ops::Deref;

use super::metadata::{FrameNumber, Kind, Metadata};
use super::supply::{self, Purpose};

/// What can be kept beside a frame: at most 16 bytes, aligned to at most 8. It is dropped when the frame's last handle is.
pub trait FrameMeta: Send + Sync + 'static {}

/// A frame of the kernel's own, with an `M` beside it that all its handles share. Counted; free when the last handle is
/// dropped. Its bytes are nobody's business outside the framework.
pub struct Frame<M: FrameMeta> {
    // Of kind `Typed`, its storage holds an `M`, and one of its references is this one.
    number: FrameNumber,
    _meta: core::marker::PhantomData<M>,
}

impl<M: FrameMeta> Frame<M> {
    const FITS: () = assert!(size_of::<M>() <= 16 && align_of::<M>() <= 8, "the metadata do not fit");

    /// A new frame with `meta`; `None` if there is no memory.
    pub fn new(meta: M) -> Option<Self> {
        let number = supply::take(Kind::Typed, Purpose::Kernel)?;
        // SAFETY: the frame was just taken.
        Some(unsafe { Self::adopt(number, meta) })
    }

    /// # Safety
    /// The frame is of kind `Typed`, and its only reference is the caller's, which it passes on.
    unsafe fn adopt(number: FrameNumber, meta: M) -> Self {
        const { Self::FITS };
        // SAFETY: nobody else knows the frame, so nobody uses its storage, in which an `M` fits.
        unsafe { Metadata::of(number).storage.get().cast::<M>().write(meta) };
        Frame { number, _meta: core::marker::PhantomData }
    }

    /// Its number.
    pub fn number(&self) -> FrameNumber {
        self.number
    }

    /// How many handles there are.
    pub fn references(&self) -> u32 {
        self.metadata().references()
    }

    fn metadata(&self) -> &'static Metadata {
        // SAFETY: a frame in use has a number in range.
        unsafe { Metadata::of(self.number) }
    }
}

impl<M: FrameMeta> Deref for Frame<M> {
    type Target = M;
    fn deref(&self) -> &M {
        // SAFETY: the storage holds an `M` as long as there is a handle, and only shared references to it are given out.
        unsafe { &*self.metadata().storage.get().cast::<M>() }
    }
}

impl<M: FrameMeta> Clone for Frame<M> {
    fn clone(&self) -> Self {
        self.metadata().acquire();
        Frame { number: self.number, _meta: core::marker::PhantomData }
    }
}

impl<M: FrameMeta> Drop for Frame<M> {
    fn drop(&mut self) {
        if self.metadata().release(Kind::Typed) {
            // SAFETY: it was the last handle, so nobody refers to the `M` or to the frame.
            unsafe {
                self.metadata().storage.get().cast::<M>().drop_in_place();
                supply::give(self.number);
            }
        }
    }
}

/// Contiguous frames of the kernel's own, a power of two of them, each with an `M`.
pub struct Segment<M: FrameMeta> {
    first: FrameNumber,
    order: u8,
    _meta: core::marker::PhantomData<M>,
}

impl<M: FrameMeta> Segment<M> {
    /// `1 << order` frames, with the metadata that `meta` makes for each index; `None` if there is no such block of memory.
    pub fn new(order: u8, mut meta: impl FnMut(usize) -> M) -> Option<Self> {
        let first = supply::take_block(order, Kind::Typed)?;
        for index in 0..1 << order {
            // SAFETY: the frame was just taken; its handle's reference becomes the segment's.
            core::mem::forget(unsafe { Frame::adopt(FrameNumber(first.0 + index), meta(index as usize)) });
        }
        Some(Segment { first, order, _meta: core::marker::PhantomData })
    }

    /// How many frames.
    pub fn frames(&self) -> usize {
        1 << self.order
    }

    /// One of its frames, from 0; `None` beyond the last. It lives on when the segment is dropped.
    pub fn frame(&self, index: usize) -> Option<Frame<M>> {
        if index >= self.frames() {
            return None;
        }
        let number = FrameNumber(self.first.0 + index as u32);
        // SAFETY: a frame of the segment, which has a reference to it.
        unsafe { Metadata::of(number) }.acquire();
        Some(Frame { number, _meta: core::marker::PhantomData })
    }
}

impl<M: FrameMeta> Drop for Segment<M> {
    fn drop(&mut self) {
        for number in self.first.0..self.first.0 + (1 << self.order) {
            // The segment's reference to this frame ends here.
            drop(Frame::<M> { number: FrameNumber(number), _meta: core::marker::PhantomData });
        }
    }
}
