//! Two connections and a faulty network, checked against a queue of bytes in each direction and against
//! `model.rs`.
//!
//! Invariants: the text read equals the text written, starting at the first byte. Transmission comes to an
//! end, and a timer that fired does not fire again at once. Once the network works, everything arrives and
//! both ends close, unless one of them gave up.

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Closed, Connection, Secret, State};
use rxo_wire::FlowKey;

use super::model::Model;
use super::run::run as run_of;
use super::wire::{Wire, cut};
use super::{LARGEST_BUFFERS, Script, stream_byte};

/// Plays the script `data`.
///
/// # Panics
/// Panics if an invariant does not hold.
pub(crate) fn run(data: &[u8]) {
    let mut script = Script::new(data);
    let mut pair = Pair::new(&mut script);
    while script.has_more() {
        pair.play(&mut script);
    }
    pair.end();
}

const THERE: FlowKey = FlowKey::v4(0x0a00_0001, 0x0a00_0002, 0x1388_0050, 0);
const BACK: FlowKey = FlowKey::v4(0x0a00_0002, 0x0a00_0001, 0x0050_1388, 0);

struct Pair {
    ends: [Connection<Vec<u8>>; 2],
    /// The segments in flight to each end.
    ways: [Vec<Wire>; 2],
    now: Instant,
    written: [u32; 2],
    read: [u32; 2],
    model: Model,
}

impl Pair {
    fn new(script: &mut Script<'_>) -> Self {
        let now = Instant::from_micros(1_000_000);
        let (there, back) = (script.config(), script.config());
        let client = Connection::open_active(there, THERE, Secret([1, 2]), now);
        let server = if script.byte() & 1 == 0 {
            Connection::open_passive(back, BACK, Secret([3, 4]))
        } else {
            Connection::open_active(back, BACK, Secret([3, 4]), now)
        };
        let ends = [client, server].map(|opened| opened.expect("settings that can be"));
        let (ways, model) = ([Vec::new(), Vec::new()], Model::default());
        let mut pair = Self { ends, ways, now, written: [0; 2], read: [0; 2], model };
        pair.flush();
        pair
    }

    fn play(&mut self, script: &mut Script<'_>) {
        let what = script.byte();
        let end = usize::from(what & 1);
        match what >> 1 & 15 {
            0 => self.write(end, u32::from(script.word() % 5_000)),
            1 => self.lend(end, u32::from(script.word() % 20_000)),
            2 | 3 => self.read(end, usize::from(script.word())),
            4 if script.byte() < 60 => self.shut(end),
            5 | 6 => self.fire(),
            7 => self.lose(end, script.byte()),
            8 => self.repeat(end, script.byte()),
            9 => {
                let place = script.byte();
                self.deliver(end, place, 1);
            }
            10 => self.deliver(end, 0, usize::from(script.byte() % 16)),
            11 => self.now = self.now + rxo_frame::Duration::from_micros(script.word().into()),
            12 if script.byte() < 6 => self.ends[end].abort(),
            13 => self.grant(end, script),
            _ => self.deliver(end, 0, 1),
        }
        self.flush();
    }

