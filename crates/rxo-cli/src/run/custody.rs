//! Custody: the changes of a run to interfaces that exist without it, and their restoration.
//!
//! Examined before anything else, so that a problem is reported at once. Keeper and worker both have the
//! custody: the process that outlives the other restores the interfaces.

mod held;
mod state;
mod tap;

use anyhow::Result;
use rxo_driver::{DeviceName, InterfaceLock, Origin, clock};
use rxo_frame::Instant;

use super::plan::Plan;

pub(super) use held::Held;
pub(super) use state::restore;
pub(super) use tap::TapBefore;

/// The devices of the plan on interfaces that exist without rxo, each with its flag.
fn existing(plan: &Plan) -> impl Iterator<Item = (&DeviceName, &'static str)> {
    let devices = [(&plan.nic, plan.flags[0]), (&plan.host, plan.flags[1])];
    devices.into_iter().filter(|(device, _)| device.kind().interface == Some(Origin::Existing))
}

/// The interfaces that existed before the run.
#[derive(Debug)]
pub(super) struct Custody {
    /// The nic first, if it is one of them.
    held: Vec<Held>,
    takes_over: bool,
    /// The host's device as the user named it.
    host: String,
}

impl Custody {
    /// Looks at the packet interfaces of the plan, without changing anything.
    ///
    /// # Errors
    /// If frames of one would reach the host twice, or it is part of another interface.
    pub(super) fn examine(plan: &Plan) -> Result<Self> {
        let held = existing(plan).map(|(device, flag)| {
            let takes_over = plan.take_over && *device == plan.nic;
            Held::examine(device, flag, takes_over)
        });
        let held = held.collect::<Result<_>>()?;
        Ok(Self { held, takes_over: plan.take_over, host: plan.host.to_string() })
    }

    /// Locks the packet interfaces of the plan, restores what a killed run owes them, and then examines
    /// them. The order matters: a run that is ending still gives back while it has the lock.
    ///
    /// # Errors
    /// As [`Custody::examine`], and if another rxo has one.
    pub(super) fn take(plan: &Plan) -> Result<Self> {
        let locks = existing(plan).map(|(device, _)| state::lock_and_restore(device));
        let locks: Vec<InterfaceLock> = locks.collect::<Result<_>>()?;
        let mut custody = Self::examine(plan)?;
        custody.held.iter_mut().zip(locks).for_each(|(held, lock)| held.hold(lock));
        Ok(custody)
    }

    /// Nothing is held.
    #[cfg(test)]
    pub(super) const fn none() -> Self {
        Self { held: Vec::new(), takes_over: false, host: String::new() }
    }

    /// The nic whose holdings move to the TAP; `None` without `--take-over`.
    pub(super) fn taken_over(&self) -> Option<&Held> {
        self.held.first().filter(|_| self.takes_over)
    }

    /// Prepares the isolation of each interface from the kernel. A process that is forked afterwards
    /// shares it.
    ///
    /// # Errors
    /// If the kernel cannot be kept off one.
    pub(super) fn isolate(&mut self, isolates: bool) -> Result<()> {
        self.held.iter_mut().filter(|_| isolates).try_for_each(Held::isolate)
    }

    /// Makes the changes: switches the kernel's coalescing off, keeps the kernel off the interfaces and,
    /// with `--take-over`, moves everything of the nic to `tap`. Returns when the kernel saw the last
    /// frame, and the notices for the user.
    ///
    /// # Errors
    /// If the system refuses. What was changed before must then be given back.
    pub(super) fn begin(&self, tap: Option<&TapBefore>) -> Result<(Instant, Vec<String>)> {
        let recorded: Vec<Result<()>> = (self.held.iter().enumerate())
            .map(|(n, held)| held.record(self.takes_over && n == 0))
            .collect();
        self.held.iter().try_for_each(Held::close)?;
        let closed_at = clock::now();
        if let (Some(nic), Some(tap)) = (self.taken_over(), tap) {
            nic.move_to(tap)?;
        }
        let silenced = self.held.iter().filter_map(|held| held.silence().err());
        let unrecorded = recorded.into_iter().filter_map(Result::err);
        let refused = unrecorded.chain(silenced).map(|error| format!("{error:#}"));
        let known = self.held.iter().flat_map(Held::notices);
        let of_tap = tap.and_then(|tap| tap.notice(&self.host));
        Ok((closed_at, refused.chain(known).chain(of_tap).collect()))
    }

    /// Whether the nic was deleted.
    pub(super) fn has_lost_nic(&self) -> bool {
        self.held.first().is_some_and(Held::is_gone)
    }

    /// Notes that the interface with this index has taken the place of the nic, which was deleted.
    ///
    /// # Errors
    /// If that interface was deleted as well.
    pub(super) fn succeed(&mut self, index: u32) -> Result<()> {
        let takes_over = self.takes_over;
        self.held.first_mut().map_or(Ok(()), |nic| nic.succeed(index, takes_over))
    }

    /// Makes the changes for the new nic; `tap` gets its hardware address.
    ///
    /// # Errors
    /// As [`Custody::take`], [`Custody::isolate`] and [`Custody::begin`].
    pub(super) fn begin_again(
        &mut self,
        tap: Option<&TapBefore>,
        isolates: bool,
    ) -> Result<Instant> {
        let takes_over = self.takes_over;
        let Some(nic) = self.held.first_mut() else { return Ok(clock::now()) };
        nic.lock()?;
        if isolates {
            nic.isolate()?;
        }
        // If the first could not be recorded, the user knows already.
        _ = nic.record(takes_over);
        nic.close()?;
        let closed_at = clock::now();
        if let Some(tap) = tap.filter(|_| takes_over) {
            nic.lend_mac(tap)?;
        }
        // The user has seen the notices of the first.
        _ = nic.silence();
        Ok(closed_at)
    }

    /// Isolates interfaces again that were renamed: the kernel's filter is bound to a name.
    pub(super) fn follow_names(&mut self) {
        self.held.iter_mut().for_each(Held::follow_name);
    }

    /// Gives everything back. Returns a line for each thing that could not be.
    pub(super) fn give_back(&self, tap: Option<&TapBefore>) -> Vec<String> {
        let mut refused = Vec::new();
        if let Some(tap) = tap {
            let moved = self.taken_over().map(Held::holdings);
            refused.extend(tap.restore(moved).err());
        }
        let given = self.held.iter().map(|held| held.give_back(self.takes_over));
        refused.extend(given.filter_map(Result::err));
        refused.into_iter().map(|error| format!("{error:#}")).collect()
    }
}
