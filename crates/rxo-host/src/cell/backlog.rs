//! The backlog: segments that arrived while an application held the lock of the cell.
//!
//! The backlog is a bounded queue from the worker to the owner of the lock; neither waits for the other. The
//! queue is allocated at its first use.

use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use rxo_frame::Instant;
use rxo_tcp::{Arrival, Connection, Segment};

use crate::buffer::Buffer;

/// The segments that wait for one cell, whose lock an application holds.
#[derive(Debug)]
pub(crate) struct Backlog<B> {
    ends: OnceLock<Box<Ends<B>>>,
    /// Number of segments that wait or are being passed to the connection. The count is briefly negative if a
    /// segment is popped before `push` has counted it.
    count: AtomicIsize,
}

/// The sending end of the queue, for the worker, and the receiving end, for the thread that holds the cell's
/// lock. The mutex around the receiver is never contended, because only that thread locks it.
#[derive(Debug)]
struct Ends<B> {
    sender: Sender<Box<Waiting<B>>>,
    receiver: Mutex<Receiver<Box<Waiting<B>>>>,
}

/// A segment that waits in the backlog.
#[derive(Debug)]
pub(super) struct Waiting<B> {
    now: Instant,
    segment: Segment<Buffer<B>>,
    /// `true` if the segment was sent to the connection's multicast group.
    is_to_group: bool,
    /// `true` if the next segment in the backlog was received together with this segment.
    has_more: bool,
}

impl<B> Ends<B> {
    fn new() -> Box<Self> {
        let (sender, receiver) = channel();
        Box::new(Self { sender, receiver: Mutex::new(receiver) })
    }
}

impl<B: AsRef<[u8]>> Backlog<B> {
    pub(crate) const fn new() -> Self {
        Self { ends: OnceLock::new(), count: AtomicIsize::new(0) }
    }

    /// Returns `true` if no segment waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) <= 0
    }

    /// Appends segments that were received together; `is_to_group` holds for all of them. Returns `false` if
    /// the backlog became full; the remaining segments are dropped.
    pub(crate) fn push(
        &self,
        now: Instant,
        segments: impl Iterator<Item = Segment<Buffer<B>>>,
        is_to_group: bool,
    ) -> bool {
        let mut segments = segments.peekable();
        let ends = self.ends.get_or_init(Ends::new);
        while let Some(segment) = segments.next() {
            let waiting = self.count.load(Ordering::Relaxed);
            if waiting >= MOST_WAITING {
                return false;
            }
            // The last segment that fits ends its series, so that the next one is not taken for a part of it.
            let has_more = segments.peek().is_some() && waiting + 1 < MOST_WAITING;
            // Sending cannot fail: the other end lives as long as the cell.
            let _sent = ends.sender.send(Box::new(Waiting { now, segment, is_to_group, has_more }));
            self.count.fetch_add(1, Ordering::SeqCst);
        }
        true
    }

    /// Returns the next segment of the backlog, with which a group of segments begins that were received
    /// together (see [`Backlog::run`]); `None` if the backlog is empty. Only the owner of the cell's lock may
    /// call it.
    pub(super) fn next(&self) -> Option<Waiting<B>> {
        let receiver = &self.ends.get()?.receiver;
        let waiting = receiver.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()?;
        Some(*waiting)
    }

    /// Passes `first`, and the segments that were received with it, to the connection, except segments that
    /// `admits` rejects.
    ///
    /// The count is reduced only after the segments have been passed. Until then the worker must see a nonempty
    /// backlog: otherwise it would put later ACKs into the ring, ahead of these segments.
    pub(super) fn run(
        &self,
        first: Waiting<B>,
        connection: &mut Connection<Buffer<B>>,
        admits: impl FnMut(&Segment<Buffer<B>>) -> bool,
    ) {
        let Waiting { now, segment, is_to_group, mut has_more } = first;
        let mut taken = 1;
        let rest = std::iter::from_fn(|| {
            let next = has_more.then(|| self.next()).flatten()?;
            has_more = next.has_more;
            taken += 1;
            Some(next.segment)
        });
        let segments = std::iter::once(segment).chain(rest).filter(admits);
        match is_to_group {
            false => connection.on_arrival(now, Arrival::segments(segments)),
            true => connection.on_group_arrival(now, Arrival::segments(segments)),
        }
        self.count.fetch_sub(taken, Ordering::SeqCst);
    }
}

/// Maximum number of waiting segments. An application holds the lock only while it copies one buffer, and fewer
/// segments than this limit arrive in that time.
const MOST_WAITING: isize = 1_024;

#[cfg(test)]
mod tests {
    use rxo_tcp::{Ecn, SegmentOptions};
    use rxo_wire::{SeqNumber, TcpFlags};

    use super::*;

    fn segment() -> Segment<Buffer<Vec<u8>>> {
        Segment {
            seq: SeqNumber(1),
            ack: SeqNumber(1),
            flags: TcpFlags::ACK,
            window: 1,
            options: SegmentOptions::default(),
            payload: None,
            ecn: Ecn::NotCapable,
            arrived_at: Instant::ZERO,
        }
    }

    /// Takes the next segment off the queue and the count, as [`Backlog::run`] does.
    fn take(backlog: &Backlog<Vec<u8>>) -> Option<Waiting<Vec<u8>>> {
        let taken = backlog.next();
        backlog.count.fetch_sub(isize::from(taken.is_some()), Ordering::SeqCst);
        taken
    }

    #[test]
    fn an_arrival_that_was_cut_short_does_not_take_the_next_one_in() {
        let backlog = Backlog::new();
        let most = MOST_WAITING as usize;
        assert!(!backlog.push(Instant::ZERO, (0..=most).map(|_| segment()), false));
        assert!(take(&backlog).is_some_and(|first| first.has_more));
        assert!(
            backlog.push(Instant::from_micros(1), [segment()].into_iter(), false),
            "there is room again"
        );
        let rest: Vec<_> = std::iter::from_fn(|| take(&backlog)).collect();
        let ends: Vec<_> = (0..rest.len()).filter(|index| !rest[*index].has_more).collect();
        assert_eq!(ends, [most - 2, most - 1]);
    }
}
