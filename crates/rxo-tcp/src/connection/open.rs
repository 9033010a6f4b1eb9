//! Opens and closes connections: every change of state that affects more than the state.

use alloc::sync::Arc;

use rxo_frame::{ConfigError, Instant};
use rxo_wire::{FlowKey, SeqNumber};

use super::{Connection, KeepAliveState, Persist, Reuse, Terms};
use crate::arrives::GroupCounts;
use crate::challenge::Challenges;
use crate::congestion::Congestion;
use crate::ecn::EcnState;
use crate::path::Path;
use crate::receive::{Acks, Receive};
use crate::recovery::Recovery;
use crate::send::{Fin, Send, SendBuffer};
use crate::state::{Closed, Failure, SynSent};
use crate::timer::{Timer, Timers};
use crate::timestamps::Timestamps;
use crate::{Config, Events, Secret, State, isn};

impl<B: AsRef<[u8]>> Connection<B> {
    /// Active OPEN (RFC 9293, section 3.10.1): makes a SYN ready to be sent. `pair` is the flow key of the
    /// direction in which this side sends. Connections can share one `Config`. Allocates nothing; memory is
    /// allocated when needed.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::Instant;
    /// use rxo_tcp::{Config, Connection, Secret, State};
    /// use rxo_wire::FlowKey;
    ///
    /// let (to_server, now) = (FlowKey::v4(0x0a00_0001, 0x0a00_0002, 5000 << 16 | 80, 0), Instant::ZERO);
    /// let secret = Secret([1, 2]);
    /// let client = Connection::<Vec<u8>>::open_active(Config::default(), to_server, secret, now)?;
    /// assert!(matches!(client.state(), State::SynSent(_)));
    /// # Ok::<(), rxo_frame::ConfigError>(())
    /// ```
    pub fn open_active(
        config: impl Into<Arc<Config>>,
        pair: FlowKey,
        secret: Secret,
        now: Instant,
    ) -> Result<Self, ConfigError> {
        let mut connection = Self::open_passive(config, pair, secret)?;
        connection.connect(now);
        Ok(connection)
    }

    /// Active OPEN of a connection in LISTEN (RFC 9293, section 3.9.1.1), for an owner that creates the
    /// connection before it knows the time. Does nothing in any other state.
    pub fn connect(&mut self, now: Instant) {
        if self.state == State::Listen {
            self.choose_iss(now);
            self.state = State::SynSent(SynSent::default());
            self.start_handshake(now);
        }
    }

    /// Passive OPEN with a known peer: returns a connection in LISTEN. A listener creates one connection for
    /// each SYN and passes the SYN to it.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::Instant;
    /// use rxo_tcp::{Arrival, Config, Connection, Ecn, Secret, Segment, SegmentOptions};
    /// use rxo_wire::{FlowKey, SeqNumber, TcpFlags};
    ///
    /// let (to_client, now) = (FlowKey::v4(0x0a00_0002, 0x0a00_0001, 80 << 16 | 5000, 0), Instant::ZERO);
    /// let mut server = Connection::open_passive(Config::default(), to_client, Secret([1, 2]))?;
    /// let syn = Segment::<Vec<u8>> {
    ///     seq: SeqNumber(7),
    ///     ack: SeqNumber(0),
    ///     flags: TcpFlags::SYN,
    ///     window: 65_535,
    ///     options: SegmentOptions::default(),
    ///     payload: None,
    ///     ecn: Ecn::default(),
    ///     arrived_at: now,
    /// };
    /// server.on_arrival(now, Arrival::from(syn));
    /// let answer = server.poll_transmit(now).expect("a SYN-ACK is to be sent");
    /// assert!(answer.flags.contains(TcpFlags::SYN));
    /// assert_eq!(answer.ack, SeqNumber(8));
    /// # Ok::<(), rxo_frame::ConfigError>(())
    /// ```
    pub fn open_passive(
        config: impl Into<Arc<Config>>,
        pair: FlowKey,
        secret: Secret,
    ) -> Result<Self, ConfigError> {
        let config = config.into();
        config.check()?;
        let mss = config.maximum_segment_size.into();
        Ok(Self {
            pair,
            secret,
            state: State::Listen,
            snd: Send::new(
                SendBuffer::with_capacity(config.send_buffer_bytes),
                config.most_unsent_bytes,
                mss,
            ),
            rcv: Receive::new(&config),
            read_rate: None,
            acks: Acks::new(config.quick_acks, config.acks),
            recovery: Recovery::new(&config),
            congestion: Congestion::new(&config, mss),
            timestamps: Timestamps::new(isn::timestamp_offset(secret, &pair)),
            ecn: EcnState::default(),
            uses_sack: false,
            agreed_on_scaling: false,
            challenges: Challenges::default(),
            group_counts: GroupCounts::default(),
            timers: Timers::default(),
            path: Path::new(mss),
            large_send_bytes: config.large_send_bytes,
            trial_bytes: None,
            known_path: None,
            abandoned: None,
            terms: Terms::default(),
            ahead: None,
            persist: Persist::default(),
            keep_alive: KeepAliveState::default(),
            reset: None,
            is_failure_read: false,
            events: Events::default(),
            config,
        })
    }

