//! Senders that want a receiver to work: traffic whose frames are chosen to cost as much as they can.
//!
//! Some know the seed of the receiver's hashes. They are told by a function what hash flows have, so that this module
//! knows nothing of how flows are hashed.

use std::fmt;

use crate::{Packet, Random, seg};

/// The most flows that a receiver is asked to hold.
pub const FLOWS: u32 = 4_096;
/// The frames for which a receiver has room, if it is made for polls of a fifth of them and holds as much as it can.
pub const SLOTS: usize = 81_920;
/// Polls that are measured in one assault, at least.
const POLLS: u32 = 128;
/// Frames of an ordinary poll.
const POLL_FRAMES: u32 = 32;
/// Collisions that an adversary looks for: more than any bucket may have.
const CHOSEN: usize = 64;
/// The server's port.
const PORT: u16 = 443;
/// The port of those whose flows are held or chosen.
const CLIENT: u16 = 1_000;

/// A way of attacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adversary {
    /// None: flows in order, runs of four. What others are compared with.
    Nobody,
    /// More flows than are held, a segment of each in turn.
    Thrash,
    /// With the seed: flows whose hashes agree in the low bits, a segment of each in turn.
    Bucket,
    /// Fragments of hosts that hold nothing, while many flows of others are held.
    Fragments,
    /// With the seed: fragments of hosts whose hash agrees with that of many flows of others in the low bits.
    ChosenFragments,
    /// Segments with wrong checksums, each from another host, while many flows of others are held.
    BadChecksums,
    /// With the seed: a pure ACK again and again, behind many fragments of other hosts whose hash agrees with that of its
    /// hosts in the low bits.
    ChosenDoubts,
    /// Polls of one frame that cannot be held, while as much is held as there is room for.
    SmallPolls,
    /// Segments that end what one of many flows holds, here and there.
    Scattered,
    /// New flows when every slot holds a frame.
    FullSlots,
    /// Anything of the above, a poll of each at random.
    Mixed(u64),
}

/// The frames of an assault.
#[derive(Clone, Debug, Default)]
pub struct Assault {
    /// The frames that come before, in polls.
    pub before: Vec<Vec<Vec<u8>>>,
    /// The polls whose work is measured.
    pub polls: Vec<Vec<Vec<u8>>>,
}

/// The hash of the flow of a host to the server: of the host's number and its port, or of the pair of hosts without
/// ports.
pub type Hash<'a> = &'a dyn Fn(u32, Option<u16>) -> u64;

impl Adversary {
    /// All of them.
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

    /// The frames, for a receiver whose flows have these hashes.
    #[must_use]
    pub fn assault(self, hash: Hash<'_>) -> Assault {
        let mut world = World::new(self, hash);
        let before = match self {
            Self::Nobody | Self::Thrash | Self::Bucket => Vec::new(),
            Self::ChosenDoubts => world.doubts(),
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

/// The knowledge of an adversary, and the packets that it has sent.
struct World {
    /// Hosts whose flows have hashes that agree in 14 bits.
    bucket: Vec<u32>,
    /// Hosts whose hashes, without ports, agree in 13 bits.
    pairs: Vec<u32>,
    /// Segments sent of each flow that is held.
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

    /// Segments of all flows, so many of each, as they are held: polls that bring each flow's.
    fn held(&mut self, each: usize) -> Vec<Vec<Vec<u8>>> {
        let flows = |world: &mut Self, from: u32| {
            let flows = from..from + POLL_FRAMES / 2;
            let segments = flows.flat_map(|flow| std::iter::repeat_n(flow, each));
            segments.map(|flow| world.next_of(flow).bytes()).collect::<Vec<_>>()
        };
        (0..FLOWS).step_by(POLL_FRAMES as usize / 2).map(|from| flows(self, from)).collect()
    }

    /// An ACK, and fragments that leave open whether it was the last of its flow.
    fn doubts(&self) -> Vec<Vec<Vec<u8>>> {
        let fragment = |count| self.chosen(count).df(false).fragment(1, true).bytes();
        let poll = |from| (from..from + POLL_FRAMES).map(fragment).collect();
        let fragments = (0..DOUBTS).step_by(POLL_FRAMES as usize).map(poll);
        std::iter::once(vec![doubted_ack().bytes()]).chain(fragments).collect()
    }

    /// The next segment of a flow. Where hosts were chosen, they have the first flows.
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

    /// Eight flows, four segments of each.
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
            Adversary::ChosenDoubts => doubted_ack(),
            Adversary::SmallPolls => stranger.syn(),
            Adversary::Scattered => {
                let flow = self.random.below(FLOWS.into()) as u32;
                let next = self.next_of(flow);
                if self.random.percent(50) { next.psh() } else { next }
            }
            Adversary::Nobody | Adversary::Mixed(_) => stranger,
        }
    }

    /// A packet of one of the hosts that were chosen and hold nothing.
    fn chosen(&self, count: u32) -> Packet {
        let hold_none = &self.pairs[self.pairs.len() / 2..];
        seg().host(hold_none[count as usize % hold_none.len()]).ports(3_000, PORT)
    }
}

/// A pure ACK of a host that was chosen.
fn doubted_ack() -> Packet {
    seg().host(HOST).ports(4_000, PORT).pure_ack()
}

/// Fragments before a pure ACK: as many as a receiver could remember by their hosts.
const DOUBTS: u32 = 4_000;
/// The number of hosts from which some are chosen.
const HOST: u32 = 1 << 20;
const LAST_HOST: u32 = 9 << 20;
