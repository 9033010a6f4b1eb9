//! The congestion control of a group: one window, led by the receiver with the worst path.
//!
//! Separate from the windows of the connections. If the smallest window of all connections limited a group,
//! every loss of every receiver would slow the group down: with independent losses the rate drops to zero as
//! receivers are added (RFC 2887, section 3.3.2.2). Here only the leader's losses lower the window, once per
//! round trip, and only the leader's ACKs enlarge it. So the group sends at the same rate as one
//! connection to its worst receiver (pgmcc, Rizzo 2000; RFC 4654, section 2). The worst path is the path on
//! which a TCP connection would have the lowest rate, which is proportional to the square root of the distance
//! between losses, divided by the round-trip time (Mathis et al. 1997). The receive windows of all receivers
//! still limit the group, and repairs count as in flight for a round trip. A loss without a queue lowers the
//! window less (Veno), because a bad link has caused it, not congestion.
//!
//! The group's segments name the leader, and the leader acknowledges each segment at once. Thus a small window
//! does not wait for delayed ACKs.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use rxo_frame::{Duration, Instant};
use rxo_wire::SeqNumber;

use super::{Control, Group, GroupConfig, MemberId};
use crate::congestion::{Acked, Congestion};
use crate::{Algorithm, Config, Connection, GroupEdge};

/// The congestion control of a group and its state. Positions are offsets in the stream.
#[derive(Debug)]
pub(super) struct Controller {
    congestion: Congestion,
    leader: Option<MemberId>,
    /// The name of the leader in the group's segments; 0 if there is no leader.
    name: u32,
    /// The number of bytes that have reached the leader, in order or not.
    delivered: u64,
    /// The number of bytes of the stream that are no longer in flight to the leader: received by the leader, or lost.
    settled: u64,
    round_trip_ns: u64,
    /// The shortest round trip of the leader.
    least_round_trip_ns: u64,
    /// The stream position up to which data had been sent when the window was last lowered.
    lowered_until: u64,
    /// The repairs sent within the last round trip, each with its time and its length in bytes; `repairing`
    /// is the sum of the lengths.
    repairs: VecDeque<(Instant, u32)>,
    repairing: u32,
}

/// The state of the path to one receiver, for congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathState {
    /// The name of the receiver in the group's segments.
    name: u32,
    /// The number of loss events of the receiver's connection that have been counted.
    loss_events: u32,
    /// The mean distance between losses in bytes; 0 before the first.
    distance: u64,
    /// The stream position of the receiver's last loss.
    lost_at: u64,
    round_trip_ns: u64,
    least_round_trip_ns: u64,
    /// The number of bytes that had reached the receiver at its last event, in order or not.
    pub(super) delivered: u64,
    /// The arrival time of the receiver's last segment other than an in-order ACK.
    pub(super) last_arrival_at: Instant,
}

/// The state of a receiver after an event of its connection, for congestion control.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiverReport {
    una: u64,
    delivered: u64,
    settled: u64,
    loss_events: u32,
    round_trip_ns: u64,
    has_timed_out: bool,
    /// The arrival time of the receiver's last segment that updated its timestamp.
    last_arrival_at: Instant,
}

impl ReceiverReport {
    pub(super) fn of<B: AsRef<[u8]>>(edge: &GroupEdge, una: u64, from: &Connection<B>) -> Self {
        let outstanding = (edge.nxt - edge.una).unsigned_abs();
        Self {
            una,
            delivered: una + u64::from(edge.sacked),
            settled: una + u64::from(outstanding.saturating_sub(edge.in_flight)),
            loss_events: edge.loss_events,
            round_trip_ns: from.round_trip_ns(),
            has_timed_out: from.has_timed_out(),
            last_arrival_at: from.timestamps.recent_at(),
        }
    }
}

