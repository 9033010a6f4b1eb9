//! The measured sender: a host with one cast, on any device, and its application on the same thread.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use rxo::live::host::{CAST_BUFFER_BYTES, cast_sender};
use rxo::tcp::{Control, Late, Outcome, Repairs, Slow};
use rxo::{FrameSink, FrameSource, Instant};
use rxo_coalesce::PureAckRule;
use rxo_host::{
    Cast, CastConfig, CastEvent, FastModules, FastPath, Host, HostConfig, IpCidr, SharedBytes, Turn,
};
use serde::{Deserialize, Serialize};

use super::model::{GROUP, PORT, SENDER, SENDER_MAC};

/// The path of acknowledgements through the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Way {
    /// Each ACK separately through the stack, like the paper's kernel without TCP-PARO.
    Stack,
    /// Each ACK separately through the fast path to its connection, which is awake: the paper's change alone.
    Mechanism,
    /// The fast path, which consumes ACKs inside the ring, to members that are dormant: rxo's best.
    Fast,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Stack, Self::Mechanism, Self::Fast];
    /// The ways whose casts are timed.
    pub(crate) const TIMED: [Self; 2] = [Self::Stack, Self::Fast];
}

/// Fewest and most receivers of the paper.
pub(crate) const FEWEST: usize = 88;
pub(crate) const MOST: usize = 168;

/// A cast: its way and its number of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Case {
    pub(crate) way: Way,
    pub(crate) receivers: usize,
}

/// The host, and the application's side of the cast.
pub(crate) struct Sender<I: FrameSource, O> {
    pub(crate) host: Host<I, O>,
    cast: Cast,
    /// The piece of data that is sent repeatedly.
    piece: SharedBytes,
    rest: SharedBytes,
    /// Bytes of the stream that have not been passed to the host.
    left: u64,
    is_finished: bool,
    pub(crate) joined: usize,
    pub(crate) done: usize,
}

impl<I, O> Sender<I, O>
where
    I: FrameSource,
    I::Buffer: Default + Send + Sync + 'static,
    O: FrameSink,
{
    /// Makes a host that waits for `receivers`.
    pub(crate) fn new((source, sink): (I, O), Case { way, receivers }: Case) -> Result<Self> {
        let network = IpCidr::new(IpAddr::V4(SENDER), 8)?;
        let mut config = HostConfig::new(vec![network], [1, 2]);
        config.mac = Some(SENDER_MAC);
        cast_sender(&mut config);
        match way {
            Way::Stack => config.engine.policy.pure_acks = PureAckRule::Bypass,
            Way::Mechanism | Way::Fast => {
                let wakes_members = way == Way::Mechanism;
                let (modules, one_by_one) = (FastModules::PURE_ACK, wakes_members);
                config.fast_path =
                    FastPath { modules, one_by_one, wakes_members, ..FastPath::default() };
            }
        }
        let host = Host::new(source, sink, config)?;
        let cast = host.handle().cast(CastConfig {
            local: SocketAddr::new(SENDER.into(), PORT),
            group: SocketAddr::new(GROUP.into(), PORT),
            receivers,
            slow: Slow::Eject(Duration::from_secs(10)),
            late: Late::Refuse,
            late_time: None,
            repairs: Repairs::Group { least: 2 },
            control: Control::Paper,
            buffer_bytes: CAST_BUFFER_BYTES,
        })?;
        Ok(Self {
            host,
            cast,
            piece: SharedBytes::from(vec![7; PIECE_BYTES]),
            rest: SharedBytes::default(),
            left: 0,
            is_finished: false,
            joined: 0,
            done: 0,
        })
    }

    /// Runs a turn of the host.
    pub(crate) fn turn(&mut self, now: Instant) -> Result<Turn> {
        Ok(self.host.turn(now)?)
    }

    /// Begins the stream with `bytes` bytes; `extend` may add more.
    pub(crate) fn start(&mut self, bytes: u64) {
        self.cast.start();
        self.left = bytes;
    }

    /// Adds `bytes` bytes to the stream.
    pub(crate) fn extend(&mut self, bytes: u64) {
        self.left += bytes;
    }

    /// Passes as much of the stream to the host as fits, and finishes the stream after it if `ends`.
    pub(crate) fn feed(&mut self, ends: bool) {
        while self.cast.room() > 0 && (self.left > 0 || !self.rest.is_empty()) {
            if self.rest.is_empty() {
                self.rest = self.piece.first(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= self.rest.len() as u64;
            }
            self.cast.write(&mut self.rest);
        }
        if ends && !self.is_finished && self.left == 0 && self.rest.is_empty() {
            self.cast.finish();
            self.is_finished = true;
        }
    }

    /// Processes the cast's events about receivers.
    ///
    /// # Errors
    /// If a receiver failed or was refused.
    pub(crate) fn process_events(&mut self) -> Result<()> {
        while let Some(event) = self.cast.event(Duration::ZERO)? {
            match event {
                CastEvent::Joined { .. } => self.joined += 1,
                CastEvent::Ended { peer, outcome, .. } => {
                    ensure!(outcome == Outcome::Done, "receiver {peer}: {outcome}");
                    self.done += 1;
                }
                CastEvent::Refused { peer, why } => bail!("receiver {peer} was refused: {why}"),
                CastEvent::WantsText { .. } | CastEvent::Progress(_) => {}
            }
        }
        Ok(())
    }
}

const PIECE_BYTES: usize = 1 << 20;