    /// Makes this the successor of a connection in TIME-WAIT between the same sockets: its sequence numbers
    /// begin after those of the old connection (RFC 9293, section 3.6.1). Does nothing outside LISTEN.
    pub fn follow(&mut self, reuse: Reuse) {
        if self.state == State::Listen {
            self.snd.nxt = reuse.iss_after;
            self.snd.una = reuse.iss_after;
        }
    }

    /// Chooses the ISS (initial sequence number), unless the owner has chosen it: a number after all numbers
    /// used before (RFC 9293, section 3.4.1).
    pub(crate) fn choose_iss(&mut self, now: Instant) {
        if let Some(iss) = self.terms.iss() {
            return self.snd.start(iss);
        }
        let iss = isn::initial_sequence_number(self.secret, &self.pair, now);
        let was_used = self.snd.nxt != SeqNumber::default();
        let is_behind = was_used && iss.is_before(self.snd.nxt);
        self.snd.start(if is_behind { self.snd.nxt + GAP_AFTER_REUSE } else { iss });
    }

    /// Stops all timers and arms the handshake timeout, before a SYN or SYN-ACK is sent.
    pub(crate) fn start_handshake(&mut self, now: Instant) {
        let Config { handshake_timeout, half_open_timeout, .. } = *self.config;
        let is_passive = matches!(self.state, State::SynReceived(state) if state.is_passive);
        let timeout =
            if is_passive { half_open_timeout.min(handshake_timeout) } else { handshake_timeout };
        self.timers.stop_all();
        self.timers.arm(Timer::GiveUp, now + timeout);
    }

    /// Enters ESTABLISHED after our SYN is acknowledged and the peer's SYN has arrived.
    pub(crate) fn establish(&mut self, now: Instant) {
        let was_repeated = self.state.syn().is_some_and(|syn| syn.retransmissions > 0);
        if was_repeated {
            self.congestion.on_slow_handshake();
        }
        self.recovery.rtt.handshake_done(was_repeated);
        self.snd.syn_acknowledged();
        self.snd.last_sent_at = now;
        self.timers.stop_all();
        self.events |= Events::CONNECTED | Events::WRITABLE;
        self.state = State::Established;
        self.restart_keep_alive(now);
        if self.snd.fin == Fin::Queued {
            self.state = self.state.after_shutdown();
        }
    }

    /// Returns to LISTEN after the peer has given up the handshake.
    pub(crate) fn listen_again(&mut self) {
        self.timers.stop_all();
        self.acks.piggyback();
        self.state = State::Listen;
    }

    /// Enters TIME-WAIT for 2 MSL (RFC 9293, section 3.6.1).
    pub(crate) fn enter_time_wait(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.stop_all();
        self.timers.arm(Timer::TimeWait, now + self.config.time_wait);
    }

    /// Closes the connection with a failure. Data that arrived in order was acknowledged, so it stays readable,
    /// unless the application aborted. RFC 9293 (section 3.10.7.4, second step) permits discarding the data at
    /// a reset. A client would then lose the last response of a server that closes with a request unread,
    /// because such a server sends a reset.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if failure == Failure::Aborted {
            self.rcv.clear();
        }
        self.close(Closed { failure: Some(failure) });
    }

    /// Closes the connection. Data that has arrived in order stays readable.
    pub(crate) fn close(&mut self, closed: Closed) {
        self.state = State::Closed(closed);
        self.free_sending();
        self.free_receiving();
        self.timers.stop_all();
        self.acks.piggyback();
        self.events |= Events::CLOSED;
    }
}

/// The distance in bytes from the last sequence number of an old connection to the ISS of its successor, if the
/// ISS that the clock gives is not after that number.
const GAP_AFTER_REUSE: u32 = 128_000;
