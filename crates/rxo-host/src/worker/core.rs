//! The worker without device and engine: its parts, and the order in which a round uses them.
//!
//! * [`Connections`]: cells with their indices and flows, listeners, and the cells to be served.
//! * [`Clock`]: timers, and connections in TIME-WAIT.
//! * [`Network`]: the link, and all transmission.
//! * [`Upkeep`]: connections that must return memory, and the times at which they must.
//!
//! Each step of a round is a method of the part that the step changes most, with the other parts as arguments.
//! The fast path and the cast, which not every host uses, are separate parts.

use std::sync::Arc;

use rxo_device::SinkCapabilities;
use rxo_frame::Instant;
use rxo_tcp::State;

use super::cast::Casting;
use super::clock::Clock;
use super::connections::Connections;
use super::counters::{HostCounters, TcpCounters};
use super::kept::Kept;
use super::network::Network;
use super::upkeep::Upkeep;
use crate::fast::Fast;
use crate::post::{Command, Post};
use crate::settings::Settings;
use crate::shards::ShardRole;
use crate::{HostConfig, HostError};

/// The parts of a worker, apart from its device and its engine.
#[derive(Debug)]
pub(crate) struct Core<B> {
    pub(super) connections: Connections<B>,
    pub(super) clock: Clock,
    pub(super) network: Network<B>,
    pub(super) upkeep: Upkeep,
    pub(super) fast: Fast,
    pub(super) cast: Casting<B>,
}

impl<B: AsRef<[u8]> + Default + Send + Sync + 'static> Core<B> {
    pub(super) fn new(
        config: &HostConfig,
        settings: Settings,
        sink: SinkCapabilities,
        kept: Kept,
        role: ShardRole,
    ) -> Result<Self, HostError> {
        let network = Network::new(config, settings.link.clone(), sink, role.shard.is_first());
        let (post, commands) = Post::new(config, settings, role)?;
        let mac = network.link.mac();
        Ok(Self {
            fast: Fast::new(&config.fast_path, sink.link, mac, config.secret[0]),
            connections: Connections::new(config, post, commands),
            clock: Clock::new(config),
            network,
            upkeep: Upkeep::new(kept),
            cast: Casting::default(),
        })
    }

    pub(super) fn post(&self) -> &Arc<Post<B>> {
        &self.connections.post
    }

    pub(super) fn poll_at(&self) -> Option<Instant> {
        if self.connections.has_more_to_serve() {
            return Some(Instant::ZERO);
        }
        let deadlines = [
            self.network.line_at(self.clock.now),
            self.clock.timers.next(),
            self.network.link.poll_at(),
            self.clock.time_waits.next_at(),
            self.upkeep.rests.next_at(self.post().memory()),
            self.cast.poll_at(),
        ];
        deadlines.into_iter().flatten().min()
    }

    pub(super) fn counters(&self) -> HostCounters {
        let Self { connections, clock, network, .. } = self;
        HostCounters {
            waiting_for_device: network.line.len(),
            link: network.link.counters(),
            conflict: network.link.conflict(),
            connections: connections.slots.len(),
            time_waits: clock.time_waits.len(),
            orphans: connections.orphans.len(),
            memory_left_bytes: connections.post.memory().left(),
            last_acks_left: clock.last_acks.left(clock.now),
            timers: clock.timers.len(),
            stages: network.outbox.watch.times(),
            tcp: TcpCounters {
                stalls: network.drain.stalls,
                texts_without_memory: connections.post.memory().refused(),
                refused_sends: network.outbox.refused(),
                copied_out: self.upkeep.copied_out,
                ..connections.counters.tcp
            },
            fast: self.fast.counters(self.post().fast_path()),
            ..connections.counters.clone()
        }
    }

    /// Processes the waiting commands from applications. Returns the number of commands.
    pub(super) fn apply_commands(&mut self) -> usize {
        let Self { connections, clock, network, cast, .. } = self;
        apply_commands(connections, clock, network, cast)
    }

    /// Copies received data that has occupied device buffers for too long; if `is_urgent`, all such data.
    pub(super) fn copy_overdue(&mut self, is_urgent: bool) {
        self.upkeep.copy_overdue(&mut self.connections.slots, is_urgent);
    }

    /// Marks connections with expired timers to be served, and runs the timers of the link and the cast.
    pub(super) fn wake_due(&mut self, now: Instant) {
        let Self { connections, clock, network, cast, .. } = self;
        network.join_groups(connections, now);
        network.restore_lost(connections, now);
        network.wake(connections, now);
        clock.wake(connections);
        cast.wake(connections, now);
        connections.change_ports();
    }
}

/// Processes the waiting commands from applications. Returns the number of commands.
pub(super) fn apply_commands<B: AsRef<[u8]> + Default + Send + Sync + 'static>(
    connections: &mut Connections<B>,
    clock: &mut Clock,
    network: &mut Network<B>,
    cast: &mut Casting<B>,
) -> usize {
    let mut count = 0;
    while let Ok(command) = connections.commands.try_recv() {
        count += 1;
        match command {
            Command::Serve(cell) => {
                cell.unmark();
                connections.touch_cell(&cell);
            }
            Command::Open(cell) => connections.open(cell, clock, network),
            Command::Listen(listening) => connections.listeners.push(listening),
            Command::Unlisten(listening) => connections.unlisten(&listening),
            Command::Receive(frame) => network.shared_frames.push(frame),
            Command::Turn => {}
            Command::Cast(command) => cast.apply(*command, connections, network, clock.now),
        }
    }
    count
}

/// Returns `true` if a connection in this state is closed, or was never opened.
pub(super) const fn is_closed(state: State) -> bool {
    matches!(state, State::Closed(_) | State::Listen)
}