    fn flush(&mut self) {
        for end in 0..2 {
            self.model.is_in(end, self.ends[end].state());
            let mut leaving = Vec::new();
            while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
                cut(&transmit, &mut leaving);
                assert!(leaving.len() < MOST_AT_ONCE, "what leaves does not end");
            }
            leaving.iter().for_each(|wire| self.model.leaves(end, wire));
            self.ways[1 - end].extend(leaving);
            self.ways[1 - end].truncate(MOST_ON_THE_WAY);
        }
    }

    fn write(&mut self, end: usize, bytes: u32) {
        let data: Vec<u8> = (0..bytes).map(|at| stream_byte(self.written[end] + at)).collect();
        self.written[end] += self.ends[end].send(&data).unwrap_or(0) as u32;
    }

    fn lend(&mut self, end: usize, bytes: u32) {
        let data: Vec<u8> = (0..bytes).map(|at| stream_byte(self.written[end] + at)).collect();
        self.written[end] += self.ends[end].send_shared(&mut data.into()).unwrap_or(0) as u32;
    }

    fn read(&mut self, end: usize, bytes: usize) {
        let mut text = vec![0; bytes];
        let read = self.ends[end].receive(&mut text).unwrap_or(0);
        for byte in &text[..read] {
            assert_eq!(*byte, stream_byte(self.read[end]), "byte {} of {end}", self.read[end]);
            self.read[end] += 1;
        }
        assert!(self.read[end] <= self.written[1 - end], "more than was written");
    }

    /// Closes `end`, but not before the handshake, when a close would drop the written text (RFC 9293,
    /// section 3.10.4).
    fn shut(&mut self, end: usize) {
        if !matches!(self.ends[end].state(), State::Listen | State::SynSent(_)) {
            let _ = self.ends[end].shutdown();
        }
    }

    /// Grants the requested buffers, or arbitrary ones.
    fn grant(&mut self, end: usize, script: &mut Script<'_>) {
        let any = script.buffers();
        let wanted = self.ends[end].wants_buffers(self.now);
        let granted = if script.byte() & 1 == 0 { wanted.unwrap_or(any) } else { any };
        let kept = self.ends[end].set_buffers(granted);
        assert_eq!(self.ends[end].buffers(), kept);
    }

    fn fire(&mut self) {
        let next = self.ends.iter().filter_map(Connection::poll_at).min();
        self.now = next.map_or(self.now, |at| at.max(self.now));
        for end in &mut self.ends {
            end.on_timeout(self.now);
            assert!(end.poll_at().is_none_or(|at| at > self.now), "a timer that does not stop");
        }
    }

    fn lose(&mut self, to: usize, place: u8) {
        if let Some(place) = usize::from(place).checked_rem(self.ways[to].len()) {
            self.ways[to].remove(place);
        }
    }

    fn repeat(&mut self, to: usize, place: u8) {
        if let Some(place) = usize::from(place).checked_rem(self.ways[to].len()) {
            let again = self.ways[to][place].clone();
            self.ways[to].push(again);
        }
    }

    /// Delivers `count` segments, starting at `place`, as an aggregate.
    fn deliver(&mut self, to: usize, place: u8, count: usize) {
        let Some(place) = usize::from(place).checked_rem(self.ways[to].len()) else { return };
        let until = self.ways[to].len().min(place + count);
        let (now, taken): (_, Vec<_>) = (self.now, self.ways[to].drain(place..until).collect());
        taken.iter().for_each(|wire| self.model.arrives(to, wire));
        let records: Option<Vec<_>> = taken.iter().map(|wire| wire.record(now)).collect();
        let segments: Vec<_> = taken.into_iter().map(|wire| wire.into_segment(now)).collect();
        let to = &mut self.ends[to];
        match (records, run_of(&segments, 1)) {
            (Some(records), _) if count > 1 => to.on_arrival(now, Arrival::acks(records)),
            (_, Some(run)) if count.is_multiple_of(2) => to.on_arrival(now, Arrival::run(run)),
            _ => to.on_arrival(now, Arrival::segments(segments)),
        }
    }

    /// Ends the script: from here on nothing is lost, and there is memory.
    fn end(&mut self) {
        for end in &mut self.ends {
            end.set_buffers(LARGEST_BUFFERS);
        }
        for _ in 0..MOST_TURNS {
            for end in 0..2 {
                self.shut(end);
                self.deliver(end, 0, usize::MAX / 2);
                self.read(end, 100_000);
            }
            self.flush();
            if self.ways.iter().all(Vec::is_empty) {
                if self.ends.iter().all(Connection::is_closed) {
                    break;
                }
                self.fire();
                self.flush();
            }
        }
        let is_clean = |end: &Connection<Vec<u8>>| {
            matches!(end.state(), State::Closed(Closed { failure: None }))
        };
        if self.ends.iter().all(is_clean) && self.written.iter().sum::<u32>() > 0 {
            assert_eq!(self.read, [self.written[1], self.written[0]], "not everything arrived");
        }
        for end in 0..2 {
            // A reset, an abort or a timeout before that counts as a failure.
            let lost = is_clean(&self.ends[end]) && !self.model.has_all(1 - end, self.written[end]);
            assert!(!lost, "{end} ended without failure, and not all it wrote arrived");
        }
        let states = [self.ends[0].state(), self.ends[1].state()];
        let has_failed =
            |end: usize| matches!(states[end], State::Closed(Closed { failure: Some(_) }));
        for (end, state) in states.iter().enumerate() {
            // A peer that is gone cannot send its FIN, and no application waits for it.
            let waits = *state == State::FinWait2 && has_failed(1 - end);
            let is_over = matches!(state, State::Closed(_) | State::Listen);
            assert!(is_over || waits, "it does not end: {states:?}");
        }
    }
}

const MOST_ON_THE_WAY: usize = 300;
const MOST_TURNS: usize = 20_000;
/// More segments than any buffer here needs if each has one byte.
const MOST_AT_ONCE: usize = 80_000;
