//! Changes of the file system: what each is in the words of the format, and what follows from it for [`Files`](super::files::Files).

use alloc::vec::Vec;

use exfat::{Content, Directory, Error, Node, Purpose, Tail, Transaction};
use refs::StrongRc;

use super::super::View;
use super::super::format::{Allocation, Change, Done, Problem, Said};
use super::files::{At, Effect, File, Known};
use super::{Exfat, Stands, Through, time};
use crate::error::Errno;
use crate::fs::{Creation, FileKind, Rename};

/// What comes of a change.
#[derive(Default)]
pub(super) struct Outcome {
    pub done: Done<File>,
    pub effects: Vec<Effect>,
}

impl Outcome {
    fn changed_directory(&mut self, exfat: &Exfat, number: u64, directory: Directory<'_>) {
        self.done.touched.push((number, exfat.metadata(&directory.node)));
        self.effects.push(Effect::Names(number, directory.change));
    }
}

impl Exfat {
    /// Runs a change of a directory.
    fn in_directory<'v, T>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        number: u64,
        view: &View<'v>,
        all: &mut Outcome,
        change: impl FnOnce(&mut Transaction<'_, Through<'_, 'v>>, &mut Directory<'_>) -> Result<T, Error>,
    ) -> Said<T> {
        let now = self.entry(number, view)?;
        let place = now.stands.of_directory()?;
        let known = now.known.get(view.cx());
        known.names.with(&self.turns, view, |index| {
            let mut directory = Directory::new(place, now.node, index);
            let value = change(tx, &mut directory)?;
            all.changed_directory(self, number, directory);
            Ok::<T, Problem>(value)
        })
    }

    /// Runs a change of a file's content.
    fn in_file<'v, T>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        number: u64,
        view: &View<'v>,
        all: &mut Outcome,
        change: impl FnOnce(&mut Transaction<'_, Through<'_, 'v>>, &mut Content<'_>) -> Result<T, Error>,
    ) -> Said<T> {
        let now = self.entry(number, view)?;
        let known = now.known.get(view.cx());
        known.chain.with(&self.turns, view, |index| {
            let mut content = Content { node: now.node, index, unfolded: now.unfolded };
            let value = change(tx, &mut content)?;
            let Content { node, unfolded, .. } = content;
            match now.stands {
                Stands::At(place) => tx.save(place, &node)?,
                Stands::Nowhere => all.effects.push(Effect::At(number, At::Here(node.clone()))),
                // It is no file.
                Stands::Root => return Err(Problem::Errno(Errno::EISDIR)),
            }
            all.effects.push(Effect::Unfolded(number, unfolded));
            all.done.touched.push((number, self.metadata(&node)));
            Ok::<T, Problem>(value)
        })
    }

    /// A file has lost its name.
    fn lose(&self, place: u64, node: Node, view: &View<'_>, all: &mut Outcome) {
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(place);
        all.effects.push(Effect::At(number, At::Here(node)));
    }

    /// Makes a change: what comes of it.
    pub(super) fn run<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        what: &Change<'_>,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        match *what {
            Change::Create(directory, name, what) => self.create(tx, directory, name, what, view, all)?,
            Change::CreateNameless(..) | Change::Punch(..) | Change::Attribute(..) => {
                return Err(Problem::Errno(Errno::EOPNOTSUPP));
            }
            Change::Link(..) => return Err(Problem::Errno(Errno::EPERM)),
            Change::Unlink(directory, name) => {
                let node = self.in_directory(tx, directory, view, all, |tx, directory| tx.unlink(directory, name))?;
                self.lose(node.number, node, view, all);
            }
            Change::RemoveDirectory(directory, name) => {
                let node = self.in_directory(tx, directory, view, all, |tx, directory| tx.unlink(directory, name))?;
                let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
                let known = self.entry_known(number, view)?;
                known.get(view.cx()).names.with(&self.turns, view, |index| tx.check_empty(&node, index))?;
                self.lose(node.number, node, view, all);
            }
            Change::Rename(from, to, how) => self.rename(tx, from, to, how, view, all)?,
            Change::Keep(number, ref metadata, _) => {
                let now = self.entry(number, view)?;
                if let Stands::At(place) = now.stands {
                    let mut node = now.node;
                    let is_read_only = !node.is_directory && metadata.mode & 0o222 == 0;
                    tx.describe(&mut node, is_read_only, time(metadata.accessed), time(metadata.modified));
                    tx.save(place, &node)?;
                }
            }
            Change::Allocate(number, ref range, what) => {
                let what = match what {
                    Allocation::Written | Allocation::Together => Purpose::Written,
                    Allocation::Ahead => Purpose::Ahead,
                    Allocation::AheadOfEnd => return Err(Problem::Errno(Errno::EOPNOTSUPP)),
                };
                let reached = self.in_file(tx, number, view, all, |tx, content| tx.allocate(content, range, what))?;
                // If it has come nowhere something was done that has to be done before.
                (all.done.reached, all.done.has_more) = (reached, reached <= range.start);
            }
            Change::Resize(number, size) => {
                let left = size.div_ceil(self.file_system.cluster_bytes().into()) as u32;
                let tail = self.in_file(tx, number, view, all, |tx, content| tx.shorten(content, size))?;
                all.done.has_more = tail.is_some();
                all.effects.push(Effect::Cut(number, left, tail));
            }
            Change::Cut(number) => {
                let tail = self.last_tail(number, view);
                if let Some(tail) = tail {
                    let rest = tx.free_tail(tail)?;
                    all.effects.push(Effect::Rest(number, rest));
                    all.done.has_more = rest.is_some() || self.has_tails(number, 2, view);
                }
            }
            Change::Delete(number) => {
                all.done.has_more = true;
                let node = self.entry(number, view)?.node;
                if let Some(tail) = self.last_tail(number, view) {
                    all.effects.push(Effect::Rest(number, tx.free_tail(tail)?));
                } else if let Some(tail) = Tail::of(&node, self.file_system.cluster_bytes()) {
                    all.effects.push(Effect::At(number, At::Here(node.emptied())));
                    all.effects.push(Effect::Cut(number, 0, tx.free_tail(tail)?));
                } else {
                    all.effects.push(Effect::Gone(number));
                    all.done.has_more = false;
                }
            }
            Change::Recover | Change::Begin(_) | Change::End => {}
        }
        Ok(())
    }

    fn create<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        directory: u64,
        name: &[u8],
        what: &Creation<'_>,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        let is_directory = match what.kind {
            FileKind::Regular => false,
            FileKind::Directory => true,
            _ => return Err(Problem::Errno(Errno::EPERM)),
        };
        let node = self
            .in_directory(tx, directory, view, all, |tx, directory| tx.create(directory, name, is_directory, false))?;
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
        all.done.touched.push((number, self.metadata(&node)));
        all.done.made = Some((number, self.open_at(number, view, node)));
        Ok(())
    }

    fn rename<'v>(
        &self,
        tx: &mut Transaction<'_, Through<'_, 'v>>,
        (from, old): (u64, &[u8]),
        (to, new): (u64, &[u8]),
        how: Rename,
        view: &View<'v>,
        all: &mut Outcome,
    ) -> Said<()> {
        if how == Rename::Exchange {
            return Err(Problem::Errno(Errno::EINVAL));
        }
        let target = self.entry(to, view)?;
        let place = target.stands.of_directory()?;
        let known = target.known.get(view.cx());
        let mut changed = None;
        let renamed = if from == to {
            self.in_directory(tx, from, view, all, |tx, directory| tx.rename(directory, old, None, new))?
        } else {
            known.names.with(&self.turns, view, |index| {
                self.in_directory(tx, from, view, all, |tx, directory| {
                    let mut target = Directory::new(place, target.node, index);
                    let renamed = tx.rename(directory, old, Some(&mut target), new)?;
                    changed = Some((target.change, target.node));
                    Ok(renamed)
                })
            })?
        };
        if let Some((change, node)) = changed {
            all.done.touched.push((to, self.metadata(&node)));
            all.effects.push(Effect::Names(to, change));
        }
        if let Some(node) = renamed.replaced {
            if how == Rename::NoReplace {
                return Err(Problem::Errno(Errno::EEXIST));
            }
            let number = self.files.get(view.cx()).0.lock(view.cx()).number(renamed.moved);
            match (self.entry(number, view)?.node.is_directory, node.is_directory) {
                (true, false) => return Err(Problem::Errno(Errno::ENOTDIR)),
                (false, true) => return Err(Problem::Errno(Errno::EISDIR)),
                (true, true) | (false, false) => {}
            }
            if node.is_directory {
                let number = self.files.get(view.cx()).0.lock(view.cx()).number(node.number);
                let known = self.entry_known(number, view)?;
                known.get(view.cx()).names.with(&self.turns, view, |index| tx.check_empty(&node, index))?;
            }
            self.lose(node.number, node, view, all);
        }
        let number = self.files.get(view.cx()).0.lock(view.cx()).number(renamed.moved);
        if renamed.number != renamed.moved {
            all.effects.push(Effect::At(number, At::Place(Some(renamed.number))));
        }
        Ok(())
    }

    fn entry_known(&self, number: u64, view: &View<'_>) -> Said<StrongRc<Known>> {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        Ok(table.entries.get(&number).ok_or(Problem::Errno(Errno::ESTALE))?.known.share())
    }

    /// What is to be given back next of a file: what was cut off last, and of one without a name at last all.
    fn last_tail(&self, number: u64, view: &View<'_>) -> Option<Tail> {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        table.entries.get(&number)?.tails.last().copied()
    }

    fn has_tails(&self, number: u64, count: usize, view: &View<'_>) -> bool {
        let files = self.files.get(view.cx());
        let table = files.0.lock(view.cx());
        table.entries.get(&number).is_some_and(|entry| entry.tails.len() >= count)
    }
}