impl PathState {
    pub(super) fn new(address: IpAddr) -> Self {
        let name = Connection::<&[u8]>::name(address);
        Self {
            name,
            loss_events: 0,
            distance: 0,
            lost_at: 0,
            round_trip_ns: 0,
            least_round_trip_ns: u64::MAX,
            delivered: 0,
            last_arrival_at: Instant::ZERO,
        }
    }

    /// Counts a loss event of the receiver. `report` is the report that shows the loss event.
    fn note_loss(&mut self, report: &ReceiverReport) {
        let distance = report.una.saturating_sub(self.lost_at).max(1);
        self.distance = match self.distance {
            0 => distance,
            mean => (mean * (WEIGHT - 1) + distance) / WEIGHT,
        };
        self.lost_at = self.lost_at.max(report.una);
    }

    /// Returns `true` if this path is clearly worse than the path `other`. Then the receiver of this path must
    /// become the leader.
    fn is_worse_than(&self, other: &Self, una: u64) -> bool {
        let cost = |path: &Self, of: &Self| {
            u128::from(path.round_trip_ns).pow(2) * u128::from(of.distance_at(una))
        };
        cost(self, other) * 9 > cost(other, self) * 16
    }

    /// Returns the distance between losses on this path in bytes: the mean, or the distance since the last
    /// loss if that is longer.
    fn distance_at(&self, una: u64) -> u64 {
        self.distance.max(una.saturating_sub(self.lost_at)).max(1)
    }
}

impl Controller {
    pub(super) fn of(config: &GroupConfig) -> Option<Self> {
        let congestion = || {
            Congestion::new(
                &Config { congestion: Algorithm::Reno, ..Config::default() },
                config.largest_segment_bytes,
            )
        };
        (config.control == Control::Leader).then(|| Self {
            congestion: congestion(),
            leader: None,
            name: 0,
            delivered: 0,
            settled: 0,
            round_trip_ns: 0,
            least_round_trip_ns: u64::MAX,
            lowered_until: 0,
            repairs: VecDeque::new(),
            repairing: 0,
        })
    }

    pub(super) fn leader(&self) -> Option<MemberId> {
        self.leader
    }

    #[inline]
    pub(super) fn is_led_by(&self, id: MemberId) -> bool {
        self.leader == Some(id)
    }

    pub(super) fn release_at(&self) -> Option<Instant> {
        self.congestion.release_at()
    }

    pub(super) fn release(&mut self, now: Instant) {
        self.congestion.release(now);
    }

    /// Processes a report about the leader. `una`, `delivered` and `settled` are its acknowledged bytes, its
    /// received bytes, and the bytes of the stream that are no longer in flight to it. `nxt` is the position up
    /// to which data has been sent, `mss` the payload of a full segment in bytes.
    #[inline]
    pub(super) fn advance(
        &mut self,
        (una, delivered, settled): (u64, u64, u64),
        round_trip_ns: u64,
        (now, nxt, mss): (Instant, u64, u32),
    ) {
        let bytes = delivered.saturating_sub(self.delivered);
        (self.delivered, self.settled) = (self.delivered.max(delivered), settled);
        self.round_trip_ns = round_trip_ns;
        self.least_round_trip_ns = shorter(self.least_round_trip_ns, round_trip_ns);
        if bytes == 0 || una < self.lowered_until {
            return;
        }
        if self.congestion.mss() != mss {
            self.congestion.set_mss(mss);
        }
        self.congestion.on_ack(&Acked {
            now,
            bytes: bytes as u32,
            rtt: Duration::from_nanos(round_trip_ns),
            ack: SeqNumber(delivered as u32),
            nxt: SeqNumber(nxt as u32),
            sample_ns: Some(round_trip_ns),
            after_timeout: false,
        });
    }

