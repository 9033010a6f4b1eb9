//! A stack and its peer, on virtual time.

use rxo_frame::{Duration, Instant};

use super::lineup::{Contender, Kind, Race};
use super::peer::Peer;
use super::stack::{Role, Setting, Stack, TURN_FRAMES};

/// Time from one turn to the next: what the frames of a turn take on a link of 40 Gb/s.
const TURN: Duration = Duration::from_micros(20);
/// Time to skip when nothing moves: longer than any delayed acknowledgement.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of pauses in a row that means that something is wrong.
const MOST_PAUSES: u32 = 100;

/// One contender and its peer.
pub(crate) struct Lane {
    ends: Ends,
    now: Instant,
    segment_bytes: usize,
}

enum Ends {
    /// A stack that reads, and the generator that sends.
    Alone(Box<dyn Stack>, Peer),
    /// A stack that writes, and another of the same kind that reads.
    Pair(Box<dyn Stack>, Box<dyn Stack>),
}

/// Runs a turn of a stack, and times or counts it.
pub(crate) type Turn<'a> = &'a mut dyn FnMut(&mut dyn Stack, Instant);

impl Lane {
    /// Opens all connections.
    pub(crate) fn new(race: &Race, contender: Contender) -> Self {
        let role = Role::Reads;
        let Race { checksums, timestamps, connections, reading, takes_large, .. } = *race;
        let setting = Setting { role, checksums, timestamps, connections, reading, takes_large };
        let peer = Peer::new(setting);
        let segment_bytes = peer.segment_bytes();
        let reader = contender.stack(setting);
        let ends = match race.kind {
            Kind::Receive => Ends::Alone(reader, peer),
            Kind::EndToEnd => Ends::Pair(writer(setting, contender), reader),
        };
        let mut lane = Self { ends, now: Instant::from_micros(1_000_000), segment_bytes };
        lane.open();
        lane
    }

    /// Payload of a full segment, in bytes.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Runs until the application has read at least `bytes` more. Returns how many it has read.
    pub(crate) fn read(&mut self, bytes: u64, turn: Turn<'_>) -> u64 {
        let start = self.read_bytes();
        let mut pauses = 0;
        while self.read_bytes() - start < bytes {
            let before = self.read_bytes();
            self.step(turn);
            pauses = if self.read_bytes() == before { pauses + 1 } else { 0 };
            if pauses > 2 {
                self.pause();
            }
            assert!(pauses < MOST_PAUSES, "nothing moves any more");
        }
        self.read_bytes() - start
    }

    fn open(&mut self) {
        if let Ends::Alone(stack, peer) = &mut self.ends {
            stack.turn(self.now);
            while !peer.is_open() {
                peer.open(stack.port(), self.now);
                // A host takes a few in a turn, and meanwhile the peer would only repeat itself.
                while !stack.port().received.is_empty() {
                    stack.turn(self.now);
                }
                peer.receive(stack.port(), self.now);
            }
        }
    }

    fn step(&mut self, turn: Turn<'_>) {
        self.now = self.now + TURN;
        let now = self.now;
        match &mut self.ends {
            Ends::Alone(stack, peer) => {
                peer.send(stack.port(), TURN_FRAMES, now);
                turn(stack.as_mut(), now);
                peer.receive(stack.port(), now);
            }
            Ends::Pair(writer, reader) => {
                turn(writer.as_mut(), now);
                carry(writer.as_mut(), reader.as_mut(), now);
                turn(reader.as_mut(), now);
                carry(reader.as_mut(), writer.as_mut(), now);
            }
        }
    }

    fn pause(&mut self) {
        self.now = self.now + PAUSE;
        match &mut self.ends {
            Ends::Alone(stack, _) => stack.idle(self.now),
            Ends::Pair(writer, reader) => {
                writer.idle(self.now);
                reader.idle(self.now);
            }
        }
    }

    fn read_bytes(&self) -> u64 {
        match &self.ends {
            Ends::Alone(reader, _) | Ends::Pair(_, reader) => reader.read_bytes(),
        }
    }
}

fn writer(setting: Setting, contender: Contender) -> Box<dyn Stack> {
    contender.stack(Setting { role: Role::OpensAndWrites, ..setting })
}

/// Moves frames, at most a turn's worth, from one stack to the other.
fn carry(from: &mut dyn Stack, to: &mut dyn Stack, now: Instant) {
    let room = TURN_FRAMES.saturating_sub(to.port().received.len());
    let count = room.min(from.port().sent.len());
    let to = to.port();
    from.port().sent.drain(..count).for_each(|sent| to.arrive_sent(sent, now));
}
