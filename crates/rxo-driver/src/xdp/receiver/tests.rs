//! Tests of the receiver of AF_XDP frames; a simulated kernel fills the rings.

use std::collections::{HashSet, VecDeque};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use rxo_frame::{ChecksumStatus, Instant};

use super::super::chunks::Chunks;
use super::super::ring::Ring;
use super::*;

const CHUNK_BYTES: u32 = 2_048;
const HEADROOM: u64 = 256;
/// The longest piece of a frame.
const PIECE_BYTES: usize = 1_792;

/// The simulated kernel of a receiver: it takes chunks from the fill ring, and puts frames into the receive
/// ring.
struct Kernel {
    chunks: Arc<Chunks>,
    fill: Consumer<1>,
    received: Producer<2>,
    /// The chunks that the kernel has and that are empty, in the order in which it got them.
    empty: VecDeque<u64>,
    /// The chunks of each frame that was not taken.
    full: VecDeque<Vec<u64>>,
}

fn pair(chunks: u32, first: u32) -> (Receiver, Kernel) {
    let (fill, received) = (Ring::fresh(chunks, first), Ring::fresh(chunks, first));
    let memory = Chunks::new(CHUNK_BYTES, chunks, 4).unwrap();
    let (file, _peer) = UnixStream::pair().unwrap();
    let kernel = Kernel {
        chunks: Arc::clone(&memory),
        fill: Consumer::new(fill.clone()),
        received: Producer::new(received.clone()),
        empty: VecDeque::new(),
        full: VecDeque::new(),
    };
    let (file, incoming) = (Arc::new(file.into()), Incoming::new(memory));
    (Receiver::new(file, incoming, Producer::new(fill), Consumer::new(received)), kernel)
}

impl Kernel {
    /// Takes the chunks that are offered. None of them may be here already, or contain a frame that somebody
    /// holds.
    fn take_chunks(&mut self, held: &[Frame<DeviceBuf>]) {
        let start = self.chunks.memory().address();
        let held: HashSet<u64> = held
            .iter()
            .map(|frame| {
                (frame.bytes().as_ptr() as u64).wrapping_sub(start) / u64::from(CHUNK_BYTES)
            })
            .collect();
        while let Some([address]) = self.fill.pop() {
            let mut here = self.empty.iter().chain(self.full.iter().flatten());
            assert!(!here.any(|own| *own == address), "{address} twice");
            assert!(!held.contains(&(address / u64::from(CHUNK_BYTES))), "{address} is lent");
            self.empty.push_back(address);
        }
        self.fill.release();
    }

    /// Receives a frame as the kernel does: as a whole, or not at all. Returns `false` if there is no memory for it.
    fn receive(&mut self, frame: &[u8]) -> bool {
        let pieces = frame.len().div_ceil(PIECE_BYTES);
        if self.empty.len() < pieces || !self.received.has_room(pieces as u32) {
            return false;
        }
        let chunks: Vec<u64> = self.empty.drain(..pieces).collect();
        for (n, (piece, address)) in frame.chunks(PIECE_BYTES).zip(&chunks).enumerate() {
            self.chunks.fill(address + HEADROOM, piece);
            let options = if n + 1 < pieces { u64::from(libc::XDP_PKT_CONTD) } else { 0 };
            let about = if cfg!(target_endian = "little") {
                piece.len() as u64 | options << 32
            } else {
                (piece.len() as u64) << 32 | options
            };
            assert!(self.received.push([address + HEADROOM, about]));
        }
        self.received.publish();
        self.full.push_back(chunks);
        true
    }
}

fn describe(_: &[u8]) -> Option<Frame<()>> {
    let (arrived_at, checksum) = (Instant::ZERO, ChecksumStatus::Unknown);
    Some(Frame { bytes: (), arrived_at, checksum, gso: None, vlan: None })
}

fn pass(_: Frame<&[u8]>) -> Verdict {
    Verdict::Fallback
}

fn frame(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + number * 13) as u8).collect()
}

