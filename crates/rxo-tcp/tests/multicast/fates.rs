//! Casts to receivers of any fate: some are slow, stop, pause and resume, or are killed, while segments are lost.

use proptest::prelude::*;
use rxo_frame::{Duration, Instant};
use rxo_tcp::{GroupConfig, Outcome};

use crate::room::{FOR_EVER, Room, parity_config, spread_config};

/// The course of one receiver of a cast. Times are in milliseconds from the first byte.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Runs,
    /// The receiver reads so many bytes in a millisecond.
    Slow(usize),
    /// The receiver does not run from a time on, for a time; its device keeps segments or drops them.
    Pauses {
        at: u64,
        time: u64,
        keeps: bool,
    },
    /// The receiver never runs again from a time on.
    Killed(u64),
}

const BYTES: usize = 3_000_000;
const TIMEOUT: Duration = Duration::from_secs(10);

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Runs),
        1 => (20_000_usize..200_000).prop_map(Fate::Slow),
        2 => (0_u64..30, 1_u64..300, any::<bool>())
            .prop_map(|(at, time, keeps)| Fate::Pauses { at, time, keeps }),
        1 => (0_u64..30).prop_map(Fate::Killed),
    ]
}

/// A cast over 1 Gbit/s to receivers with `fates`.
struct Story {
    room: Room,
    fates: Vec<Fate>,
    begun: Instant,
    /// The largest number of receivers that caught up at a time.
    caught_up: usize,
}

impl Story {
    fn new(fates: &[Fate], loss: u64, seed: u64) -> Self {
        let config = GroupConfig { buffer_bytes: 4 << 20, ..parity_config() };
        let mut room = Room::new(config, 0, BYTES);
        room.links.byte_time = Duration::from_nanos(8);
        (room.links.loss, room.links.random) = (loss, seed);
        for number in 0..fates.len() {
            room.come(spread_config(number as u16 % 16));
        }
        room.begin();
        let begun = room.now;
        Self { room, fates: fates.to_vec(), begun, caught_up: 0 }
    }

    /// Runs until each receiver has ended. Returns the time until those that run have the stream.
    fn run(&mut self) -> Duration {
        let mut have_at = None;
        for ms in 0.. {
            self.live(ms);
            let until = self.begun + Duration::from_millis(ms + 1);
            let has_ended = |room: &Room| room.sides.iter().all(|side| side.outcome.is_some());
            while self.room.now < until && !has_ended(&self.room) && self.room.step() {
                self.caught_up = self.caught_up.max(self.room.group.progress().catching_up);
                if have_at.is_none() && self.is_read_by_all_that_run() {
                    have_at = Some(self.room.now);
                }
            }
            if has_ended(&self.room) {
                break;
            }
            assert!(ms < 3_600_000, "it does not end: {:?}", self.room.outcomes());
        }
        // A receiver closes when it has everything, which a slow reader has not read yet.
        for number in 0..self.fates.len() {
            self.room.receivers[number].reads_at_most = usize::MAX;
            self.room.read_again(number);
        }
        have_at.map_or(Duration::ZERO, |at| at.since(self.begun))
    }

    /// Lets each receiver do what it does in this millisecond.
    fn live(&mut self, ms: u64) {
        let at = |ms| self.begun + Duration::from_millis(ms);
        for (number, fate) in self.fates.iter().enumerate() {
            let receiver = &mut self.room.receivers[number];
            match *fate {
                Fate::Slow(bytes) => {
                    receiver.reads_at_most = bytes.saturating_mul(ms as usize + 1);
                    self.room.read_again(number);
                }
                Fate::Pauses { at: begins, time, keeps } if begins == ms => {
                    (receiver.absent_until, receiver.keeps_segments) = (at(ms + time), keeps);
                }
                Fate::Killed(begins) if begins == ms => receiver.absent_until = FOR_EVER,
                Fate::Runs | Fate::Pauses { .. } | Fate::Killed(_) => {}
            }
        }
    }

