//! What changes [`Credentials`]: the calls that set ids, capset(2), prctl(2), and execve(2).

use alloc::vec::Vec;

use super::{Capability, CapabilitySet, Credentials, FileCapabilities, Gid, Ids, SecureBits, Uid};
use crate::error::{Errno, Result};

/// "Leave it as it is", in the calls that change several ids.
const UNCHANGED: u32 = u32::MAX;

/// What PR_CAP_AMBIENT does about one capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambient {
    /// Adds it.
    Raise,
    /// Takes it away.
    Lower,
}

/// What execve(2) knows about the file of a program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Execution {
    /// The owner, if it is set-user-ID.
    pub user: Option<Uid>,
    /// The group, if it is set-group-ID.
    pub group: Option<Gid>,
    /// The file's own capabilities.
    pub file: Option<FileCapabilities>,
    /// Whether another process shares the caller's root and working directory: the program gains nothing then.
    pub shares_root: bool,
    /// PR_SET_NO_NEW_PRIVS: the program gains nothing.
    pub no_new_privileges: bool,
    /// Whether somebody traces the caller who may not trace whom he likes: the program gains nothing then.
    pub is_traced: bool,
}

/// Which of a thread's ids an id may become without a privilege.
fn check<T: Copy + PartialEq>(privileged: bool, ids: &[Option<T>], known: &[T]) -> Result<()> {
    let foreign = ids.iter().flatten().any(|id| !known.contains(id));
    if foreign && !privileged { Err(Errno::EPERM) } else { Ok(()) }
}

impl<T: Copy + PartialEq> Ids<T> {
    /// setresuid(2), setresgid(2).
    fn set_res(&mut self, privileged: bool, ids: [Option<T>; 3]) -> Result<()> {
        check(privileged, &ids, &[self.real, self.effective, self.saved])?;
        let [real, effective, saved] = ids;
        self.real = real.unwrap_or(self.real);
        self.effective = effective.unwrap_or(self.effective);
        self.saved = saved.unwrap_or(self.saved);
        self.file_system = self.effective;
        Ok(())
    }

    /// setreuid(2), setregid(2).
    fn set_re(&mut self, privileged: bool, real: Option<T>, effective: Option<T>) -> Result<()> {
        check(privileged, &[real], &[self.real, self.effective])?;
        check(privileged, &[effective], &[self.real, self.effective, self.saved])?;
        let saves = real.is_some() || effective.is_some_and(|id| id != self.real);
        self.real = real.unwrap_or(self.real);
        self.effective = effective.unwrap_or(self.effective);
        self.saved = if saves { self.effective } else { self.saved };
        self.file_system = self.effective;
        Ok(())
    }

    /// setuid(2), setgid(2).
    fn set(&mut self, privileged: bool, id: Option<T>) -> Result<()> {
        let id = id.ok_or(Errno::EINVAL)?;
        check(privileged, &[Some(id)], &[self.real, self.saved])?;
        if privileged {
            *self = Ids::all(id);
        }
        (self.effective, self.file_system) = (id, id);
        Ok(())
    }

    /// setfsuid(2), setfsgid(2): the old one; nothing changes where it is not allowed.
    fn set_file_system(&mut self, privileged: bool, id: Option<T>) -> T {
        let old = self.file_system;
        let known = [self.real, self.effective, self.saved, self.file_system];
        if let Some(id) = id.filter(|id| privileged || known.contains(id)) {
            self.file_system = id;
        }
        old
    }
}

fn user(number: u32) -> Option<Uid> {
    (number != UNCHANGED).then_some(Uid(number))
}

fn group(number: u32) -> Option<Gid> {
    (number != UNCHANGED).then_some(Gid(number))
}

