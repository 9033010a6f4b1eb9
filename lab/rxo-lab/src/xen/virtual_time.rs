//! Simulates the driver domain's deliveries: packets per aggregate, hold times, and the wait of a request.
//! Time is virtual, so the results are the same on every machine.

use std::time::Duration;

use anyhow::Result;
use rxo::device::{DeviceError, FrameSink, SinkCapabilities, SinkCounters};
use rxo::{Gather, LinkKind, Load};
use serde::Serialize;

use super::Case;
use super::domain::{Domain, packets_an_aggregate};
use super::system::System;
use super::traffic::{FAST_FRAME_TIME, FRAME_TIME, Traffic};
use crate::source::Polls;

/// The result of a bulk transfer through a driver domain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Rate {
    pub(super) packets_an_aggregate: f64,
    /// Median time for which the first segment of a delivery was held, in microseconds.
    pub(super) hold_p50_us: f64,
    pub(super) hold_p99_us: f64,
}

/// The result of a bulk transfer on a link that is ten times as fast, to a busy or an idle guest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Paced {
    #[serde(flatten)]
    pub(super) rate: Rate,
    /// Number of polls; the next field counts those at whose end segments stayed held.
    pub(super) polls: u64,
    pub(super) holding_polls: u64,
}

/// The unread data of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reader {
    /// The guest has much unread data.
    Busy,
    /// The guest has read everything.
    Idle,
}

impl Reader {
    const fn load(self) -> Load {
        match self {
            Self::Busy => BUSY,
            Self::Idle => IDLE,
        }
    }
}

/// The result of single requests through a driver domain.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Exchange {
    /// Median time that a request waited in the driver domain, in microseconds.
    pub(super) held_p50_us: f64,
    pub(super) held_p99_us: f64,
    /// Transactions per second, if each takes the paper's 1/5036 s plus its wait.
    pub(super) per_second: f64,
}

/// Sends `traffic` through the system of `case` to a busy guest.
pub(super) fn rate(case: Case, traffic: &Traffic) -> Result<Rate> {
    Ok(pass(case, Reader::Busy, (traffic, FRAME_TIME))?.rate)
}

/// Sends `traffic` at ten times the paper's rate. At this rate the next poll comes soon enough for `auto` to
/// wait for it.
pub(super) fn paced(case: Case, guest: Reader, traffic: &Traffic) -> Result<Paced> {
    pass(case, guest, (traffic, FAST_FRAME_TIME))
}

/// Sends `traffic` with one frame per `frame_time`. Between polls the domain wakes for its deadlines.
fn pass(
    Case { system, frames_a_poll }: Case,
    guest: Reader,
    (traffic, frame_time): (&Traffic, Duration),
) -> Result<Paced> {
    let mut domain = Domain::new(system, Discard::default())?;
    let load = Some(guest.load());
    let (mut portions, mut next) = (Polls::new(frames_a_poll), 0);
    let (mut polls, mut holding_polls) = (0, 0);
    while next < traffic.len() {
        let end = (next + portions.next()).min(traffic.len());
        let frame = |n| traffic.frame_every(frame_time, n);
        let poll_at = frame(end - 1).arrived_at;
        if let Some(at) = domain.look_at().filter(|at| *at < poll_at) {
            domain.look(load, at)?;
        }
        domain.poll((next..end).map(frame), load)?;
        polls += 1;
        holding_polls += u64::from(domain.look_at().is_some());
        next = end;
    }
    let counters = domain.counters();
    let hold_us = |share| counters.hold_ns.quantile(share) as f64 / 1e3;
    let passed = domain.sink.0;
    let rate = Rate {
        packets_an_aggregate: packets_an_aggregate(counters)
            .unwrap_or(passed.frames as f64 / passed.packets as f64),
        hold_p50_us: hold_us(0.5),
        hold_p99_us: hold_us(0.99),
    };
    Ok(Paced { rate, polls, holding_polls })
}

