//! Work that must not grow: that for an unrelated fragment with the number of held flows, and that for a
//! frame with the size of the poll.

use std::collections::BTreeMap;

use rxo_coalesce::{Config, Engine, Policy};
use rxo_frame::{Frame, Instant};
use rxo_testkit::{Packet, seg};

use crate::contender::SEED;

/// Fragments from unrelated hosts in one pass.
const FRAGMENTS: usize = 4_096;
/// Batch size for which the engine of the large polls is configured.
const ROOM: usize = 256;
const SEGMENTS_EACH: u32 = 8;

/// A counted case; each is one row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// Fragments of hosts without held flows, while this many flows of other hosts are held.
    Strangers(u32),
    /// A poll of this many frames.
    Poll(usize),
}

impl Bound {
    /// All rows: a small and a large case of each kind.
    pub(crate) const ALL: [Self; 4] =
        [Self::Strangers(64), Self::Strangers(4_096), Self::Poll(8_192), Self::Poll(262_144)];

    /// Returns the row's name.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Strangers(flows) => format!("strangers-{flows}"),
            Self::Poll(frames) => format!("poll-{frames}"),
        }
    }

    /// Runs the case `passes` times inside `counted`. Returns the number of frames in a pass.
    pub(crate) fn run(self, passes: u32, mut counted: impl FnMut(&mut dyn FnMut())) -> usize {
        let (held, frames) = self.packets();
        let borrowed = |packets: &[Vec<u8>]| -> Vec<Frame<Vec<u8>>> {
            packets.iter().map(|bytes| Frame::new(bytes.clone(), Instant::ZERO)).collect()
        };
        let mut engine = self.engine();
        for _ in 0..passes {
            let mut batch = borrowed(&frames);
            engine.push(&mut borrowed(&held), Instant::ZERO, |_| ());
            counted(&mut || engine.push(&mut batch, Instant::ZERO, |_| ()));
            engine.flush(Instant::ZERO, |_| ());
        }
        frames.len()
    }

    fn engine(self) -> Engine<Vec<u8>> {
        let batch_frames = match self {
            Self::Strangers(_) => 2 * FRAGMENTS,
            Self::Poll(_) => ROOM,
        };
        let policy = Policy { flows: 4_096, ..Policy::linux_gro() };
        let config = Config { batch_frames, trust_checksums: true, ..Config::new(policy, SEED) };
        Engine::new(config).expect("numbers in range")
    }

    /// Returns the packets that are held beforehand, and the counted packets.
    fn packets(self) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let bytes = |packet: Packet| packet.bytes();
        match self {
            Self::Strangers(flows) => {
                let held = (0..flows).map(|flow| bytes(seg().flow(flow)));
                let stranger = |number| seg().host(100_000 + number).df(false).fragment(1, true);
                (
                    held.collect(),
                    (0..FRAGMENTS as u32).map(|number| bytes(stranger(number))).collect(),
                )
            }
            Self::Poll(frames) => {
                let mut sent: BTreeMap<u32, u32> = BTreeMap::new();
                let segment = |number: usize| {
                    let flow = number as u32 / SEGMENTS_EACH % 64;
                    let count = sent.entry(flow).or_insert(0);
                    *count += 1;
                    bytes(seg().flow(flow).seq(*count * 10).len(10).id(*count as u16))
                };
                (Vec::new(), (0..frames).map(segment).collect())
            }
        }
    }
}
