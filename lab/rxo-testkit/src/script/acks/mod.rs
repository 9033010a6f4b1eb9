//! Turns any bytes into a script of acknowledgements.
//!
//! Eight bytes configure the engine, usually so that pure ACKs are aggregated. Every six bytes after them are
//! one event. Most events are ACKs as a receiver of bulk data sends them. The others must not be lost among
//! those: duplicates, windows, SACK, marks, keep-alives, data of the same flow.
//!
//! Acknowledgement numbers move by less than a window at a time, because a sender accepts no larger steps.

mod event;
mod flow;

use rxo_frame::Instant;

use super::generate::any_setup;
use super::{Script, Setup};
use crate::rules::PureAcks;
use event::{Event, Maker};
use flow::AckFlow;

const SETUP_BYTES: usize = 8;
const EVENT_BYTES: usize = 6;
/// Most events in a script, because the work of the checks grows with the square.
const MOST_EVENTS: usize = 400;
const MOST_FRAMES: usize = 600;
const FLOWS: [u32; 8] = [1, 1, 1, 2, 2, 4, 8, 24];
const LIMITS: [Option<u16>; 8] =
    [None, None, Some(64), Some(2), Some(3), Some(5), Some(16), Some(1)];

impl Script {
    /// Makes the script of acknowledgements that `bytes` encode; too few bytes give an empty one. The engine
    /// has memory for all its frames.
    #[must_use]
    pub fn acks_from_bytes(bytes: &[u8]) -> Self {
        let mut head = [0; SETUP_BYTES];
        let taken = bytes.len().min(SETUP_BYTES);
        head[..taken].copy_from_slice(&bytes[..taken]);
        let setup = setup(head);
        let flows = FLOWS[usize::from(head[6] % 8)];
        let source = bytes.to_vec();
        let script = Self { setup, steps: Vec::new(), all_frames: Vec::new(), source };
        let flows = (0..flows).map(AckFlow::new).collect();
        let mut maker = Maker { flows, now: Instant::ZERO, script };
        let (events, _) = bytes[taken..].as_chunks::<EVENT_BYTES>();
        for [kind, flow, change, count, value, time] in events.iter().copied().take(MOST_EVENTS) {
            if maker.script.all_frames.len() < MOST_FRAMES {
                maker.event(Event { kind, flow, change, count, value, time });
            }
        }
        maker.script.setup.batch_frames = maker.script.all_frames.len().max(1);
        maker.script
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
