//! Custody: records what a run changes on interfaces that it did not create, and restores them.
//!
//! A run is two processes (see [`guard`](crate::guard)). The worker carries frames and has a [`Control`]; the
//! [`Keeper`] makes all changes and waits. Both processes have the [`Custody`], so that either can restore the
//! interfaces if the other process ends first. In case both processes are killed, a record in a file lists the
//! changes. A third process (see [`start_restorer`]), the next run, or [`restore`] then restores the interfaces
//! from the record.
//!
//! Contract: [`Custody::examine`] changes nothing, and comes before anything else, so that a problem is
//! reported at once. [`Custody::take`] locks the interfaces. Only the [`Keeper`] makes changes, after the
//! [`Control`] has reported that the devices are open. Messages name the flags of `rxo run`.
//!
//! # Examples
//! ```no_run
//! use std::os::unix::net::UnixStream;
//! use std::sync::{Arc, atomic::AtomicBool};
//! use rxo_driver::custody::{Claim, Control, Custody, Keeper};
//! use rxo_driver::guard::{self, Side};
//!
//! let (nic, host) = ("packet:eth1".parse()?, "tap:rxo0".parse()?);
//! let claim = Claim {
//!     nic: ("--nic", &nic),
//!     host: ("--host", &host),
//!     takes_over: false,
//!     isolates: true,
//!     makes_host: true,
//! };
//! let mut custody = Custody::take(claim, |note| eprintln!("{note}"))?;
//! custody.isolate()?;
//! match guard::split()? {
//!     Side::Keeper(worker) => {
//!         let (requests, _ask) = UnixStream::pair()?;
//!         Keeper::new(custody, worker, requests)?.keep(|note| eprintln!("{note}"))?;
//!     }
//!     Side::Worker(channel) => {
//!         let mut control = Control::new(channel, custody, Arc::new(AtomicBool::new(false)));
//!         // Here the devices are opened.
//!         if let Some(begun) = control.opened(None)? {
//!             // Here the process gives up what it needs no more.
//!             control.listen()?;
//!             println!("the kernel got everything before {:?}", begun.closed_at);
//!         }
//!         control.closed();
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activity;
mod channel;
mod checks;
mod confirmation;
mod control;
mod follower;
mod following;
mod groups;
mod held;
mod keeper;
mod lifeline;
mod names;
mod pending;
mod record;
mod reload;
mod requests;
mod successors;
mod tap;
mod watch;

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use rxo_device::DeviceError;
use rxo_frame::Instant;

pub use channel::Begun;
pub use control::{Confirmer, Control, WaitingSuccessor};
pub use keeper::Keeper;
pub use lifeline::{Lifeline, Restorer, RestorerRole, start_restorer};
pub use pending::{left, recover, restore};
pub(crate) use record::folder as records_folder;
pub use reload::{Reload, ReloadAsker};
pub use successors::{Succeeding, Successor};

use crate::handover::{Holdings, Link};
use crate::lock::{self, InterfaceLock};
use crate::mentions;
use crate::{DeviceName, Finding, Mention, Origin, State, clock};
use held::Held;
use tap::HostTap;

/// Returns the folders in which a run writes: the folder of records and the folder of locks. Creates them if
/// they do not exist.
#[must_use]
pub fn folders() -> Vec<PathBuf> {
    std::iter::once(record::make_directory()).chain(lock::lock_folder()).collect()
}

/// The devices of a run, each with the flag that named it, and what the run does to their interfaces.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The device on the network side, with the flag that named it.
    pub nic: (&'a str, &'a DeviceName),
    /// The device on the host side, with the flag that named it.
    pub host: (&'a str, &'a DeviceName),
    /// `true` if the nic's addresses, routes and names move to the host's TAP.
    pub takes_over: bool,
    /// `true` if the run isolates the interfaces that it does not create: the kernel's own stack then receives no
    /// frames on them.
    pub isolates: bool,
    /// `true` if the run creates the host's TAP, and removes it at the end.
    pub makes_host: bool,
}

