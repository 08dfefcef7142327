//! All names of a directory: what its layers have, the upper ones first, each name once.
//!
//! It is made in bounded steps when somebody lists the directory, and from then on kept up to date with it. So the positions of a listing stay what they are, and a name that is not
//! there is known not to be without asking the layers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use frame::Cx;
use refs::StrongRc;

use super::cache::{Cache, Entry};
use super::directory::Directory;
use super::layers::child;
use super::{is_whiteout, share};
use crate::error::Result;
use crate::fs::{FileKind, Inode, VfsCaller};
use crate::pieces::free_in_pieces;
use crate::step::{Interruption, Step, Stop, TimeSlice};

/// How many names of a layer are looked at in one go.
const AT_ONCE: usize = 64;

/// How far a directory's names are put together.
pub struct Listing {
    /// The directories of the layers, the topmost first.
    layers: Vec<StrongRc<Inode>>,
    /// Whether the first is that of the upper layer.
    has_upper: bool,
    /// Which one comes next, and the position in it.
    next: usize,
    position: u64,
    /// The names so far.
    names: Cache,
    /// How often the directory had forgotten names.
    forgotten: u64,
}

struct Name {
    name: Box<[u8]>,
    number: u64,
    kind: FileKind,
    position: u64,
}

impl Directory {
    /// Sees to it that all names are known.
    ///
    /// # Errors
    /// Those of the layers. `Pause`: there is more.
    pub fn know_all(&self, me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<()> {
        let forgotten = {
            let cache = self.cache.lock(cx);
            if cache.is_complete {
                return Ok(());
            }
            cache.forgotten
        };
        crate::memory::admit()?;
        let begun = self.listing.lock(cx).take();
        let mut listing = match begun {
            // Of what is forgotten since, nobody knows any more that it was changed.
            Some(listing) if listing.forgotten == forgotten => listing,
            _ => Box::new(self.new_listing(forgotten, cx)),
        };
        match listing.go_on(me, cx) {
            Ok(()) => self.keep(*listing, cx),
            Err(stop) => {
                *self.listing.lock(cx) = Some(listing);
                Err(stop)
            }
        }
    }

    fn new_listing(&self, forgotten: u64, cx: &Cx) -> Listing {
        let upper = self.below.upper(cx).and_then(|upper| upper.share());
        let has_upper = upper.is_some();
        let lowers = self.below.lowers.iter().map(|lower| lower.inode.share());
        let layers = upper.into_iter().chain(lowers).collect();
        Listing { layers, has_upper, next: 0, position: 0, names: Cache::default(), forgotten }
    }

    /// The directory knows all its names now.
    fn keep(&self, mut listing: Listing, cx: &Cx) -> Step<()> {
        let mut cache = self.cache.lock(cx);
        if cache.is_complete {
            return Ok(());
        }
        if cache.forgotten != listing.forgotten {
            return Err(Stop::Again);
        }
        let mut all = core::mem::take(&mut listing.names);
        (all.version, all.forgotten, all.is_complete) = (cache.version, cache.forgotten, true);
        let known = core::mem::replace(&mut *cache, all);
        // What is known of a name is as it is now.
        for (name, entry) in known.names.into_entries() {
            let _listed = cache.set(&name, entry)?;
        }
        Ok(())
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let names = core::mem::take(&mut self.names.names);
        if names.len() > 0 {
            free_in_pieces(names);
        }
    }
}

impl Listing {
    fn go_on(&mut self, me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<()> {
        let mut time_slice = TimeSlice::default();
        while let Some(layer) = self.layers.get(self.next) {
            let directory = layer.get(cx);
            let is_upper = self.has_upper && self.next == 0;
            let mut names = Vec::with_capacity(AT_ONCE);
            directory.ops.list(&directory, self.position, me, cx, &mut |entry| {
                let (number, kind, position) = (entry.number, entry.kind, entry.next);
                names.push(Name { name: entry.name.into(), number, kind, position });
                names.len() < AT_ONCE
            })?;
            if names.is_empty() {
                (self.next, self.position) = (self.next + 1, 0);
                continue;
            }
            for name in names {
                let whiteout = match name.kind {
                    FileKind::CharacterDevice => child(&directory, &name.name, me, cx)?.filter(|it| is_whiteout(it)),
                    _ => None,
                };
                let entry = match whiteout {
                    // Only that of the upper layer is ever replaced.
                    Some(whiteout) => Entry::Nothing(is_upper.then(|| share(&whiteout)).transpose()?),
                    None => Entry::Listed { number: name.number, kind: name.kind },
                };
                self.add(&name, entry)?;
                self.position = name.position;
            }
            if time_slice.is_over() {
                return Err(Stop::Pause(Interruption::KillOnly));
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &Name, entry: Entry) -> Result<()> {
        // A layer above has it, or says that there is nothing.
        if self.names.names.get(&name.name).is_none() {
            self.names.set(&name.name, entry)?;
        }
        Ok(())
    }
}
