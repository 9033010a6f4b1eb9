//! One stream to a group of receivers: the application's side of a cast.
//!
//! A [`Cast`] listens for receivers. Each opens a connection. The worker owns these connections and the
//! [`rxo_tcp::Group`] (`worker/cast.rs`); the application gives text and hears events, both by queues, so that neither
//! waits for the other.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rxo_frame::SharedBytes;
use rxo_tcp::{Late, MemberId, Outcome, Progress, Refusal, Repairs, Slow};

use crate::socket::{Accept, Listening};

/// Settings of a cast.
#[derive(Clone, Copy, Debug)]
pub struct CastConfig {
    /// Where receivers connect to: an address of this host, and a port.
    pub local: SocketAddr,
    /// The group's address and port.
    pub group: SocketAddr,
    /// The most receivers at a time, 1 to 65,536.
    pub receivers: usize,
    /// What happens to a receiver that holds the others up.
    pub slow: Slow,
    /// What happens to a receiver that comes after the first byte.
    pub late: Late,
    /// The most time that those who do so add, all together, while the others wait for them alone, and when no others are
    /// left. Then they are reset, and whoever comes later is refused. `None`: without end.
    pub late_time: Option<Duration>,
    /// How lost text is repaired.
    pub repairs: Repairs,
    /// The most text that not all receivers have, in bytes; 64 KiB to 1 GiB.
    pub buffer_bytes: u32,
}

/// What happened to a cast.
#[derive(Clone, Copy, Debug)]
pub enum CastEvent {
    /// A receiver is a member.
    Joined {
        /// Who.
        peer: SocketAddr,
    },
    /// A receiver was reset before it became a member.
    Refused {
        /// Who.
        peer: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// A receiver that catches up needs earlier text: answer by [`Cast::lend`].
    WantsText {
        /// Which.
        id: MemberId,
        /// The position of the first byte.
        from: u64,
        /// How many bytes are missing; less will do.
        bytes: u64,
    },
    /// A receiver is no member any more.
    Ended {
        /// Who.
        peer: SocketAddr,
        /// How it ended.
        outcome: Outcome,
        /// How much it has acknowledged, in bytes.
        bytes: u64,
        /// How much was sent to it again, by itself, in bytes.
        repaired_bytes: u64,
        /// Since it joined.
        time: Duration,
    },
    /// How far all are. Comes ten times a second at most, while something changes.
    Progress(CastProgress),
}

/// How far a cast is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CastProgress {
    /// The group's: positions in the stream.
    pub group: Progress,
    /// The receiver that has acknowledged least; `None` without receivers.
    pub slowest: Option<SocketAddr>,
    /// Segments that were repaired for all at once.
    pub group_repairs: u64,
    /// Segments that were repaired for one receiver.
    pub own_repairs: u64,
    /// Packets that were sent to the group; a GSO frame is one.
    pub group_packets: u64,
}

/// A command to the worker.
pub(crate) enum CastCommand<B> {
    Open(Opened<B>),
    /// Of the cast with this listener. Nothing happens if another has replaced it.
    Act(Arc<Listening<B>>, CastAct),
}

/// What an application does with its cast.
pub(crate) enum CastAct {
    Start,
    Text(SharedBytes),
    Finish,
    Lend(MemberId, SharedBytes),
    Close,
}

impl<B> fmt::Debug for CastCommand<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CastCommand")
    }
}

/// A cast that an application has opened.
pub(crate) struct Opened<B> {
    pub(crate) config: CastConfig,
    pub(crate) listening: Arc<Listening<B>>,
    pub(crate) events: Sender<CastEvent>,
    pub(crate) room: Arc<AtomicU64>,
}

/// Tells the worker what to do with one cast, for any type of buffer.
pub(crate) trait CastPost: Send + Sync {
    fn act(&self, act: CastAct);
}