    fn is_read_by_all_that_run(&self) -> bool {
        let receivers = self.room.receivers.iter().zip(&self.fates);
        receivers.filter(|(_, fate)| matches!(fate, Fate::Runs)).all(|(it, _)| it.read == BYTES)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whoever is not killed gets every byte, and whoever is killed is ejected: nobody else.
    #[test]
    fn each_receiver_ends_as_it_deserves(
        fates in prop::collection::vec(fate(), 2..12),
        loss in 0_u64..=30,
        seed in any::<u64>(),
    ) {
        let mut story = Story::new(&fates, loss, seed);
        story.run();
        for (number, fate) in fates.iter().enumerate() {
            let outcome = story.room.sides[number].outcome;
            let is_done = story.room.is_done(number);
            match fate {
                Fate::Killed(_) => prop_assert!(is_done || outcome == Some(Outcome::Ejected(TIMEOUT)), "{number}: {outcome:?}"),
                _ => prop_assert!(is_done, "{number}: {outcome:?}"),
            }
        }
    }

    /// Losses, slow readers and short pauses are no silence: the group leaves nobody behind.
    #[test]
    fn losses_and_slow_readers_are_no_silence(
        fates in prop::collection::vec(prop_oneof![
            5 => Just(Fate::Runs),
            1 => (20_000_usize..200_000).prop_map(Fate::Slow),
            1 => (0_u64..30, 1_u64..9).prop_map(|(at, time)| Fate::Pauses { at, time, keeps: true }),
        ], 2..21),
        loss in 0_u64..=30,
        seed in any::<u64>(),
    ) {
        let mut story = Story::new(&fates, loss, seed);
        story.run();
        prop_assert_eq!(story.room.done(), fates.len());
        prop_assert_eq!(story.caught_up, 0);
    }

    /// The receivers that run wait for at most one of those that do not, and for that one not long.
    #[test]
    fn whoever_runs_does_not_wait_for_whoever_does_not(
        running in 4_usize..12,
        others in prop::collection::vec(prop_oneof![
            (0_u64..30, 1_u64..300, any::<bool>())
                .prop_map(|(at, time, keeps)| Fate::Pauses { at, time, keeps }),
            (0_u64..30).prop_map(Fate::Killed),
        ], 1..3),
        seed in any::<u64>(),
    ) {
        let run = |others: &[Fate]| {
            let fates = [vec![Fate::Runs; running], others.to_vec()].concat();
            Story::new(&fates, 0, seed).run()
        };
        let (beside, alone) = (run(&others), run(&vec![Fate::Runs; others.len()]));
        // Text that a device drops is sent again.
        let dropped = |fate: &Fate| match fate {
            Fate::Pauses { time, keeps: false, .. } => Duration::from_millis(*time).min(alone),
            _ => Duration::ZERO,
        };
        let again = others.iter().map(dropped).sum::<Duration>();
        // A second one is waited for until it has been silent for a tenth of a second.
        let longest = if others.len() > 1 { Duration::from_millis(110) } else { alone / 10 };
        prop_assert!(beside < alone + again + longest, "{:?} instead of {:?}", beside, alone);
    }
}

/// Receivers whose devices drop everything for a while lack whole blocks, and the end of the stream is sent meanwhile. Their
/// connections alone know what they lack, after a timeout; before, each timeout repaired three segments.
#[test]
fn whoever_lacks_whole_blocks_has_them_soon_after_a_timeout() {
    let pauses = |at, time| Fate::Pauses { at, time, keeps: false };
    let fates = [vec![pauses(23, 54)], vec![Fate::Runs; 5], vec![pauses(24, 49)]].concat();
    for seed in 1..=10 {
        let mut story = Story::new(&fates, 14, seed);
        let is_over = |room: &Room| room.receivers.iter().all(|it| it.read == BYTES);
        let limit = story.begun + Duration::from_millis(700);
        for ms in 0.. {
            story.live(ms);
            let until = story.begun + Duration::from_millis(ms + 1);
            while story.room.now < until && !is_over(&story.room) && story.room.step() {}
            if is_over(&story.room) {
                break;
            }
            assert!(story.room.now < limit, "seed {seed}: {:?}", story.room.group.progress());
        }
    }
}
