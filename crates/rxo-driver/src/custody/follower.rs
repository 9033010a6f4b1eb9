//! Follower: decides what a run must do after a change in the host's network.
//!
//! This module is separate, and uses no clock and no system calls, so that it can be tested alone: its input is
//! changes, its output is orders. Contract: many changes at once cause one order of each kind, and the work that
//! orders cause is bounded, however often the network changes.

use std::time::Duration;

use rxo_frame::Instant;

use crate::handover::Change;

/// An action that the run must take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// An interface of the run was renamed: isolate it from the kernel under the new name.
    Names,
    /// Set the TAP's carrier to this state.
    Carrier(bool),
    /// Set the TAP's MTU to this value, in bytes.
    Mtu(u32),
    /// The nic may have received addresses or routes that belong to the TAP: move them.
    Adopt,
    /// The TAP's addresses or routes may have changed: record them.
    Record,
}

/// The last reported state of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ObservedState {
    pub(super) index: u32,
    pub(super) name: String,
    pub(super) mtu: u32,
    pub(super) has_carrier: bool,
}

/// Decides the orders for a run, from the state of the interfaces that it follows and from the orders that
/// are waiting.
#[derive(Debug)]
pub(super) struct Follower {
    /// The interfaces that existed before the run, the nic first.
    held: Vec<ObservedState>,
    /// The index of the TAP that has taken over the nic; `None` if no TAP has.
    tap: Option<u32>,
    adopt: Pending,
    record: Pending,
}

/// An order that is delayed until a series of changes has ended.
#[derive(Debug, Default)]
struct Pending {
    /// The time of the first change since the last order; `None` if no order is waiting.
    since: Option<Instant>,
    /// The time of the latest change that the order concerns.
    last: Instant,
    /// The earliest instant at which the next order may be given, which limits the rate of orders.
    not_before: Instant,
}

/// Time without changes that must pass before an order is given: a program that changes addresses makes
/// several changes one after another.
const SETTLES: Duration = Duration::from_millis(100);
/// Maximum delay of an order while changes continue without a pause.
const MOST_WAIT: Duration = Duration::from_secs(1);
/// Minimum time between two moves of addresses and routes to the TAP, so that little work is caused by a program
/// that puts addresses back on the nic after each move.
const BETWEEN_ADOPTIONS: Duration = Duration::from_secs(1);
/// The pause after a recording, as a multiple of the time that the recording took. So recording uses at most 1/20
/// of the time, even on a router, whose tables are long and change continuously.
const COST_FACTOR: u32 = 20;

impl Follower {
    /// Creates a follower of the interfaces `held`, and of the TAP with the index `tap` if it has taken over
    /// the first of them.
    pub(super) fn new(held: Vec<ObservedState>, tap: Option<u32>) -> Self {
        Self { held, tap, adopt: Pending::default(), record: Pending::default() }
    }

    /// Processes a change of the host's network that was noticed at `now`. Returns the orders to carry out
    /// immediately; [`Follower::due`] returns the delayed ones.
    pub(super) fn notice(&mut self, change: &Change, now: Instant) -> Vec<Order> {
        match change {
            Change::Link { index, name, mtu, has_carrier } => {
                let seen = ObservedState {
                    index: *index,
                    name: name.clone(),
                    mtu: *mtu,
                    has_carrier: *has_carrier,
                };
                self.link(seen, now)
            }
            Change::Deleted { .. } => Vec::new(),
            Change::Holding { index } => {
                self.holding(*index, now);
                Vec::new()
            }
            Change::Unknown => {
                self.adopt.changed(now);
                self.record.changed(now);
                vec![Order::Names]
            }
        }
    }

    /// Returns the delayed orders that are due at `now`.
    pub(super) fn due(&mut self, now: Instant) -> Vec<Order> {
        let pending = [(&mut self.adopt, Order::Adopt), (&mut self.record, Order::Record)];
        let due = pending.into_iter().filter_map(|(pending, order)| {
            if pending.deadline()? > now {
                return None;
            }
            pending.since = None;
            Some(order)
        });
        let due: Vec<Order> = due.filter(|_| self.tap.is_some()).collect();
        if due.contains(&Order::Adopt) {
            self.adopt.not_before = now + BETWEEN_ADOPTIONS;
        }
        due
    }

    /// Returns the instant of the next delayed order; `None` if no order is waiting.
    pub(super) fn deadline(&self) -> Option<Instant> {
        [&self.adopt, &self.record].into_iter().filter_map(Pending::deadline).min()
    }

    /// Delays the next recording, after one that ended at `now` and took the time `cost`.
    pub(super) fn recorded(&mut self, cost: Duration, now: Instant) {
        self.record.not_before = now + cost * COST_FACTOR;
    }

