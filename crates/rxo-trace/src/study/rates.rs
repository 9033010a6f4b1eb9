//! The rates of a live interface over time: the rate of all packets, and the rate of the packets for each
//! receiving address.
//!
//! This module is separate from the `course`, which has no receivers and adapts to captures of unknown length.
//! Here the length is known in advance, so steps have a fixed length and memory has a fixed bound:
//! [`MOST_RECEIVERS`] times [`MOST_STEPS`] steps, and a byte for each flow.

use core::net::IpAddr;
use core::time::Duration;

use rxo_frame::Instant;
use rxo_wire::FlowKey;

use super::flows::NO_FLOW;
use crate::projection::Costs;

/// The maximum number of receiving addresses with steps of their own. Packets for other addresses count only in
/// the total.
const MOST_RECEIVERS: usize = 64;
/// The maximum number of time steps in which a study counts packets.
const MOST_STEPS: u64 = 300;
/// The shortest step. Shorter steps would show bursts that do not appear in the load average of a host.
const SHORTEST: Duration = Duration::from_millis(100);
/// The index in `courses` of the counts of all packets.
const ALL: u8 = 0;
/// The idle time in nanoseconds after which the receiver is assumed to sleep, so that the next packet wakes it.
/// This time is longer than a poll of the device.
const IDLE_NS: u64 = 50_000;
/// The value for a flow whose receiver was not looked up yet.
const UNKNOWN: u8 = u8::MAX;

/// The traffic in one step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RateStep {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// The number of deliveries to the host's stack with the host's current settings.
    pub(crate) frames: u64,
    /// The number of deliveries under the chosen policy.
    pub(crate) deliveries: u64,
    /// The number of times that packets arrived after an idle time.
    pub(crate) wakes: u64,
    /// The sum of [`Costs::coldness`] over these times.
    pub(crate) coldness: f64,
}

/// The counts per time step, for all packets or for the packets to one address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RateCourse {
    /// The receiving address; `None` for all packets.
    pub(crate) address: Option<IpAddr>,
    pub(crate) steps: Vec<RateStep>,
    /// The time at which the last packet arrived; `None` if no packet has arrived yet.
    pub(crate) last: Option<Instant>,
}

/// The rates of a live interface so far.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    pub(crate) step_ns: u64,
    /// The counts over time: for all packets first, then for each receiver in the order of their first packets.
    pub(crate) courses: Vec<RateCourse>,
    /// The index in `courses` for the receiver of each flow, by the number of the flow.
    of_flow: Vec<u8>,
    begin: Option<Instant>,
    /// `true` if the next packet is the first counted packet of a frame that the host received.
    pub(super) begins_frame: bool,
}

impl Rates {
    /// Creates the rates of an interface that is watched for `time`.
    pub(crate) fn new(time: Duration) -> Self {
        let step = (time / MOST_STEPS as u32).max(SHORTEST);
        Self {
            step_ns: u64::try_from(step.as_nanos()).unwrap_or(u64::MAX),
            courses: vec![RateCourse::default()],
            of_flow: Vec::new(),
            begin: None,
            begins_frame: true,
        }
    }

    /// Counts a packet of the flow `flow` that arrived at `at`.
    pub(super) fn arrive(&mut self, flow: u32, key: Option<&FlowKey>, at: Instant, bytes: u64) {
        let frames = u64::from(core::mem::take(&mut self.begins_frame));
        let course = self.course_of(flow, key);
        self.step(course, at, |course, step| {
            let idle_ns = course.last.map(|last| at.nanos_since(last));
            course.last = Some(at);
            let step = &mut course.steps[step];
            if idle_ns.is_none_or(|idle_ns| idle_ns > IDLE_NS) {
                step.wakes += 1;
                step.coldness += Costs::coldness(idle_ns.unwrap_or_default() as f64);
            }
            step.packets += 1;
            step.bytes += bytes;
            step.frames += frames;
        });
    }

    /// Counts a delivery of packets of the flow `flow` at `at`.
    pub(super) fn deliver(&mut self, flow: u32, at: Instant) {
        let course = self.of_flow.get(flow as usize).copied().unwrap_or(ALL);
        self.step(course, at, |course, step| course.steps[step].deliveries += 1);
    }

