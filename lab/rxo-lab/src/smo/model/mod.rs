//! Models the network of a cast: the link ([`wire`]), the receivers behind it, and their [`frames`]. It uses
//! no device and no clock, so it works on virtual time and between processes.

mod frames;
mod receivers;
mod wire;

use std::time::Duration;

use anyhow::Result;
use rxo::Instant;

pub(crate) use self::frames::{GROUP, PORT, SENDER, SENDER_MAC, address};
use self::frames::{Received, received};
pub(crate) use self::receivers::Counts;
use self::receivers::Receivers;
use self::wire::{HEADER_BYTES, OVERHEAD_BYTES, Wire};

/// Payload bytes of a full segment with timestamps, for an MTU of 1,500.
pub(crate) const SEGMENT_BYTES: usize = 1_448;

/// The link and the receivers behind it.
#[derive(Debug)]
pub(crate) struct Network {
    wire: Wire,
    receivers: Receivers,
}

impl Network {
    /// Makes a link of `bits_per_s`, with receivers that have not joined.
    pub(crate) fn new(receivers: usize, bits_per_s: f64) -> Self {
        Self { wire: Wire::new(bits_per_s, SEGMENT_BYTES), receivers: Receivers::new(receivers) }
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.receivers.counts
    }

    /// Returns `true` if the link accepts the card's next frame.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.wire.has_room(now)
    }

    /// Takes a frame that the card has held since `since`; its headers suffice. Passes answers to `send`.
    pub(crate) fn take(
        &mut self,
        frame: &[u8],
        since: Instant,
        send: impl FnMut(&[u8]),
    ) -> Result<()> {
        match received(frame) {
            Received::Text(text) => {
                if self.receivers.expect(text, since)? {
                    self.wire.send(text, since);
                }
                Ok(())
            }
            other => self.receivers.receive(other, since, send),
        }
    }

    /// Passes everything that is due by `now` to `send`: ACKs, and SYNs of receivers that have not joined.
    #[inline]
    pub(crate) fn on_time(&mut self, now: Instant, mut send: impl FnMut(&[u8])) -> Result<()> {
        while let Some(segment) = self.wire.arrived(now) {
            self.receivers.arrives(segment, segment.at, &mut send);
        }
        self.receivers.on_timeout(now, &mut send);
        while let Some(syn) = self.receivers.next_syn(now)? {
            send(&syn);
        }
        Ok(())
    }

    /// Returns the time of the next event; `has_frame` is set if the card has a frame for the link. `None` if
    /// nothing is due.
    pub(crate) fn poll_at(&self, has_frame: bool) -> Option<Instant> {
        let room = has_frame.then(|| self.wire.room_at());
        [self.wire.poll_at(), self.receivers.poll_at(), room].into_iter().flatten().min()
    }
}

/// Returns the minimum time in which a link of this rate carries a stream.
pub(crate) fn least_time(bytes: u64, bits_per_s: f64) -> Duration {
    time_with(OVERHEAD_BYTES, bytes, bits_per_s)
}

/// Returns the minimum time if the limit counts bytes of frames only, as in namespaces.
pub(crate) fn least_time_of_frames(bytes: u64, bits_per_s: f64) -> Duration {
    time_with(HEADER_BYTES, bytes, bits_per_s)
}

fn time_with(overhead_bytes: usize, bytes: u64, bits_per_s: f64) -> Duration {
    let segments = bytes.div_ceil(SEGMENT_BYTES as u64);
    let bits = 8 * (bytes + segments * overhead_bytes as u64);
    Duration::from_secs_f64(bits as f64 / bits_per_s)
}

/// Returns the share of a return link of the same rate that `acks_a_segment` acknowledgements occupy.
pub(crate) fn return_share(acks_a_segment: f64) -> f64 {
    // An ACK frame is longer than Ethernet's minimum, so no padding counts.
    acks_a_segment * OVERHEAD_BYTES as f64 / (SEGMENT_BYTES + OVERHEAD_BYTES) as f64
}
