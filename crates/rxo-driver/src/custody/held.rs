//! Held: an interface that existed before the run, with its state before the run, and its lock and isolation
//! during the run.

use std::io;

use rxo_device::DeviceError;

use super::checks::{self, InterfaceFacts, Takeover};
use super::follower;
use super::link;
use super::names::Names;
use super::pending::{self, PendingRestore};
use super::tap::{HostTap, TapNow};
use crate::fault;
use crate::finding::{Finding, State};
use crate::handover::{Holdings, Link, Settings, elsewhere};
use crate::isolation::Isolation;
use crate::lock::InterfaceLock;
use crate::mentions::{self, Mention};
use crate::{DeviceName, Feature, Interface};

type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// An interface of the run, with its state before the run, and the lock and the isolation during the run.
#[derive(Debug)]
pub(super) struct Held {
    device: String,
    /// The current index of the interface. The index changes if the interface is deleted and replaced.
    index: u32,
    /// The current name of the interface.
    name: String,
    /// The addresses, routes and permanent neighbours to restore. During a takeover, this field is updated to
    /// the TAP's current state. If the interface is replaced, the holdings are not read again.
    holdings: Holdings,
    settings: Settings,
    /// The interface's names, which the TAP gets during the run. `None` if the interface keeps its names.
    names: Option<Names>,
    /// Rules of the host's firewall, routing and traffic control that refer to the interface, and that match
    /// the TAP during the run.
    mentions: Vec<Mention>,
    /// `true` if a TAP takes the interface over.
    takes_over: bool,
    /// `true` if GRO was on before the run. The run switches it off, because the kernel would coalesce by its
    /// own rules before rxo sees a frame.
    has_gro: bool,
    /// `true` once the TAP has been switched on in place of the interface. Before that, the TAP's settings are
    /// not those of the user, and must not be copied to the interface.
    is_taken_over: bool,
    lock: Option<InterfaceLock>,
    isolation: Option<Isolation>,
}

impl Held {
    /// Reads the state of the interface of `device`. Returns that state with the findings of all checks.
    /// Changes nothing.
    ///
    /// # Errors
    /// If there is no such interface, or its state cannot be read.
    pub(super) fn inspect(
        flag: &str,
        device: &DeviceName,
        takes_over: bool,
    ) -> Result<(Self, Vec<Finding>)> {
        let name = device.name();
        let interface = Interface::find(name)?;
        let link = link(interface.index()?.unsigned_abs(), &format!("{flag} {device}"))?;
        let holdings = Holdings::read(&link)?;
        let elsewhere = elsewhere::made_of(link.index);
        let takeover = takes_over.then(|| read_takeover(&link)).transpose()?;
        let seen = InterfaceFacts {
            holdings: &holdings,
            elsewhere: &elsewhere,
            takeover: takeover.as_ref(),
        };
        let found = checks::all(&seen);
        let (names, mentions) = takeover.map(|it| (it.names, it.mentions)).unwrap_or_default();
        let held = Self {
            device: device.to_string(),
            index: link.index,
            name: link.name.clone(),
            holdings,
            settings: Settings::read(name),
            names,
            mentions,
            takes_over,
            has_gro: interface.feature(Feature::Gro).unwrap_or(false),
            is_taken_over: false,
            lock: None,
            isolation: None,
        };
        Ok((held, found))
    }

    /// Reads the state of the interface of `device`. Refuses an interface that a run cannot use.
    ///
    /// # Errors
    /// If the interface cannot be used. The message names the reason and the remedy.
    pub(super) fn examine(flag: &str, device: &DeviceName, takes_over: bool) -> Result<Self> {
        let (held, found) = Self::inspect(flag, device, takes_over)?;
        match found.into_iter().find(|one| one.state == State::Breaks) {
            None => Ok(held),
            Some(broken) => Err(DeviceError::Usage(format!("{flag} {device}: {broken}"))),
        }
    }

