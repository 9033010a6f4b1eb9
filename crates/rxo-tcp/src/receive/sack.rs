//! Chooses the SACK blocks to report and their order (RFC 2018, section 4; RFC 2883).

use core::array::from_fn;

use rxo_wire::SeqNumber;
use rxo_wire::tcp::{SackBlock, SackBlocks};

use super::reassembly::Reassembly;

/// The state of SACK reports. The block that changed last comes first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackReport {
    /// The sequence number of a byte in each block that changed recently, the latest change first.
    recent: [Option<SeqNumber>; SackBlocks::MAX],
    /// A block of data that was received twice and has not been reported as a duplicate; `None` if there is none.
    duplicate: Option<SackBlock>,
}

impl SackReport {
    /// Records that data in the block `run` arrived out of order. Each block is listed once, however many
    /// segments it has. Otherwise a few segments of one block would displace the older blocks, which must be
    /// repeated.
    pub(crate) fn received(&mut self, run: SackBlock) {
        let mut others = self.recent.into_iter().flatten().filter(|seq| !run.has(*seq));
        self.recent = from_fn(|at| if at == 0 { Some(run.start) } else { others.next() });
    }

    /// Records that `block` is a duplicate (RFC 2883, section 4). The ACK of the segment that contained the
    /// block reports the duplicate.
    pub(crate) fn received_again(&mut self, block: SackBlock) {
        self.duplicate = Some(block);
    }

    /// Returns `true` if a duplicate is to be reported.
    pub(crate) fn has_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// Returns the SACK blocks to send: first a duplicate, which is reported once, then the other blocks, the
    /// latest change first.
    pub(crate) fn take<B: AsRef<[u8]>>(&mut self, waiting: &Reassembly<B>) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let duplicate = self.duplicate.take();
        if let Some(block) = duplicate {
            blocks.push(block);
            // The block around the duplicate, if any, comes next (RFC 2883, section 4.1).
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

/// Appends `run` to `blocks` unless `blocks` contains it at or after the index `from`.
fn push_new(blocks: &mut SackBlocks, from: usize, run: SackBlock) {
    let listed = blocks.as_slice().get(from..).unwrap_or_default();
    if !listed.contains(&run) {
        blocks.push(run);
    }
}
