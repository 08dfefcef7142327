//! [`entries`]: the names of a directory, as the data of a reply to [`Request::List`](crate::Request::List) bring them.

use crate::{Error, Qid, Reply, is_name};

/// A name of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The file.
    pub qid: Qid,
    /// The server's position behind this entry.
    pub next: u64,
    /// What it is, as `d_type` says; 0: that is not said.
    pub kind: u8,
    /// The name.
    pub name: &'a [u8],
}

/// Tells `each` the names in data, without `.` and `..`; the position behind the last entry, `None` if there is none.
///
/// # Errors
/// `Broken`: an entry ends behind the data, or has a name that cannot be.
pub fn entries<'a>(data: &'a [u8], mut each: impl FnMut(Entry<'a>)) -> Result<Option<u64>, Error> {
    let mut rest = Reply::of(data);
    let mut position = None;
    while !rest.left().is_empty() {
        let qid = rest.qid()?;
        let (next, kind, name) = (rest.long()?, rest.byte()?, rest.text()?);
        position = Some(next);
        if is_name(name) {
            each(Entry { qid, next, kind, name });
        } else if !matches!(name, b"." | b"..") {
            return Err(Error::Broken("a name that cannot be"));
        }
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn entry(number: u64, name: &[u8]) -> Vec<u8> {
        let head = [&[0_u8, 0, 0, 0, 0][..], &number.to_le_bytes(), &(number + 1).to_le_bytes(), &[8]].concat();
        [&head[..], &(name.len() as u16).to_le_bytes(), name].concat()
    }

    #[test]
    fn all_names_but_the_two_of_each_directory_are_told() {
        let data = [entry(1, b"."), entry(2, b".."), entry(3, "ä\nb".as_bytes()), entry(4, &[b'x'; 255])].concat();
        let mut found = Vec::new();
        assert_eq!(entries(&data, |entry| found.push((entry.qid.path, entry.name.len(), entry.kind))), Ok(Some(5)));
        assert_eq!(found, [(3, 4, 8), (4, 255, 8)]);
        assert_eq!(entries(&[], |_| ()), Ok(None));
    }

    #[test]
    fn damaged_entries_are_refused() {
        let whole = entry(3, b"name");
        for len in 1..whole.len() {
            assert!(entries(&whole[..len], |_| ()).is_err(), "{len}");
        }
        for name in [&b""[..], b"a/b", b"a\0", &[b'x'; 256]] {
            assert!(entries(&entry(3, name), |_| ()).is_err(), "{name:?}");
        }
    }
}
