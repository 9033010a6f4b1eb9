//! A stack and its peer, on virtual time.

use rxo_frame::{Duration, Instant};

use super::lineup::{Contender, Kind, Race};
use super::peer::Peer;
use super::stack::{Role, Setting, Stack, TURN_FRAMES};

/// Time from one turn to the next: the duration of a turn's frames on a link of 40 Gbit/s.
const TURN: Duration = Duration::from_micros(20);
/// Time to skip if nothing moves: longer than any delayed ACK.
const PAUSE: Duration = Duration::from_millis(50);
/// Handshakes that every host finishes in a turn.
const HANDSHAKES_A_TURN: usize = 8;
/// Number of pauses in a row that means that something is wrong.
const MOST_PAUSES: u32 = 100;

/// A contender and its peer.
pub(crate) struct Lane {
    ends: Ends,
    now: Instant,
    segment_bytes: usize,
}

enum Ends {
    /// A receiving stack, whose sender is the generator.
    Alone(Box<dyn Stack>, Peer),
    /// A writing stack, with a reading stack of the same kind.
    Pair(Box<dyn Stack>, Box<dyn Stack>),
}

/// A function that runs a turn of a stack, and times or counts it.
pub(crate) type Turn<'a> = &'a mut dyn FnMut(&mut dyn Stack, Instant);

impl Lane {
    /// Makes a lane for `contender`, and opens all connections.
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
        lane.shake_hands(connections.into());
        lane
    }

    /// Returns the payload bytes of a full segment.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.segment_bytes
    }

    /// Runs until the application has read at least `bytes` more. Returns the number of bytes read.
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
                // A host takes only a few SYNs per turn, and meanwhile the peer would only repeat them.
                while !stack.port().received.is_empty() {
                    stack.turn(self.now);
                }
                peer.receive(stack.port(), self.now);
            }
        }
    }

    /// Gives a pair of stacks the turns that its handshakes take: a host begins with a few connections in each. Meanwhile
    /// little moves, which is no reason to pause.
    fn shake_hands(&mut self, connections: usize) {
        if matches!(self.ends, Ends::Pair(..)) {
            (0..connections / HANDSHAKES_A_TURN)
                .for_each(|_| self.step(&mut |stack, now| stack.turn(now)));
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

/// Moves frames from one stack to the other, at most as many as a turn receives.
fn carry(from: &mut dyn Stack, to: &mut dyn Stack, now: Instant) {
    let room = TURN_FRAMES.saturating_sub(to.port().received.len());
    let count = room.min(from.port().sent.len());
    let to = to.port();
    from.port().sent.drain(..count).for_each(|sent| to.arrive_sent(sent, now));
}
