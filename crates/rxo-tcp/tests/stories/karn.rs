//! Retransmitted data gives no round-trip sample (RFC 6298, section 3; Karn), neither on the fast path of
//! acknowledgements nor by single segments, with timestamps and without. The plain cases are in
//! `timers.rs` and `recovery.rs`.
//!
//! ACKs do not take the fast path while data is lost or being recovered. But after a spurious retransmission
//! the connection is calm while retransmitted data is still outstanding, after data that was sent only once.

use proptest::prelude::*;
use rxo_frame::{Duration, Instant};
use rxo_tcp::{Arrival, Config, RecoveryPhase};

use crate::dsl::*;

/// The way in which pure ACKs reach the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// All ACKs that arrive together, in one pass.
    Run,
    /// One segment after the other.
    Single,
}

/// A connection, and a naive record of its sends: the time at which each byte was first sent, and `true` if
/// it was retransmitted.
struct Watched {
    scene: Scene,
    way: Way,
    has_timestamps: bool,
    sent: Vec<(Instant, bool)>,
    /// The time at which the connection opened, which all timestamps echo.
    echoed_at: Instant,
    /// The number of acknowledged bytes.
    acked: usize,
    srtt: Duration,
}

impl Watched {
    fn new(way: Way, has_timestamps: bool) -> Self {
        let scene = Scene::established(Config { timestamps: has_timestamps, ..with_sack() });
        let srtt = scene.tcp.statistics().srtt.expect("the handshake is a sample");
        let sent = Vec::new();
        let echoed_at = scene.now;
        let mut watched = Self { scene, way, has_timestamps, sent, echoed_at, acked: 0, srtt };
        // A path that has carried no full segment yet is watched by MTU discovery, and then no ACK takes the
        // fast path.
        let mss = watched.scene.tcp.statistics().mss as usize;
        watched.sends(mss);
        watched.passes(ms(10));
        watched.is_acknowledged(&[mss]);
        watched
    }

    /// Records everything that leaves now.
    fn leaves(&mut self) {
        for line in self.scene.out() {
            let range = line.split(' ').nth(1).and_then(|range| range.split_once(':'));
            let (start, end) = range.expect("two numbers");
            let place = |number: &str| number.parse::<usize>().expect("a number") - 1;
            for at in place(start)..place(end) {
                match self.sent.get_mut(at) {
                    Some(again) => again.1 = true,
                    None => self.sent.push((self.scene.now, false)),
                }
            }
        }
    }

    fn sends(&mut self, bytes: usize) {
        _ = self.scene.tcp.send(&vec![7; bytes]);
        self.leaves();
    }

    /// Lets `time` pass; timers fire when due.
    fn passes(&mut self, time: Duration) {
        let end = self.scene.now + time;
        while let Some(at) = self.scene.tcp.poll_at().filter(|at| *at <= end) {
            self.scene.now = self.scene.now.max(at);
            self.scene.tcp.on_timeout(self.scene.now);
            self.leaves();
        }
        self.scene.now = end;
    }

    /// Sends three segments; a probe retransmits the last of them, then a timeout the first.
    fn is_sent_again(&mut self) {
        for _ in 0..3 {
            self.sends(self.scene.tcp.statistics().mss as usize);
            self.passes(ms(1));
        }
        self.passes(ms(300));
    }

    /// Sends and retransmits segments like [`Watched::is_sent_again`], then acknowledges a part of the second
    /// segment, which shows that nothing was lost.
    fn is_sent_again_needlessly(&mut self, part: usize) {
        self.is_acknowledged(&[self.sent.len()]);
        self.is_sent_again();
        let mss = self.scene.tcp.statistics().mss as usize;
        self.sends(2 * mss);
        let first = (self.acked + mss).min(self.sent.len());
        self.is_acknowledged(&[first]);
        self.is_acknowledged(&[(first + part).min(self.sent.len())]);
    }

    /// Returns the end of the data that was sent together with the byte at `at`.
    fn edge_after(&self, at: usize) -> usize {
        let same = self.sent[at..].iter().take_while(|byte| **byte == self.sent[at]);
        at + same.count()
    }

    /// Returns the expected sample of an acknowledgement of `covered`: the time since its latest byte was
    /// sent, if all was sent once. Otherwise the timestamp may give it (RFC 7323, section 4): it echoes the
    /// first of the covered bytes, if that was sent once.
    fn sample(&self, covered: &[(Instant, bool)]) -> Option<Duration> {
        let last = covered.iter().map(|byte| byte.0).max()?;
        if covered.iter().all(|byte| !byte.1) {
            return Some(self.scene.now.since(last));
        }
        let is_echoed = self.has_timestamps && !covered[0].1;
        is_echoed.then(|| self.scene.now.since(self.echoed_at))
    }

