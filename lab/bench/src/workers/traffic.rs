//! The frames of each queue: flows that the rule of rxo's devices steers there, in runs of four.

use rxo::wire::{parse, shard_of};
use rxo::{Frame, Instant};
use rxo_testkit::{Packet, seg};

/// Flows of a queue, and frames of a flow in a row.
const FLOWS: usize = 16;
const RUN: usize = 4;
pub(super) const PAYLOAD_BYTES: usize = 1_448;
/// With Ethernet, IPv4 and TCP headers and timestamps.
pub(super) const FRAME_BYTES: usize = PAYLOAD_BYTES + 66;

pub(super) struct Traffic {
    queues: Vec<Vec<Frame<Vec<u8>>>>,
}

impl Traffic {
    /// So many frames for each queue.
    pub(super) fn new(queues: usize, frames: usize) -> Self {
        let of_queue = |queue| {
            let mut sent = [0_u32; FLOWS];
            let flows: Vec<u32> =
                (0..).filter(|flow| steered(*flow, queues) == queue).take(FLOWS).collect();
            let frame = |n: usize| {
                let flow = n / RUN % FLOWS;
                sent[flow] += 1;
                segment(flows[flow], sent[flow]).frame_at(Instant::ZERO)
            };
            (0..frames).map(frame).collect()
        };
        Self { queues: (0..queues).map(of_queue).collect() }
    }

    pub(super) fn queues(&self) -> usize {
        self.queues.len()
    }

    pub(super) fn queue(&self, n: usize) -> &[Frame<Vec<u8>>] {
        &self.queues[n]
    }

    pub(super) fn frames(&self) -> usize {
        self.queues.iter().map(Vec::len).sum()
    }
}

fn segment(flow: u32, number: u32) -> Packet {
    let seq = 1 + number * PAYLOAD_BYTES as u32;
    seg().flow(flow).seq(seq).len(PAYLOAD_BYTES).ts(1, 1).id(number as u16)
}

fn steered(flow: u32, queues: usize) -> usize {
    let bytes = segment(flow, 0).len(0).bytes();
    parse(&bytes).map_or(0, |parsed| shard_of(&parsed.key, queues as u32) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_size_that_is_said() {
        let traffic = Traffic::new(2, 128);
        assert!(traffic.queue(1).iter().all(|frame| frame.bytes.len() == FRAME_BYTES));
        assert_eq!((traffic.queues(), traffic.frames()), (2, 256));
    }
}
