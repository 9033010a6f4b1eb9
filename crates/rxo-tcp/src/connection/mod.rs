//! The connection: brings all parts together.
//!
//! `open.rs` makes one and changes its state, `calls.rs` has the application's calls, `timeouts.rs` decides
//! which timers run and what each does, `plan.rs` decides what to send next and `emit.rs` sends it;
//! `memory.rs` frees memory that is no longer needed; `buffers.rs` asks for more where the path needs it.

mod abandon;
mod buffers;
mod calls;
mod dormant;
mod emit;
mod group;
mod memory;
mod open;
mod owe;
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

/// One TCP connection. `B` is the buffer in which received text stays.
///
/// The owner drives it: segments, time and the application's calls go in. After each of them, call
/// [`Connection::poll_transmit`] until it returns `None`; [`Connection::poll_at`] says when to call
/// [`Connection::on_timeout`].
#[derive(Debug)]
pub struct Connection<B> {
    pub(crate) config: Arc<Config>,
    /// The direction in which this side sends.
    pub(crate) pair: FlowKey,
    pub(crate) secret: Secret,
    pub(crate) state: State,
    pub(crate) snd: Send,
    pub(crate) rcv: Receive<B>,
    /// How fast the application reads; `None` until that is first asked for.
    read_rate: Option<ReadRate>,
    pub(crate) acks: Acks,
    pub(crate) recovery: Recovery,
    pub(crate) congestion: Congestion,
    pub(crate) timestamps: Timestamps,
    pub(crate) ecn: EcnState,
    /// Both sides use SACK.
    pub(crate) uses_sack: bool,
    /// Both sides scale their windows.
    pub(crate) agreed_on_scaling: bool,
    pub(crate) challenges: Challenges,
    pub(crate) group_counts: GroupCounts,
    pub(crate) timers: Timers,
    pub(crate) path: Path,
    /// The largest GSO frame at present, in bytes of text.
    large_send_bytes: u32,
    /// The size of a larger segment that is to be tried.
    trial_bytes: Option<u32>,
    /// What other connections found out about the path.
    known_path: Option<KnownPath>,
    /// When an orphan ends. `None` while there is an application.
    abandoned: Option<Abandoned>,
    terms: Terms,
    /// What reaches the peer beside this connection. Boxed, because few have it and every idle connection has room for it.
    ahead: Option<Box<Ahead>>,
    persist: Persist,
    keep_alive: KeepAliveState,
    /// A reset to send.
    pub(crate) reset: Option<Reset>,
    /// Whether [`Connection::receive`] has returned the failure.
    is_failure_read: bool,
    pub(crate) events: Events,
}

/// Probing a closed window.
#[derive(Clone, Copy, Debug, Default)]
struct Persist {
    /// Probes since the window closed.
    probes: u32,
    is_due: bool,
}

/// Probing an idle peer.
#[derive(Clone, Copy, Debug, Default)]
struct KeepAliveState {
    /// Unanswered probes.
    unanswered: u8,
    is_due: bool,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// The connection's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Its congestion control.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.config.congestion
    }

    /// The flow key of the direction in which this side sends.
    #[must_use]
    pub fn pair(&self) -> FlowKey {
        self.pair
    }

    /// SND.NXT: an acknowledgement beyond it is invalid.
    #[inline]
    #[must_use]
    pub fn sent_to(&self) -> SeqNumber {
        self.snd.nxt
    }

    /// Whether an owner may leave out a pure ACK if later ones of the same arrival say all that it says: both
    /// sides use SACK, so no duplicate is counted, and nothing is lost, being recovered or doubted. Only round-trip
    /// samples are missing then, and steps by which the congestion window grows.
    #[inline]
    #[must_use]
    pub fn may_miss_acks(&self) -> bool {
        self.uses_sack && self.recovery.may_expect_acks()
    }

    /// The events since the last call.
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }
}
