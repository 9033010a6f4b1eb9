//! Simulates a cast on virtual time: the link has a rate, and the sender's processor a speed. A turn takes
//! the time of its counted instructions. The result is the same on any machine.

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Instant;
use rxo::host::Turn;
use serde::Serialize;

use super::card::Card;
use super::model::{Counts, Network, least_time};
use super::sender::{Case, Sender};

/// Cost of the sender's work, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Costs {
    pub(super) ack_ns: f64,
    pub(super) segment_ns: f64,
}

/// The result of one cast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Cast {
    pub(super) bits_per_s: f64,
    pub(super) bytes: u64,
    /// Seconds from the first byte until the last receiver is done.
    pub(super) seconds: f64,
    /// This time in percent of what the link alone takes.
    percent: f64,
    /// Seconds for which the sender's processor worked.
    pub(super) busy_seconds: f64,
    pub(super) acks: u64,
}

/// Sends `bytes` to `receivers` over a link of `bits_per_s`.
pub(super) fn cast(case: Case, bits_per_s: f64, bytes: u64, costs: Costs) -> Result<Cast> {
    let mut scene = Scene::open(case, bits_per_s)?;
    let (begun, before) = (scene.now, scene.network.counts().acks);
    scene.sender.start(bytes);
    let mut busy = Duration::ZERO;
    while scene.sender.done < case.receivers {
        scene.sender.feed(true);
        busy += scene.step(costs)?;
        scene.sender.process_events()?;
        ensure!(scene.now.since(begun) < TIMEOUT, "{} are done", scene.sender.done);
    }
    let Counts { acks, bytes: came, repairs, .. } = scene.network.counts();
    ensure!((came, repairs) == (bytes, 0), "{came} bytes came, {repairs} repairs");
    let seconds = scene.now.since(begun).as_secs_f64();
    Ok(Cast {
        bits_per_s,
        bytes,
        seconds,
        percent: 100.0 * seconds / least_time(bytes, bits_per_s).as_secs_f64(),
        busy_seconds: busy.as_secs_f64(),
        acks: acks - before,
    })
}

/// A sender, its card, and its receivers.
pub(super) struct Scene {
    pub(super) card: Card,
    pub(super) sender: Sender<Card, Card>,
    pub(super) network: Network,
    pub(super) now: Instant,
    segments: u64,
}

impl Scene {
    /// Opens a cast over a link of `bits_per_s`, and waits until its receivers have joined.
    pub(super) fn open(case: Case, bits_per_s: f64) -> Result<Self> {
        let card = Card::new();
        let sender = Sender::new((card.clone(), card.clone()), case)?;
        let network = Network::new(case.receivers, bits_per_s);
        let now = Instant::from_micros(1_000_000);
        let mut scene = Self { card, sender, network, now, segments: 0 };
        let free = Costs { ack_ns: 0.0, segment_ns: 0.0 };
        while scene.sender.joined < case.receivers {
            scene.step(free)?;
            scene.sender.process_events()?;
            ensure!(scene.now < Instant::ZERO + TIMEOUT, "the receivers do not come");
        }
        Ok(scene)
    }

    /// Runs a turn of the sender, and the network up to it. Returns the time that the sender worked.
    fn step(&mut self, costs: Costs) -> Result<Duration> {
        self.carry()?;
        self.card.set_now(self.now);
        let turn = self.sender.turn(self.now)?;
        let worked = self.worked(turn, costs);
        if worked.is_zero() && turn.is_idle() {
            self.now = self.next_event();
        } else {
            self.now = self.now + worked.max(LEAST_TURN);
        }
        Ok(worked)
    }

    /// Moves frames: the link takes as many as it accepts, and delivers those due by now.
    fn carry(&mut self) -> Result<()> {
        let Self { card, network, now, .. } = self;
        let mut arrive = |frame: &[u8]| card.arrive(frame);
        // Sending one frame may make the next due, so each is checked again.
        while network.has_room(*now) {
            let Some(sent) = card.take() else { break };
            network.take(&sent.headers, sent.at, &mut arrive)?;
        }
        network.on_time(*now, &mut arrive)?;
        Ok(())
    }

    fn worked(&mut self, turn: Turn, costs: Costs) -> Duration {
        let segments = self.card.segments();
        let sent = segments - std::mem::replace(&mut self.segments, segments);
        let ns = turn.frames as f64 * costs.ack_ns + sent as f64 * costs.segment_ns;
        Duration::from_nanos(ns as u64)
    }

    fn next_event(&self) -> Instant {
        let network = self.network.poll_at(self.card.handed_over_at().is_some());
        let next = [network, self.sender.host.poll_at()].into_iter().flatten().min();
        next.unwrap_or(self.now + LEAST_TURN).max(self.now + LEAST_TURN)
    }
}

/// Minimum duration of a turn, so that time always advances.
const LEAST_TURN: Duration = Duration::from_nanos(100);
const TIMEOUT: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smo::sender::Way;

    const fn case(way: Way) -> Case {
        Case { way, receivers: 20 }
    }

    const COSTS: Costs = Costs { ack_ns: 1_000.0, segment_ns: 500.0 };

    #[test]
    fn a_fast_processor_takes_as_long_as_the_link() {
        let (rate, bytes) = (100e6, 4_000_000);
        let one = cast(case(Way::Fast), rate, bytes, COSTS).unwrap();
        let least = least_time(bytes, rate).as_secs_f64();
        assert!(one.seconds >= least && one.seconds < 1.05 * least, "{one:?}, {least}");
        let again = cast(case(Way::Fast), rate, bytes, COSTS).unwrap();
        assert_eq!(one, again, "deterministic");
    }

    #[test]
    fn a_slow_processor_takes_as_long_as_its_acknowledgements() {
        let slow = Costs { ack_ns: 200_000.0, ..COSTS };
        let (rate, bytes) = (100e6, 4_000_000);
        let one = cast(case(Way::Stack), rate, bytes, slow).unwrap();
        let work = one.acks as f64 * 200e-6;
        assert!(one.seconds >= work && one.seconds < 1.1 * work, "{one:?}, {work}");
        assert!(one.acks >= bytes / 1_448 / 16 * 20, "{one:?}");
    }
}