/// A stream that one host sends to a group of receivers. Dropping it resets the receivers that have not ended.
pub struct Cast {
    post: Box<dyn CastPost>,
    /// Ends listening when it is dropped.
    _listener: Arc<dyn Accept>,
    events: Receiver<CastEvent>,
    /// The position up to which the worker takes text.
    room: Arc<AtomicU64>,
    written: u64,
}

impl Cast {
    pub(crate) fn new(
        post: Box<dyn CastPost>,
        listener: Arc<dyn Accept>,
        events: Receiver<CastEvent>,
        room: Arc<AtomicU64>,
    ) -> Self {
        Self { post, _listener: listener, events, room, written: 0 }
    }

    /// Begins to send, to the receivers that are there.
    pub fn start(&self) {
        self.post.act(CastAct::Start);
    }

    /// How much text can be written now, in bytes.
    #[must_use]
    pub fn room(&self) -> usize {
        let until = self.room.load(Ordering::Relaxed);
        usize::try_from(until.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    /// Appends as much of `text` as there is room for, without a copy, and takes it off `text`. Returns how many bytes.
    pub fn write(&mut self, text: &mut SharedBytes) -> usize {
        let piece = text.split_to(self.room());
        let bytes = piece.len();
        if bytes > 0 {
            self.written += bytes as u64;
            self.post.act(CastAct::Text(piece));
        }
        bytes
    }

    /// Ends the stream behind what was written.
    pub fn finish(&self) {
        self.post.act(CastAct::Finish);
    }

    /// Answers [`CastEvent::WantsText`] by text from the position that was asked for; less than was asked for will do.
    /// Without text the receiver is stuck.
    pub fn lend(&self, id: MemberId, text: SharedBytes) {
        self.post.act(CastAct::Lend(id, text));
        self.post.act(CastAct::Lend(id, SharedBytes::default()));
    }

    /// The next event; `None` if there was none for `timeout`.
    ///
    /// # Errors
    /// If the host has ended, or another cast has replaced this one.
    pub fn event(&self, timeout: Duration) -> io::Result<Option<CastEvent>> {
        match self.events.recv_timeout(timeout) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the host has ended, or another cast has replaced this one";
                Err(io::Error::new(io::ErrorKind::NotConnected, message))
            }
        }
    }
}

impl Drop for Cast {
    fn drop(&mut self) {
        self.post.act(CastAct::Close);
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cast({} bytes written)", self.written)
    }
}

impl CastConfig {
    /// Checks all settings.
    ///
    /// # Errors
    /// The first invalid one.
    pub(crate) fn check(&self) -> io::Result<()> {
        let Self { local, group, receivers, buffer_bytes, .. } = self;
        let invalid = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        if !group.ip().is_multicast() || group.port() == 0 {
            return invalid(format!("{group} is no group; choose one such as 232.1.1.1:7000"));
        }
        if local.is_ipv4() != group.is_ipv4() || local.ip().is_unspecified() {
            return invalid(format!("{local} cannot send to {group}; give an address of its kind"));
        }
        if !(1..=MOST_RECEIVERS).contains(receivers) {
            return invalid(format!("{receivers} receivers; choose 1 to {MOST_RECEIVERS}"));
        }
        if !(LEAST_BUFFER..=MOST_BUFFER).contains(buffer_bytes) {
            return invalid(format!(
                "a buffer of {buffer_bytes} bytes; choose {LEAST_BUFFER} to {MOST_BUFFER}"
            ));
        }
        Ok(())
    }
}

/// The Ethernet address of a group (RFC 1112, section 6.4; RFC 2464, section 7).
pub(crate) fn group_mac(group: IpAddr) -> [u8; 6] {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

const MOST_RECEIVERS: usize = 65_536;
const LEAST_BUFFER: u32 = 64 << 10;
/// Less than half of what sequence numbers tell apart.
const MOST_BUFFER: u32 = (1 << 30) - 1;
