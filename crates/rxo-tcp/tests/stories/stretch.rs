//! A peer that aggregates acknowledges many segments at once. The window grows by acknowledged bytes, not by
//! the number of acknowledgements (RFC 3465), and the growth by a large acknowledgement leaves a little
//! later.

use std::collections::VecDeque;

use rxo_frame::{Duration, Instant};
use rxo_tcp::{Algorithm, Config};

use crate::dsl::*;

const RTT: Duration = ms(40);
const FILE_BYTES: u32 = 1_000_000;

/// A file in transfer to a peer that acknowledges `aggregate` segments at once, and then the rest of the
/// segments that arrived at one instant.
struct Transfer {
    scene: Scene,
    aggregate: u32,
    /// The acknowledgements in flight: arrival time and ACK number.
    acks: VecDeque<(Instant, u32)>,
    left: u32,
    acked: u32,
    /// The largest number of bytes that left at one instant.
    largest_flight: u32,
}

impl Transfer {
    fn new(congestion: Algorithm, aggregate: u32) -> Self {
        let config = Config {
            congestion,
            window_scaling: true,
            send_buffer_bytes: 2 * FILE_BYTES,
            sent_ranges: 8_192,
            ..with_sack()
        };
        let mut scene = Scene::established(config);
        scene.gets(seg().win(u16::MAX));
        let text = vec![0; FILE_BYTES as usize];
        assert_eq!(scene.tcp.send(&text), Ok(text.len()));
        Self { scene, aggregate, acks: VecDeque::new(), left: 1, acked: 1, largest_flight: 0 }
    }

    /// Sends everything that may leave now, and schedules its acknowledgements.
    fn leave(&mut self) {
        let start = self.left;
        while let Some(transmit) = self.scene.tcp.poll_transmit(self.scene.now) {
            self.left += transmit.payload_bytes() as u32;
        }
        self.largest_flight = self.largest_flight.max(self.left - start);
        let at = self.scene.now + RTT;
        let whole =
            (start + self.aggregate * MSS..self.left).step_by((self.aggregate * MSS) as usize);
        self.acks.extend(whole.chain([self.left]).filter(|end| *end > start).map(|end| (at, end)));
    }

    /// Advances to the next acknowledgement or timer.
    fn step(&mut self) {
        let timer = self.scene.tcp.poll_at();
        match self.acks.front().copied() {
            Some((at, _)) if timer.is_some_and(|timer| timer < at) => {
                self.scene.now = self.scene.now.max(timer.unwrap_or(at));
                self.scene.tcp.on_timeout(self.scene.now);
            }
            Some((at, ack)) => {
                self.acks.pop_front();
                (self.scene.now, self.acked) = (at, ack);
                self.scene.gets(seg().win(u16::MAX).ack(ack));
            }
            None => panic!("nothing is on its way"),
        }
        self.leave();
    }

    /// Returns the time until the whole file is acknowledged, in round trips.
    fn round_trips(&mut self) -> f64 {
        let began = self.scene.now;
        self.leave();
        while self.acked < FILE_BYTES {
            self.step();
        }
        self.scene.now.since(began).as_secs_f64() / RTT.as_secs_f64()
    }
}

/// RFC 3465, section 2.2 (b): the transfer takes about seven round trips, as with a peer that acknowledges
/// every segment. When an acknowledgement counted for at most two segments, it took 13 and 21.
#[test]
fn a_peer_that_aggregates_gets_a_file_as_fast() {
    for congestion in [Algorithm::Reno, Algorithm::Cubic] {
        for aggregate in [1, 2, 10, 44] {
            let round_trips = Transfer::new(congestion, aggregate).round_trips();
            assert!(round_trips < 8.0, "{round_trips} with aggregates of {aggregate} segments");
        }
    }
}

/// RFC 3465, section 2.3 (c): a large acknowledgement releases at most the peer's aggregate plus two
/// segments, as long as such groups are more than a millisecond apart.
#[test]
fn an_aggregate_does_not_become_a_larger_burst() {
    for congestion in [Algorithm::Reno, Algorithm::Cubic] {
        let mut transfer = Transfer::new(congestion, 44);
        transfer.round_trips();
        let segments = transfer.largest_flight / MSS;
        assert!((40..=46).contains(&segments), "{segments}");
    }
}