    fn link(&mut self, seen: ObservedState, now: Instant) -> Vec<Order> {
        if self.tap == Some(seen.index) {
            // The TAP's names are in the record, so it must be written again.
            self.record.changed(now);
            return Vec::new();
        }
        let Some(place) = self.held.iter().position(|held| held.index == seen.index) else {
            return Vec::new();
        };
        let before = std::mem::replace(&mut self.held[place], seen.clone());
        let shows = self.tap.is_some() && place == 0;
        let names = (before.name != seen.name).then_some(Order::Names);
        let carrier = (shows && before.has_carrier != seen.has_carrier)
            .then_some(Order::Carrier(seen.has_carrier));
        let mtu = (shows && before.mtu != seen.mtu).then_some(Order::Mtu(seen.mtu));
        names.into_iter().chain(carrier).chain(mtu).collect()
    }

    fn holding(&mut self, index: u32, now: Instant) {
        if self.tap == Some(index) {
            self.record.changed(now);
        } else if self.tap.is_some() && self.held.first().is_some_and(|nic| nic.index == index) {
            self.adopt.changed(now);
        }
    }
}

impl Pending {
    fn changed(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.last = now;
    }

    fn deadline(&self) -> Option<Instant> {
        let settled = (self.last + SETTLES).min(self.since? + MOST_WAIT);
        Some(settled.max(self.not_before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NIC: u32 = 3;
    const TAP: u32 = 7;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn seen(name: &str) -> ObservedState {
        ObservedState { index: NIC, name: name.to_owned(), mtu: 1500, has_carrier: true }
    }

    fn link(index: u32, name: &str, mtu: u32, has_carrier: bool) -> Change {
        Change::Link { index, name: name.to_owned(), mtu, has_carrier }
    }

    fn follower() -> Follower {
        Follower::new(vec![seen("eth1-nic")], Some(TAP))
    }

    #[test]
    fn the_tap_shows_what_the_nic_shows() {
        let mut follower = follower();
        assert_eq!(follower.notice(&link(NIC, "eth1-nic", 1500, true), at(0)), []);
        let orders = follower.notice(&link(NIC, "eth1-nic", 1400, false), at(1));
        assert_eq!(orders, [Order::Carrier(false), Order::Mtu(1400)]);
        assert_eq!(follower.notice(&link(NIC, "eth1-nic", 1400, false), at(2)), []);
        assert_eq!(
            follower.notice(&link(NIC, "lan", 1400, true), at(3)),
            [Order::Names, Order::Carrier(true)]
        );
        assert_eq!(follower.notice(&link(99, "other", 9000, false), at(4)), []);
        assert_eq!(follower.deadline(), None);
    }

    #[test]
    fn many_changes_are_recorded_once_when_they_have_settled() {
        let mut follower = follower();
        for ms in [0, 50, 90] {
            assert_eq!(follower.notice(&Change::Holding { index: TAP }, at(ms)), []);
        }
        assert_eq!(follower.deadline(), Some(at(190)));
        assert_eq!(follower.due(at(189)), []);
        assert_eq!(follower.due(at(190)), [Order::Record]);
        assert_eq!((follower.due(at(500)), follower.deadline()), (vec![], None));
    }

    #[test]
    fn changes_that_never_settle_are_recorded_all_the_same() {
        let mut follower = follower();
        let mut records = 0;
        for ms in (0..10_000).step_by(20) {
            _ = follower.notice(&Change::Holding { index: TAP }, at(ms));
            records += follower.due(at(ms)).len();
        }
        assert!((9..=11).contains(&records), "{records}");
    }

    #[test]
    fn a_record_that_takes_long_is_written_less_often() {
        let mut follower = follower();
        _ = follower.notice(&Change::Holding { index: TAP }, at(0));
        assert_eq!(follower.due(at(100)), [Order::Record]);
        follower.recorded(Duration::from_millis(500), at(600));
        _ = follower.notice(&Change::Holding { index: TAP }, at(700));
        assert_eq!(follower.due(at(10_599)), []);
        assert_eq!(follower.due(at(10_600)), [Order::Record]);
    }

    #[test]
    fn what_the_nic_gets_moves_but_a_program_that_insists_makes_no_work() {
        let mut follower = follower();
        let mut adoptions = 0;
        for ms in 0..5_000 {
            _ = follower.notice(&Change::Holding { index: NIC }, at(ms));
            adoptions +=
                follower.due(at(ms)).iter().filter(|order| **order == Order::Adopt).count();
        }
        assert!((3..=6).contains(&adoptions), "{adoptions}");
    }

    #[test]
    fn lost_reports_mean_that_everything_may_have_changed() {
        let mut follower = follower();
        assert_eq!(follower.notice(&Change::Unknown, at(0)), [Order::Names]);
        assert_eq!(follower.due(at(100)), [Order::Adopt, Order::Record]);
    }

    #[test]
    fn without_a_tap_only_names_are_followed() {
        let mut follower = Follower::new(vec![seen("eth1")], None);
        _ = follower.notice(&Change::Unknown, at(0));
        _ = follower.notice(&Change::Holding { index: NIC }, at(0));
        assert_eq!(follower.due(at(5_000)), []);
        assert_eq!(follower.notice(&link(NIC, "lan", 1400, false), at(0)), [Order::Names]);
    }
}
