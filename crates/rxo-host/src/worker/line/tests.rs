//! Fair shares, in bytes, of connections that always have more to send.

use super::*;

/// Connections that send `frames` bytes at a time, and the bytes that each has sent.
struct Cells {
    line: Line,
    turns: Vec<Turn>,
    frames: Vec<u64>,
    sent: Vec<u64>,
}

impl Cells {
    fn with_frames(frames: &[u64]) -> Self {
        let (line, turns) = (Line::new(), vec![Turn::default(); frames.len()]);
        let mut cells = Self { line, turns, frames: frames.to_vec(), sent: vec![0; frames.len()] };
        (0..frames.len()).for_each(|n| cells.join(n));
        cells
    }

    fn join(&mut self, n: usize) {
        self.line.join(n as u32, &mut self.turns[n]);
    }

    fn rejoin(&mut self, n: usize) {
        self.line.rejoin(n as u32, &mut self.turns[n]);
    }

    /// Lets the next connection send its share, at most `most` bytes. Returns its number.
    fn next(&mut self, most: u64) -> usize {
        let (place, is_first) = self.line.next().expect("the line is not empty");
        let n = place as usize;
        assert!(self.line.leave(&mut self.turns[n], is_first));
        let (mut sent, share) = (0, self.line.share(&mut self.turns[n]));
        while sent < share.min(most) {
            sent += self.frames[n];
        }
        self.line.sent(&mut self.turns[n], sent);
        self.sent[n] += sent;
        n
    }
}

#[test]
fn all_get_the_same_bytes_whatever_their_frames() {
    let mut cells = Cells::with_frames(&[1_448, 64_000, 2_896, 30_000]);
    for _ in 0..4_000 {
        let n = cells.next(u64::MAX);
        cells.join(n);
    }
    let (least, most) = (cells.sent.iter().min().unwrap(), cells.sent.iter().max().unwrap());
    assert!(most - least <= 3 * MOST_QUANTUM_BYTES, "{:?}", cells.sent);
}

/// A connection that is interrupted before it has sent its share continues with the rest of the share. Here
/// each connection is interrupted once per round.
#[test]
fn one_that_is_interrupted_goes_on_with_its_share() {
    let mut cells = Cells::with_frames(&[16_384; 3]);
    let order: Vec<_> = (0..12)
        .map(|_| {
            let n = cells.next(MOST_QUANTUM_BYTES / 2);
            cells.rejoin(n);
            n
        })
        .collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]);
    assert_eq!(cells.sent, [2 * MOST_QUANTUM_BYTES; 3]);
}

#[test]
fn a_short_answer_goes_before_one_that_is_interrupted() {
    let mut cells = Cells::with_frames(&[16_384, 16_384, 1_000]);
    for n in [0, 1] {
        assert_eq!(cells.next(u64::MAX), n);
        cells.join(n);
    }
    assert_eq!((cells.next(1_000), cells.next(16_384)), (2, 0));
    cells.rejoin(0);
    cells.join(2);
    assert_eq!([0; 3].map(|_| cells.next(1_000)), [2, 0, 1]);
}

#[test]
fn a_short_answer_goes_before_those_that_had_their_share() {
    let mut cells = Cells::with_frames(&[65_536, 65_536, 1_000]);
    assert_eq!([0; 3].map(|_| cells.next(1_000)), [0, 1, 2]);
    (0..3).for_each(|n| cells.join(n));
    assert_eq!(cells.next(1_000), 2, "its share of the round is not used up");
}

#[test]
fn short_answers_without_end_do_not_keep_others_waiting() {
    let mut cells = Cells::with_frames(&[64_000, 1_000]);
    for _ in 0..1_000 {
        let n = cells.next(1_000);
        cells.join(n);
    }
    assert!(cells.sent[0] >= cells.sent[1], "{:?}", cells.sent);
}

#[test]
fn what_was_sent_alone_is_held_against_a_cell_for_a_round_only() {
    let mut cells = Cells::with_frames(&[64_000, 64_000]);
    let first = cells.next(u64::MAX);
    cells.line.sent(&mut cells.turns[first], 100 << 20);
    cells.join(first);
    let order: Vec<_> = (0..6)
        .map(|_| {
            let n = cells.next(u64::MAX);
            cells.join(n);
            n
        })
        .collect();
    assert!(order[..4].contains(&first), "{order:?}");
}

#[test]
fn a_cell_is_in_the_line_once() {
    let mut cells = Cells::with_frames(&[1]);
    cells.join(0);
    assert_eq!(cells.line.len(), 1);
    assert_eq!(cells.line.next(), Some((0, true)));
    assert!(cells.line.leave(&mut cells.turns[0], true));
    assert!(!cells.line.leave(&mut cells.turns[0], true) && cells.line.is_empty());
}
