//! [`Credentials`]: who a thread acts for. See credentials(7), capabilities(7).

use alloc::vec::Vec;

use linux_raw_sys::general as abi;

use crate::error::{Errno, Result};

/// All capabilities that there are.
pub const DEFAULT_CAPABILITIES: u64 = (1 << (abi::CAP_LAST_CAP + 1)) - 1;
/// "Leave it as it is", in the calls that change several ids.
const UNCHANGED: u32 = u32::MAX;

/// Who a thread acts for. Process 1 starts with [`Credentials::default`]: the super-user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Credentials {
    pub uid: u32,
    pub gid: u32,
    pub euid: u32,
    pub egid: u32,
    pub suid: u32,
    pub sgid: u32,
    pub fsuid: u32,
    pub fsgid: u32,
    pub groups: Vec<u32>,
    /// What it may do now, could allow itself, and leaves to programs that it executes.
    pub effective: u64,
    pub permitted: u64,
    pub inheritable: u64,
    pub bounding: u64,
    /// PR_SET_KEEPCAPS: permitted capabilities survive giving up user 0.
    pub keep_capabilities: bool,
}

impl Default for Credentials {
    fn default() -> Self {
        Credentials {
            uid: 0,
            gid: 0,
            euid: 0,
            egid: 0,
            suid: 0,
            sgid: 0,
            fsuid: 0,
            fsgid: 0,
            groups: Vec::new(),
            effective: DEFAULT_CAPABILITIES,
            permitted: DEFAULT_CAPABILITIES,
            inheritable: 0,
            bounding: DEFAULT_CAPABILITIES,
            keep_capabilities: false,
        }
    }
}

impl Credentials {
    /// Whether it has a capability (`CAP_*`).
    #[inline]
    pub fn has(&self, capability: u32) -> bool {
        self.effective >> capability & 1 != 0
    }

