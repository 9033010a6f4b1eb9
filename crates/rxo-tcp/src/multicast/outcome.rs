//! Events and results for the owner of a group: refusals, the outcome for each receiver, the progress of all.

use core::fmt;

use rxo_frame::Duration;

use super::MemberId;
use crate::Failure;

/// The reason why a receiver is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The receiver's connection was not opened for this group.
    NotInGroup,
    /// The receiver does not use SACK.
    NoSack,
    /// The receiver does not use timestamps.
    NoTimestamps,
    /// The receiver accepts only segments of this number of bytes, which would slow down all receivers.
    SmallSegments(u32),
    /// The receiver asked to join after the first byte was sent.
    Late,
    /// The receiver asked to join after the first byte was sent, and late receivers have used up their shared
    /// time.
    LateTimeOver,
    /// The group has its largest number of receivers.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInGroup => f.write_str("its connection is not one of this group"),
            Self::NoSack => f.write_str("it has no SACK; switch that on"),
            Self::NoTimestamps => f.write_str("it has no TCP timestamps; switch them on"),
            Self::SmallSegments(bytes) => {
                write!(
                    f,
                    "it takes segments of {bytes} bytes, at least {LEAST_SEGMENT_BYTES} are needed"
                )
            }
            Self::Late => f.write_str("it came after the first byte; --late catch-up admits it"),
            Self::LateTimeOver => f.write_str(
                "the time for receivers that come after the first byte is used up; --late catch-up:TIME gives more",
            ),
            Self::Full => f.write_str("there is no room for more receivers; --receivers gives more"),
        }
    }
}

/// The outcome for a receiver, when its membership ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The receiver has received everything, and has closed its side to confirm this.
    Done,
    /// The receiver accepted less than one segment in this time while data waited for the receiver.
    Ejected(Duration),
    /// The position that all receivers have reached advanced by less than this number of bytes in this time,
    /// because data waited for this receiver.
    TooSlow(u64, Duration),
    /// The receiver has acknowledged everything, but has not closed its side within this time.
    Unconfirmed(Duration),
    /// The receiver joined after the first byte was sent, and late receivers have used up this shared time.
    LateTimeOver(Duration),
    /// The connection to the receiver failed.
    Failed(Failure),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Ejected(time) => write!(f, "ejected: no progress for {time:?}"),
            Self::TooSlow(bytes, time) => {
                write!(f, "ejected: all got less than {bytes} bytes in {time:?} because of it")
            }
            Self::Unconfirmed(time) => write!(f, "everything sent, no confirmation for {time:?}"),
            Self::LateTimeOver(time) => {
                write!(
                    f,
                    "ejected: it came after the first byte, and the {time:?} for that are used up"
                )
            }
            Self::Failed(failure) => write!(f, "failed: {failure}"),
        }
    }
}

/// An event that the owner of a group must handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// The owner must abort the connection: call [`Group::before`](super::Group::before), abort, then call
    /// [`Group::after`](super::Group::after).
    Abort(MemberId),
    /// The owner must provide earlier data by [`Group::provide`](super::Group::provide): up to `bytes` bytes,
    /// starting at `from`.
    WantsText {
        /// The member that needs the data.
        id: MemberId,
        /// The stream position of the first byte of the data.
        from: u64,
        /// The number of missing bytes.
        bytes: u64,
    },
    /// A receiver is no longer a member. Its number may be reused from now on.
    Ended {
        /// The number of the former member.
        id: MemberId,
        /// The outcome for this receiver.
        outcome: Outcome,
        /// The number of bytes that the receiver has acknowledged.
        bytes: u64,
        /// The number of bytes that the connection to the receiver has retransmitted.
        repaired_bytes: u64,
        /// The time since the receiver joined.
        time: Duration,
    },
}

/// The progress of a group, as stream positions in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The stream position up to which data has been sent.
    pub sent: u64,
    /// The stream position that the slowest receiver has acknowledged.
    pub slowest: u64,
    /// The stream position that at least half of the receivers have acknowledged.
    pub median: u64,
    /// The number of receivers of the group.
    pub receivers: usize,
    /// The number of receivers in catch-up.
    pub catching_up: usize,
}

/// The smallest segment size in bytes. One receiver with smaller segments would slow down all others, and no
/// link in use today needs smaller segments.
pub(super) const LEAST_SEGMENT_BYTES: u32 = 500;
