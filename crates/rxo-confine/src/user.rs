//! The user that a process becomes, given by name or by number.

use std::fmt;
use std::io;

use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use thiserror::Error;

use crate::{ConfineError, capabilities};

/// A user that a process can become, with the groups that its processes get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user, as the caller named it.
    name: String,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

/// The reason why a string does not name a user.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NoUser {
    /// The system has no user of this name or number.
    #[error("{0}: the system knows no such user; give a NAME of /etc/passwd, or UID:GID")]
    Unknown(String),
    /// The system has no group of this name.
    #[error("{0}: the system knows no such group; give a NAME of /etc/group, or a number")]
    NoGroup(String),
}

impl User {
    /// Finds the user that `text` names: `NAME` or `UID`, optionally followed by a colon and a group, which
    /// replaces the user's own groups. A `UID` without an entry in the user database requires a group.
    ///
    /// # Errors
    /// If there is no such user or group.
    pub fn find(text: &str) -> Result<Self, NoUser> {
        let (user, group) = text.split_once(':').map_or((text, None), |(u, g)| (u, Some(g)));
        let number = number(user);
        let known = match number {
            Some(uid) => uzers::get_user_by_uid(uid),
            None => uzers::get_user_by_name(user),
        };
        let uid = known.as_ref().map(uzers::User::uid).or(number);
        let unknown = || NoUser::Unknown(text.to_owned());
        let uid = uid.ok_or_else(unknown)?;
        let (gid, groups) = match (group, known) {
            (Some(group), _) => {
                let gid = group_number(group).ok_or_else(|| NoUser::NoGroup(text.to_owned()))?;
                (gid, vec![gid])
            }
            (None, Some(known)) => {
                let gid = known.primary_group_id();
                let groups = uzers::get_user_groups(known.name(), gid).unwrap_or_default();
                (gid, groups.iter().map(uzers::Group::gid).collect())
            }
            (None, None) => return Err(unknown()),
        };
        Ok(Self { name: text.to_owned(), uid, gid, groups })
    }

    /// Makes this thread run as the user. A user other than root gets no capabilities, so the thread cannot
    /// change back: the kernel removes those of root, and this function those of another caller.
    pub(crate) fn assume(&self) -> Result<(), ConfineError> {
        self.try_assume().map_err(|why| ConfineError::User { user: self.name.clone(), why })?;
        if self.uid != 0 {
            capabilities::keep(CapabilitySet::empty())?;
        }
        Ok(())
    }

    fn try_assume(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn group_number(text: &str) -> Option<u32> {
    let known = || uzers::get_group_by_name(text).map(|group| group.gid());
    number(text).or_else(known)
}

/// Parses a user or group number; `None` if it is invalid. Refuses the largest number, which means "no change"
/// to the kernel.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&number| number != u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_a_name_or_a_number_with_or_without_a_group() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(User::find("0").unwrap().uid, 0);
        let other = User::find("54321:12345").unwrap();
        assert_eq!((other.uid, other.gid, other.groups), (54_321, 12_345, vec![12_345]));
        assert_eq!(User::find("root:7").unwrap().groups, [7]);
    }

    #[test]
    fn what_nobody_knows_is_named_with_what_would_do() {
        let said = |text: &str| User::find(text).unwrap_err().to_string();
        assert!(said("54321").starts_with("54321: the system knows no such user; give a NAME"));
        assert!(said("no such").contains("or UID:GID"));
        assert!(said("root:no such").contains("the system knows no such group"));
        assert!(said("4294967295:7").contains("no such user"), "nothing would change");
        assert!(said("7:4294967295").contains("no such group"));
        assert!(User::find("").is_err());
    }
}
