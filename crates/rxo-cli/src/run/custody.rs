//! What a run changes about interfaces, and gives back.
//!
//! Examined before anything else, so that whatever cannot be is said at once. Keeper and worker both
//! have it: the one that is left gives back.

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
    let devices = [(&plan.nic, "--nic"), (&plan.host, "--host")];
    devices.into_iter().filter(|(device, _)| device.kind().interface == Some(Origin::Existing))
}

/// The interfaces of a run that existed before it.
#[derive(Debug)]
pub(super) struct Custody {
    /// The nic first, where it is one of them.
    held: Vec<Held>,
    takes_over: bool,
}

impl Custody {
    /// Looks at the packet interfaces of the plan, without changing anything.
    ///
    /// # Errors
    /// If one has what would reach the host twice, or belongs to something else.
    pub(super) fn examine(plan: &Plan) -> Result<Self> {
        let held = existing(plan).map(|(device, flag)| {
            let takes_over = plan.take_over && *device == plan.nic;
            Held::examine(device, flag, takes_over)
        });
        Ok(Self { held: held.collect::<Result<_>>()?, takes_over: plan.take_over })
    }

    /// The same, and keeps others off the interfaces. Only then they are looked at: a run that is
    /// ending gives back until it lets go of them. What a run that was killed owes them they get before.
    ///
    /// # Errors
    /// As [`Custody::examine`], and when another rxo has one.
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
        Self { held: Vec::new(), takes_over: false }
    }

    /// What the nic has and the TAP is to get; `None` unless it takes over.
    pub(super) fn taken_over(&self) -> Option<&Held> {
        self.held.first().filter(|_| self.takes_over)
    }

    /// Prepares what keeps the kernel off the interfaces. Shared with a process that is forked
    /// afterwards.
    ///
    /// # Errors
    /// If the kernel cannot be kept off one.
    pub(super) fn isolate(&mut self, isolates: bool) -> Result<()> {
        self.held.iter_mut().filter(|_| isolates).try_for_each(Held::isolate)
    }

    /// Changes what is to be changed: the kernel's coalescing off, the kernel itself off the
    /// interfaces, and everything of the nic to `tap` where it takes over. Returns when the kernel saw
    /// the last frame, and what the user should know.
    ///
    /// # Errors
    /// If the system refuses; what was changed before is to be given back.
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
        let of_tap = tap.and_then(TapBefore::notice);
        Ok((closed_at, refused.chain(known).chain(of_tap).collect()))
    }

    /// Whether there is no interface any more that is the nic.
    pub(super) fn has_lost_nic(&self) -> bool {
        self.held.first().is_some_and(Held::is_gone)
    }

    /// The nic has gone, and the interface with this index is in its place.
    ///
    /// # Errors
    /// If it has gone again.
    pub(super) fn succeed(&mut self, index: u32) -> Result<()> {
        let takes_over = self.takes_over;
        self.held.first_mut().map_or(Ok(()), |nic| nic.succeed(index, takes_over))
    }

    /// Changes of the new nic what was changed of the first; `tap` gets its hardware address.
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
        // Where the first could not be recorded, that was said.
        _ = nic.record(takes_over);
        nic.close()?;
        let closed_at = clock::now();
        if let Some(tap) = tap.filter(|_| takes_over) {
            nic.lend_mac(tap)?;
        }
        // What was said of the first need not be said again.
        _ = nic.silence();
        Ok(closed_at)
    }

    /// Closes again what has got another name since, which the kernel's filter may have lost by that.
    pub(super) fn follow_names(&mut self) {
        self.held.iter_mut().for_each(Held::follow_name);
    }

    /// Gives everything back. Returns what could not be, a line each.
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
