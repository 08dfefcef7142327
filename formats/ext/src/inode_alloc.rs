//! Taking inodes and giving them back, and in which group new ones go: directories apart from each other, files beside their directory.

use crate::blocks::Blocks;
use crate::bytes::{next_clear, set_bit};
use crate::error::{Error, Result};
use crate::group::{Descriptor, INODE_UNINIT};
use crate::inode::{Inode, Kind, ROOT, flag};
use crate::superblock::{counts, feature};
use crate::transaction::{Seal, Transaction};

/// What a new inode is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewInode {
    /// Type and permissions.
    pub mode: u16,
    /// The owner.
    pub uid: u32,
    /// The owner's group.
    pub gid: u32,
    /// Major and minor number, for a device.
    pub device: (u32, u32),
    /// A random number, which tells this life of the inode from others.
    pub generation: u32,
}

impl<B: Blocks> Transaction<'_, B> {
    /// Takes an inode for something in the directory `parent`. It has no names yet.
    pub(crate) fn take_inode(&mut self, parent: &Inode, new: &NewInode) -> Result<Inode> {
        let fs = self.fs();
        let sup = fs.superblock();
        let kind = Kind::of_mode(new.mode).ok_or(Error::Invalid)?;
        let group = self.choose_group(parent, kind)?.ok_or(Error::NoSpace)?;
        let number = self.mark_inode_used(group, kind)?;
        let mut inode = Inode::zeroed(number, sup.inode_size, self.extra_bytes());
        inode.set_mode(new.mode);
        inode.set_owner(new.uid, new.gid);
        inode.set_generation(new.generation);
        inode.set_atime(self.now());
        inode.set_mtime(self.now());
        inode.set_ctime(self.now());
        inode.set_crtime(self.now());
        inode.set_flags(parent.flags() & flag::INHERITED);
        match kind {
            Kind::File | Kind::Directory => self.start_mapping(&mut inode),
            Kind::CharDevice | Kind::BlockDevice => inode.set_device(new.device.0, new.device.1),
            _ => {}
        }
        Ok(inode)
    }

    /// Bytes of a new inode's fields after the first 128: as the superblock wants, else as many as have a meaning.
    fn extra_bytes(&self) -> u16 {
        let sup = self.fs().superblock();
        match sup.inode_size {
            128 => 0,
            _ if sup.extra_inode_bytes >= 28 && sup.extra_inode_bytes.is_multiple_of(4) => sup.extra_inode_bytes,
            _ => 32,
        }
    }

    fn choose_group(&self, parent: &Inode, kind: Kind) -> Result<Option<u32>> {
        let fs = self.fs();
        let groups = fs.groups();
        let home = (parent.number() - 1) / fs.superblock().inodes_per_group;
        if kind == Kind::Directory && parent.number() == ROOT {
            return self.group_for_top_directory(home);
        }
        // Where there is room for contents, then where there is none.
        for blocks_wanted in [1, 0] {
            for step in 0..groups {
                let group = ((u64::from(home) + u64::from(step)) % u64::from(groups)) as u32;
                let descriptor = fs.descriptor(self, group)?;
                if descriptor.free_inodes() > 0 && descriptor.free_blocks() >= blocks_wanted {
                    return Ok(Some(group));
                }
            }
        }
        Ok(None)
    }

    /// The group with the fewest directories of those that have as much room as the average.
    fn group_for_top_directory(&self, home: u32) -> Result<Option<u32>> {
        let fs = self.fs();
        let (mut inodes, mut blocks) = (0_u64, 0_u64);
        for group in 0..fs.groups() {
            let descriptor = fs.descriptor(self, group)?;
            inodes += u64::from(descriptor.free_inodes());
            blocks += u64::from(descriptor.free_blocks());
        }
        let average = (inodes / u64::from(fs.groups()), blocks / u64::from(fs.groups()));
        let mut best: Option<(u32, u32)> = None;
        let mut any = None;
        for step in 0..fs.groups() {
            let group = ((u64::from(home) + u64::from(step)) % u64::from(fs.groups())) as u32;
            let descriptor = fs.descriptor(self, group)?;
            if descriptor.free_inodes() == 0 {
                continue;
            }
            any = any.or(Some(group));
            let roomy =
                u64::from(descriptor.free_inodes()) >= average.0 && u64::from(descriptor.free_blocks()) >= average.1;
            if roomy && best.is_none_or(|(dirs, _)| descriptor.used_dirs() < dirs) {
                best = Some((descriptor.used_dirs(), group));
            }
        }
        Ok(best.map(|(_, group)| group).or(any))
    }

    /// Sees to it that a group's inode bitmap can be read.
    fn prepare_inode_bitmap(&mut self, group: u32) -> Result<Descriptor> {
        let fs = self.fs();
        let descriptor = fs.descriptor(self, group)?;
        if descriptor.flags() & INODE_UNINIT == 0 || !fs.has_group_checksums() {
            fs.check_inode_bitmap(self, &descriptor)?;
            return Ok(descriptor);
        }
        // Its blocks are going to be used, too.
        let mut descriptor = self.prepare_block_bitmap(group, descriptor)?;
        let bits = fs.block_size() * 8;
        let per_group = fs.superblock().inodes_per_group;
        let map = self.zeroed(descriptor.inode_bitmap(), Seal::None);
        (per_group..bits).for_each(|past| set_bit(map, past, true));
        descriptor.set_flags(descriptor.flags() & !INODE_UNINIT);
        descriptor.set_unused_inodes(per_group);
        self.put_descriptor(group, &descriptor)?;
        Ok(descriptor)
    }

    fn mark_inode_used(&mut self, group: u32, kind: Kind) -> Result<u32> {
        let fs = self.fs();
        let per_group = fs.superblock().inodes_per_group;
        let mut descriptor = self.prepare_inode_bitmap(group)?;
        let at = self.read(descriptor.inode_bitmap(), |map| next_clear(map, 0, per_group))?;
        let at = at.ok_or(Error::Corrupt("free inodes of a group"))?;
        let number = group * per_group + at + 1;
        if number < fs.superblock().first_inode {
            return Err(Error::Corrupt("a reserved inode is free"));
        }
        self.modify(descriptor.inode_bitmap(), Seal::None, |map| set_bit(map, at, true))?;
        self.bitmaps.entry(group).or_default().inodes = true;
        descriptor.set_free_inodes(descriptor.free_inodes().saturating_sub(1));
        if kind == Kind::Directory {
            descriptor.set_used_dirs((descriptor.used_dirs() + 1).min(per_group));
        }
        if fs.has_group_checksums() {
            descriptor.set_unused_inodes(descriptor.unused_inodes().min(per_group - at - 1));
        }
        self.put_descriptor(group, &descriptor)?;
        let counted = self.modify_superblock(|raw| {
            counts::set_free_inodes(raw, counts::free_inodes(raw).checked_sub(1)?);
            Some(())
        })?;
        counted.ok_or(Error::Corrupt("free inodes"))?;
        Ok(number)
    }

    /// Gives an inode back that has no blocks, no names and no attributes any more.
    pub(crate) fn free_inode(&mut self, inode: &mut Inode) -> Result<()> {
        let fs = self.fs();
        let per_group = fs.superblock().inodes_per_group;
        let (group, at) = ((inode.number() - 1) / per_group, (inode.number() - 1) % per_group);
        let is_dir = inode.is_dir();
        let deleted = self.now().seconds.clamp(1, u32::MAX.into()) as u32;
        inode.set_deleted(deleted);
        inode.set_size(0);
        self.put_inode(inode)?;
        let mut descriptor = self.prepare_inode_bitmap(group)?;
        let was_used = self.modify(descriptor.inode_bitmap(), Seal::None, |map| {
            let used = crate::bytes::bit(map, at);
            set_bit(map, at, false);
            used
        })?;
        if !was_used || descriptor.free_inodes() >= per_group {
            return Err(Error::Corrupt("inode bitmap"));
        }
        self.bitmaps.entry(group).or_default().inodes = true;
        descriptor.set_free_inodes(descriptor.free_inodes() + 1);
        if is_dir {
            descriptor.set_used_dirs(descriptor.used_dirs().saturating_sub(1));
        }
        self.put_descriptor(group, &descriptor)?;
        let most = fs.superblock().inodes_count;
        let counted = self.modify_superblock(|raw| {
            let free = counts::free_inodes(raw).checked_add(1).filter(|free| *free <= most)?;
            counts::set_free_inodes(raw, free);
            Some(())
        })?;
        counted.ok_or(Error::Corrupt("free inodes"))
    }

    /// Sets a feature's bit that a file in here has made necessary.
    pub(crate) fn need_feature(&mut self, ro_compat: u32, compat: u32) -> Result<()> {
        let sup = self.fs().superblock();
        if ro_compat & !sup.ro_compat != 0 {
            self.modify_superblock(|raw| counts::set_ro_feature(raw, ro_compat))?;
        }
        if compat & !sup.compat != 0 {
            self.modify_superblock(|raw| counts::set_compat_feature(raw, compat))?;
        }
        Ok(())
    }

    /// Changes a file's size, without looking at its blocks: it has grown, or bytes at its end are beyond what was cut.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn set_size(&mut self, inode: &mut Inode, size: u64) -> Result<()> {
        if size > self.fs().max_file_size(inode) {
            return Err(Error::TooLarge);
        }
        if size > i32::MAX as u64 {
            self.need_feature(feature::LARGE_FILE, 0)?;
        }
        inode.set_size(size);
        self.put_inode(inode)
    }
}