impl<'a> Claim<'a> {
    /// Returns the devices whose interfaces the run does not create, each with the flag that named it.
    fn existing(self) -> impl Iterator<Item = (&'a str, &'a DeviceName)> {
        let is_existing = |device: &DeviceName| device.kind().interface == Some(Origin::Existing);
        [self.nic, self.host].into_iter().filter(move |(_, device)| is_existing(device))
    }
}

/// The interfaces of a run, with their state before the run.
#[derive(Debug)]
pub struct Custody {
    /// The interfaces that the run does not create; the nic's interface is the first, unless the run creates
    /// it.
    held: Vec<Held>,
    takes_over: bool,
    isolates: bool,
    /// The name of the host's device, as the user wrote it.
    host: String,
    makes_host: bool,
    /// The host's TAP; `None` until it is open.
    tap: Option<HostTap>,
}

impl Custody {
    /// Reads the state of the claim's packet interfaces, and checks that a run can use them. Changes nothing.
    ///
    /// # Errors
    /// If the host would receive frames of an interface twice, or an interface is part of another one.
    pub fn examine(claim: Claim<'_>) -> Result<Self, DeviceError> {
        let Claim { takes_over, isolates, makes_host, .. } = claim;
        let held = claim
            .existing()
            .map(|(flag, device)| Held::examine(flag, device, takes_over && device == claim.nic.1));
        let (held, host) = (held.collect::<Result<_, _>>()?, claim.host.1.to_string());
        Ok(Self { held, takes_over, isolates, host, makes_host, tap: None })
    }

    /// Creates the custody of a successor of the worker of a run. `nic` and `tap` are the indices of the nic and
    /// of the host's device, if they are interfaces. The keeper stores the state to restore; this custody stores
    /// only the holdings that the TAP has taken over.
    ///
    /// # Errors
    /// If an interface was deleted.
    pub fn succeeding(
        claim: Claim<'_>,
        nic: Option<u32>,
        tap: Option<u32>,
    ) -> Result<Self, DeviceError> {
        let Claim { takes_over, isolates, makes_host, .. } = claim;
        let moved_to = tap.filter(|_| takes_over);
        let held = nic.map(|nic| Held::of_successor(claim.nic.1, nic, moved_to)).transpose()?;
        let (held, host) = (held.into_iter().collect(), claim.host.1.to_string());
        Ok(Self { held, takes_over, isolates, host, makes_host, tap: None })
    }

    /// Returns the findings of all checks on the claim's packet interfaces. Changes nothing. [`Custody::examine`]
    /// returns an error for the first finding that breaks a run.
    ///
    /// # Errors
    /// If an interface does not exist, or its state cannot be read.
    pub fn findings(claim: Claim<'_>) -> Result<Vec<Finding>, DeviceError> {
        let mut all = Vec::new();
        for (flag, device) in claim.existing() {
            let is_taken = claim.takes_over && device == claim.nic.1;
            let (held, found) = Held::inspect(flag, device, is_taken)?;
            let found = found.into_iter().chain(held.notices());
            let found = found.chain(pending::findings(device, held.index()));
            all.extend(found.map(|one| one.for_device(device)));
        }
        Ok(all)
    }

    /// Locks the claim's packet interfaces, restores what a killed run has left changed, and then examines them.
    /// This order is necessary, because a run that is ending restores the interfaces while it holds the lock.
    /// Calls `note` with a line for each interface that was restored.
    ///
    /// # Errors
    /// Returns the errors of [`Custody::examine`], and an error if another rxo has locked an interface.
    pub fn take(claim: Claim<'_>, mut note: impl FnMut(&str)) -> Result<Self, DeviceError> {
        let locks =
            claim.existing().map(|(_, device)| pending::lock_and_restore(device, &mut note));
        let locks: Vec<InterfaceLock> = locks.collect::<Result<_, _>>()?;
        let mut custody = Self::examine(claim)?;
        custody.held.iter_mut().zip(locks).for_each(|(held, lock)| held.hold(lock));
        Ok(custody)
    }

