//! Departures: the number of packets that have left an interface: sent, or dropped by the interface or by its
//! queue.
//!
//! This module is separate because the system has these numbers in two places: in the interface's counters,
//! and in the counters of its queueing discipline, which may drop a packet long after it has accepted it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rxo_netlink::{Netlink, Request, attribute, u32_at};

use crate::statistics::Statistics;

/// Reads the counters of one interface and of its transmit queue. Needs no privilege.
#[derive(Debug)]
pub(super) struct Departures {
    statistics: Statistics,
    queue: Queue,
}

/// The drop counter of the transmit queue. A thread reads it, because the kernel answers under a lock of all
/// network configuration (RTNL), which other programs hold for seconds.
#[derive(Debug)]
enum Queue {
    /// The thread that reads the counter is not started yet: a process starts no second thread before it has
    /// given up its privileges. The values are the index of the interface, and the socket to use.
    Unread(u32, Netlink),
    /// The thread that reads the counter runs. The value is the count that it read last, and the time of that
    /// reading.
    Read(Arc<Mutex<Option<(Instant, u64)>>>),
    /// The drop counter is not read, because its thread could not be started.
    Unknown,
}

/// The number of packets that a queue has dropped, in 64 bits. The system counts in 32 bits, and restarts
/// from zero when the queue is replaced.
#[derive(Debug, Default)]
struct QueueDrops {
    total: u64,
    last: u32,
}

impl QueueDrops {
    /// Adds the drops since the last call; `now` is the system's current count. Returns the total number of
    /// drops.
    fn add(&mut self, now: u32) -> u64 {
        // After a replacement of the queue, this adds too much. A loss may then be missed, but no loss is
        // reported that did not occur.
        self.total += u64::from(now.wrapping_sub(self.last));
        self.last = now;
        self.total
    }
}

impl Departures {
    /// Prepares to count the packets that leave the interface with this index, in the namespace of this
    /// thread.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(super) fn of(index: i32) -> io::Result<Self> {
        let queue = Queue::Unread(index.unsigned_abs(), Netlink::route()?);
        Ok(Self { statistics: Statistics::of(index)?, queue })
    }

    /// Returns the number of packets that have left the interface until now; `None` if it is unknown, or
    /// older than two seconds. Does not block. The first call starts a thread.
    pub(super) fn read(&mut self) -> Option<u64> {
        let departed = self.statistics.read()?.departed;
        Some(departed + self.queue.drops()?)
    }
}

impl Queue {
    fn drops(&mut self) -> Option<u64> {
        if let Self::Unread(..) = self
            && let Self::Unread(index, netlink) = std::mem::replace(self, Self::Unknown)
        {
            let last = Arc::default();
            let of_thread = Arc::downgrade(&last);
            let watch = move || watch(index, netlink, &of_thread);
            let thread = thread::Builder::new().name("rxo-queue".to_owned()).spawn(watch);
            *self = if thread.is_ok() { Self::Read(last) } else { Self::Unknown };
        }
        let Self::Read(last) = self else { return None };
        let (at, drops) = (*last.lock().unwrap_or_else(PoisonError::into_inner))?;
        (at.elapsed() < STALE).then_some(drops)
    }
}

/// Reads the drop counter at intervals until `last` has no other owner.
fn watch(index: u32, netlink: Netlink, last: &Weak<Mutex<Option<(Instant, u64)>>>) {
    let mut drops = QueueDrops::default();
    let request = Request::new(libc::RTM_GETQDISC, &[0; HEADER_BYTES]);
    while last.strong_count() > 0 {
        let now = Instant::now();
        if let Ok(queues) = netlink.dump(&request) {
            let mut roots = queues.iter().filter_map(|queue| root_drops(queue, index));
            // An interface without a queue does not appear in the list.
            let total = drops.add(roots.next().unwrap_or(0));
            if let Some(last) = last.upgrade() {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, total));
            }
        }
        thread::sleep(BETWEEN_READS);
    }
}

const BETWEEN_READS: Duration = Duration::from_millis(500);
/// The age at which a count of drops is too old to be used.
const STALE: Duration = Duration::from_secs(2);

/// Returns the number of drops of a queue, if it is the root queue of the interface with this index;
/// otherwise `None`.
fn root_drops(queue: &[u8], index: u32) -> Option<u32> {
    let is_root = u32_at(queue, INDEX_AT)? == index && u32_at(queue, PARENT_AT)? == ROOT;
    let statistics = attribute(queue.get(HEADER_BYTES..)?, STATISTICS).filter(|_| is_root)?;
    u32_at(attribute(statistics, OF_QUEUE)?, DROPS_AT)
}

/// The length of `tcmsg` of linux/rtnetlink.h in bytes: family and padding, index, handle, parent, info.
const HEADER_BYTES: usize = 20;
const INDEX_AT: usize = 4;
const PARENT_AT: usize = 12;
/// The parent `TC_H_ROOT` of linux/pkt_sched.h: the root queue of an interface.
const ROOT: u32 = u32::MAX;
/// The attribute `TCA_STATS2` of linux/rtnetlink.h: the counters of a queue.
const STATISTICS: u16 = 7;
/// The attribute `TCA_STATS_QUEUE` of linux/gen_stats.h; in its `gnet_stats_queue`, `drops` follows `qlen`
/// and `backlog`.
const OF_QUEUE: u16 = 3;
const DROPS_AT: usize = 8;

#[cfg(test)]
mod tests {
    use rxo_netlink::nested;

    use super::*;

    fn queue(index: u32, parent: u32, drops: u32) -> Vec<u8> {
        let header = [[0; 4], index.to_ne_bytes(), [0; 4], parent.to_ne_bytes(), [0; 4]].concat();
        let counters = [1_u32, 2, drops, 4, 5].map(u32::to_ne_bytes).concat();
        let statistics = nested(&[(OF_QUEUE, &counters)]);
        [header, nested(&[(1, b"tbf\0"), (STATISTICS, &statistics)])].concat()
    }

    #[test]
    fn only_the_outermost_queue_of_the_interface_counts() {
        assert_eq!(root_drops(&queue(7, ROOT, 40), 7), Some(40));
        assert_eq!(root_drops(&queue(8, ROOT, 40), 7), None);
        assert_eq!(
            root_drops(&queue(7, 0x1_0000, 40), 7),
            None,
            "its drops are in those of the root"
        );
        for end in 0..queue(7, ROOT, 40).len() {
            _ = root_drops(&queue(7, ROOT, 40)[..end], 7);
        }
    }

    #[test]
    fn drops_go_on_beyond_32_bits() {
        let mut drops = QueueDrops::default();
        assert_eq!(drops.add(u32::MAX), u64::from(u32::MAX));
        assert_eq!(drops.add(4), u64::from(u32::MAX) + 5);
        assert_eq!(drops.add(4), u64::from(u32::MAX) + 5);
    }
}