    /// Returns the index in `courses` for the receiver of the flow. Adds an entry if the receiver is new.
    fn course_of(&mut self, flow: u32, key: Option<&FlowKey>) -> u8 {
        let Some(key) = key.filter(|_| flow != NO_FLOW) else { return ALL };
        let number = flow as usize;
        if self.of_flow.len() <= number {
            self.of_flow.resize(number + 1, UNKNOWN);
        }
        if self.of_flow[number] == UNKNOWN {
            let address = Some(key.destination());
            let known = self.courses.iter().position(|course| course.address == address);
            let place = known.or_else(|| {
                let has_room = self.courses.len() <= MOST_RECEIVERS;
                has_room.then(|| {
                    self.courses.push(RateCourse { address, ..RateCourse::default() });
                    self.courses.len() - 1
                })
            });
            self.of_flow[number] = place.map_or(ALL, |place| place as u8);
        }
        self.of_flow[number]
    }

    /// Applies `change` to the time step that contains `at`: in the counts of all packets, and in those with
    /// the index `course`.
    fn step(&mut self, course: u8, at: Instant, change: impl Fn(&mut RateCourse, usize)) {
        let begin = *self.begin.get_or_insert(at);
        // What is delivered after the end belongs to the last step.
        let step = (at.nanos_since(begin) / self.step_ns).min(MOST_STEPS) as usize;
        let both = if course == ALL { &[ALL][..] } else { &[ALL, course] };
        for index in both {
            let Some(course) = self.courses.get_mut(usize::from(*index)) else { continue };
            if course.steps.len() <= step {
                course.steps.resize(step + 1, RateStep::default());
            }
            change(course, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use rxo_frame::LinkKind;
    use rxo_testkit::seg;

    use super::super::packet_kind::PacketKind;
    use super::*;

    fn key(host: u32) -> FlowKey {
        let bytes = seg().host(host).reply().bytes();
        *PacketKind::read(LinkKind::Ethernet, &bytes).key().unwrap()
    }

    #[test]
    fn each_receiver_has_its_steps_and_the_total_has_all() {
        let mut rates = Rates::new(Duration::from_secs(30));
        assert_eq!(rates.step_ns, 100_000_000);
        let at = |ms: u64| Instant::from_nanos(5_000_000_000 + ms * 1_000_000);
        for (flow, ms, begins_frame) in [(0, 0, true), (0, 1, false), (1, 250, true)] {
            rates.begins_frame = begins_frame;
            rates.arrive(flow, Some(&key(flow)), at(ms), 100);
        }
        rates.begins_frame = true;
        rates.arrive(NO_FLOW, None, at(299), 60);
        rates.deliver(0, at(50));
        rates.deliver(NO_FLOW, at(299));
        let steps = |course: usize| -> Vec<[u64; 5]> {
            let steps = rates.courses[course].steps.iter();
            steps
                .map(|step| [step.packets, step.bytes, step.frames, step.deliveries, step.wakes])
                .collect()
        };
        assert_eq!(steps(0), [[2, 200, 1, 1, 2], [0; 5], [2, 160, 2, 1, 2]]);
        assert_eq!(steps(1), [[2, 200, 1, 1, 2]]);
        assert_eq!(steps(2), [[0; 5], [0; 5], [1, 100, 1, 0, 1]]);
        // Nothing is known of the time before the first packet.
        let coldness = |course: usize, step: usize| rates.courses[course].steps[step].coldness;
        assert_eq!(coldness(0, 0), Costs::coldness(1e6));
        assert_eq!(coldness(0, 2), Costs::coldness(249e6) + Costs::coldness(49e6));
        assert_eq!(coldness(2, 2), 0.0);
    }

    /// A filter may leave out the first packets of a frame.
    #[test]
    fn a_frame_counts_with_the_first_of_its_packets_that_counts() {
        let mut rates = Rates::new(Duration::from_secs(1));
        for is_first in [true, false, false] {
            rates.begins_frame |= is_first;
            if !is_first {
                rates.arrive(0, Some(&key(0)), Instant::from_nanos(1), 100);
            }
        }
        assert_eq!(rates.courses[0].steps[0].frames, 1);
    }

    #[test]
    fn memory_is_bounded_whatever_arrives() {
        let mut rates = Rates::new(Duration::from_secs(1));
        for flow in 0..1_000 {
            let at = Instant::from_nanos(u64::from(flow) * 1_000_000_000);
            rates.arrive(flow, Some(&key(flow)), at, 100);
        }
        assert_eq!(rates.courses.len(), MOST_RECEIVERS + 1);
        assert_eq!(rates.courses[0].steps.len() as u64, MOST_STEPS + 1);
        assert_eq!(rates.courses[0].steps.iter().map(|step| step.packets).sum::<u64>(), 1_000);
    }
}