/// Sends requests one at a time to an idle guest, each in its own poll, after the previous one was answered.
pub(super) fn exchange(system: System, requests: &Traffic) -> Result<Exchange> {
    let mut domain = Domain::new(system, Discard::default())?;
    let (mut now, mut held) = (rxo::Instant::ZERO, Vec::new());
    for n in 0..requests.len() {
        now = now + TRANSACTION;
        let (arrived, before) = (now, domain.sink.0.frames);
        domain.poll(std::iter::once(requests.frame_at(n, now)), Some(IDLE))?;
        while domain.sink.0.frames == before {
            now = domain.look_at().unwrap_or(now) + FRAME_TIME;
            domain.look(Some(IDLE), now)?;
        }
        held.push(now.since(arrived));
    }
    let total: Duration = held.iter().sum();
    let transactions = held.len() as f64;
    held.sort_unstable();
    let at = |share: f64| held[((held.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    Ok(Exchange {
        held_p50_us: at(0.5),
        held_p99_us: at(0.99),
        per_second: transactions / (transactions * TRANSACTION.as_secs_f64() + total.as_secs_f64()),
    })
}

/// Load of a guest with much unread data; the next constant is that of an idle guest.
const BUSY: Load = Load { unread: 64 };
const IDLE: Load = Load { unread: 0 };
/// Duration of a transaction in the paper's Xen, which has 5,036 per second.
const TRANSACTION: Duration = Duration::from_nanos(198_570);

/// A sink that discards packets and counts them.
#[derive(Debug, Default)]
struct Discard(SinkCounters);

impl FrameSink for Discard {
    fn capabilities(&self) -> SinkCapabilities {
        let with_gso = SinkCapabilities::with_gso(LinkKind::Ethernet, 1_500);
        SinkCapabilities { segments_udp: false, ..with_gso }
    }

    fn transmit<'a, G: Gather<'a>>(
        &mut self,
        batch: impl ExactSizeIterator<Item = G>,
    ) -> Result<(), DeviceError> {
        for packet in batch {
            self.0.packets += 1;
            self.0.frames += packet.frame_count() as u64;
        }
        Ok(())
    }

    fn counters(&self) -> SinkCounters {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xen::traffic::SEGMENT_BYTES;

    /// Computes the packets per aggregate directly: every poll, or every second one, gives one aggregate if
    /// it fits.
    fn naive(system: System, frames_a_poll: usize) -> f64 {
        let polls = match system {
            System::Linux | System::Xen => return 1.0,
            System::Lro | System::Bo => 1,
            // A poll of one frame holds one segment, which leaves at once.
            _ if frames_a_poll == 1 => 1,
            System::Da | System::BoDa | System::Pages => 2,
            System::Da4 => 4,
            System::Auto => unreachable!("it has an oracle in its own crate"),
        };
        (frames_a_poll * polls) as f64
    }

    #[test]
    fn aggregates_are_those_of_one_poll_or_of_several() {
        let traffic = Traffic::new(960, SEGMENT_BYTES);
        for system in System::SWEPT.into_iter().filter(|system| *system != System::Auto) {
            // Four polls of 16 do not fit into one packet.
            let most = if system == System::Da4 { 8 } else { 16 };
            for frames in [1, 2, 4, 8, 16].into_iter().filter(|frames| *frames <= most) {
                let case = Case { system, frames_a_poll: frames as f64 };
                let rate = rate(case, &traffic).unwrap();
                let expected = naive(system, frames);
                let ours = rate.packets_an_aggregate;
                assert!((ours - expected).abs() < 0.02 * expected, "{system:?} {frames}: {ours}");
            }
        }
    }

    fn two(system: System) -> Case {
        Case { system, frames_a_poll: 2.0 }
    }

    #[test]
    fn delayed_aggregation_holds_for_so_many_polls_less_one() {
        let traffic = Traffic::new(960, SEGMENT_BYTES);
        // With two polls of two frames, the first segment waits for three more.
        let hold = |system| rate(two(system), &traffic).unwrap().hold_p50_us;
        assert!((hold(System::Da) / (3.0 * 16.667) - 1.0).abs() < 0.1, "{}", hold(System::Da));
        // With four polls of two frames, the first segment waits for seven more.
        assert!((hold(System::Da4) / (7.0 * 16.667) - 1.0).abs() < 0.1, "{}", hold(System::Da4));
        assert!((hold(System::Lro) / 16.667 - 1.0).abs() < 0.1, "{}", hold(System::Lro));
    }

    #[test]
    fn auto_holds_only_for_a_guest_that_is_busy_and_polls_that_come_soon() {
        let traffic = Traffic::new(960, SEGMENT_BYTES);
        let fast = |system, guest| paced(two(system), guest, &traffic).unwrap();
        let busy = fast(System::Auto, Reader::Busy);
        // Of eight consecutive polls of two frames, only the last may not hold.
        assert!(busy.rate.packets_an_aggregate > 15.0, "{busy:?}");
        assert!(busy.holding_polls > busy.polls * 4 / 5, "{busy:?}");
        assert!(busy.rate.hold_p99_us <= 50.0, "{busy:?}");
        for ended in [fast(System::Auto, Reader::Idle), fast(System::Lro, Reader::Busy)] {
            assert_eq!((ended.holding_polls, ended.rate.packets_an_aggregate), (0, 2.0));
        }
        let slow = rate(two(System::Auto), &traffic).unwrap();
        assert_eq!(slow.packets_an_aggregate, 2.0, "at 60,000 the next poll is too late");
    }

    #[test]
    fn a_request_never_waits() {
        let requests = Traffic::new(100, 1);
        for system in System::DOMAINS {
            let exchange = exchange(system, &requests).unwrap();
            assert_eq!(exchange.held_p99_us, 0.0, "{system:?}");
            assert!((exchange.per_second - 5_036.0).abs() < 1.0, "{system:?}");
        }
    }

    /// The reported hold time begins on the wire, so it includes a late turn of the worker.
    #[test]
    fn a_late_turn_counts_as_held_though_auto_holds_nothing() {
        let traffic = Traffic::new(3, SEGMENT_BYTES);
        let late = rxo::Instant::ZERO + Duration::from_micros(120);
        let arrivals = [rxo::Instant::ZERO, rxo::Instant::ZERO, late];
        let mut domain = Domain::new(System::Auto, Discard::default()).unwrap();
        let frames = arrivals.into_iter().enumerate().map(|(n, at)| traffic.frame_at(n, at));
        domain.poll(frames, Some(BUSY)).unwrap();
        assert_eq!(domain.sink.0.frames, 3, "all left at the end of the poll that brought them");
        assert_eq!(domain.look_at(), None, "nothing is held");
        let held_us = domain.counters().hold_ns.quantile(0.99) / 1_000;
        assert!((115..130).contains(&held_us), "{held_us}, more than the 50 of auto");
    }
}
