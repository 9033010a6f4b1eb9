//! Giving up everything that a [`Confinement`] does not name, in the order that privileges need.

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::set_no_new_privs;

use crate::{ConfineError, Confinement, InForce, User, calls, capabilities, files};

impl Confinement {
    /// Gives up everything that this confinement does not name, for good, in this thread and in those that it starts
    /// later. Returns the limits that the kernel has accepted.
    ///
    /// # Errors
    /// If the user cannot be changed, or the system refuses to take something away that it knows.
    pub fn apply(&self) -> Result<InForce, ConfineError> {
        let user = self.user.as_ref();
        if self.is_open {
            user.map_or(Ok(()), User::assume)?;
            return Ok(InForce::open(user));
        }
        // Paths are looked up as the user that the process still is.
        let files = files::Files::prepare(self)?;
        capabilities::empty_bounding_set();
        user.map_or(Ok(()), User::assume)?;
        let capabilities = capabilities::keep(self.capabilities)?;
        let no_new_privs = set_no_new_privs(true);
        no_new_privs.map_err(|why| ConfineError::refused("gaining privileges")(why.into()))?;
        let landlock_abi = files.restrict()?;
        // Nobody of the same user reads its memory, which may be that of guests, and no core file has it.
        let hidden = set_dumpable_behavior(DumpableBehavior::NotDumpable);
        hidden.map_err(|why| ConfineError::refused("being looked into")(why.into()))?;
        let calls = calls::restrict(self)?;
        Ok(InForce::new(user, capabilities, landlock_abi, calls))
    }
}