    /// Returns the addresses, routes and permanent neighbours of the nic that move to the TAP; `None` if the
    /// run takes nothing over.
    #[must_use]
    pub fn taken_over(&self) -> Option<&Holdings> {
        self.nic_taken_over().map(Held::holdings)
    }

    /// Returns the rules of the host that refer to the nic. During the run they match the TAP, because it
    /// then has the nic's name. Empty if the run takes nothing over.
    #[must_use]
    pub fn mentions(&self) -> &[Mention] {
        self.nic_taken_over().map_or(&[], Held::mentions)
    }

    /// Prepares to isolate each interface from the kernel, if the claim requests isolation. A process that is
    /// forked later shares the isolation.
    ///
    /// # Errors
    /// If an interface cannot be isolated.
    pub fn isolate(&mut self) -> Result<(), DeviceError> {
        let isolates = self.isolates;
        self.held.iter_mut().filter(|_| isolates).try_for_each(Held::isolate)
    }

    fn nic_taken_over(&self) -> Option<&Held> {
        self.held.first().filter(|_| self.takes_over)
    }

    /// Stores the state of the host's TAP with this index, which is open but unchanged. `kept` contains the
    /// descriptors that keep the TAP in existence.
    fn note_tap(&mut self, index: u32, kept: Vec<OwnedFd>) -> Result<(), DeviceError> {
        self.tap = Some(HostTap::read((index, kept), &self.host, !self.makes_host)?);
        Ok(())
    }

    /// Returns the nic that the TAP has taken over, and the TAP; `None` without a takeover or a TAP.
    fn taken(&mut self) -> Option<(&mut Held, &HostTap)> {
        let nic = self.held.first_mut().filter(|_| self.takes_over)?;
        Some((nic, self.tap.as_ref()?))
    }

    /// Makes the changes: switches GRO off, isolates the interfaces and, in a takeover, moves the nic's
    /// addresses, routes and names to the TAP. Returns the instant before which the kernel's own stack
    /// received the frames, whether all changes are recorded, and warnings for the user.
    ///
    /// # Errors
    /// If the system refuses a change. The caller must then restore those made before.
    fn begin(&mut self) -> Result<(Begun, Vec<String>), DeviceError> {
        if let Some((nic, tap)) = self.taken() {
            nic.expect(tap);
        }
        let recorded: Vec<Result<(), DeviceError>> = (self.held.iter().enumerate())
            .map(|(n, held)| held.record(self.takes_over && n == 0))
            .collect();
        self.held.iter().try_for_each(Held::close)?;
        let is_recorded = recorded.iter().all(Result::is_ok);
        let begun = Begun { closed_at: clock::now(), is_recorded };
        if let Some((nic, tap)) = self.taken() {
            nic.move_to(tap)?;
        }
        let silenced = self.held.iter().filter_map(|held| held.stop_kernel_packets().err());
        let unrecorded = recorded.into_iter().filter_map(Result::err);
        let refused = unrecorded.chain(silenced).map(|error| error.to_string());
        let known = self.held.iter().flat_map(Held::notices);
        let of_tap = self.tap.as_ref().and_then(|tap| tap.notice(&self.host));
        let known = known.chain(of_tap).filter(|one| one.state != State::Fine);
        Ok((begun, refused.chain(known.map(|one| one.to_string())).collect()))
    }

    /// Returns `true` if the nic was deleted.
    fn has_lost_nic(&self) -> bool {
        self.held.first().is_some_and(Held::is_gone)
    }

    /// Continues with the interface `index`, which has replaced the deleted nic.
    fn succeed(&mut self, index: u32) -> Result<(), DeviceError> {
        let takes_over = self.takes_over;
        self.held.first_mut().map_or(Ok(()), |nic| nic.succeed(index, takes_over))
    }

