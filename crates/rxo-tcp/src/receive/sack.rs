//! Which SACK blocks are reported, and in which order (RFC 2018, section 4; RFC 2883).

use rxo_wire::SeqNumber;

use super::reassembly::Reassembly;
use crate::options::{SackBlock, SackBlocks};

/// What was received last, so that it is reported first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackReport {
    /// A byte of each block that was touched lately, the last first.
    recent: [Option<SeqNumber>; SackBlocks::MAX],
    /// What arrived twice and has not been reported.
    duplicate: Option<SackBlock>,
}

impl SackReport {
    /// Text at `seq` arrived out of order.
    pub(crate) fn received(&mut self, seq: SeqNumber) {
        self.recent.rotate_right(1);
        self.recent[0] = Some(seq);
    }

    /// `block` arrived a second time (RFC 2883, section 4); the acknowledgement of its segment says so.
    pub(crate) fn received_again(&mut self, block: SackBlock) {
        self.duplicate = Some(block);
    }

    /// Whether something arrived a second time and is still to be reported.
    pub(crate) fn has_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// The blocks to send: what arrived twice, once; then the block that changed last, then those
    /// before it.
    pub(crate) fn take<B: AsRef<[u8]>>(&mut self, waiting: &Reassembly<B>) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let duplicate = self.duplicate.take();
        if let Some(block) = duplicate {
            blocks.push(block);
            // RFC 2883, section 4.1: the block around it, if any, comes next.
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

/// Appends `run` unless it is there; the duplicate in front does not count.
fn push_new(blocks: &mut SackBlocks, from: usize, run: SackBlock) {
    let listed = blocks.as_slice().get(from..).unwrap_or_default();
    if !listed.contains(&run) {
        blocks.push(run);
    }
}
