//! The application's side of a cast: one stream that is sent to a group of receivers.
//!
//! A [`Cast`] listens for receivers, each of which opens a TCP connection to the cast. The worker owns these
//! connections and the [`rxo_tcp::Group`] (`worker/cast.rs`). The application sends data and receives events
//! through queues, so neither side blocks the other.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use rxo_frame::SharedBytes;
use rxo_tcp::{Control, Late, MemberId, Outcome, Progress, Refusal, Repairs, Slow};

use crate::erasure::IS_BUILT;
use crate::socket::{Accept, Listening};

/// The settings of a cast.
#[derive(Clone, Copy, Debug)]
pub struct CastConfig {
    /// The local address and port that receivers connect to.
    pub local: SocketAddr,
    /// The multicast address and port that the stream is sent to.
    pub group: SocketAddr,
    /// Maximum number of receivers at a time, 1 to 65,536.
    pub receivers: usize,
    /// The treatment of a receiver that delays the group.
    pub slow: Slow,
    /// The treatment of a receiver that joins after the first byte was sent.
    pub late: Late,
    /// Maximum total time for which late receivers may delay the cast, counted while no other receiver lacks
    /// data. After this time, late receivers are reset and refused. `None` sets no limit.
    pub late_time: Option<Duration>,
    /// The repair method for lost data.
    pub repairs: Repairs,
    /// The congestion control of the group.
    pub control: Control,
    /// Maximum number of sent or queued bytes that have not been acknowledged by all receivers; at least 64
    /// KiB, and less than 1 GiB.
    pub buffer_bytes: u32,
}

/// An event of a cast, for the application.
#[derive(Clone, Copy, Debug)]
pub enum CastEvent {
    /// A receiver became a member of the group.
    Joined {
        /// The receiver's address and port.
        peer: SocketAddr,
    },
    /// A receiver was refused: it was reset before it became a member.
    Refused {
        /// The receiver's address and port.
        peer: SocketAddr,
        /// The reason for the refusal.
        why: Refusal,
    },
    /// A late receiver needs data from earlier in the stream. The application answers with [`Cast::provide`].
    WantsText {
        /// The id of the receiver, to be passed to [`Cast::provide`].
        id: MemberId,
        /// The position of the first missing byte in the stream, in bytes.
        from: u64,
        /// Number of missing bytes. The answer may contain fewer bytes.
        bytes: u64,
    },
    /// A receiver's connection ended.
    Ended {
        /// The receiver's address and port.
        peer: SocketAddr,
        /// The outcome for this receiver.
        outcome: Outcome,
        /// Number of bytes that the receiver acknowledged.
        bytes: u64,
        /// Number of bytes that were retransmitted to this receiver alone.
        repaired_bytes: u64,
        /// Time since the receiver joined.
        time: Duration,
    },
    /// The progress of all receivers. Sent at most ten times a second, only when something changed, and before the end
    /// of the last receiver.
    Progress(CastProgress),
}

/// The progress of a cast: of its receivers and of its repairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CastProgress {
    /// The progress of the group, as positions in the stream.
    pub group: Progress,
    /// The receiver that has acknowledged the fewest bytes; `None` without receivers.
    pub slowest: Option<SocketAddr>,
    /// Number of segments that were retransmitted to the whole group.
    pub group_repairs: u64,
    /// Number of segments that were retransmitted to one receiver.
    pub own_repairs: u64,
    /// Number of parity packets sent to the group.
    pub parity_packets: u64,
    /// Number of packets sent to the group; a GSO frame counts as one.
    pub group_packets: u64,
}

/// A command from the application to the worker about a cast.
pub(crate) enum CastCommand<B> {
    Open(Opened<B>),
    /// An action on the cast with this listener. Ignored if another cast has replaced this cast.
    Act(Arc<Listening<B>>, CastAct),
}

/// An action of the application on its cast.
pub(crate) enum CastAct {
    Start,
    Text(SharedBytes),
    Finish,
    Provide(MemberId, SharedBytes),
    Close,
}

impl<B> fmt::Debug for CastCommand<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CastCommand")
    }
}

/// A cast that an application has opened; sent to the worker by a command.
pub(crate) struct Opened<B> {
    pub(crate) config: CastConfig,
    pub(crate) listening: Arc<Listening<B>>,
    pub(crate) events: Sender<CastEvent>,
    pub(crate) room: Arc<AtomicU64>,
}

/// Sends an application's actions on one cast to the worker; hides the buffer type of the host.
pub(crate) trait CastPost: Send + Sync {
    fn apply(&self, act: CastAct);
}

/// A stream that one host sends to a group of receivers. Dropping this handle resets the connections of all
/// receivers that have not finished.
pub struct Cast {
    post: Box<dyn CastPost>,
    /// The listener that receivers connect to; dropping this field closes the listener.
    _listener: Arc<dyn Accept>,
    events: Receiver<CastEvent>,
    /// The stream position up to which the worker accepts data.
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

    /// Starts the stream to the receivers that have joined so far.
    pub fn start(&self) {
        self.post.apply(CastAct::Start);
    }

    /// Returns the number of bytes that [`Cast::write`] accepts now.
    #[must_use]
    pub fn room(&self) -> usize {
        let until = self.room.load(Ordering::Relaxed);
        usize::try_from(until.saturating_sub(self.written)).unwrap_or(usize::MAX)
    }

    /// Appends to the stream as many bytes of `text` as fit, without a copy, and removes these bytes from
    /// `text`. Returns the number of bytes appended.
    pub fn write(&mut self, text: &mut SharedBytes) -> usize {
        let piece = text.split_to(self.room());
        let bytes = piece.len();
        if bytes > 0 {
            self.written += bytes as u64;
            self.post.apply(CastAct::Text(piece));
        }
        bytes
    }

    /// Ends the stream after the last byte written.
    pub fn finish(&self) {
        self.post.apply(CastAct::Finish);
    }

    /// Answers [`CastEvent::WantsText`] with data that starts at the requested position; the data may be
    /// shorter than requested. After an empty answer the receiver gets no further data.
    pub fn provide(&self, id: MemberId, text: SharedBytes) {
        self.post.apply(CastAct::Provide(id, text));
        self.post.apply(CastAct::Provide(id, SharedBytes::default()));
    }

    /// Waits for the next event, at most for `timeout`; `None` if there was none.
    ///
    /// # Errors
    /// If the host has ended, or if another cast has replaced this one.
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
        self.post.apply(CastAct::Close);
    }
}

impl fmt::Debug for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cast({} bytes written)", self.written)
    }
}

impl CastConfig {
    /// Checks all settings of the cast.
    ///
    /// # Errors
    /// `InvalidInput` with a message about the first invalid setting.
    pub(crate) fn check(&self) -> io::Result<()> {
        let Self { local, group, receivers, buffer_bytes, repairs, .. } = self;
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
        if *repairs == Repairs::Parity && !IS_BUILT {
            return invalid(
                "parity repair is not in this build; it needs the feature parity".into(),
            );
        }
        if !(LEAST_BUFFER..=MOST_BUFFER).contains(buffer_bytes) {
            return invalid(format!(
                "a buffer of {buffer_bytes} bytes; choose {LEAST_BUFFER} to {MOST_BUFFER}"
            ));
        }
        Ok(())
    }
}

const MOST_RECEIVERS: usize = 65_536;
const LEAST_BUFFER: u32 = 64 << 10;
/// Maximum of [`CastConfig::buffer_bytes`]: less than half of the sequence number space, so that any two
/// positions in the buffer can be compared.
const MOST_BUFFER: u32 = (1 << 30) - 1;
