//! The network side of a worker: the link, and all transmission.

use std::sync::Arc;

use rxo_device::{FrameSink, SinkCapabilities};
use rxo_frame::Instant;

use super::connections::Connections;
use super::drain::Drain;
use super::line::Line;
use super::memberships::Memberships;
use super::out::reading;
use super::paths::Paths;
use crate::HostConfig;
use crate::link::{Allowance, Link};
use crate::post::Post;
use crate::shards::SharedFrame;
use crate::stages::Stopwatch;
use crate::transmit::{Outbox, Shape};

/// The link, the tables of neighbours and paths, and the packets that wait to be sent.
#[derive(Debug)]
pub(super) struct Network<B> {
    pub(super) link: Link,
    pub(super) memberships: Memberships,
    pub(super) paths: Paths,
    /// The indices of the connections that wait for a neighbour.
    pub(super) unresolved: Vec<u32>,
    /// The rate limit of resets for segments without a connection.
    pub(super) may_reset: Allowance,
    pub(super) outbox: Outbox,
    pub(super) shape: Shape,
    /// The limit of the number of bytes that wait in the device's queue, and the queue's free space.
    pub(super) drain: Drain,
    /// The connections that wait for the device's queue.
    pub(super) line: Line,
    /// The other shards of this host.
    pub(super) others: Vec<Arc<Post<B>>>,
    /// Copies of frames from other shards, to be processed in this round.
    pub(super) shared_frames: Vec<SharedFrame>,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// Creates the network on `link`. If probing is configured, starts to probe the host's addresses; otherwise
    /// the first shard announces them.
    pub(super) fn new(
        config: &HostConfig,
        mut link: Link,
        sink: SinkCapabilities,
        is_first: bool,
    ) -> Self {
        match config.probe {
            Some(probe) => link.probe(probe, is_first),
            None if is_first => link.announce(),
            None => {}
        }
        let shape = Shape::new(sink, link.mac(), config.ack_templates);
        Self {
            link,
            memberships: Memberships::default(),
            paths: Paths::default(),
            unresolved: Vec::new(),
            may_reset: Allowance::new(RESETS_AT_ONCE, RESETS_EACH_SECOND),
            outbox: Outbox::new(shape, Stopwatch::new(config.stage_timer)),
            shape,
            drain: Drain::new(),
            line: Line::new(),
            others: Vec::new(),
            shared_frames: Vec::new(),
        }
    }

    /// Returns the time at which the first waiting connection may be served; `None` if no connection waits.
    pub(super) fn line_at(&self, now: Instant) -> Option<Instant> {
        (!self.line.is_empty()).then(|| self.drain.read_at().unwrap_or(now))
    }

    /// Runs the timers of the link that have expired at `now`.
    pub(super) fn wake(&mut self, connections: &mut Connections<B>, now: Instant) {
        if self.link.poll_at().is_some_and(|at| at <= now) {
            self.link.on_timeout(now);
            // Cells that wait for a neighbour retry, because it may have turned out to be unreachable.
            self.touch_unresolved(connections);
        }
    }

    /// Reads the device's queue if connections wait for it and a reading is due.
    #[inline]
    pub(super) fn read_device_queue<O: FrameSink>(&mut self, now: Instant, sink: &O) {
        let is_due = self.drain.read_at().map_or(sink.is_blocked(), |at| at <= now);
        if is_due {
            self.drain.read(now, reading(sink));
        }
    }
}

/// The largest burst of resets, in packets: enough for a client that scans a range of ports. The limit keeps
/// this host from reflecting a flood from forged addresses (RFC 5961, section 10).
const RESETS_AT_ONCE: u32 = 256;
/// The long-term limit of resets, in packets per second.
const RESETS_EACH_SECOND: u32 = 1_000;
