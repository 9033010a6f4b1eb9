//! Senders that attack a receiver: traffic whose frames are chosen to be as expensive as possible.
//!
//! Some senders know the seed of the receiver's hashes. A function gives them the hash of a flow, so that
//! this module does not depend on the hashing.

use std::fmt;

use crate::{Packet, Random, seg};

/// Most flows that a receiver holds.
pub const FLOWS: u32 = 4_096;
/// Most frames that a receiver holds, if it is configured for polls of one fifth of them.
pub const SLOTS: usize = 81_920;
/// Fewest measured polls in one assault.
const POLLS: u32 = 128;
/// Number of frames in an ordinary poll.
const POLL_FRAMES: u32 = 32;
/// Number of collisions that an adversary searches for: more than any bucket may have.
const CHOSEN: usize = 64;
/// Port of the server.
const PORT: u16 = 443;
/// Port of the clients whose flows are held or chosen.
const CLIENT: u16 = 1_000;

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adversary {
    /// No attack: flows in order, in runs of four. The baseline for comparisons.
    Nobody,
    /// More flows than the receiver can hold, with one segment of each in turn.
    Thrash,
    /// With knowledge of the seed: flows whose hashes agree in the low bits, with one segment of each in
    /// turn.
    Bucket,
    /// Fragments from hosts without held flows, while many flows of other hosts are held.
    Fragments,
    /// With knowledge of the seed: fragments from hosts whose hash agrees in the low bits with many held
    /// flows of other hosts.
    ChosenFragments,
    /// Segments with wrong checksums, each from another host, while many flows of other hosts are held.
    BadChecksums,
    /// With knowledge of the seed: a repeated pure ACK, after many fragments from other hosts with colliding
    /// hashes in the low bits.
    ChosenDoubts,
    /// Polls of one frame that cannot be held, while the receiver holds as much as possible.
    SmallPolls,
    /// Segments that end the aggregates of flows scattered over the table.
    Scattered,
    /// New flows while every slot holds a frame.
    FullSlots,
    /// Polls of the other attacks in random order; the number is the seed.
    Mixed(u64),
}

/// The frames of an attack.
#[derive(Clone, Debug, Default)]
pub struct Assault {
    /// Frames sent before the measurement, in polls.
    pub before: Vec<Vec<Vec<u8>>>,
    /// Measured polls.
    pub polls: Vec<Vec<Vec<u8>>>,
}

/// Returns the hash of a flow to the server, from the host's number and its port; without a port, the hash of
/// the pair of hosts.
pub type Hash<'a> = &'a dyn Fn(u32, Option<u16>) -> u64;

impl Adversary {
    /// All attacks.
    pub const ALL: [Self; 11] = [
        Self::Nobody,
        Self::Thrash,
        Self::Bucket,
        Self::Fragments,
        Self::ChosenFragments,
        Self::BadChecksums,
        Self::ChosenDoubts,
        Self::SmallPolls,
        Self::Scattered,
        Self::FullSlots,
        Self::Mixed(1),
    ];

    /// Returns the frames of the attack, for a receiver whose flow hashes `hash` computes.
    #[must_use]
    pub fn assault(self, hash: Hash<'_>) -> Assault {
        let mut world = World::new(self, hash);
        let before = match self {
            Self::Nobody | Self::Thrash | Self::Bucket => Vec::new(),
            Self::ChosenDoubts => world.hidden_acks(),
            Self::FullSlots => world.held(SLOTS / FLOWS as usize),
            _ => world.held(2),
        };
        let polls = (0..POLLS).map(|_| world.poll(self)).collect();
        Assault { before, polls }
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Nobody => "nobody",
            Self::Thrash => "thrash",
            Self::Bucket => "bucket",
            Self::Fragments => "fragments",
            Self::ChosenFragments => "chosen-fragments",
            Self::BadChecksums => "bad-checksums",
            Self::ChosenDoubts => "chosen-doubts",
            Self::SmallPolls => "small-polls",
            Self::Scattered => "scattered",
            Self::FullSlots => "full-slots",
            Self::Mixed(_) => "mixed",
        };
        f.write_str(name)
    }
}

/// The adversary's knowledge, and the packets that it has sent.
struct World {
    /// Hosts whose flows have hashes that agree in 14 bits.
    bucket: Vec<u32>,
    /// Hosts whose hashes, without ports, agree in 13 bits.
    pairs: Vec<u32>,
    /// Number of segments sent on each held flow.
    sent: Vec<u32>,
    count: u32,
    random: Random,
}

