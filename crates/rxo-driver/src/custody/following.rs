//! Following: receives the kernel's notices of changes, and carries out the orders of the [`Follower`].

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_netlink::Notices;

use super::Custody;
use super::follower::{Follower, Order};
use super::groups::Groups;
use crate::handover::Change;
use crate::{clock, fault};

/// Reacts to changes of the run's interfaces while the run lasts.
#[derive(Debug)]
pub(super) struct Following {
    notices: Notices,
    follower: Follower,
    groups: Groups,
    /// `true` once the user has been notified that the record of the run's changes could not be written.
    has_reported: bool,
}

impl Following {
    /// Subscribes to the kernel's notices of changes. Earlier changes are not reported.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(super) fn start() -> Result<Self, DeviceError> {
        let notices = Notices::open();
        let notices =
            notices.map_err(|error| fault::system("cannot follow what the host changes", error))?;
        let follower = Follower::new(Vec::new(), None);
        Ok(Self { notices, follower, groups: Groups::default(), has_reported: false })
    }

    /// Starts to follow the interfaces of `custody` from their current state.
    pub(super) fn begin(&mut self, custody: &mut Custody) {
        let held = custody.held.iter().filter_map(|held| held.seen()).collect();
        let tap = custody.taken().map(|(_, tap)| tap.before().index);
        self.follower = Follower::new(held, tap);
        if let Some((nic, tap)) = custody.taken()
            && let Some(seen) = nic.seen()
        {
            tap.show(&seen.name, seen.has_carrier);
        }
        self.follow_groups(custody);
    }

    /// Returns the maximum time for which the caller may wait for the kernel's notices; at most `most`.
    pub(super) fn max_wait(&self, most: Duration) -> Duration {
        let left = self.follower.deadline().map(|deadline| deadline.since(clock::now()));
        left.map_or(most, |left| left.min(most))
    }

    /// Reads the kernel's notices, and carries out the orders that are due. Calls `note` with a line for each
    /// error that concerns the user.
    pub(super) fn turn(&mut self, custody: &mut Custody, note: &mut impl FnMut(&str)) {
        for change in self.changes() {
            let orders = self.follower.notice(&change, clock::now());
            self.carry_out(orders, custody, note);
        }
        let due = self.follower.due(clock::now());
        self.carry_out(due, custody, note);
    }

    /// Joins, for the TAP, the multicast groups that programs have joined on the nic. The caller calls this
    /// function at intervals, because the kernel sends no notices about groups.
    pub(super) fn follow_groups(&mut self, custody: &mut Custody) {
        if let Some((nic, tap)) = custody.taken() {
            self.groups.follow(nic.index(), tap.before().index);
        }
    }

    fn changes(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        loop {
            match self.notices.take() {
                Ok(Some(notices)) if notices.is_empty() => return changes,
                Ok(Some(notices)) => changes.extend(notices.iter().filter_map(Change::read)),
                Ok(None) => changes.push(Change::Unknown),
                // The socket returns nothing any more, so any change may have been missed.
                Err(_) => return vec![Change::Unknown],
            }
            if changes.len() > MOST_AT_ONCE {
                return changes;
            }
        }
    }

    fn carry_out(
        &mut self,
        orders: Vec<Order>,
        custody: &mut Custody,
        note: &mut impl FnMut(&str),
    ) {
        for order in orders {
            match order {
                Order::Names => custody.follow_names(),
                Order::Carrier(has_carrier) => custody.show_carrier(has_carrier),
                Order::Mtu(mtu) => custody.set_tap_mtu(mtu),
                // An address or a route that the system refuses stays on the nic, and is tried again at the
                // next change.
                Order::Adopt => _ = custody.adopt(),
                Order::Record => {
                    let begin = clock::now();
                    let recorded = custody.record();
                    let now = clock::now();
                    self.follower.recorded(now.since(begin), now);
                    if let Some(error) = recorded.err().filter(|_| !self.has_reported) {
                        self.has_reported = true;
                        note(&error.to_string());
                    }
                }
            }
        }
    }
}

impl AsFd for Following {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }
}

/// Maximum number of changes read in one call; further changes wait for the next call, so that the worker's
/// reports are not delayed.
const MOST_AT_ONCE: usize = 1_000;