impl Credentials {
    /// setresuid(2): real, effective, saved; -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_res_uid(&mut self, ids: [u32; 3]) -> Result<()> {
        let privileged = self.has(Capability::Setuid);
        self.change_users(|users| users.set_res(privileged, ids.map(user)))
    }

    /// setreuid(2): real, effective; -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_re_uid(&mut self, [real, effective]: [u32; 2]) -> Result<()> {
        let privileged = self.has(Capability::Setuid);
        self.change_users(|users| users.set_re(privileged, user(real), user(effective)))
    }

    /// setuid(2).
    ///
    /// # Errors
    /// EPERM; EINVAL for -1.
    pub fn set_uid(&mut self, id: u32) -> Result<()> {
        let privileged = self.has(Capability::Setuid);
        self.change_users(|users| users.set(privileged, user(id)))
    }

    /// setresgid(2): real, effective, saved; -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_res_gid(&mut self, ids: [u32; 3]) -> Result<()> {
        let privileged = self.has(Capability::Setgid);
        self.groups.set_res(privileged, ids.map(group))
    }

    /// setregid(2): real, effective; -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_re_gid(&mut self, [real, effective]: [u32; 2]) -> Result<()> {
        let privileged = self.has(Capability::Setgid);
        self.groups.set_re(privileged, group(real), group(effective))
    }

    /// setgid(2).
    ///
    /// # Errors
    /// EPERM; EINVAL for -1.
    pub fn set_gid(&mut self, id: u32) -> Result<()> {
        let privileged = self.has(Capability::Setgid);
        self.groups.set(privileged, group(id))
    }

    /// setfsuid(2): the old one; nothing changes where it is not allowed. The capabilities about files follow.
    pub fn set_fs_uid(&mut self, id: u32) -> Uid {
        let privileged = self.has(Capability::Setuid);
        let old = self.users.set_file_system(privileged, user(id));
        if !self.secure_bits.contains(SecureBits::NO_SETUID_FIXUP) {
            let sets = &mut self.capabilities;
            match (old == Uid::ROOT, self.users.file_system == Uid::ROOT) {
                (true, false) => sets.effective = sets.effective.difference(CapabilitySet::FILE_SYSTEM),
                (false, true) => {
                    let regained = sets.permitted.intersection(CapabilitySet::FILE_SYSTEM);
                    sets.effective = sets.effective.union(regained);
                }
                _ => {}
            }
        }
        old
    }

    /// setfsgid(2): the old one; nothing changes where it is not allowed.
    pub fn set_fs_gid(&mut self, id: u32) -> Gid {
        let privileged = self.has(Capability::Setgid);
        self.groups.set_file_system(privileged, group(id))
    }

    /// setgroups(2).
    ///
    /// # Errors
    /// EPERM.
    pub fn set_supplementary(&mut self, groups: Vec<u32>) -> Result<()> {
        self.require(Capability::Setgid)?;
        self.supplementary = groups;
        Ok(())
    }

    /// Changes user ids, and what capabilities(7), "Effect of user ID changes on capabilities", says follows from it.
    fn change_users(&mut self, change: impl FnOnce(&mut Ids<Uid>) -> Result<()>) -> Result<()> {
        let old = self.users;
        change(&mut self.users)?;
        if self.secure_bits.contains(SecureBits::NO_SETUID_FIXUP) {
            return Ok(());
        }
        let sets = &mut self.capabilities;
        if old.have(Uid::ROOT) && !self.users.have(Uid::ROOT) {
            if !self.secure_bits.contains(SecureBits::KEEP_CAPS) {
                (sets.permitted, sets.effective) = (CapabilitySet::EMPTY, CapabilitySet::EMPTY);
            }
            sets.ambient = CapabilitySet::EMPTY;
        }
        match (old.effective == Uid::ROOT, self.users.effective == Uid::ROOT) {
            (true, false) => sets.effective = CapabilitySet::EMPTY,
            (false, true) => sets.effective = sets.permitted,
            _ => {}
        }
        Ok(())
    }

    /// The credentials that access(2) asks for: those of a program that its real user would run.
    pub fn as_real(&self) -> (Uid, Gid, CapabilitySet) {
        let sets = &self.capabilities;
        let effective = if self.secure_bits.contains(SecureBits::NO_SETUID_FIXUP) {
            sets.effective
        } else if self.users.real == Uid::ROOT {
            sets.permitted
        } else {
            CapabilitySet::EMPTY
        };
        (self.users.real, self.groups.real, effective)
    }

    /// capset(2).
    ///
    /// # Errors
    /// EPERM.
    pub fn set_capabilities(
        &mut self,
        effective: CapabilitySet,
        permitted: CapabilitySet,
        inheritable: CapabilitySet,
    ) -> Result<()> {
        let old = self.capabilities;
        let is_own = inheritable.is_subset(old.inheritable.union(old.permitted));
        let is_bounded = inheritable.is_subset(old.inheritable.union(old.bounding));
        if !(is_own || self.has(Capability::Setpcap))
            || !is_bounded
            || !permitted.is_subset(old.permitted)
            || !effective.is_subset(permitted)
        {
            return Err(Errno::EPERM);
        }
        let ambient = old.ambient.intersection(permitted).intersection(inheritable);
        self.capabilities = super::Capabilities { effective, permitted, inheritable, ambient, ..old };
        Ok(())
    }

    /// PR_CAPBSET_DROP.
    ///
    /// # Errors
    /// EPERM.
    pub fn drop_bounding(&mut self, capability: Capability) {
        self.capabilities.bounding = self.capabilities.bounding.without(capability);
    }

    /// PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_LOWER.
    ///
    /// # Errors
    /// EPERM for what is not permitted and inheritable, or if securebits forbid it.
    pub fn set_ambient(&mut self, capability: Capability, how: Ambient) -> Result<()> {
        let sets = &mut self.capabilities;
        match how {
            Ambient::Lower => sets.ambient = sets.ambient.without(capability),
            Ambient::Raise => {
                if !sets.permitted.intersection(sets.inheritable).contains(capability)
                    || self.secure_bits.contains(SecureBits::NO_CAP_AMBIENT_RAISE)
                {
                    return Err(Errno::EPERM);
                }
                sets.ambient = sets.ambient.with(capability);
            }
        }
        Ok(())
    }

    /// PR_CAP_AMBIENT_CLEAR_ALL.
    pub fn clear_ambient(&mut self) {
        self.capabilities.ambient = CapabilitySet::EMPTY;
    }

    /// PR_SET_SECUREBITS.
    ///
    /// # Errors
    /// EPERM for what is locked, for unlocking, for unknown bits, and without CAP_SETPCAP.
    pub fn set_secure_bits(&mut self, bits: usize) -> Result<()> {
        let known = (SecureBits::LOCKS | SecureBits::SWITCHES).bits();
        let bits = u32::try_from(bits).ok().filter(|bits| bits & !known == 0).ok_or(Errno::EPERM)?;
        let old = self.secure_bits.bits();
        let locks = old & SecureBits::LOCKS.bits();
        let changes_locked = (locks >> 1) & (old ^ bits) != 0;
        let unlocks = locks & !bits != 0;
        if changes_locked || unlocks {
            return Err(Errno::EPERM);
        }
        self.require(Capability::Setpcap)?;
        self.secure_bits = SecureBits::from_bits_retain(bits);
        Ok(())
    }

    /// PR_SET_KEEPCAPS.
    ///
    /// # Errors
    /// EPERM if it is locked.
    pub fn set_keep_capabilities(&mut self, keep: bool) -> Result<()> {
        if self.secure_bits.contains(SecureBits::KEEP_CAPS_LOCKED) {
            return Err(Errno::EPERM);
        }
        self.secure_bits.set(SecureBits::KEEP_CAPS, keep);
        Ok(())
    }

    /// What becomes of them when a program is executed: see capabilities(7), "Transformation of capabilities during execve()". Whether the
    /// program gained rights (AT_SECURE).
    ///
    /// # Errors
    /// EPERM for a program that must have capabilities in effect which it cannot get.
    pub fn execute(&mut self, program: &Execution) -> Result<bool> {
        let old = self.capabilities;
        let sets = &mut self.capabilities;
        let mut effective_user = program.user.unwrap_or(self.users.effective);
        let mut effective_group = program.group.unwrap_or(self.groups.effective);
        sets.permitted = CapabilitySet::EMPTY;
        let mut is_effective = false;
        if let Some(file) = program.file {
            sets.permitted =
                file.permitted.intersection(old.bounding).union(file.inheritable.intersection(old.inheritable));
            is_effective = file.effective;
            if is_effective && !file.permitted.is_subset(sets.permitted) {
                return Err(Errno::EPERM);
            }
        }
        // A set-user-ID program of user 0 that has capabilities of its own gets those, unless user 0 itself runs it.
        let by_file = program.file.is_some() && effective_user == Uid::ROOT && self.users.real != Uid::ROOT;
        if !self.secure_bits.contains(SecureBits::NO_ROOT) && !by_file {
            if self.users.real == Uid::ROOT || effective_user == Uid::ROOT {
                sets.permitted = old.bounding.union(old.inheritable);
            }
            is_effective |= effective_user == Uid::ROOT;
        }
        let sets_ids = effective_user != self.users.real || effective_group != self.groups.real;
        let gains = !sets.permitted.is_subset(old.permitted);
        if (sets_ids || gains) && (program.no_new_privileges || program.shares_root || program.is_traced) {
            if program.no_new_privileges || !old.effective.contains(Capability::Setuid) {
                (effective_user, effective_group) = (self.users.real, self.groups.real);
            }
            sets.permitted = sets.permitted.intersection(old.permitted);
        }
        self.users = Ids { real: self.users.real, ..Ids::all(effective_user) };
        self.groups = Ids { real: self.groups.real, ..Ids::all(effective_group) };
        if program.file.is_some() || sets_ids {
            sets.ambient = CapabilitySet::EMPTY;
        }
        sets.permitted = sets.permitted.union(sets.ambient);
        sets.effective = if is_effective { sets.permitted } else { sets.ambient };
        self.secure_bits.remove(SecureBits::KEEP_CAPS);
        let grew = !sets.permitted.is_subset(sets.ambient);
        Ok(sets_ids || (self.users.real != Uid::ROOT && (is_effective || grew)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_up_root_gives_up_its_capabilities() {
        let mut who = Credentials::default();
        who.set_uid(1000).unwrap();
        assert_eq!(*who.users(), Ids::all(Uid(1000)));
        assert!(who.capabilities().effective.is_empty() && who.capabilities().permitted.is_empty());
        assert_eq!(who.set_uid(0), Err(Errno::EPERM));
    }

    #[test]
    fn a_saved_user_id_leads_back() {
        let mut who = Credentials::default();
        who.set_res_uid([1000, 1000, 0]).unwrap();
        assert!(!who.has(Capability::Kill));
        who.set_uid(0).unwrap();
        assert_eq!((who.users().real, who.users().effective), (Uid(1000), Uid::ROOT));
        assert!(who.has(Capability::Kill));
    }

    #[test]
    fn the_file_system_user_takes_the_capabilities_about_files_along() {
        let mut who = Credentials::default();
        who.set_fs_uid(1000);
        assert_eq!(who.capabilities().effective, CapabilitySet::ALL.difference(CapabilitySet::FILE_SYSTEM));
        who.set_fs_uid(0);
        assert_eq!(who.capabilities().effective, CapabilitySet::ALL);
    }

    #[test]
    fn a_program_gets_back_what_root_gave_up_unless_it_must_not_gain() {
        let mut who = Credentials::default();
        who.set_capabilities(CapabilitySet::EMPTY, CapabilitySet::EMPTY, CapabilitySet::EMPTY).unwrap();
        let mut kept = who.clone();
        assert_eq!(who.execute(&Execution::default()), Ok(false));
        assert_eq!(who.capabilities().effective, CapabilitySet::ALL);
        let program = Execution { no_new_privileges: true, ..Execution::default() };
        kept.execute(&program).unwrap();
        assert!(kept.capabilities().permitted.is_empty());
    }

    #[test]
    fn an_ambient_capability_survives_the_loss_of_root_only_until_it_is_lost() {
        let mut who = Credentials::default();
        let one = CapabilitySet::EMPTY.with(Capability::Chown);
        who.set_capabilities(CapabilitySet::ALL, CapabilitySet::ALL, one).unwrap();
        who.set_ambient(Capability::Chown, Ambient::Raise).unwrap();
        assert_eq!(who.set_ambient(Capability::Kill, Ambient::Raise), Err(Errno::EPERM));
        let mut lost = who.clone();
        lost.set_uid(1000).unwrap();
        assert!(lost.capabilities().ambient.is_empty());
        who.set_secure_bits(SecureBits::NO_SETUID_FIXUP.bits() as usize).unwrap();
        who.set_uid(1000).unwrap();
        who.execute(&Execution::default()).unwrap();
        assert_eq!((who.capabilities().permitted, who.capabilities().effective), (one, one));
    }

    #[test]
    fn locked_secure_bits_stay() {
        let mut who = Credentials::default();
        who.set_secure_bits(0b11).unwrap();
        assert_eq!(who.set_secure_bits(0b10), Err(Errno::EPERM));
        assert_eq!(who.set_secure_bits(0b01), Err(Errno::EPERM));
        assert_eq!(who.set_secure_bits(1 << 8), Err(Errno::EPERM));
        assert_eq!(who.set_secure_bits(0b111), Ok(()));
    }
}
