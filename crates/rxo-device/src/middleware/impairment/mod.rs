//! An impaired network: loses, delays, reorders and duplicates frames, and limits their rate.
//!
//! ```text
//!  push -> segment -> decisions (lost? doubled? reordered?) -> limit -> link of a rate -> delay -> gather -> pop
//! ```
//!
//! Loss, duplication and reordering are drawn from the seed, with the same number of draws for every frame. So,
//! for example, the loss of the hundredth frame does not depend on the other settings.
//!
//! **Segments, not GSO frames.** A TCP or UDP GSO frame, which a local sender with segmentation offload
//! produces, is segmented first; otherwise one loss would remove 64 KiB at once. The segments have partial
//! checksums if the GSO frame had one. A GSO frame that cannot be segmented here (unreadable headers) counts as
//! one frame and keeps its metadata.
//!
//! Contract: sans-IO. The frames' arrival times must be on the clock with which [`Impairment::pop`] is
//! called. Memory is bounded by [`ImpairmentSettings::limit_frames`] and [`ImpairmentSettings::limit_bytes`];
//! frames beyond a limit are dropped, and counted for each limit.

mod decisions;
mod settings;
mod source;
#[cfg(test)]
mod tests;
mod text;

use std::collections::VecDeque;

use rxo_frame::{Duration, Frame, Instant, LinkKind};
use rxo_wire::checksum::Summer;
use rxo_wire::segmentation::Checksums;

use super::cut::cut;
use decisions::{Decisions, Dice};

pub use settings::{Displacement, ImpairmentCounters, ImpairmentError, ImpairmentSettings};
pub use source::ImpairedSource;
pub use text::{BadImpairment, parse_rate};

/// An impaired network. It owns copies of the frames in it.
#[derive(Clone, Debug)]
pub struct Impairment {
    settings: ImpairmentSettings,
    /// The first header of each frame, needed to segment GSO frames; `None` if GSO frames are not segmented.
    cuts: Option<LinkKind>,
    dice: Dice,
    counters: ImpairmentCounters,
    /// Waiting frames, sorted by `due_at`.
    queue: VecDeque<Waiting>,
    /// Reordered frames, which later frames overtake, in the order in which they were set aside. All of them wait
    /// for the same number of frames and the same time, so the first frame set aside is also released first.
    reordered: VecDeque<Reordered>,
    stored_bytes: usize,
    /// The number of frames released in order so far.
    passed: u64,
    entered_at: Instant,
    link_free_at: Instant,
    /// The time at which the current or last group of gathered frames is released.
    gathered_until: Instant,
    last_due_at: Instant,
    last_given_at: Instant,
}

#[derive(Clone, Debug)]
struct Waiting {
    frame: Frame<Vec<u8>>,
    due_at: Instant,
    is_reordered: bool,
}

#[derive(Clone, Debug)]
struct Reordered {
    frame: Frame<Vec<u8>>,
    due_at: Instant,
    /// The number of frames released in order after which this frame is released, unless `deadline` comes
    /// first.
    after: u64,
    /// The latest time at which this frame is released.
    deadline: Instant,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Queue,
    Reordered,
}

impl Impairment {
    /// Creates an empty network for frames that begin with `link`.
    ///
    /// # Errors
    /// [`ImpairmentError`] names the first invalid setting.
    pub fn new(settings: ImpairmentSettings, link: LinkKind) -> Result<Self, ImpairmentError> {
        settings.check()?;
        let dice = Dice::new(settings.seed);
        Ok(Self { settings, cuts: Some(link), dice, ..Self::transparent() })
    }

    /// Creates a network that changes nothing. It does not segment GSO frames either.
    #[must_use]
    pub fn transparent() -> Self {
        let settings = ImpairmentSettings::default();
        Self {
            settings,
            cuts: None,
            dice: Dice::new(settings.seed),
            counters: ImpairmentCounters::default(),
            queue: VecDeque::new(),
            reordered: VecDeque::new(),
            stored_bytes: 0,
            passed: 0,
            entered_at: Instant::ZERO,
            link_free_at: Instant::ZERO,
            gathered_until: Instant::ZERO,
            last_due_at: Instant::ZERO,
            last_given_at: Instant::ZERO,
        }
    }

    /// Adds a frame to the network, at the frame's arrival time. Copies the frame unless it is lost.
    pub fn push<B: AsRef<[u8]>>(&mut self, frame: &Frame<B>) {
        let frame = frame.borrowed();
        let is_partial = frame.checksum.is_partial();
        let checksums =
            if is_partial { Checksums::Partial } else { Checksums::Complete(Summer::detect()) };
        let is_cut =
            self.cuts.is_some_and(|link| cut(frame, link, checksums, |part| self.enter(part)));
        if is_cut {
            self.counters.cut += 1;
        } else {
            self.enter(frame);
        }
    }