    /// Reads the state of the interface `index` of `device` for a process that succeeds the worker of a run.
    /// In a takeover, the holdings are read from the TAP with the index `moved_to`. Checks nothing, because
    /// the run has already done all checks.
    ///
    /// # Errors
    /// If an interface was deleted.
    pub(super) fn of_successor(
        device: &DeviceName,
        index: u32,
        moved_to: Option<u32>,
    ) -> Result<Self> {
        let device = device.to_string();
        let link = self::link(index, &device)?;
        let holder = moved_to.map(|tap| self::link(tap, &device)).transpose()?;
        Ok(Self {
            index,
            settings: Settings::read(&link.name),
            holdings: Holdings::read(holder.as_ref().unwrap_or(&link))?,
            name: link.name,
            device,
            names: None,
            mentions: Vec::new(),
            takes_over: moved_to.is_some(),
            has_gro: false,
            is_taken_over: true,
            lock: None,
            isolation: None,
        })
    }

    /// Records that the TAP has taken over the interface.
    pub(super) const fn record_takeover(&mut self) {
        self.is_taken_over = true;
    }

    pub(super) const fn holdings(&self) -> &Holdings {
        &self.holdings
    }

    pub(super) fn mentions(&self) -> &[Mention] {
        &self.mentions
    }

    pub(super) const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the interface's current name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns warnings about the interface for the start of a run, and the findings of checks that found no
    /// problem.
    pub(super) fn notices(&self) -> Vec<Finding> {
        let bound = self.takes_over.then(|| mentions::bound_to(self.index));
        let is_secret = self.settings.makes_secret_addresses();
        checks::notices(&self.device, &self.holdings, is_secret, bound.as_deref())
    }

    pub(super) fn hold(&mut self, lock: InterfaceLock) {
        self.lock = Some(lock);
    }

    pub(super) fn lock(&mut self) -> Result<()> {
        self.hold(InterfaceLock::take(&self.device, self.index)?);
        Ok(())
    }

    pub(super) fn isolate(&mut self) -> Result<()> {
        self.isolation = Some(Isolation::new(self.index).map_err(without_isolation)?);
        Ok(())
    }

    pub(super) fn is_gone(&self) -> bool {
        Interface::name_of(self.index).is_none()
    }

    /// Continues with the interface `index`, which has replaced the deleted interface. At the end of the run,
    /// the addresses, routes and names move to that interface.
    pub(super) fn succeed(&mut self, index: u32, was_taken_over: bool) -> Result<()> {
        let link = link(index, &self.device)?;
        let interface = Interface::find(&link.name)?;
        pending::remove_record(self.index);
        (self.index, self.name) = (index, link.name.clone());
        if let Some(names) = Names::choose(&link, link.renames().is_ok()).filter(|_| was_taken_over)
        {
            self.names = Some(names);
        }
        self.settings = Settings::read(&self.name);
        self.has_gro = interface.feature(Feature::Gro).unwrap_or(false);
        (self.lock, self.isolation) = (None, None);
        if was_taken_over {
            // The new nic may have been configured with addresses that are on the TAP now.
            self.holdings.take_from(&link);
        } else {
            self.holdings = Holdings::read(&link)?;
        }
        Ok(())
    }

    /// Gives `tap` the names and the hardware address of this interface, which has replaced a deleted one.
    pub(super) fn move_names_again(&mut self, tap: &HostTap) -> Result<()> {
        let mut link = tap.link()?;
        self.move_names(&mut link)?;
        let nic = Link::read(self.index)?;
        nic.map_or(Ok(()), |nic| link.set_mac(&nic.mac))
    }

    /// Takes the names of the deleted interface from `tap`, so that its replacement can have them.
    pub(super) fn release_names(&self, tap: &HostTap) -> Result<()> {
        let Some(names) = &self.names else { return Ok(()) };
        names.take_back(&mut tap.link()?, tap.before())
    }

    /// Switches GRO off and isolates the interface from the kernel. If GRO cannot be switched off, frames
    /// that it has coalesced pass unchanged.
    pub(super) fn close(&self) -> Result<()> {
        if self.has_gro {
            _ = Interface::find(&self.name)?.set_feature(Feature::Gro, false);
        }
        self.isolation.as_ref().map_or(Ok(()), |isolation| isolation.close(&self.name))
    }

