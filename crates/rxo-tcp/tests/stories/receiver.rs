//! The receiving direction against a naive oracle: one flag per byte of the stream, and the rules of the RFCs
//! applied to them.
//!
//! The oracle is written from RFC 9293 (sections 3.10.7.4, 3.8.6), RFC 5681 (section 4.2), RFC 2018 and RFC
//! 2883, and shares no code with the endpoint. It decides which segments must be acknowledged at once and
//! which may wait, which text is readable, and which SACK blocks are valid. Timings that the RFCs leave open
//! are not checked.

use proptest::prelude::*;
use rxo_frame::Duration;
use rxo_tcp::{Config, SegmentOptions};
use rxo_wire::tcp::SackBlock;

use crate::dsl::*;

/// The number of bytes in the stream; its FIN follows the last.
const STREAM: usize = 12_000;
/// The receive buffer in bytes: less than the stream, so that the window closes when no application reads.
const CAPACITY: u32 = 9_000;

/// The number of acknowledgements in one poll with SACK blocks of their own after the peer's FIN; larger
/// memory has been freed.
const MOST_AFTER_THE_END: usize = 4;

/// A range of positions: the first is included, the second is not.
type Place = (usize, usize);

/// The oracle. Positions count from the first byte as 0.
struct Oracle {
    has: Vec<bool>,
    /// RCV.NXT, as a position of the stream.
    nxt: usize,
    /// The furthest window edge that was offered.
    edge: usize,
    read: usize,
    /// The first position in order that no sent acknowledgement covers.
    unacknowledged_from: usize,
}

/// The acknowledgement that the RFCs require for one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The segment must be acknowledged at once.
    Now,
    /// The segment must be acknowledged within half a second.
    Later,
    /// The segment needs no acknowledgement, or its answer may be rate-limited.
    Perhaps,
}

impl Oracle {
    fn new() -> Self {
        let edge = CAPACITY as usize;
        Self { has: vec![false; STREAM + 1], nxt: 0, edge, read: 0, unacknowledged_from: 0 }
    }

    /// Returns `true` if the segment is acceptable by RFC 9293, section 3.10.7.4, or begins at the right
    /// edge, or covers the whole window.
    fn is_acceptable(&self, start: usize, len: usize) -> bool {
        start <= self.edge && if len == 0 { start >= self.nxt } else { start + len > self.nxt }
    }

    /// Processes a segment of `len` positions, including a FIN.
    fn take(&mut self, start: usize, len: usize) -> Answer {
        if !self.is_acceptable(start, len) {
            return if len == 0 { Answer::Perhaps } else { Answer::Now };
        }
        if len == 0 {
            return Answer::Perhaps;
        }
        let had_gap = self.has[self.nxt..].contains(&true);
        let is_out_of_order = start > self.nxt;
        let is_cut = start + len > self.edge;
        for place in start.max(self.nxt)..(start + len).min(self.edge) {
            self.has[place] = true;
        }
        while self.has.get(self.nxt) == Some(&true) {
            self.nxt += 1;
        }
        if had_gap || is_out_of_order || is_cut { Answer::Now } else { Answer::Later }
    }

    /// Returns the first part of the `len` bytes at `start` that has arrived before; FINs are not reported.
    fn first_duplicate(&self, start: usize, len: usize) -> Option<Place> {
        let end = (start + len).min(STREAM);
        let first = (start..end).find(|place| self.has[*place])?;
        let after = (first..end).find(|place| !self.has[*place]);
        Some((first, after.unwrap_or(end)))
    }

    /// Returns the contiguous ranges after a gap.
    fn runs(&self) -> Vec<Place> {
        let mut runs: Vec<Place> = Vec::new();
        for place in (self.nxt..STREAM).filter(|place| self.has[*place]) {
            match runs.last_mut() {
                Some(last) if last.1 == place => last.1 = place + 1,
                _ => runs.push((place, place + 1)),
            }
        }
        runs
    }
}

/// An acknowledgement that was sent, in the oracle's positions.
#[derive(Debug)]
struct Left {
    ack: usize,
    edge: usize,
    blocks: Vec<Place>,
}

impl Left {
    /// Returns the first block if it reports a duplicate: it lies below the acknowledgement or inside the
    /// second block (RFC 2883, section 4).
    fn duplicate(&self) -> Option<Place> {
        let first = *self.blocks.first()?;
        let is_inside = |second: &Place| second.0 <= first.0 && first.1 <= second.1;
        let is_one = first.0 < self.ack || self.blocks.get(1).is_some_and(is_inside);
        is_one.then_some(first)
    }
}

