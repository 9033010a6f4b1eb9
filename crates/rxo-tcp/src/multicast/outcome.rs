//! What the owner of a group is told: who is refused, how it ended with whom, how far all are.

use core::fmt;

use rxo_frame::Duration;

use super::MemberId;
use crate::Failure;

/// Why a receiver is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its connection was not made for this group.
    Stranger,
    /// It has no SACK.
    NoSack,
    /// It has no timestamps.
    NoTimestamps,
    /// Its segments are so small that all would suffer. In bytes.
    SmallSegments(u32),
    /// It came after the first byte.
    Late,
    /// It came after the first byte, and others that did so have used up the time for that.
    LateTimeOver,
    /// The group is full.
    Full,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stranger => f.write_str("its connection is not one of this group"),
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
            Self::Full => f.write_str("there are as many receivers as were expected"),
        }
    }
}

/// How it ended with a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It has everything, and has closed its side to say so.
    Done,
    /// It took less than a segment in so long a time while text waited for it.
    Ejected(Duration),
    /// All got less than so many bytes in so long a time, because text waited for it.
    TooSlow(u64, Duration),
    /// It has received everything, but has not confirmed it in so long a time.
    Unconfirmed(Duration),
    /// It came after the first byte, and all that did so together have used up this time.
    LateTimeOver(Duration),
    /// Its connection failed.
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

/// What the owner of a group should know of, or do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// Call [`Group::before`](super::Group::before), abort the connection, and call
    /// [`Group::after`](super::Group::after).
    Abort(MemberId),
    /// The connection is to be lent earlier text by [`Group::lend`](super::Group::lend): `bytes` from `from` on, or less.
    WantsText {
        /// Whose connection.
        id: MemberId,
        /// The position of the first byte.
        from: u64,
        /// How many are missing.
        bytes: u64,
    },
    /// A receiver is no member any more. Its place may be another's from now on.
    Ended {
        /// Which.
        id: MemberId,
        /// How it ended.
        outcome: Outcome,
        /// How much it has acknowledged, in bytes.
        bytes: u64,
        /// How much its connection has sent again, in bytes.
        repaired_bytes: u64,
        /// Since it joined.
        time: Duration,
    },
}

/// How far a group is; positions in the stream, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What has left.
    pub sent: u64,
    /// What the slowest receiver has.
    pub slowest: u64,
    /// What at least half of the receivers have.
    pub median: u64,
    /// How many receivers there are.
    pub receivers: usize,
    /// How many of them catch up.
    pub catching_up: usize,
}

/// Smaller segments would have all receivers pay for one: no link of today asks for less.
pub(super) const LEAST_SEGMENT_BYTES: u32 = 500;