    /// Switches IPv6 off on the interface: otherwise the kernel would send packets of its own there, although
    /// their source addresses have moved to the TAP.
    pub(super) fn stop_kernel_packets(&self) -> Result<()> {
        self.settings.disable_ipv6(&self.name)
    }

    /// Notes, before the change, that `tap` gets the interface's names, so that the record contains the
    /// change.
    pub(super) fn expect(&mut self, tap: &HostTap) {
        if let Some(names) = &mut self.names {
            names.tap = Some((tap.before().index, tap.before().name.clone()));
        }
    }

    pub(super) fn move_to(&mut self, tap: &HostTap) -> Result<()> {
        let mut link = tap.link()?;
        self.move_names(&mut link)?;
        link.set_mac(&self.link().mac)?;
        self.settings.copy_to(&link.name);
        link.set_up(true)?;
        self.record_takeover();
        self.holdings.move_to(&link)?;
        if self.holdings.has_link_local() {
            // From here on the kernel may generate addresses as before, because the TAP has the same hardware
            // address.
            self.settings.resume_addresses(&link.name);
        }
        Ok(())
    }

    /// Gives the interface's names to `tap`, and isolates the interface under its temporary name too.
    fn move_names(&mut self, tap: &mut Link) -> Result<()> {
        let Some(names) = &self.names else { return Ok(()) };
        let mut nic = link(self.index, &self.device)?;
        // Since Linux 6.16 a netdev chain belongs to a name and can exist before the name does, so no frame
        // passes in between. Older kernels bind the chain to the interface, and refuse a name that no
        // interface has.
        let is_closed = self.isolation.as_ref().map(|one| one.close(&names.parked).is_ok());
        nic.rename(&names.parked).map_err(|error| cannot_rename(&names.name, error))?;
        if let Some(isolation) = &self.isolation {
            if is_closed == Some(false) {
                isolation.close(&names.parked)?;
            }
            isolation.forget(&names.name);
        }
        self.name.clone_from(&names.parked);
        names.move_to(&nic, tap).map_err(|error| cannot_rename(&tap.name, error))
    }

    /// Moves to `tap` the addresses and routes that the interface has received since the takeover, because
    /// some programs refer to an interface by its index.
    pub(super) fn adopt(&self, tap: &HostTap) -> Result<()> {
        let Some(link) = Link::read(self.index)? else { return Ok(()) };
        let holdings = Holdings::read(&link)?;
        if holdings.is_empty() { Ok(()) } else { holdings.join(&tap.link()?) }
    }

    /// Returns the current state of the interface, for the [`Follower`](follower::Follower). `None` if it was
    /// deleted.
    pub(super) fn seen(&self) -> Option<follower::ObservedState> {
        let Link { index, name, mtu, has_carrier, .. } = Link::read(self.index).ok()??;
        Some(follower::ObservedState { index, name, mtu, has_carrier })
    }

    /// Stores those holdings of the TAP, in its current state `now`, that belong to this interface.
    pub(super) fn follow(&mut self, now: &TapNow, tap: &HostTap) {
        let before = std::mem::replace(&mut self.holdings, now.holdings.clone());
        self.holdings.keep_objects(&before);
        self.names = self.names.take().map(|names| names.now(&now.link, tap.before()));
    }

    pub(super) fn follow_name(&mut self) {
        let Some(name) = Interface::name_of(self.index) else { return };
        if name != self.name {
            let before = std::mem::replace(&mut self.name, name);
            if self.close().is_ok() {
                self.isolation.iter().for_each(|isolation| isolation.forget(&before));
            }
        }
    }

    /// Writes a record of everything that must be restored on the interface from now on.
    ///
    /// # Errors
    /// If the file cannot be written, or the interface was deleted.
    pub(super) fn record(&self, was_taken_over: bool) -> Result<()> {
        self.pending(was_taken_over).write(&link(self.index, &self.device)?)
    }