    /// Lowers the window for a loss of data sent before `nxt`. If the leader has timed out, the window
    /// becomes `timed_out` bytes, one segment.
    fn lower(&mut self, nxt: u64, timed_out: Option<u32>) {
        self.lowered_until = nxt;
        let flight = self.congestion.flight().min(self.congestion.cwnd());
        let lowered = if self.has_queue(flight) { flight / 2 } else { flight / 5 * 4 };
        self.congestion.on_loss(flight);
        let window = lowered.max(self.congestion.ssthresh());
        self.congestion.set_cwnd(timed_out.unwrap_or(window));
    }

    /// Ends slow start at the first loss of any receiver once a queue has grown. At this time the worst
    /// receiver is not known yet. If the window doubled once more, repairs would wait behind a long queue.
    fn end_slow_start(&mut self, report: &ReceiverReport, nxt: u64) {
        let is_starting = self.congestion.is_starting() && report.una >= self.lowered_until;
        if is_starting && self.has_queue(self.congestion.flight()) {
            self.lower(nxt, None);
        }
    }

    /// Returns `true` if the round-trip time shows that data of this sender waits in a queue. A loss is then
    /// caused by congestion (Veno; Fu and Liew 2003, section 3).
    fn has_queue(&self, flight: u32) -> bool {
        let waits_ns = self.round_trip_ns.saturating_sub(self.least_round_trip_ns);
        let queued = u128::from(flight) * u128::from(waits_ns);
        let least = u128::from(QUEUED_SEGMENTS * self.congestion.mss());
        queued >= least * u128::from(self.round_trip_ns)
    }

    fn choose_leader(&mut self, id: MemberId, path: &PathState, report: &ReceiverReport) {
        (self.leader, self.name) = (Some(id), path.name);
        self.round_trip_ns = path.round_trip_ns;
        self.least_round_trip_ns = path.least_round_trip_ns;
        (self.delivered, self.settled) = (report.delivered, report.settled);
    }

    /// Returns the number of bytes in flight to the leader before `nxt`, repairs of the last round trip
    /// included.
    fn in_flight(&self, nxt: u64) -> u32 {
        (nxt.saturating_sub(self.settled) as u32).saturating_add(self.repairing)
    }

    /// Returns the stream position up to which new data after `nxt` may be sent.
    fn limit(&self, nxt: u64, mss: u32) -> u64 {
        let allowed = self.congestion.allowed(self.in_flight(nxt));
        // If nothing is in flight, no ACK would come, so one segment is allowed.
        let least = if nxt <= self.settled { mss } else { 0 };
        nxt + u64::from(allowed.max(least))
    }

    pub(super) fn count_repairs(&mut self, bytes: u32, now: Instant) {
        if bytes > 0 {
            self.repairs.push_back((now, bytes));
            self.repairing = self.repairing.saturating_add(bytes);
        }
    }

    /// Removes the repairs that were sent more than a round trip ago.
    #[inline]
    pub(super) fn forget_repairs(&mut self, now: Instant) {
        while let Some((at, bytes)) = self.repairs.front().copied()
            && at.plus_nanos(self.round_trip_ns) <= now
        {
            self.repairs.pop_front();
            self.repairing = self.repairing.saturating_sub(bytes);
        }
    }
}

impl Group {
    /// Updates the group's congestion control from the report of a member that follows the group.
    pub(super) fn control(&mut self, id: MemberId, report: ReceiverReport, now: Instant) {
        let Self { controller: Some(controller), members, nxt, mss, .. } = self else { return };
        let leaders = controller.leader.and_then(|id| members.get(id as usize)?.as_ref());
        let leaders = leaders.map(|leader| leader.path);
        let Some(Some(member)) = members.get_mut(id as usize) else { return };
        let path = &mut member.path;
        (path.round_trip_ns, path.last_arrival_at) = (report.round_trip_ns, report.last_arrival_at);
        path.delivered = report.delivered;
        path.least_round_trip_ns = shorter(path.least_round_trip_ns, report.round_trip_ns);
        let has_lost = path.loss_events != report.loss_events;
        path.loss_events = report.loss_events;
        if has_lost {
            path.note_loss(&report);
        }
        if !controller.is_led_by(id) {
            // A receiver that has timed out may be gone, so it does not become the leader; `silent.rs`
            // handles it.
            let is_worse = |leader| path.is_worse_than(&leader, report.una);
            let leads = match leaders {
                Some(leader) => has_lost && !report.has_timed_out && is_worse(leader),
                None => true,
            };
            if !leads {
                if has_lost {
                    controller.end_slow_start(&report, *nxt);
                }
                return;
            }
            // The loss by which a receiver becomes the leader does not lower the window: among many
            // receivers, one has always just lost more than the others.
            return controller.choose_leader(id, path, &report);
        }
        // The window is lowered only once for all data sent within a round trip.
        if has_lost && report.una >= controller.lowered_until {
            controller.lower(*nxt, report.has_timed_out.then_some(*mss));
        }
        let at = (report.una, report.delivered, report.settled);
        controller.advance(at, report.round_trip_ns, (now, *nxt, *mss));
    }

