//! Which SACK blocks are reported, and in which order (RFC 2018, section 4; RFC 2883).

use core::array::from_fn;

use rxo_wire::SeqNumber;

use super::reassembly::Reassembly;
use crate::options::{SackBlock, SackBlocks};

/// What SACK reports: the text that was received last comes first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackReport {
    /// A byte of each block that changed recently, the last first.
    recent: [Option<SeqNumber>; SackBlocks::MAX],
    /// A duplicate that has not been reported.
    duplicate: Option<SackBlock>,
}

impl SackReport {
    /// Records that text in the block `run` arrived out of order. A block counts once, however many segments it
    /// has: else a few of them would push out the blocks before it, which are to be told again.
    pub(crate) fn received(&mut self, run: SackBlock) {
        let mut others = self.recent.into_iter().flatten().filter(|seq| !run.has(*seq));
        self.recent = from_fn(|at| if at == 0 { Some(run.start) } else { others.next() });
    }

    /// Records that `block` is a duplicate (RFC 2883, section 4), which the acknowledgement of its segment
    /// reports.
    pub(crate) fn received_again(&mut self, block: SackBlock) {
        self.duplicate = Some(block);
    }

    /// Whether a duplicate is to be reported.
    pub(crate) fn has_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// The blocks to send: first a duplicate, which is reported once; then the other blocks, the one that
    /// changed last first.
    pub(crate) fn take<B: AsRef<[u8]>>(&mut self, waiting: &Reassembly<B>) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let duplicate = self.duplicate.take();
        if let Some(block) = duplicate {
            blocks.push(block);
            // RFC 2883, section 4.1: the block around the duplicate, if any, comes next.
            if let Some(around) = waiting.run_around(block.start) {
                blocks.push(around);
            }
        }
        let listed_from = usize::from(duplicate.is_some());
        for run in self.recent.iter().flatten().filter_map(|seq| waiting.run_around(*seq)) {
            push_new(&mut blocks, listed_from, run);
        }
        for run in waiting.runs().take(SackBlocks::MAX) {
            push_new(&mut blocks, listed_from, run);
        }
        blocks
    }
}

/// Appends `run` unless it is listed at or after the index `from`.
fn push_new(blocks: &mut SackBlocks, from: usize, run: SackBlock) {
    let listed = blocks.as_slice().get(from..).unwrap_or_default();
    if !listed.contains(&run) {
        blocks.push(run);
    }
}