    /// Acknowledges all bytes before each of `acks`, counted from 0. The timestamps echo the handshake,
    /// because the originals of retransmitted data had arrived. Checks the smoothed round-trip time against
    /// the record.
    fn is_acknowledged(&mut self, acks: &[usize]) {
        let mut peers = Vec::new();
        for to in acks.iter().copied().filter(|to| *to > 0) {
            let peer = seg().ack(1 + to as u32);
            peers.push(if self.has_timestamps { peer.ts(1, 10) } else { peer });
            let covered = &self.sent[self.acked.min(to)..to];
            if let Some(sample) = self.sample(covered) {
                self.srtt = (self.srtt * 7 + sample) / 8;
            }
            self.acked = self.acked.max(to);
        }
        match self.way {
            Way::Single => peers.into_iter().for_each(|peer| self.scene.gets(peer)),
            Way::Run => {
                let records = peers.into_iter().map(|peer| self.scene.record(peer));
                let arrival = Arrival::acks(records.collect::<Vec<_>>());
                self.scene.tcp.on_arrival(self.scene.now, arrival);
            }
        }
        let seen = self.scene.tcp.statistics().srtt;
        assert_eq!(seen, Some(self.srtt), "{:?}, timestamps {}", self.way, self.has_timestamps);
        self.leaves();
    }
}

/// The timeout has retransmitted the first of three segments, and the probe before it the last; neither was
/// lost. The data between them gives a sample; the retransmitted data gives none, even in the same pass or by
/// the same ACK.
#[test]
fn what_was_sent_again_is_no_sample_behind_what_was_sent_once() {
    for (way, has_timestamps, is_by_one) in [Way::Run, Way::Single]
        .into_iter()
        .flat_map(|way| [false, true].map(|has_timestamps| (way, has_timestamps)))
        .flat_map(|(way, stamps)| [false, true].map(|is_by_one| (way, stamps, is_by_one)))
    {
        let mut watched = Watched::new(way, has_timestamps);
        let mss = watched.scene.tcp.statistics().mss as usize;
        let [first, second, third, end, next] = [1, 2, 3, 4, 5].map(|number| number * mss);
        watched.is_sent_again();
        let again = [first, second, third].map(|at| watched.sent[at].1);
        assert_eq!(again, [true, false, true], "by the timeout, and as a probe");
        // New text for F-RTO (RFC 5682), which detects the spurious timeout with two ACKs; a timestamp does
        // with one (RFC 3522). Then the connection is calm.
        watched.sends(2 * mss);
        watched.is_acknowledged(&[second]);
        watched.is_acknowledged(&[second + 500]);
        let phase = watched.scene.tcp.statistics().recovery.phase;
        assert!(matches!(phase, RecoveryPhase::Open | RecoveryPhase::Reduced), "{phase:?}");
        match is_by_one {
            true => watched.is_acknowledged(&[second + 700, end]),
            false => watched.is_acknowledged(&[second + 700, third, third + 100, end]),
        }
        // Data sent once gives a sample again.
        let before = watched.srtt;
        watched.passes(ms(30));
        watched.is_acknowledged(&[next]);
        assert_ne!(watched.srtt, before);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is sent, retransmitted and acknowledged, the round-trip time equals the record's.
    #[test]
    fn the_round_trip_is_that_of_what_was_sent_once(
        is_run in any::<bool>(),
        has_timestamps in any::<bool>(),
        script in prop::collection::vec((0_u8..8, 1_usize..1_000), 1..40),
    ) {
        let mut watched = Watched::new(if is_run { Way::Run } else { Way::Single }, has_timestamps);
        for (what, number) in script {
            let out = watched.sent.len() - watched.acked;
            match what {
                0 | 1 => watched.sends(number * 4),
                2 => watched.passes(ms(1)),
                // Long enough for probes and timeouts.
                3 => watched.passes(ms(number as u64 / 8)),
                4 => watched.passes(ms(number as u64)),
                5 => watched.is_acknowledged(&[watched.acked + out * number / 1_000]),
                6 => watched.is_sent_again_needlessly(number),
                _ => {
                    // ACKs at a boundary between send times, and beyond.
                    let edge = watched.edge_after(watched.acked + out * number / 4_000);
                    let behind = (watched.sent.len() - edge) * number / 1_000;
                    watched.is_acknowledged(&[edge, edge + behind / 2, edge + behind]);
                }
            }
        }
    }
}
