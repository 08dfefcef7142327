//! [`Removals`]: which files are losing their last names just now.
//!
//! A server gives the number of a file that has lost its last name to the next one that it makes, at once. A task that looked at the file before and enters it afterwards would take the new one for it. So
//! who has a name removed notes the file's number before the server is told and when it has answered, and who has looked something up looks again if its number was noted meanwhile.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use frame::Cx;
use refs::SpinLock;

/// So many that are over are remembered. Where there were more meanwhile, any file counts as one of them.
const REMEMBERED: usize = 1024;

/// The removals of a volume.
#[derive(Default)]
pub struct Removals(SpinLock<Table>);

#[derive(Default)]
struct Table {
    under_way: Vec<u64>,
    /// The numbers of the last, the newest at the end.
    over: VecDeque<u64>,
    /// How many are over.
    count: u64,
}

impl Table {
    fn note_over(&mut self, number: u64) {
        if self.over.len() == REMEMBERED {
            self.over.pop_front();
        }
        self.over.push_back(number);
        self.count += 1;
    }
}

/// A file is about to lose a name, and its number is noted: until [`Removals::end`] takes it.
#[must_use = "until it is ended everybody who looks for the file looks again"]
pub struct Removal(u64);

impl Removals {
    /// The file of that number is about to lose a name, which may be its last.
    pub fn begin(&self, number: u64, cx: &Cx) -> Removal {
        self.0.lock(cx).under_way.push(number);
        Removal(number)
    }

    /// No more: it has kept it, or `was_last`.
    pub fn end(&self, Removal(number): Removal, was_last: bool, cx: &Cx) {
        let mut table = self.0.lock(cx);
        if let Some(index) = table.under_way.iter().position(|one| *one == number) {
            table.under_way.swap_remove(index);
        }
        if was_last {
            table.note_over(number);
        }
    }

    /// The file of that number has lost its last name, which nobody expected.
    pub fn note_over(&self, number: u64, cx: &Cx) {
        self.0.lock(cx).note_over(number);
    }

    /// How many have lost their last name by now.
    pub fn count(&self, cx: &Cx) -> u64 {
        self.0.lock(cx).count
    }

    /// Whether the file of that number may have lost its last name since so many had.
    pub fn may_concern(&self, number: u64, count: u64, cx: &Cx) -> bool {
        let table = self.0.lock(cx);
        let since = usize::try_from(table.count - count).unwrap_or(usize::MAX);
        since > table.over.len()
            || table.under_way.contains(&number)
            || table.over.iter().rev().take(since).any(|one| *one == number)
    }
}