    /// Restores the interface to its state before the run or, after a takeover, to the current state of
    /// `tap`. Does nothing if the interface was deleted.
    pub(super) fn restore(&mut self, tap: Option<&HostTap>) -> Result<()> {
        // If the TAP was deleted, its last recorded state is restored.
        let now = tap.and_then(|tap| tap.now(&self.holdings).ok());
        let Some(link) = Link::read(self.index)? else {
            pending::remove_record(self.index);
            return Ok(());
        };
        if let (Some(now), Some(tap)) = (&now, tap) {
            self.follow(now, tap);
        }
        let named = match (&self.names, tap, &now) {
            (Some(names), Some(tap), Some(now)) => {
                names.take_back(&mut now.link.clone(), tap.before())
            }
            _ => Ok(()),
        };
        let given = restore_on(&self.pending(tap.is_some()), &link);
        let followed = now.as_ref().map_or(Ok(()), |now| self.apply_tap_changes(now));
        let opened = self.isolation.as_ref().map_or(Ok(()), Isolation::open);
        pending::remove_record(self.index);
        named.and(given).and(followed).and(opened)
    }

    /// Applies to the interface the settings that were changed on the TAP: the MTU, the labels, and whether
    /// it is up.
    fn apply_tap_changes(&self, now: &TapNow) -> Result<()> {
        let Some(link) = Link::read(self.index)?.filter(|_| self.is_taken_over) else {
            return Ok(());
        };
        now.settings.copy_changes(&self.settings, &link.name);
        _ = link.set_labels(&now.link);
        if now.link.mtu != link.mtu {
            link.set_mtu(now.link.mtu)?;
        }
        if now.link.is_up { Ok(()) } else { link.set_up(false) }
    }

    const fn pending(&self, was_taken_over: bool) -> PendingRestore<'_> {
        let Self { holdings, settings, names, has_gro, .. } = self;
        let names = names.as_ref();
        PendingRestore { holdings, settings, names, has_gro: *has_gro, was_taken_over }
    }

    const fn link(&self) -> &Link {
        self.holdings.link()
    }
}

/// Reads the facts that matter only if a TAP takes `link` over.
fn read_takeover(link: &Link) -> Result<Takeover> {
    let tried = link.renames();
    let names = Names::choose(link, tried.is_ok());
    Ok(Takeover { names, may_rename: checks::is_allowed(&tried), mentions: mentions::of(link)? })
}

/// Restores on `link` everything that `pending` lists. Continues after an error, and returns the first error at
/// the end.
pub(super) fn restore_on(pending: &PendingRestore<'_>, link: &Link) -> Result<()> {
    let PendingRestore { holdings, settings, names, has_gro, was_taken_over } = *pending;
    let mut link = link.clone();
    let named = names.map_or(Ok(()), |names| names.restore_on(&mut link));
    let woken = settings.wake_ipv6(&link.name);
    let given =
        if was_taken_over { holdings.add_all_to(&link) } else { holdings.add_ipv6_to(&link) };
    settings.resume_addresses(&link.name);
    let coalesces =
        if has_gro { Interface::find(&link.name)?.set_feature(Feature::Gro, true) } else { Ok(()) };
    named.and(woken).and(given).and(coalesces)
}

fn cannot_rename(name: &str, error: io::Error) -> DeviceError {
    fault::system(format!("cannot rename interface {name}"), error)
}

/// Adds a hint at the option `--no-isolation` to the message of `error`. If privilege is missing, adds no hint,
/// because the run's packet sockets need the same privilege even without isolation.
fn without_isolation(error: DeviceError) -> DeviceError {
    match error {
        DeviceError::System { message, source }
            if source.kind() != io::ErrorKind::PermissionDenied =>
        {
            let remedy = "or give --no-isolation, and the kernel takes its frames as well";
            let source = io::Error::new(source.kind(), format!("{source}; {remedy}"));
            DeviceError::System { message, source }
        }
        error => error,
    }
}
