//! A cast's network, modelled: the link ([`wire`]), the receivers behind it, and their [`frames`]. It knows no device and no
//! clock, so that it serves on virtual time and between processes.

mod frames;
mod receivers;
mod wire;

use std::time::Duration;

use anyhow::Result;
use rxo::Instant;

pub(crate) use self::frames::{GROUP, PORT, SENDER, SENDER_MAC};
use self::frames::{Heard, hear};
pub(crate) use self::receivers::Counts;
use self::receivers::Receivers;
use self::wire::{HEADER_BYTES, OVERHEAD_BYTES, Wire};

/// Text of a full segment with timestamps on an MTU of 1,500.
pub(crate) const SEGMENT_BYTES: usize = 1_448;

/// The link and everything behind it.
#[derive(Debug)]
pub(crate) struct Network {
    wire: Wire,
    receivers: Receivers,
}

impl Network {
    /// Makes a link with this rate, and its receivers. None has joined.
    pub(crate) fn new(receivers: usize, bits_per_s: f64) -> Self {
        Self { wire: Wire::new(bits_per_s, SEGMENT_BYTES), receivers: Receivers::new(receivers) }
    }

    pub(crate) const fn counts(&self) -> Counts {
        self.receivers.counts
    }

    /// Returns true if the link takes the card's next frame.
    pub(crate) fn has_room(&self, now: Instant) -> bool {
        self.wire.has_room(now)
    }

    /// Takes a frame that the card has had since `since`. The headers suffice. Answers go through `send`.
    ///
    /// # Errors
    /// If the sender sends what it must not.
    pub(crate) fn take(
        &mut self,
        frame: &[u8],
        since: Instant,
        send: impl FnMut(&[u8]),
    ) -> Result<()> {
        match hear(frame) {
            Heard::Text(text) => {
                if self.receivers.expect(text, since)? {
                    self.wire.send(text, since);
                }
                Ok(())
            }
            heard => self.receivers.hear(heard, since, send),
        }
    }

    /// Sends through `send` what is due by `now`: acknowledgements, and SYNs of those who have not joined.
    ///
    /// # Errors
    /// None: a SYN fits into its frame.
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

    /// When something is due; `has_frame` if the card has a frame for the link.
    pub(crate) fn poll_at(&self, has_frame: bool) -> Option<Instant> {
        let room = has_frame.then(|| self.wire.room_at());
        [self.wire.poll_at(), self.receivers.poll_at(), room].into_iter().flatten().min()
    }
}

/// The least time in which a link at this rate carries a stream.
pub(crate) fn least_time(bytes: u64, bits_per_s: f64) -> Duration {
    time_with(OVERHEAD_BYTES, bytes, bits_per_s)
}

/// The same where a limit counts bytes of frames, as in namespaces.
pub(crate) fn least_time_of_frames(bytes: u64, bits_per_s: f64) -> Duration {
    time_with(HEADER_BYTES, bytes, bits_per_s)
}

fn time_with(overhead_bytes: usize, bytes: u64, bits_per_s: f64) -> Duration {
    let segments = bytes.div_ceil(SEGMENT_BYTES as u64);
    let bits = 8 * (bytes + segments * overhead_bytes as u64);
    Duration::from_secs_f64(bits as f64 / bits_per_s)
}

/// Which part of a return link of the same rate so many acknowledgements for a segment take.
pub(crate) fn return_share(acks_a_segment: f64) -> f64 {
    // An acknowledgement's frame is longer than Ethernet's shortest.
    acks_a_segment * OVERHEAD_BYTES as f64 / (SEGMENT_BYTES + OVERHEAD_BYTES) as f64
}
