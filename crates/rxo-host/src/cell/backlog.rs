//! What arrived while an application held the cell.
//!
//! A queue from the worker to whoever has the lock. Neither end ever waits for the other; it is
//! bounded, and allocates only when it is used.

use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Connection, Segment};

use crate::buffer::Buffer;

/// The worker's end.
#[derive(Debug)]
pub(crate) struct Backlog<B> {
    queue: Sender<Waiting<B>>,
    /// How many wait. For a moment less than none: something may be taken before it is counted.
    count: AtomicIsize,
}

/// The end of who has the lock.
#[derive(Debug)]
pub(crate) struct Arrivals<B> {
    queue: Receiver<Waiting<B>>,
}

#[derive(Debug)]
struct Waiting<B> {
    now: Instant,
    segment: Segment<Buffer<B>>,
    /// The next one belongs to the same arrival.
    has_more: bool,
}

impl<B: AsRef<[u8]>> Backlog<B> {
    pub(crate) fn new() -> (Self, Arrivals<B>) {
        let (sender, receiver) = channel();
        (Self { queue: sender, count: AtomicIsize::new(0) }, Arrivals { queue: receiver })
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) <= 0
    }

    /// Appends the segments of one arrival. Returns `false` if there was no room for all: then the rest is
    /// dropped.
    pub(crate) fn push(
        &self,
        now: Instant,
        segments: impl Iterator<Item = Segment<Buffer<B>>>,
    ) -> bool {
        let mut segments = segments.peekable();
        while let Some(segment) = segments.next() {
            if self.count.load(Ordering::Relaxed) >= MOST_WAITING {
                return false;
            }
            // The other end lives as long as the cell.
            let has_more = segments.peek().is_some();
            let _sent = self.queue.send(Waiting { now, segment, has_more });
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        true
    }

    /// Gives the connection everything that waits; says whether there was something.
    pub(crate) fn run(
        &self,
        arrivals: &mut Arrivals<B>,
        connection: &mut Connection<Buffer<B>>,
    ) -> bool {
        if self.is_empty() {
            return false;
        }
        while let Some(first) = self.next(arrivals) {
            self.run_one(first, arrivals, connection);
        }
        true
    }

    fn run_one(
        &self,
        first: Waiting<B>,
        arrivals: &mut Arrivals<B>,
        connection: &mut Connection<Buffer<B>>,
    ) {
        let Waiting { now, segment, mut has_more } = first;
        let rest = std::iter::from_fn(|| {
            let next = has_more.then(|| self.next(arrivals)).flatten()?;
            has_more = next.has_more;
            Some(next.segment)
        });
        let segments = std::iter::once(segment).chain(rest);
        connection.on_arrival(now, Arrival::segments(segments));
    }

    fn next(&self, arrivals: &mut Arrivals<B>) -> Option<Waiting<B>> {
        let waiting = arrivals.queue.try_recv().ok()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(waiting)
    }
}

/// Segments. An application holds the lock for a copy of one buffer; a poll brings fewer.
const MOST_WAITING: isize = 1_024;
