//! The connection: the type that combines all parts.
//!
//! `open.rs` creates a connection and changes its state, `calls.rs` has the application's calls, `timeouts.rs`
//! decides which timers run and what each does, `plan.rs` decides what to send next and `emit.rs` sends it.
//! `memory.rs` frees memory that is no longer needed. `buffers.rs` requests larger buffers if the path needs
//! them.

mod abandon;
mod acknowledge;
mod buffers;
mod calls;
mod dormant;
mod emit;
mod group;
mod memory;
mod open;
mod plan;
mod room;
mod routers;
mod statistics;
mod terms;
mod time_wait;
mod timeouts;

use alloc::boxed::Box;
use alloc::sync::Arc;

use rxo_wire::{FlowKey, SeqNumber};

use self::abandon::Abandoned;
pub use self::calls::CallError;
pub(crate) use self::dormant::Outstanding;
use self::group::Ahead;
pub use self::group::{GroupEdge, GroupSeed};
use self::routers::KnownPath;
pub use self::statistics::Statistics;
use self::terms::Terms;
pub use self::time_wait::Reuse;
use crate::arrives::GroupCounts;
use crate::challenge::Challenges;
use crate::congestion::Congestion;
use crate::ecn::EcnState;
use crate::path::Path;
use crate::receive::{Acks, ReadRate, Receive};
use crate::recovery::Recovery;
use crate::send::Send;
use crate::timer::Timers;
use crate::timestamps::Timestamps;
use crate::{Algorithm, Config, Events, Reset, Secret, State};

/// One TCP connection. `B` is the type of the buffers in which received data stays.
///
/// The owner drives the connection with segments, time and the application's calls. After each of these inputs,
/// call [`Connection::poll_transmit`] until it returns `None`. [`Connection::poll_at`] returns the time at
/// which to call [`Connection::on_timeout`].
#[derive(Debug)]
pub struct Connection<B> {
    pub(crate) config: Arc<Config>,
    /// The flow key of the direction in which this side sends.
    pub(crate) pair: FlowKey,
    pub(crate) secret: Secret,
    pub(crate) state: State,
    pub(crate) snd: Send,
    pub(crate) rcv: Receive<B>,
    /// The rate at which the application reads; `None` until the first call of [`Connection::wants_buffers`],
    /// and again after the receive buffer shrinks.
    read_rate: Option<ReadRate>,
    pub(crate) acks: Acks,
    pub(crate) recovery: Recovery,
    pub(crate) congestion: Congestion,
    pub(crate) timestamps: Timestamps,
    pub(crate) ecn: EcnState,
    /// `true` if both sides use SACK.
    pub(crate) uses_sack: bool,
    /// `true` if both sides scale their windows.
    pub(crate) agreed_on_scaling: bool,
    pub(crate) challenges: Challenges,
    pub(crate) group_counts: GroupCounts,
    pub(crate) timers: Timers,
    pub(crate) path: Path,
    /// The current limit for the payload of a GSO frame, in bytes.
    large_send_bytes: u32,
    /// The size in bytes of the larger segment that path MTU discovery will try next; `None` if it will try
    /// none.
    trial_bytes: Option<u32>,
    /// The path MTU that other connections have found; `None` if there is none.
    known_path: Option<KnownPath>,
    /// The time limit of an orphan; `None` while there is an application.
    abandoned: Option<Abandoned>,
    terms: Terms,
    /// The data that may reach the peer from a group instead of this connection; `None` unless the peer catches
    /// up with a group. Boxed to save memory, because few connections catch up.
    ahead: Option<Box<Ahead>>,
    persist: Persist,
    keep_alive: KeepAliveState,
    /// A reset that is to be sent; `None` if there is none.
    pub(crate) reset: Option<Reset>,
    /// `true` if [`Connection::receive`] has returned the failure.
    is_failure_read: bool,
    pub(crate) events: Events,
}

/// The state of probing the peer's closed window.
#[derive(Clone, Copy, Debug, Default)]
struct Persist {
    /// The number of probes since the window closed.
    probes: u32,
    is_due: bool,
}

/// The state of probing an idle peer.
#[derive(Clone, Copy, Debug, Default)]
struct KeepAliveState {
    /// The number of keep-alive probes that are unanswered.
    unanswered: u8,
    is_due: bool,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns the state of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the congestion control algorithm.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.config.congestion
    }

    /// Returns the flow key of the direction in which this side sends.
    #[must_use]
    pub fn pair(&self) -> FlowKey {
        self.pair
    }

    /// Returns SND.NXT, the next sequence number to be sent for the first time: an ACK beyond it
    /// is invalid.
    #[inline]
    #[must_use]
    pub fn sent_to(&self) -> SeqNumber {
        self.snd.nxt
    }

    /// Returns `true` if the owner may drop a pure ACK that a later ACK of the same arrival supersedes. This
    /// requires SACK, so that duplicates are not counted, and that no loss is suspected or being recovered. A
    /// dropped ACK costs only a round-trip sample and a step in the growth of the congestion window.
    #[inline]
    #[must_use]
    pub fn may_miss_acks(&self) -> bool {
        self.uses_sack && self.recovery.may_expect_acks()
    }

    /// Returns the events since the last call and clears them.
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }
}
