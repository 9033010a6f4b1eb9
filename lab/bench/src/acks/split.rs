//! Measures the splitter: deliveries are reported to it, and it is asked about ACKs, for 256 flows in turn.

use std::hint::black_box;

use rxo_ack::{Delivered, SplitConfig, Splitter};
use rxo_frame::Frame;
use rxo_testkit::{Packet, seg};
use rxo_wire::{FlowKey, SeqNumber, parse};

use super::Work;

const FLOWS: u32 = 256;
const SEGMENT_BYTES: u32 = 1_448;
/// Segments per delivery. In live measurements 16 gave most of the gain without loss.
const SEGMENTS: u32 = 16;

/// The measured call of the splitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    /// Reports an aggregate of 16 segments.
    Aggregate,
    /// Reports a frame with one segment.
    Frame,
    /// Asks about an ACK for 16 segments, which returns a template of seven.
    Stretch,
    /// Asks about an ACK for one segment, which passes unchanged.
    Pass,
}

impl Split {
    pub(super) const ALL: [Self; 4] = [Self::Aggregate, Self::Frame, Self::Stretch, Self::Pass];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Aggregate => "split-told-aggregate",
            Self::Frame => "split-told-frame",
            Self::Stretch => "split-ack-stretch",
            Self::Pass => "split-ack-pass",
        }
    }

    pub(super) fn work(self) -> Splitting {
        let flows = (0..FLOWS).map(|flow| {
            let data = seg().flow(flow).ts(1, 1);
            parse(&data.bytes()).expect("a frame").key
        });
        let config = SplitConfig { flows: FLOWS as u16, ..SplitConfig::new(1) };
        let splitter = Splitter::new(config).expect("a valid configuration");
        Splitting { what: self, keys: flows.collect(), splitter, seq: 1, frames: Vec::new() }
    }

    const fn segments(self) -> u32 {
        match self {
            Self::Aggregate | Self::Stretch => SEGMENTS,
            Self::Frame | Self::Pass => 1,
        }
    }
}

/// A splitter with the input of its next pass.
pub(super) struct Splitting {
    what: Split,
    keys: Vec<FlowKey>,
    splitter: Splitter,
    seq: u32,
    frames: Vec<Frame<Vec<u8>>>,
}

impl Splitting {
    fn report_delivery(&mut self) {
        let delivered = Delivered {
            seq: SeqNumber(self.seq),
            payload_bytes: self.what.segments() * SEGMENT_BYTES,
            segment_bytes: SEGMENT_BYTES as u16,
            tsval: Some(1),
            fin: false,
        };
        for key in &self.keys {
            self.splitter.delivered(key, &delivered);
        }
    }

    fn frames(&self, packet: impl Fn(Packet) -> Packet) -> Vec<Frame<Vec<u8>>> {
        (0..FLOWS).map(|flow| packet(seg().flow(flow)).frame()).collect()
    }

    fn acks(&self) -> Vec<Frame<Vec<u8>>> {
        self.frames(|packet| packet.reply().pure_ack().ack(self.seq).ts(1, 1))
    }
}

impl Work for Splitting {
    fn prepare(&mut self) {
        let acks = self.acks();
        let step = self.what.segments() * SEGMENT_BYTES;
        for ack in &acks {
            self.splitter.split(ack.borrowed());
        }
        if matches!(self.what, Split::Stretch | Split::Pass) {
            self.report_delivery();
            self.seq = self.seq.wrapping_add(step);
            self.frames = self.acks();
        } else {
            let bytes = SEGMENT_BYTES as usize;
            self.frames = self.frames(|packet| packet.seq(self.seq).len(bytes).ts(1, 1));
        }
    }

    fn pass(&mut self) {
        match self.what {
            Split::Aggregate => self.report_delivery(),
            Split::Frame => {
                let frames = self.frames.iter();
                frames.for_each(|frame| self.splitter.delivered_frame(frame.borrowed()));
            }
            Split::Stretch | Split::Pass => {
                for frame in &self.frames {
                    black_box(self.splitter.split(frame.borrowed()));
                }
            }
        }
        if matches!(self.what, Split::Aggregate | Split::Frame) {
            self.seq = self.seq.wrapping_add(self.what.segments() * SEGMENT_BYTES);
        }
    }

    fn items(&self) -> usize {
        FLOWS as usize
    }
}

#[cfg(test)]
mod tests {
    use super::{FLOWS, Split};
    use crate::acks::Work;

    #[test]
    fn stretch_acks_are_split_and_others_pass() {
        for (what, templates) in [(Split::Stretch, 2), (Split::Pass, 0)] {
            // In the first pass the splitter has no state of the flows.
            let mut work = what.work();
            for _ in 0..3 {
                work.prepare();
                work.pass();
            }
            let counters = work.splitter.counters();
            assert_eq!(counters.templates, templates * u64::from(FLOWS));
            assert_eq!(counters.inserted, 7 * counters.templates);
        }
    }
}
