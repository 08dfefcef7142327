//! What the layers have under a name.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use frame::Cx;
use refs::{StrongRc, TempRc};

use super::node::{Below, Lower};
use super::options::Redirect;
use super::{Overlay, is_whiteout, share};
use crate::error::Errno;
use crate::fs::{FileKind, Inode, VfsCaller};
use crate::step::{Step, Stop};

/// What there is under a name.
#[derive(Default)]
pub struct Found {
    /// In the upper layer.
    pub upper: Option<StrongRc<Inode>>,
    /// In lower layers, the topmost first: several where they are directories, which are merged.
    pub lowers: Vec<Lower>,
    /// What the upper layer has there to say that there is nothing.
    pub whiteout: Option<StrongRc<Inode>>,
    /// Whether a lower layer has something there which is hidden, or would be shown if the upper layer had nothing.
    pub covers: bool,
}

/// What a directory of a layer has under a name.
pub fn child<'cx>(
    directory: &TempRc<'cx, Inode>,
    name: &[u8],
    me: Option<&dyn VfsCaller>,
    cx: &'cx Cx,
) -> Step<Option<TempRc<'cx, Inode>>> {
    match directory.ops.lookup(directory, name, me.ok_or(Errno::EIO)?, cx) {
        Ok(inode) => Ok(Some(inode)),
        Err(Stop::Error(Errno::ENOENT)) => Ok(None),
        Err(stop) => Err(stop),
    }
}

/// What a layer has at a path from its root; `None` also where the path leads through something that is no directory.
fn at_path<'cx>(
    root: TempRc<'cx, Inode>,
    path: &[u8],
    me: Option<&dyn VfsCaller>,
    cx: &'cx Cx,
) -> Step<Option<TempRc<'cx, Inode>>> {
    let mut at = root;
    for name in path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()) {
        if at.kind != FileKind::Directory {
            return Ok(None);
        }
        let Some(next) = child(&at, name, me, cx)? else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

impl Overlay {
    /// What is noted of a file in a layer.
    ///
    /// # Errors
    /// The layer's.
    pub fn note(&self, inode: &Inode, name: &[u8], cx: &Cx) -> Step<Option<Vec<u8>>> {
        Ok(inode.attributes(cx)?.as_ref().and_then(|all| all.get(name)).cloned())
    }

    /// Whether a directory of a layer shows nothing of the layers below.
    ///
    /// # Errors
    /// The layer's.
    pub fn is_opaque(&self, inode: &Inode, cx: &Cx) -> Step<bool> {
        Ok(self.note(inode, self.notes.opaque, cx)?.is_some_and(|value| value == b"y"))
    }
}

/// Goes down through the lower layers, looking for a name.
struct Descent<'a> {
    overlay: &'a Overlay,
    parent: &'a Below,
    /// A name in the parent, or, with a slash in front, a path from the root.
    query: Cow<'a, [u8]>,
    /// The layer from which on is looked.
    next: u16,
}

impl<'a> Descent<'a> {
    /// The next directory in which the name may be; `None` at the end.
    fn next<'cx>(&mut self, me: Option<&dyn VfsCaller>, cx: &'cx Cx) -> Step<Option<(u16, TempRc<'cx, Inode>)>> {
        loop {
            let (layer, found) = if self.query.first() == Some(&b'/') {
                let Some(layer) = self.overlay.layers.get(usize::from(self.next)) else { return Ok(None) };
                (self.next, at_path(layer.root.get(cx), &self.query, me, cx)?)
            } else {
                let lowers = &self.parent.lowers;
                let Some(lower) = lowers.get(lowers.partition_point(|lower| lower.layer < self.next)) else {
                    return Ok(None);
                };
                (lower.layer, child(&lower.inode.get(cx), &self.query, me, cx)?)
            };
            self.next = layer + 1;
            if let Some(found) = found {
                return Ok(Some((layer, found)));
            }
        }
    }

    /// A directory was found; whether the layers below may have more of it.
    ///
    /// # Errors
    /// EPERM: it was renamed, and that is not followed.
    fn goes_on_below(&mut self, directory: &Inode, cx: &Cx) -> Step<bool> {
        if self.overlay.is_opaque(directory, cx)? {
            return Ok(false);
        }
        if let Some(to) = self.overlay.note(directory, self.overlay.notes.redirect, cx)? {
            if self.overlay.options.redirect == Redirect::NoFollow {
                return Err(Errno::EPERM.into());
            }
            self.query = Cow::Owned(to);
        }
        Ok(true)
    }
}

/// What the layers of the directory `parent` have under a name.
///
/// # Errors
/// Those of the layers; EPERM: see [`Redirect::NoFollow`].
pub fn look_up(overlay: &Overlay, parent: &Below, name: &[u8], me: Option<&dyn VfsCaller>, cx: &Cx) -> Step<Found> {
    let mut found = Found::default();
    let mut descent = Descent { overlay, parent, query: Cow::Borrowed(name), next: 0 };
    let mut is_hidden = false;
    if let Some(directory) = parent.upper(cx)
        && let Some(inode) = child(&directory, name, me, cx)?
    {
        if is_whiteout(&inode) {
            return Ok(Found { whiteout: Some(share(&inode)?), covers: true, ..Found::default() });
        }
        is_hidden = inode.kind != FileKind::Directory || !descent.goes_on_below(&inode, cx)?;
        found.upper = Some(share(&inode)?);
    }
    if is_hidden {
        descent.query = Cow::Borrowed(name);
        found.covers = descent.next(me, cx)?.is_some_and(|(_, inode)| !is_whiteout(&inode));
        return Ok(found);
    }
    while let Some((layer, inode)) = descent.next(me, cx)? {
        let is_first = found.upper.is_none() && found.lowers.is_empty();
        if is_whiteout(&inode) {
            break;
        }
        found.covers = true;
        let is_directory = inode.kind == FileKind::Directory;
        if is_first || is_directory {
            found.lowers.push(Lower { layer, inode: share(&inode)? });
        }
        if !is_directory || !descent.goes_on_below(&inode, cx)? {
            break;
        }
    }
    if descent.query.as_ref() != name {
        // What is merged has another name there: is there something with this one?
        let mut own = Descent { overlay, parent, query: Cow::Borrowed(name), next: 0 };
        found.covers = own.next(me, cx)?.is_some_and(|(_, inode)| !is_whiteout(&inode));
    }
    Ok(found)
}