    /// Makes the changes for the new nic. In a takeover the TAP gets the new nic's hardware address.
    ///
    /// # Errors
    /// Returns the errors of [`Custody::take`], [`Custody::isolate`] and [`Custody::begin`].
    fn begin_again(&mut self) -> Result<Instant, DeviceError> {
        let Self { takes_over, isolates, .. } = *self;
        let Some(nic) = self.held.first_mut() else { return Ok(clock::now()) };
        nic.lock()?;
        if isolates {
            nic.isolate()?;
        }
        if let Some(tap) = self.tap.as_ref().filter(|_| takes_over) {
            nic.expect(tap);
        }
        // An error here was reported for the first nic already.
        _ = nic.record(takes_over);
        nic.close()?;
        let closed_at = clock::now();
        if let Some(tap) = self.tap.as_ref().filter(|_| takes_over) {
            nic.move_names_again(tap)?;
        }
        // The warnings were shown for the first nic already.
        _ = nic.stop_kernel_packets();
        Ok(closed_at)
    }

    /// Isolates again each interface that was renamed, because the kernel's filter is bound to a name.
    fn follow_names(&mut self) {
        self.held.iter_mut().for_each(Held::follow_name);
    }

    /// Frees the names of the deleted nic, so that another interface can have them.
    fn release_names(&mut self) -> Result<(), DeviceError> {
        self.taken().map_or(Ok(()), |(nic, tap)| nic.release_names(tap))
    }

    fn show_carrier(&mut self, has_carrier: bool) {
        if let Some((nic, tap)) = self.taken() {
            tap.show(nic.name(), has_carrier);
        }
    }

    fn set_tap_mtu(&mut self, mtu: u32) {
        if let Some((_, tap)) = self.taken() {
            // A TAP has a largest MTU; above it the two MTUs differ.
            _ = tap.link().and_then(|link| link.set_mtu(mtu));
        }
    }

    /// Moves to the TAP the addresses and routes that the nic has received since the takeover.
    fn adopt(&mut self) -> Result<(), DeviceError> {
        self.taken().map_or(Ok(()), |(nic, tap)| nic.adopt(tap))
    }

    /// Records the current state of the TAP, as far as it must be restored on the nic.
    ///
    /// # Errors
    /// If the record cannot be written. A deleted TAP is no error: its last state stays recorded.
    fn record(&mut self) -> Result<(), DeviceError> {
        let Some((nic, tap)) = self.taken() else { return Ok(()) };
        let Ok(now) = tap.now(nic.holdings()) else { return Ok(()) };
        nic.follow(&now, tap);
        if nic.is_gone() { Ok(()) } else { nic.record(true) }
    }

    /// Restores all interfaces. Returns a line for each change that could not be undone.
    fn restore(&mut self) -> Vec<String> {
        let lost = self.rules_by_number();
        let Self { held, tap, takes_over, .. } = self;
        let mut refused = Vec::new();
        for (n, held) in held.iter_mut().enumerate() {
            refused.extend(held.restore(tap.as_ref().filter(|_| *takes_over && n == 0)).err());
        }
        // The TAP gives up addresses and routes only after the nic has all of them.
        let moved = held.first().filter(|_| *takes_over).map(Held::holdings);
        refused.extend(tap.as_ref().and_then(|tap| tap.restore(moved).err()));
        refused.iter().map(ToString::to_string).chain(lost).collect()
    }

    /// Returns a warning about rules that were made during the run and refer to the TAP by its index: the
    /// index becomes invalid when the TAP is removed. Returns `None` if there are no such rules.
    fn rules_by_number(&mut self) -> Option<String> {
        let link = self.taken()?.1.link().ok()?;
        let lost = mentions::by_number(&link).ok()?;
        let lost = lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        (!lost.is_empty()).then(|| {
            let name = &link.name;
            format!(
                "these know `{name}` by the number that it had during the run, and match nothing from now on: {lost}; \
                 load them again"
            )
        })
    }
}

/// Reads the interface with this index. Fails with [`DeviceError::Gone`], which names `device`, if it was
/// deleted.
fn link(index: u32, device: &str) -> Result<Link, DeviceError> {
    Link::read(index)?.ok_or_else(|| DeviceError::Gone(device.to_owned()))
}
