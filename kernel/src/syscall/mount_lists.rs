//! What mounts there are, and what each is: listmount(2), statmount(2).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use frame::Cx;
use linux_raw_sys::general as abi;
use refs::TempRc;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use super::{Args, Call, Entry};
use crate::credentials::Capability;
use crate::current::Current;
use crate::error::{Errno, Result};
use crate::fs::{Inode, MOUNTS, Mount, MountFlags, Path};
use crate::step::Step;
use crate::user_memory::UserOut;

/// The calls of this file.
#[cfg_attr(false, ebb_lint::table)]
pub const CALLS: &[Entry] = &[
    Entry::partial(
        abi::__NR_statmount,
        "statmount",
        Call::Step(statmount),
        "options, the source, namespaces: what came after Linux 6.8",
    ),
    Entry::new(abi::__NR_listmount, "listmount", Call::Step(listmount)),
];

/// `struct mnt_id_req`, as in Linux 6.8.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct MountRequest {
    size: u32,
    spare: u32,
    id: u64,
    parameter: u64,
}

/// The root of the caller, as an id (LSMT_ROOT).
const ROOT: u64 = u64::MAX;
/// Ids are above this.
const LEAST_ID: u64 = 1 << 31;
/// So many ids are listed at most.
const MOST_IDS: usize = 1_000_000;

fn read_request(args: &Args, me: &Current, cx: &Cx) -> Step<MountRequest> {
    const KNOWN: usize = size_of::<MountRequest>();
    let memory = me.memory(cx)?;
    let size = memory.read(args.input::<u32>(0))? as usize;
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    if size < KNOWN {
        return Err(Errno::EINVAL.into());
    }
    let request = memory.read(args.input::<MountRequest>(0))?;
    let mut rest = alloc::vec![0_u8; size - KNOWN];
    memory.reader(args.input::<u8>(0).add(KNOWN).slice(size - KNOWN)).read(&mut rest)?;
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG.into());
    }
    if request.spare != 0 || request.id <= LEAST_ID {
        return Err(Errno::EINVAL.into());
    }
    Ok(request)
}

/// A mount with its place in the tree.
struct Mounts<'cx> {
    all: Vec<TempRc<'cx, Mount>>,
    root: Path<'cx>,
}

impl<'cx> Mounts<'cx> {
    fn of(me: &Current, cx: &'cx Cx) -> Result<Self> {
        Ok(Mounts { all: MOUNTS.of_namespace(cx), root: me.fs(cx)?.root(cx)? })
    }

    fn find(&self, id: u64) -> Result<&TempRc<'cx, Mount>> {
        self.all.iter().find(|mount| mount.unique_id() == id).ok_or(Errno::ENOENT)
    }

    /// The ids of those that are below a place. However deep they are in each other, each is looked at once.
    fn reachable(&self, top: &Path<'_>, cx: &'cx Cx) -> BTreeSet<u64> {
        let mut known: BTreeMap<u64, bool> = BTreeMap::new();
        for mount in &self.all {
            let (mut way, mut at) = (Vec::new(), whole(mount, cx));
            let is_below = loop {
                if at.mount.id == top.mount.id {
                    // Only of this one it matters where in it the way leads along.
                    break Inode::is_within(&at.inode, &top.inode, cx);
                }
                if let Some(known) = known.get(&at.mount.unique_id()) {
                    break *known;
                }
                way.push(at.mount.unique_id());
                let Some(point) = at.mount.point(cx) else { break false };
                at = point;
            };
            known.extend(way.into_iter().map(|id| (id, is_below)));
            if mount.id == top.mount.id {
                known.insert(mount.unique_id(), is_below);
            }
        }
        known.into_iter().filter(|(_, is_below)| *is_below).map(|(id, _)| id).collect()
    }

    /// Checks that the caller may know of a mount.
    fn check(&self, mount: &TempRc<'cx, Mount>, me: &Current, cx: &'cx Cx) -> Result<()> {
        let may_know = me.has(Capability::SysAdmin, cx) || whole(mount, cx).is_reachable(&self.root, cx);
        if may_know { Ok(()) } else { Err(Errno::EPERM) }
    }
}

/// Where a mount begins.
fn whole<'cx>(mount: &TempRc<'cx, Mount>, cx: &'cx Cx) -> Path<'cx> {
    Path { mount: mount.clone(), inode: mount.root.get(cx) }
}

fn listmount(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (count, flags) = (args.long(2), args.int(3));
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    if count > MOST_IDS {
        return Err(Errno::EOVERFLOW.into());
    }
    let request = read_request(args, me, cx)?;
    let last = request.parameter;
    if last != 0 && last <= LEAST_ID {
        return Err(Errno::EINVAL.into());
    }
    let mounts = Mounts::of(me, cx)?;
    let top = match request.id {
        ROOT => mounts.root.clone(),
        id => {
            let mount = mounts.find(id)?;
            mounts.check(mount, me, cx)?;
            whole(mount, cx)
        }
    };
    let reachable = mounts.reachable(&top, cx);
    let is_listed = |id: &u64| *id > last && *id != request.id && reachable.contains(id);
    let mut ids: Vec<u64> = mounts.all.iter().map(|mount| mount.unique_id()).filter(is_listed).collect();
    ids.sort_unstable();
    ids.truncate(count);
    me.memory(cx)?.write_slice(args.output::<u64>(1).slice(ids.len()), &ids)?;
    Ok(ids.len())
}

