//! The network: the link, and all that leaves on it.

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
use crate::shards::News;
use crate::stages::Stopwatch;
use crate::transmit::{Outbox, Shape};

/// The link, what is known of neighbours and paths, and what waits to leave.
#[derive(Debug)]
pub(super) struct Network<B> {
    pub(super) link: Link,
    pub(super) memberships: Memberships,
    pub(super) paths: Paths,
    /// The places of the cells that wait for a neighbour.
    pub(super) unresolved: Vec<u32>,
    /// The rate limit of resets to strangers.
    pub(super) may_reset: Allowance,
    pub(super) outbox: Outbox,
    pub(super) shape: Shape,
    /// The room of the device's queue, and the cells that wait for it.
    pub(super) drain: Drain,
    pub(super) line: Line,
    /// The other shards of this host.
    pub(super) others: Vec<Arc<Post<B>>>,
    /// Frames that they were told of, to be acted on in this turn.
    pub(super) news: Vec<News>,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Network<B> {
    /// The network on `link`. The first shard announces the addresses of the host.
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
            news: Vec::new(),
        }
    }

    /// When the first cell in the line may be served; `None` if there is none.
    pub(super) fn line_at(&self, now: Instant) -> Option<Instant> {
        (!self.line.is_empty()).then(|| self.drain.read_at().unwrap_or(now))
    }

    /// The link does what is due.
    pub(super) fn wake(&mut self, connections: &mut Connections<B>, now: Instant) {
        if self.link.poll_at().is_some_and(|at| at <= now) {
            self.link.on_timeout(now);
            // Cells that wait for a neighbour which does not answer try again.
            self.touch_unresolved(connections);
        }
    }

    /// Looks whether cells that wait for the device may send, or must.
    #[inline]
    pub(super) fn look_at_device<O: FrameSink>(&mut self, now: Instant, sink: &O) {
        let is_due = self.drain.read_at().map_or(sink.is_blocked(), |at| at <= now);
        if is_due {
            self.drain.read(now, reading(sink));
        }
    }
}

/// A client that tries a range of ports gets its resets; a flood from forged addresses is not reflected (RFC
/// 5961, section 10, asks for such a limit).
const RESETS_AT_ONCE: u32 = 256;
const RESETS_EACH_SECOND: u32 = 1_000;