struct Trial {
    scene: Scene,
    oracle: Oracle,
    turn: u32,
}

impl Trial {
    fn new() -> Self {
        let config =
            Config { receive_buffer_bytes: CAPACITY, receive_pieces: 4_096, ..with_sack() };
        Self { scene: Scene::established(config), oracle: Oracle::new(), turn: 0 }
    }

    /// Returns the acknowledgements that the receiver sends now.
    fn leaving(&mut self) -> Vec<Left> {
        let place = |seq: rxo_wire::SeqNumber| (seq - (PEER_ISS + 1)) as usize;
        let mut left = Vec::new();
        while let Some(sent) = self.scene.tcp.poll_transmit(self.scene.now) {
            let options = SegmentOptions::read(sent.options.as_slice());
            let block = |block: &SackBlock| (place(block.start), place(block.end));
            let blocks: Vec<_> = options.sack.as_slice().iter().map(block).collect();
            let one = |ack, window: u16| Left {
                ack: place(ack),
                edge: place(ack) + usize::from(window),
                blocks: blocks.clone(),
            };
            left.push(one(sent.ack, sent.window));
            left.extend(sent.later_acks.iter().map(|later| one(later.ack, later.window)));
        }
        left
    }

    /// Gives segments at once and checks the output against the oracle.
    fn segments(&mut self, segments: &[(usize, usize)]) {
        let mut duplicates = Vec::new();
        let mut answers = Vec::new();
        let mut numbers = Vec::new();
        let mut peers = Vec::new();
        for (start, len) in segments {
            let has_fin = start + len == STREAM && len % 2 == 1;
            let peer = seg().seq(*start as u32 + 1).len(*len as u32);
            peers.push(if has_fin { peer.fin() } else { peer });
            duplicates.push(self.oracle.first_duplicate(*start, *len));
            answers.push(self.oracle.take(*start, len + usize::from(has_fin)));
            numbers.push(self.oracle.nxt);
        }
        // Every other time the segments take the fast path, if it accepts them.
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            self.scene.gets_run(peers)
        } else {
            self.scene.gets_aggregate(peers)
        }
        let left = self.leaving();
        self.check_answers(&answers, &numbers, &left);
        self.check_duplicates(&duplicates, &answers, &left);
        if let (&[(start, _)], [only]) = (segments, left.as_slice()) {
            self.check_blocks(start, only);
        }
        left.iter().for_each(|left| self.check_window(left));
        self.check_text();
    }

    /// Checks the number and the time of acknowledgements by RFC 5681, section 4.2, and RFC 9293, section
    /// 3.8.6.3.
    fn check_answers(&mut self, answers: &[Answer], numbers: &[usize], left: &[Left]) {
        let must = answers.iter().filter(|answer| **answer == Answer::Now).count();
        assert!(left.len() >= must, "{must} at once, not {left:?}");
        assert!(left.len() <= answers.len(), "{left:?} for {answers:?}");
        for one in left {
            assert!(numbers.contains(&one.ack), "{one:?} was never RCV.NXT: {numbers:?}");
        }
        if let Some(last) = left.last() {
            assert!(last.ack >= self.oracle.unacknowledged_from, "{last:?} goes back");
            self.oracle.unacknowledged_from = last.ack;
        }
        if answers.last() == Some(&Answer::Now) {
            assert_eq!(self.oracle.unacknowledged_from, self.oracle.nxt, "at once means all");
        }
        let waits = self.oracle.nxt - self.oracle.unacknowledged_from;
        assert!(waits < 2 * MSS as usize, "{waits} bytes wait");
    }

    /// RFC 2883, section 4: each acknowledgement reports the duplicate of one segment: the first part,
    /// completely, and only once, even if many arrive together. A duplicate in a segment whose
    /// acknowledgement may wait need not be reported, because the next segment may bring another one.
    fn check_duplicates(&self, came: &[Option<Place>], answers: &[Answer], left: &[Left]) {
        let mut reported = left.iter().filter_map(Left::duplicate).peekable();
        for (duplicate, answer) in came.iter().zip(answers) {
            let Some(duplicate) = duplicate else { continue };
            let is_next = reported.next_if_eq(duplicate).is_some();
            let with_blocks = left.iter().filter(|left| !left.blocks.is_empty()).count();
            let has_no_room = self.oracle.nxt > STREAM && with_blocks >= MOST_AFTER_THE_END;
            let may_be_left_out = *answer == Answer::Later || has_no_room;
            assert!(
                is_next || may_be_left_out,
                "{duplicate:?} is not reported: {came:?}, {left:?}"
            );
        }
        assert_eq!(
            reported.next(),
            None,
            "it did not come twice, or is reported twice: {came:?}, {left:?}"
        );
    }

    /// Checks the blocks of the only answer to one segment, which begins at `start` (RFC 2018, section 4).
    fn check_blocks(&self, start: usize, left: &Left) {
        let runs = self.oracle.runs();
        let duplicates = usize::from(left.duplicate().is_some());
        let blocks = &left.blocks[duplicates..];
        assert!(blocks.iter().all(|block| runs.contains(block)), "{left:?}, runs {runs:?}");
        assert_eq!(blocks.len(), runs.len().min(4 - duplicates), "{left:?}, runs {runs:?}");
        let around = runs.iter().find(|run| run.0 <= start && start < run.1);
        if let Some(around) = around {
            assert_eq!(blocks.first(), Some(around), "the latest comes first");
        }
    }

    /// RFC 9293, section 3.8.6: the edge never moves back and never exceeds the free space.
    fn check_window(&mut self, left: &Left) {
        let most = self.oracle.read + CAPACITY as usize;
        assert!(left.edge <= most + 1, "{left:?} offers more than {most}");
        assert!(
            left.edge + 1 >= self.oracle.edge || left.ack < self.oracle.nxt,
            "{left:?} goes back"
        );
        self.oracle.edge = self.oracle.edge.max(left.edge);
    }

    fn check_text(&self) {
        let text = self.oracle.nxt.min(STREAM);
        assert_eq!(self.scene.tcp.readable_bytes(), text - self.oracle.read);
        assert_eq!(self.scene.tcp.is_peer_done(), self.oracle.nxt > STREAM);
    }

    fn read(&mut self, bytes: usize) {
        let mut text = vec![0; bytes];
        let read = self.scene.tcp.receive(&mut text).unwrap_or(0);
        for (at, byte) in text[..read].iter().enumerate() {
            assert_eq!(*byte, stream_byte((self.oracle.read + at) as u32 + 1));
        }
        self.oracle.read += read;
        let left = self.leaving();
        assert!(left.len() <= 1, "{left:?}");
        for one in &left {
            assert_eq!(one.ack, self.oracle.nxt);
            self.oracle.unacknowledged_from = one.ack;
            self.check_window(one);
        }
    }

    /// RFC 9293, section 3.8.6.3 (MUST-40): after half a second everything is acknowledged.
    fn wait(&mut self) {
        let end = self.scene.now + Duration::from_millis(500);
        while let Some(at) = self.scene.tcp.poll_at().filter(|at| *at < end) {
            self.scene.now = at;
            self.scene.tcp.on_timeout(at);
            for left in self.leaving() {
                assert_eq!(left.ack, self.oracle.nxt);
                self.oracle.unacknowledged_from = left.ack;
                self.check_window(&left);
            }
        }
        self.scene.now = end;
        assert_eq!(self.oracle.unacknowledged_from, self.oracle.nxt, "not acknowledged in time");
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Segments with the given start and length each.
    Segments(Vec<(usize, usize)>),
    /// A segment with this number of the next missing bytes.
    Next(usize),
    Read(usize),
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let segment = (0..STREAM, 0..1_100_usize).prop_map(|(at, len)| (at, len.min(STREAM - at)));
    prop_oneof![
        2 => prop::collection::vec(segment.clone(), 1..2).prop_map(Step::Segments),
        1 => prop::collection::vec(segment, 1..6).prop_map(Step::Segments),
        4 => (1..1_100_usize).prop_map(Step::Next),
        1 => (0..6_000_usize).prop_map(Step::Read),
        1 => Just(Step::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For arbitrary segments, the receiver does what the RFCs require: RFC 9293, section 3.10.7.4 (SHLD-31);
    /// RFC 5681, section 4.2 (a, b, c); RFC 2018, section 4 (a, b); RFC 2883, section 4 (a, b, c, d).
    #[test]
    fn the_receiver_does_what_the_rfcs_say(steps in prop::collection::vec(step(), 1..60)) {
        let mut trial = Trial::new();
        for step in steps {
            match step {
                Step::Segments(segments) => trial.segments(&segments),
                Step::Next(len) => {
                    let start = trial.oracle.nxt.min(STREAM);
                    trial.segments(&[(start, len.min(STREAM - start))]);
                }
                Step::Read(bytes) => trial.read(bytes),
                Step::Wait => trial.wait(),
            }
        }
        trial.wait();
    }
}
