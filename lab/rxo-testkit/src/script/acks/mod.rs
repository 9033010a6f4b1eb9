//! Turns any bytes into a script of acknowledgements.
//!
//! The first bytes configure the engine, usually so that pure ACKs are aggregated. Most events are ACKs as a receiver
//! of bulk data sends them. The others must not be lost among those: duplicates, windows, SACK, marks, keep-alives,
//! data of the same flow.
//!
//! Acknowledgement numbers move by less than a window at a time, because a sender accepts no larger steps.

mod event;
mod flow;

use super::generate::any_setup;
use super::maker::{Maker, SETUP_BYTES};
use super::{Script, Setup};
use crate::rules::PureAcks;
use flow::AckFlow;

const FLOWS: [u32; 8] = [1, 1, 1, 2, 2, 4, 8, 24];
const LIMITS: [Option<u16>; 8] =
    [None, None, Some(64), Some(2), Some(3), Some(5), Some(16), Some(1)];

impl Script {
    /// Makes the script of acknowledgements that `bytes` encode; too few bytes give an empty one. The engine
    /// has memory for all its frames.
    #[must_use]
    pub fn acks_from_bytes(bytes: &[u8]) -> Self {
        let begin = |head: [u8; SETUP_BYTES]| {
            (setup(head), (0..FLOWS[usize::from(head[6] % 8)]).map(AckFlow::new).collect())
        };
        Maker::script(bytes, begin, Maker::<AckFlow>::event)
    }
}

fn setup(head: [u8; SETUP_BYTES]) -> Setup {
    let [policy, form, limits, flows, hold, switches, _, seed] = head;
    Setup {
        pure_acks: match form % 8 {
            0 => None,
            1 => Some(PureAcks::Bypass),
            2..=5 => Some(PureAcks::Single),
            _ => Some(PureAcks::Record),
        },
        max_acks: LIMITS[usize::from(limits % 8)],
        keep_every: LIMITS[usize::from(limits >> 4) % 8],
        sack_superset: [None, Some(false), Some(true), Some(true)][usize::from(form >> 4) % 4],
        ..any_setup([policy, flows, hold, switches, seed])
    }
}
