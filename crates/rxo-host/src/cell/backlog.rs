//! What arrived while an application held the cell.
//!
//! A queue from the worker to whoever has the lock. Neither end ever waits for the other; it is
//! bounded, and allocates only when it is used.

use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use rxo_frame::Instant;
use rxo_tcp::{Connection, Segment};
use rxo_wire::tcp::AckRecord;

use crate::buffer::Buffer;

/// One segment, or what is known of one.
#[derive(Debug)]
pub(crate) enum Arrival<B> {
    Segment(Segment<Buffer<B>>),
    Ack(AckRecord),
}

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
    arrival: Arrival<B>,
    /// The next one belongs to the same aggregate.
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

    /// Appends; what has no room is dropped, and `false` says so.
    pub(crate) fn push(
        &self,
        now: Instant,
        arrivals: impl Iterator<Item = (Arrival<B>, bool)>,
    ) -> bool {
        for (arrival, has_more) in arrivals {
            if self.count.load(Ordering::Relaxed) >= MOST_WAITING {
                return false;
            }
            // The other end lives as long as the cell.
            let _sent = self.queue.send(Waiting { now, arrival, has_more });
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
        let now = first.now;
        let mut has_more = first.has_more;
        match first.arrival {
            Arrival::Ack(record) => connection.on_pure_ack(now, &record),
            Arrival::Segment(segment) => {
                let rest = std::iter::from_fn(|| {
                    let next = has_more.then(|| self.next(arrivals)).flatten()?;
                    has_more = next.has_more;
                    match next.arrival {
                        Arrival::Segment(segment) => Some(segment),
                        Arrival::Ack(_) => None,
                    }
                });
                connection.on_aggregate(now, std::iter::once(segment).chain(rest));
            }
        }
    }

    fn next(&self, arrivals: &mut Arrivals<B>) -> Option<Waiting<B>> {
        let waiting = arrivals.queue.try_recv().ok()?;
        self.count.fetch_sub(1, Ordering::SeqCst);
        Some(waiting)
    }
}

/// Segments. An application holds the lock for a copy of one buffer; a poll brings fewer.
const MOST_WAITING: isize = 1_024;