    /// setresuid(2); -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_res_uid(&mut self, uid: u32, euid: u32, suid: u32) -> Result<()> {
        let known = [self.uid, self.euid, self.suid];
        if !self.has(abi::CAP_SETUID) && [uid, euid, suid].iter().any(|id| *id != UNCHANGED && !known.contains(id)) {
            return Err(Errno::EPERM);
        }
        self.change_uids(keep(uid, self.uid), keep(euid, self.euid), keep(suid, self.suid));
        Ok(())
    }

    /// setreuid(2).
    ///
    /// # Errors
    /// EPERM.
    pub fn set_re_uid(&mut self, uid: u32, euid: u32) -> Result<()> {
        if !self.has(abi::CAP_SETUID) {
            let real = uid == UNCHANGED || [self.uid, self.euid].contains(&uid);
            let effective = euid == UNCHANGED || [self.uid, self.euid, self.suid].contains(&euid);
            if !real || !effective {
                return Err(Errno::EPERM);
            }
        }
        let new = keep(euid, self.euid);
        let saves = uid != UNCHANGED || (euid != UNCHANGED && euid != self.uid);
        self.change_uids(keep(uid, self.uid), new, if saves { new } else { self.suid });
        Ok(())
    }

    /// setuid(2).
    ///
    /// # Errors
    /// EPERM; EINVAL for -1.
    pub fn set_uid(&mut self, uid: u32) -> Result<()> {
        if uid == UNCHANGED {
            return Err(Errno::EINVAL);
        }
        if self.has(abi::CAP_SETUID) {
            self.change_uids(uid, uid, uid);
        } else if [self.uid, self.suid].contains(&uid) {
            self.change_uids(self.uid, uid, self.suid);
        } else {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// setresgid(2); -1 leaves one as it is.
    ///
    /// # Errors
    /// EPERM.
    pub fn set_res_gid(&mut self, gid: u32, egid: u32, sgid: u32) -> Result<()> {
        let known = [self.gid, self.egid, self.sgid];
        if !self.has(abi::CAP_SETGID) && [gid, egid, sgid].iter().any(|id| *id != UNCHANGED && !known.contains(id)) {
            return Err(Errno::EPERM);
        }
        self.change_gids(keep(gid, self.gid), keep(egid, self.egid), keep(sgid, self.sgid));
        Ok(())
    }

    /// setregid(2).
    ///
    /// # Errors
    /// EPERM.
    pub fn set_re_gid(&mut self, gid: u32, egid: u32) -> Result<()> {
        if !self.has(abi::CAP_SETGID) {
            let real = gid == UNCHANGED || [self.gid, self.egid].contains(&gid);
            let effective = egid == UNCHANGED || [self.gid, self.egid, self.sgid].contains(&egid);
            if !real || !effective {
                return Err(Errno::EPERM);
            }
        }
        let new = keep(egid, self.egid);
        let saves = gid != UNCHANGED || (egid != UNCHANGED && egid != self.gid);
        self.change_gids(keep(gid, self.gid), new, if saves { new } else { self.sgid });
        Ok(())
    }

    /// setgid(2).
    ///
    /// # Errors
    /// EPERM; EINVAL for -1.
    pub fn set_gid(&mut self, gid: u32) -> Result<()> {
        if gid == UNCHANGED {
            return Err(Errno::EINVAL);
        }
        if self.has(abi::CAP_SETGID) {
            self.change_gids(gid, gid, gid);
        } else if [self.gid, self.sgid].contains(&gid) {
            self.change_gids(self.gid, gid, self.sgid);
        } else {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    /// setfsuid(2): the old one; nothing changes where it is not allowed.
    pub fn set_fs_uid(&mut self, uid: u32) -> u32 {
        let old = self.fsuid;
        if self.has(abi::CAP_SETUID) || [self.uid, self.euid, self.suid, self.fsuid].contains(&uid) {
            self.fsuid = keep(uid, old);
        }
        old
    }

    /// setfsgid(2): the old one; nothing changes where it is not allowed.
    pub fn set_fs_gid(&mut self, gid: u32) -> u32 {
        let old = self.fsgid;
        if self.has(abi::CAP_SETGID) || [self.gid, self.egid, self.sgid, self.fsgid].contains(&gid) {
            self.fsgid = keep(gid, old);
        }
        old
    }

    /// What becomes of it when a program is executed that runs as user `euid` and group `egid`: see capabilities(7), "Transformation of
    /// capabilities during execve()", without file capabilities. Whether the program gained rights (AT_SECURE).
    pub fn execute(&mut self, euid: u32, egid: u32) -> bool {
        self.euid = euid;
        self.suid = euid;
        self.fsuid = euid;
        self.egid = egid;
        self.sgid = egid;
        self.fsgid = egid;
        let root = self.uid == 0 || self.euid == 0;
        self.permitted = if root { self.bounding } else { 0 };
        self.effective = if self.euid == 0 { self.permitted } else { 0 };
        self.keep_capabilities = false;
        self.uid != self.euid || self.gid != self.egid
    }

    fn change_uids(&mut self, uid: u32, euid: u32, suid: u32) {
        let had_root = [self.uid, self.euid, self.suid].contains(&0);
        let was_root = self.euid == 0;
        (self.uid, self.euid, self.suid, self.fsuid) = (uid, euid, suid, euid);
        if had_root && ![uid, euid, suid].contains(&0) && !self.keep_capabilities {
            self.permitted = 0;
        }
        if was_root && euid != 0 {
            self.effective = 0;
        } else if !was_root && euid == 0 {
            self.effective = self.permitted;
        }
        self.effective &= self.permitted;
    }

    fn change_gids(&mut self, gid: u32, egid: u32, sgid: u32) {
        (self.gid, self.egid, self.sgid, self.fsgid) = (gid, egid, sgid, egid);
    }
}

fn keep(wanted: u32, old: u32) -> u32 {
    if wanted == UNCHANGED { old } else { wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_up_root_gives_up_its_capabilities() {
        let mut who = Credentials::default();
        who.set_uid(1000).unwrap();
        assert_eq!((who.uid, who.euid, who.suid, who.fsuid), (1000, 1000, 1000, 1000));
        assert_eq!((who.effective, who.permitted), (0, 0));
        assert_eq!(who.set_uid(0), Err(Errno::EPERM));
    }

    #[test]
    fn a_saved_user_id_leads_back() {
        let mut who = Credentials::default();
        who.set_res_uid(1000, 1000, 0).unwrap();
        assert!(!who.has(abi::CAP_KILL));
        who.set_uid(0).unwrap();
        assert_eq!((who.uid, who.euid), (1000, 0));
        assert!(who.has(abi::CAP_KILL));
    }
}