/// Takes a frame that is there.
fn take(receiver: &mut Receiver, pools: &Pools) -> Frame<DeviceBuf> {
    match receiver.take(pools, &describe, &mut pass) {
        ChunkOutcome::Frame(frame) => frame,
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_are_copied_out_while_the_kernel_has_few_chunks() {
    let (mut receiver, mut kernel) = pair(16, 0);
    let mut pools = Pools::new(9_000, 2);
    pools.expect_holds(CHUNK_BYTES as usize);
    let mut held = Vec::new();
    for number in 0..100 {
        kernel.take_chunks(&held);
        assert!(kernel.receive(&frame(number, 100)), "frame {number} finds memory");
        held.push(take(&mut receiver, &pools));
        kernel.full.pop_front();
        receiver.refill();
    }
    assert_eq!(receiver.incoming.with_kernel(), 3, "the rest is lent");
    for (number, one) in held.iter().enumerate() {
        assert_eq!(one.bytes(), frame(number, 100));
    }
}

#[test]
fn a_frame_in_pieces_waits_for_a_buffer_and_a_longer_one_is_discarded() {
    let (mut receiver, mut kernel) = pair(128, 0);
    let pools = Pools::new(4_000, 1);
    kernel.take_chunks(&[]);
    for bytes in [9_000, 10_000, 70_000] {
        assert!(kernel.receive(&frame(1, bytes)));
    }
    let first = take(&mut receiver, &pools);
    assert_eq!(first.bytes(), frame(1, 9_000));
    for _ in 0..2 {
        assert!(matches!(receiver.take(&pools, &describe, &mut pass), ChunkOutcome::NoBuffer));
    }
    drop(first);
    assert_eq!(take(&mut receiver, &pools).bytes(), frame(1, 10_000));
    assert!(matches!(receiver.take(&pools, &describe, &mut pass), ChunkOutcome::TooLong));
    assert!(matches!(receiver.take(&pools, &describe, &mut pass), ChunkOutcome::Nothing));
    receiver.refill();
    assert_eq!(receiver.incoming.with_kernel(), 128);
}

#[test]
fn an_entry_that_names_memory_of_others_is_invalid() {
    let (mut receiver, mut kernel) = pair(4, 0);
    let pools = Pools::new(9_000, 1);
    kernel.take_chunks(&[]);
    for address in [u64::MAX, 4 * 2_048, 5 * 2_048, 1_990] {
        assert!(kernel.received.push([address, u64::from_ne_bytes([60, 0, 0, 0, 0, 0, 0, 0])]));
    }
    kernel.received.publish();
    for _ in 0..4 {
        assert!(matches!(receiver.take(&pools, &describe, &mut pass), ChunkOutcome::Invalid));
    }
}

proptest! {
    /// Whatever the order of calls, every frame for which the kernel had memory comes once, unchanged and in
    /// order, and no chunk is in two places or lost.
    #[test]
    fn no_chunk_is_lost_or_owned_twice(
        first in any::<u32>(),
        holds in any::<bool>(),
        steps in prop::collection::vec((0..6_u8, 0..6_000_usize), 0..300),
    ) {
        let (mut receiver, mut kernel) = pair(16, first);
        let mut pools = Pools::new(6_000, 2);
        if holds {
            pools.expect_holds(CHUNK_BYTES as usize);
        }
        let (mut waiting, mut held, mut number) = (VecDeque::new(), Vec::<Frame<DeviceBuf>>::new(), 0);
        let mut expected = Vec::<Vec<u8>>::new();
        for (step, choice) in steps {
            match step {
                0 => kernel.take_chunks(&held),
                1 | 2 => {
                    let bytes = if step == 1 { 1 + choice % PIECE_BYTES } else { 1 + choice };
                    number += 1;
                    if kernel.receive(&frame(number, bytes)) {
                        waiting.push_back(frame(number, bytes));
                    }
                }
                3 => {
                    let consumes = choice % 3 == 0;
                    let mut seen = None;
                    let mut look = |frame: Frame<&[u8]>| {
                        seen = Some(frame.bytes.to_vec());
                        if consumes { Verdict::Consumed } else { Verdict::Fallback }
                    };
                    match receiver.take(&pools, &describe, &mut look) {
                        ChunkOutcome::Frame(frame) => {
                            prop_assert!(!consumes);
                            expected.push(waiting.pop_front().unwrap());
                            held.push(frame);
                        }
                        ChunkOutcome::Consumed(bytes) => {
                            let expected = waiting.pop_front().unwrap();
                            prop_assert!(consumes && bytes == expected.len());
                            prop_assert_eq!(seen, Some(expected));
                        }
                        ChunkOutcome::NoBuffer => prop_assert!(held.len() >= 2),
                        ChunkOutcome::Nothing => prop_assert!(waiting.is_empty()),
                        other => prop_assert!(false, "{other:?}"),
                    }
                    // Frames that were taken do not belong to the kernel any more.
                    while kernel.full.len() > waiting.len() {
                        kernel.full.pop_front();
                    }
                }
                4 if !held.is_empty() => {
                    let at = choice % held.len();
                    held.swap_remove(at);
                    expected.swap_remove(at);
                }
                _ => receiver.refill(),
            }
            for (frame, expected) in held.iter().zip(&expected) {
                prop_assert_eq!(frame.bytes(), &expected[..]);
            }
        }
        held.clear();
        while let ChunkOutcome::Frame(frame) = receiver.take(&pools, &describe, &mut pass) {
            prop_assert_eq!(frame.bytes(), &waiting.pop_front().unwrap()[..]);
        }
        prop_assert!(waiting.is_empty());
        receiver.refill();
        prop_assert_eq!(receiver.incoming.with_kernel(), 16, "all are back");
        kernel.full.clear();
        kernel.take_chunks(&[]);
        prop_assert_eq!(kernel.empty.len(), 16);
    }
}
