//! Gives up every privilege that a [`Confinement`] does not name. The order matters, because giving up some
//! privileges requires others.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::set_no_new_privs;

use crate::{ConfineError, Confinement, InForce, User, calls, capabilities, files};

impl Confinement {
    /// Gives up every privilege that this confinement does not name, permanently, in this thread and in threads
    /// that it starts later. Returns the limits that the kernel has accepted.
    ///
    /// # Errors
    /// If the user cannot be changed, or if the system supports dropping a privilege but refuses it.
    pub fn apply(&self) -> Result<InForce, ConfineError> {
        let user = self.user.as_ref();
        if self.is_open {
            user.map_or(Ok(()), User::assume)?;
            return Ok(InForce::open(user));
        }
        // The paths are opened before the user changes, with the rights of the current user.
        let files = files::Files::prepare(self)?;
        capabilities::empty_bounding_set();
        user.map_or(Ok(()), User::assume)?;
        let capabilities = capabilities::keep(self.capabilities)?;
        let no_new_privs = set_no_new_privs(true);
        no_new_privs.map_err(|why| ConfineError::refused("gaining privileges")(why.into()))?;
        let landlock_abi = files.restrict()?;
        // Prevents other processes of the same user from reading the memory of this process, which may contain
        // guests' memory. Also prevents core files.
        let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        hidden.map_err(|why| ConfineError::refused("being looked into")(why.into()))?;
        let calls = calls::restrict(self)?;
        Ok(InForce::new(user, capabilities, landlock_abi, calls))
    }
}