impl World {
    fn new(adversary: Adversary, hash: Hash<'_>) -> Self {
        let mixed = matches!(adversary, Adversary::Mixed(_));
        let knows = |one| mixed || adversary == one;
        let bucket = if knows(Adversary::Bucket) {
            let low = |host| hash(host, Some(CLIENT)) & 0x3fff;
            (HOST..LAST_HOST).filter(|host| low(*host) == low(HOST)).take(4 * CHOSEN).collect()
        } else {
            Vec::new()
        };
        let pairs = if knows(Adversary::ChosenFragments) || knows(Adversary::ChosenDoubts) {
            let low = |host| hash(host, None) & 0x1fff;
            (HOST..LAST_HOST).filter(|host| low(*host) == low(HOST)).take(8 * CHOSEN).collect()
        } else {
            Vec::new()
        };
        let seed = if let Adversary::Mixed(seed) = adversary { seed } else { 1 };
        Self { bucket, pairs, sent: vec![0; FLOWS as usize], count: 0, random: Random::new(seed) }
    }

    /// Returns polls that make every flow hold `each` segments.
    fn held(&mut self, each: usize) -> Vec<Vec<Vec<u8>>> {
        let flows = |world: &mut Self, from: u32| {
            let flows = from..from + POLL_FRAMES / 2;
            let segments = flows.flat_map(|flow| std::iter::repeat_n(flow, each));
            segments.map(|flow| world.next_of(flow).bytes()).collect::<Vec<_>>()
        };
        (0..FLOWS).step_by(POLL_FRAMES as usize / 2).map(|from| flows(self, from)).collect()
    }

    /// Returns a pure ACK, and fragments that could hide a later ACK of its flow.
    fn hidden_acks(&self) -> Vec<Vec<Vec<u8>>> {
        let fragment = |count| self.chosen(count).df(false).fragment(1, true).bytes();
        let poll = |from| (from..from + POLL_FRAMES).map(fragment).collect();
        let fragments = (0..DOUBTS).step_by(POLL_FRAMES as usize).map(poll);
        std::iter::once(vec![chosen_ack().bytes()]).chain(fragments).collect()
    }

    /// Returns the next segment of a flow. Chosen hosts have the first flows.
    fn next_of(&mut self, flow: u32) -> Packet {
        let sent = &mut self.sent[flow as usize];
        *sent += 1;
        let (seq, id) = (*sent * 10, *sent as u16);
        let (hold_all, _) = self.pairs.split_at(self.pairs.len() / 2);
        let host = hold_all.get(flow as usize).copied().unwrap_or(flow);
        seg().host(host).ports(CLIENT, PORT).seq(seq).id(id).len(10)
    }

    fn poll(&mut self, adversary: Adversary) -> Vec<Vec<u8>> {
        let frames = match adversary {
            Adversary::SmallPolls => 1,
            Adversary::Nobody => return self.runs(),
            Adversary::Mixed(_) => {
                let one = Adversary::ALL[self.random.below(10) as usize];
                return self.poll(one);
            }
            _ => POLL_FRAMES,
        };
        (0..frames).map(|_| self.frame(adversary).bytes()).collect()
    }

    /// Returns a poll of eight flows with four segments each.
    fn runs(&mut self) -> Vec<Vec<u8>> {
        let first = self.random.below(u64::from(FLOWS) - 8) as u32;
        let flows = (first..first + 8).flat_map(|flow| [flow; 4]);
        flows.map(|flow| self.next_of(flow).bytes()).collect()
    }

    fn frame(&mut self, adversary: Adversary) -> Packet {
        self.count += 1;
        let count = self.count;
        let stranger = seg().host(LAST_HOST + count).ports(2_000, PORT);
        match adversary {
            Adversary::Thrash | Adversary::FullSlots => {
                seg().host(FLOWS + count % (3 * FLOWS)).len(10)
            }
            Adversary::Bucket => {
                let host = self.bucket[count as usize % self.bucket.len()];
                seg().host(host).ports(CLIENT, PORT).seq(count).len(10)
            }
            Adversary::Fragments => stranger.df(false).fragment(1, true),
            Adversary::ChosenFragments => self.chosen(count).df(false).fragment(1, true),
            Adversary::BadChecksums => stranger.len(10).bad_checksum(),
            Adversary::ChosenDoubts => chosen_ack(),
            Adversary::SmallPolls => stranger.syn(),
            Adversary::Scattered => {
                let flow = self.random.below(FLOWS.into()) as u32;
                let next = self.next_of(flow);
                if self.random.percent(50) { next.psh() } else { next }
            }
            Adversary::Nobody | Adversary::Mixed(_) => stranger,
        }
    }

    /// Returns a packet from one of the chosen hosts without held flows.
    fn chosen(&self, count: u32) -> Packet {
        let hold_none = &self.pairs[self.pairs.len() / 2..];
        seg().host(hold_none[count as usize % hold_none.len()]).ports(3_000, PORT)
    }
}

/// Returns a pure ACK of a chosen host.
fn chosen_ack() -> Packet {
    seg().host(HOST).ports(4_000, PORT).pure_ack()
}

/// Number of fragments before the pure ACK: as many hosts as a receiver could remember.
const DOUBTS: u32 = 4_000;
/// Number of hosts from which colliding ones are chosen.
const HOST: u32 = 1 << 20;
const LAST_HOST: u32 = 9 << 20;
