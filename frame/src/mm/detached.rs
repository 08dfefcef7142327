//! [`DetachedPages`]: pages and tables of an address space that has ended, given back piece by piece.
//!
//! The tables below the root are moved to a root of their own that no core ever loads, and all cores forget the way to them. From then on nobody uses what
//! hangs there: it can wait for as long as its frames are not needed, and giving some of them back asks no other core and takes no lock.
//!
//! Owner: whoever detached it. Its destruction takes as long as it has pages; [`DetachedPages::give_back`] does it in pieces of one table.

use refs::Cx;

use super::metadata::FrameNumber;
use super::table::{ENTRIES, GROUP, LEAF_SPAN, ROOT, Table};
use super::tlb::{self, Unlinked, Unused};
use super::walk::{self, Gone};
use super::{USER_END, VmSpace};

/// Pages that no core uses, with the tables that lead to them.
pub struct DetachedPages {
    /// The table that the address space's entries moved to. It is no address space's, and does not map the kernel.
    root: Table,
    /// The address space they were of: only a name by now.
    space: FrameNumber,
    unused: Unused,
    /// Below this nothing is left.
    at: usize,
}

impl VmSpace {
    /// Takes all pages and tables out; in a time that does not depend on how many they are. `None` if there is no memory for a table: then nothing has changed.
    pub fn detach(&self, cx: &Cx) -> Option<DetachedPages> {
        let to = Table::new()?;
        let from = self.lock(cx);
        // SAFETY: the lock is held, and the new table is this function's alone. What an entry leads to moves with it.
        unsafe {
            let mut left = core::mem::take(&mut from.state().occupied);
            while left != 0 {
                let group = left.trailing_zeros() as usize * GROUP;
                left &= left - 1;
                for index in group..(group + GROUP).min(ENTRIES / 2) {
                    let entry = from.clear(index);
                    if !entry.is_empty() {
                        to.fill(index, entry);
                    }
                }
            }
        }
        self.forget_mapped();
        let unused = tlb::flush_detached(self.number);
        Some(DetachedPages { root: to, space: self.number, unused, at: 0 })
    }
}

impl DetachedPages {
    /// Gives back the pages of the next table, and tables that become empty: how many pages those were. `None` once there are none.
    pub fn give_back(&mut self) -> Option<usize> {
        // SAFETY: the tables are this value's alone, and no core uses them.
        unsafe {
            let start = walk::first_leaf(self.root, ROOT, self.at, USER_END)?;
            let end = ((start & !(LEAF_SPAN - 1)) + LEAF_SPAN).min(USER_END);
            self.at = end;
            let mut gone = Gone::at_end(self.space, self.unused);
            let pages = walk::clear(self.root, ROOT, start, end, &mut gone);
            if end == USER_END {
                // There is no address behind it to go on from.
                self.at = USER_END - 1;
            }
            Some(pages)
        }
    }
}

impl Drop for DetachedPages {
    fn drop(&mut self) {
        while self.give_back().is_some() {}
        // SAFETY: it has no entries any more, and nobody else knows of it.
        unsafe { Table::give_back(Unlinked::new(self.root.0).forgotten(self.unused)) };
    }
}