    /// Removes the member as the leader, if it is the leader. The next member with an event then becomes the leader.
    pub(super) fn end_lead(&mut self, id: MemberId) {
        if let Some(controller) = self.controller.as_mut().filter(|it| it.is_led_by(id)) {
            (controller.leader, controller.name) = (None, 0);
            controller.settled = self.nxt;
        }
    }

    /// Lowers the window because the leader is silent, and removes the leader. The next member with an event
    /// then becomes the leader.
    pub(super) fn replace_leader(&mut self) {
        let Some(controller) = &mut self.controller else { return };
        controller.lower(self.nxt, None);
        if let Some(leader) = controller.leader {
            self.end_lead(leader);
        }
    }

    /// Returns `true` if there is no leader, so that the next member with an event becomes the leader.
    #[inline]
    pub(super) fn lacks_leader(&self) -> bool {
        self.controller.as_ref().is_some_and(|it| it.leader.is_none())
    }

    pub(super) fn is_leader(&self, id: MemberId) -> bool {
        self.controller.as_ref().is_some_and(|it| it.is_led_by(id))
    }

    /// Returns the name of the leader for the group's segments; 0 if there is no leader.
    pub(super) fn leader_name(&self) -> u32 {
        self.controller.as_ref().map_or(0, |it| it.name)
    }

    /// Returns the position up to which the congestion control of the group allows new data.
    pub(super) fn controlled_limit(&self) -> u64 {
        self.controller.as_ref().map_or(u64::MAX, |it| it.limit(self.nxt, self.mss))
    }

    /// Notifies the congestion control that sending stops now. `waits` is `true` if data waits for receivers or
    /// for the window.
    pub(super) fn hold(&mut self, waits: bool, now: Instant) {
        let least = self.nxt + u64::from(self.mss);
        let is_by_window = waits && self.controlled_limit() < least.min(self.tree.least().limit);
        if let Some(controller) = &mut self.controller {
            let in_flight = controller.in_flight(self.nxt);
            controller.congestion.on_held(now, is_by_window, in_flight);
            if waits || self.is_buffer_full() {
                self.expect_silence(now);
            }
        }
    }
}

/// Returns the shorter of two round trips. `sample_ns` is 0 if the connection has not measured any.
fn shorter(least_ns: u64, sample_ns: u64) -> u64 {
    if sample_ns == 0 { least_ns } else { least_ns.min(sample_ns) }
}

/// The minimum number of queued segments with which a loss counts as congestion (Veno's beta).
const QUEUED_SEGMENTS: u32 = 3;
/// The reciprocal of the weight (1/8) of the latest distance between losses in the moving average.
const WEIGHT: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// With 0 as the shortest round trip, every loss would look like congestion.
    #[test]
    fn a_round_trip_that_was_not_measured_is_not_the_shortest() {
        let samples = [0, 900, 0, 400, 700];
        let least = samples.iter().fold(u64::MAX, |least, sample| shorter(least, *sample));
        assert_eq!(least, 400);
    }
}