/// `struct statmount`, without the strings behind it.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct StatMount {
    size: u32,
    options: u32,
    mask: u64,
    device: [u32; 2],
    magic: u64,
    file_system_flags: u32,
    file_system_type: u32,
    id: u64,
    parent_id: u64,
    old_id: u32,
    old_parent_id: u32,
    attributes: u64,
    propagation: u64,
    peer_group: u64,
    master: u64,
    propagates_from: u64,
    root: u32,
    point: u32,
    unused: [u64; 50],
}

const _: () = assert!(size_of::<StatMount>() == 512);

/// What is asked for that is a string.
const STRINGS: u64 = (abi::STATMOUNT_MNT_ROOT | abi::STATMOUNT_MNT_POINT | abi::STATMOUNT_FS_TYPE) as u64;

fn statmount(cx: &Cx, me: &Current, args: &Args) -> Step<usize> {
    let (room, flags) = (args.long(2), args.int(3));
    if flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    let request = read_request(args, me, cx)?;
    let mask = request.parameter;
    if mask & STRINGS != 0 && room == size_of::<StatMount>() {
        return Err(Errno::EOVERFLOW.into());
    }
    let mounts = Mounts::of(me, cx)?;
    let mount = mounts.find(request.id)?;
    mounts.check(mount, me, cx)?;
    let (raw, strings) = describe(mount, mask, &mounts.root, cx)?;
    let bytes = [raw.as_bytes(), &strings].concat();
    if !strings.is_empty() && room < bytes.len() {
        return Err(Errno::EOVERFLOW.into());
    }
    let to: UserOut<u8> = args.output::<u8>(1);
    let len = bytes.len().min(room);
    me.memory(cx)?.write_slice(to.slice(len), bytes.get(..len).unwrap_or_default())?;
    Ok(0)
}

/// What is asked for of a mount, and its strings.
fn describe(mount: &TempRc<'_, Mount>, mask: u64, root: &Path<'_>, cx: &Cx) -> Step<(StatMount, Vec<u8>)> {
    let wants = |what: u32| mask & u64::from(what) != 0;
    let mut raw = StatMount::new_zeroed();
    let mut strings = Vec::new();
    let mut add = |text: &[u8]| {
        let at = strings.len() as u32;
        strings.extend_from_slice(text);
        strings.push(0);
        at
    };
    let file_system = mount.file_system.get(cx);
    if wants(abi::STATMOUNT_SB_BASIC) {
        raw.mask |= u64::from(abi::STATMOUNT_SB_BASIC);
        raw.device = [0, file_system.device];
        raw.magic = file_system.magic.into();
        raw.file_system_flags = if file_system.is_read_only() { MountFlags::READ_ONLY.bits() } else { 0 };
    }
    let propagation = mount.propagation(cx);
    if wants(abi::STATMOUNT_MNT_BASIC) {
        raw.mask |= u64::from(abi::STATMOUNT_MNT_BASIC);
        let parent = mount.point(cx).map_or_else(|| mount.clone(), |point| point.mount);
        (raw.id, raw.old_id) = (mount.unique_id(), mount.id);
        (raw.parent_id, raw.old_parent_id) = (parent.unique_id(), parent.id);
        raw.attributes = mount.flags().attributes().into();
        raw.propagation = propagation.types().into();
        raw.peer_group = propagation.group.map_or(0, |group| group.0.into());
        raw.master = propagation.master.map_or(0, |group| group.0.into());
    }
    if wants(abi::STATMOUNT_PROPAGATE_FROM) {
        raw.mask |= u64::from(abi::STATMOUNT_PROPAGATE_FROM);
        raw.propagates_from = propagation.master.map_or(0, |group| group.0.into());
    }
    let whole = whole(mount, cx);
    if wants(abi::STATMOUNT_MNT_ROOT) {
        raw.mask |= u64::from(abi::STATMOUNT_MNT_ROOT);
        raw.root = add(&Inode::name_in_file_system(&whole.inode, cx));
    }
    if wants(abi::STATMOUNT_MNT_POINT) {
        raw.mask |= u64::from(abi::STATMOUNT_MNT_POINT);
        raw.point = add(&if whole.is_reachable(root, cx) { whole.name(root, cx)? } else { Vec::new() });
    }
    if wants(abi::STATMOUNT_FS_TYPE) {
        raw.mask |= u64::from(abi::STATMOUNT_FS_TYPE);
        raw.file_system_type = add(file_system.name.as_bytes());
    }
    raw.size = (size_of::<StatMount>() + strings.len()) as u32;
    Ok((raw, strings))
}
