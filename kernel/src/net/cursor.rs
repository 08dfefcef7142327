//! [`Cursor`]: how far tables of sockets were gone through, by those who list them.
//!
//! A table is locked for one socket at a time, and found again by the key of the last one: whoever lists sockets leaves off behind each of them as it likes, and needs memory for none. A socket that is there all the time is
//! listed once; one that comes, goes or changes its key meanwhile may be left out.

/// How far they were gone through: all before a table, and of that one what comes up to a key.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<K> {
    table: usize,
    last: Option<K>,
}

impl<K> Default for Cursor<K> {
    fn default() -> Self {
        Cursor { table: 0, last: None }
    }
}

impl<K: Copy> Cursor<K> {
    /// The next item of so many tables. `behind` says what a table has behind a key, or first of all.
    pub fn next<T>(&mut self, tables: usize, behind: impl Fn(usize, Option<K>) -> Option<(K, T)>) -> Option<T> {
        while self.table < tables {
            if let Some((key, item)) = behind(self.table, self.last) {
                self.last = Some(key);
                return Some(item);
            }
            (self.table, self.last) = (self.table + 1, None);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn what_is_there_all_the_time_is_listed_once() {
        let mut tables = [Vec::from([1, 4, 7]), Vec::new(), Vec::from([2, 5])];
        let mut cursor = Cursor::default();
        let mut listed = Vec::new();
        loop {
            let behind = |table: usize, last: Option<u32>| {
                tables[table].iter().find(|&&key| last.is_none_or(|last| key > last)).map(|&key| (key, key))
            };
            let Some(key) = cursor.next(tables.len(), behind) else { break };
            listed.push(key);
            // The one that was told last goes, and others come.
            tables[0].retain(|one| *one != key);
            tables[0].insert(0, 0);
        }
        assert_eq!(listed, [1, 4, 7, 2, 5]);
        assert_eq!(cursor.next(3, |_, _| Some((0, 0))), None);
    }
}
