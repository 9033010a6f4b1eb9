//! Landlock rules: restrict files, TCP ports, signals and abstract sockets for a thread.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};

use crate::{Access, ConfineError, Confinement, Kill};

/// The newest Landlock version that was tested. Rights that newer versions introduced are not restricted.
const TESTED: ABI = ABI::V7;

/// A Landlock ruleset that is created but not enforced yet.
pub(crate) struct Files(RulesetCreated);

impl Files {
    /// Opens all paths of `confinement` and creates a ruleset from them.
    pub(crate) fn prepare(confinement: &Confinement) -> Result<Self, ConfineError> {
        rules(confinement).map(Self).map_err(refused)
    }

    /// Enforces the ruleset for this thread. Returns the Landlock version; `None` if the kernel has no
    /// Landlock.
    pub(crate) fn restrict(self) -> Result<Option<u32>, ConfineError> {
        let status = self.0.restrict_self().map_err(refused)?;
        Ok(match (status.ruleset, status.landlock) {
            (RulesetStatus::NotEnforced, _) => None,
            (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
            _ => None,
        })
    }
}

fn rules(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let ruleset = ruleset.handle_access(AccessFs::from_all(TESTED))?;
    let ruleset = ruleset.handle_access(AccessNet::from_all(TESTED))?;
    let ruleset = ruleset.scope(scopes(confinement.kill))?;
    let mut created = ruleset.create()?;
    for (path, access) in &confinement.paths {
        created = created.add_rules(path_beneath_rules([path], rights(*access)))?;
    }
    Ok(created)
}

/// Returns the Landlock scopes: abstract sockets are always confined. Signals are also confined, unless `kill`
/// allows the process to kill others.
fn scopes(kill: Kill) -> BitFlags<Scope> {
    match kill {
        Kill::None => Scope::Signal | Scope::AbstractUnixSocket,
        Kill::Process(_) | Kill::Given => Scope::AbstractUnixSocket.into(),
    }
}

fn rights(access: Access) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    match access {
        Access::Read => read,
        Access::Remove => read | AccessFs::RemoveFile,
        Access::Write => {
            let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
            read | write | AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::RemoveFile
        }
    }
}

fn refused(error: RulesetError) -> ConfineError {
    ConfineError::refused("files (Landlock)")(io::Error::other(error))
}