    /// Returns the next frame that was released by `now`, with the time of its release as arrival time.
    /// `None` if no frame is due.
    pub fn pop(&mut self, now: Instant) -> Option<Frame<Vec<u8>>> {
        loop {
            let (at, place) = self.next().filter(|(at, _)| *at <= now)?;
            let frame = match place {
                Place::Reordered => self.reordered.pop_front()?.frame,
                Place::Queue => {
                    let waiting = self.queue.pop_front()?;
                    if waiting.is_reordered {
                        self.store_reordered(waiting);
                        continue;
                    }
                    self.passed += 1;
                    waiting.frame
                }
            };
            return Some(self.give(frame, at));
        }
    }

    /// Returns the time at which [`Self::pop`] will return a frame if no other frame is added; `None` if the
    /// network is empty.
    #[must_use]
    pub fn poll_at(&self) -> Option<Instant> {
        self.next().map(|(at, _)| at)
    }

    /// Returns `true` if no frame is in the network.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.reordered.is_empty()
    }

    /// Returns the counters of the network since its creation.
    #[must_use]
    pub const fn counters(&self) -> ImpairmentCounters {
        self.counters
    }

    fn enter(&mut self, frame: Frame<&[u8]>) {
        self.counters.taken += 1;
        let decisions = self.dice.decisions(&self.settings);
        if decisions.is_lost {
            self.counters.lost += 1;
            return;
        }
        self.store(frame, decisions);
        if decisions.is_doubled {
            self.counters.doubled += 1;
            self.store(frame, Decisions { is_reordered: false, ..decisions });
        }
    }

    fn store(&mut self, frame: Frame<&[u8]>, decisions: Decisions) {
        let bytes = frame.bytes.len();
        if self.queue.len() + self.reordered.len() >= self.settings.limit_frames {
            self.counters.over_frames += 1;
            return;
        }
        if self.stored_bytes + bytes > self.settings.limit_bytes {
            self.counters.over_bytes += 1;
            return;
        }
        self.stored_bytes += bytes;
        let due_at = self.due_at(frame.arrived_at, bytes, decisions.jitter);
        let frame = frame.with_bytes(frame.bytes.to_vec());
        self.queue.push_back(Waiting { frame, due_at, is_reordered: decisions.is_reordered });
    }

    /// Returns the time at which a frame that arrives at `arrived_at` is released: after the frames before it,
    /// its transmission time, and the delay.
    fn due_at(&mut self, arrived_at: Instant, bytes: usize, jitter: Duration) -> Instant {
        self.entered_at = self.entered_at.max(arrived_at);
        let mut sent_at = self.entered_at;
        if let Some(rate) = self.settings.rate_bytes_per_s {
            let nanos = (bytes as u64).saturating_mul(1_000_000_000) / rate;
            sent_at = sent_at.max(self.link_free_at) + Duration::from_nanos(nanos);
            self.link_free_at = sent_at;
        }
        let due_at = self.gathered(sent_at + self.settings.delay + jitter);
        self.last_due_at = self.last_due_at.max(due_at);
        self.last_due_at
    }

    /// Returns the time at which a frame that is due at `at` is released. All frames of a gathered group have the
    /// same release time.
    fn gathered(&mut self, at: Instant) -> Instant {
        if self.settings.gather.is_zero() {
            return at;
        }
        if at >= self.gathered_until {
            self.gathered_until = at + self.settings.gather;
        }
        self.gathered_until
    }

    fn store_reordered(&mut self, waiting: Waiting) {
        self.counters.reordered += 1;
        let Displacement { frames, time } = self.settings.displacement;
        let after = frames.map_or(u64::MAX, |frames| self.passed.saturating_add(frames.into()));
        let Waiting { frame, due_at, .. } = waiting;
        self.reordered.push_back(Reordered { frame, due_at, after, deadline: due_at + time });
    }

    /// Returns the place of the frame that is released next, and the time of its release; `None` if no frame is
    /// stored.
    fn next(&self) -> Option<(Instant, Place)> {
        let reordered = self.reordered.front().map(|reordered| {
            let is_overtaken = reordered.after <= self.passed;
            (if is_overtaken { reordered.due_at } else { reordered.deadline }, Place::Reordered)
        });
        let queued = self.queue.front().map(|waiting| (waiting.due_at, Place::Queue));
        // At equal times the frame that was set aside goes first, because it was added first.
        reordered.into_iter().chain(queued).min_by_key(|(at, _)| *at)
    }

    fn give(&mut self, mut frame: Frame<Vec<u8>>, at: Instant) -> Frame<Vec<u8>> {
        self.counters.given += 1;
        self.stored_bytes -= frame.bytes.len();
        self.last_given_at = self.last_given_at.max(at);
        frame.arrived_at = self.last_given_at;
        frame
    }
}
