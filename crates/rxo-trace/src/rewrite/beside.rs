//! The extra parts of a record, which neither its bytes nor the fields of the coalesced file express.
//!
//! The coalesced file has times in nanoseconds, which can represent nearly every time of nearly every file. A
//! time that nanoseconds cannot represent is stored in its original ticks.

use rxo_capture::{Clock, Options, Record, put_option};
use rxo_frame::Instant;

use super::note::{BadNote, Reader, put_number};
use super::{ENTERPRISE, NAME, VERSIONS};

/// Packet options as bytes, encoded as in a little-endian file.
pub(super) type PacketOptions = Vec<u8>;

/// The parts of a record that would be lost in the coalesced file if they were not stored separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    pub(super) time: Time,
    /// The record header, if the record is from an unusual pcap file; otherwise empty.
    pub(super) head: Vec<u8>,
    /// The packet options of a record that was merged into an aggregate. Empty for a record that is written as a packet
    /// of its own, which keeps its options.
    pub(super) options: PacketOptions,
}

/// The time of a record, in the ticks of its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Time {
    /// The time is the number of ticks that the clock of the record's interface shows at the record's instant.
    #[default]
    AsClock,
    /// The record has no time, because it is from a simple packet block.
    Absent,
    /// The time is this number of ticks, which differs from the number of ticks on the clock.
    Ticks(u64),
}

impl Time {
    /// Returns `true` if the record's instant determines the time in ticks.
    pub(super) fn is_exact(self) -> bool {
        self == Self::AsClock
    }

    /// Returns the time of a record on an interface with this clock.
    pub(super) fn of(record: &Record, clock: Clock) -> Self {
        match record.ticks {
            None => Self::Absent,
            Some(ticks) if clock.is_exact(ticks) => Self::AsClock,
            Some(ticks) => Self::Ticks(ticks),
        }
    }

    /// Returns the ticks of a record at the instant `at`; `None` if the record has no time.
    ///
    /// # Errors
    /// If the clock has no ticks for `at`.
    pub(super) fn ticks(self, at: Instant, clock: Clock) -> Result<Option<u64>, BadNote> {
        match self {
            Self::Absent => Ok(None),
            Self::Ticks(ticks) => Ok(Some(ticks)),
            Self::AsClock => {
                clock.ticks(at).map(Some).ok_or(BadNote("has a time that its clock cannot show"))
            }
        }
    }
}

const NO_TIME: u8 = 1;
const TICKS: u8 = 2;
const HEAD: u8 = 4;
const OPTIONS: u8 = 8;
const ALL: u8 = NO_TIME | TICKS | HEAD | OPTIONS;

impl Beside {
    /// Returns the parts of `record` that a packet of the coalesced file cannot express, including its
    /// `options`.
    pub(super) fn of(record: &Record, clock: Clock, options: PacketOptions) -> Self {
        Self { time: Time::of(record, clock), head: record.head.as_ref().to_vec(), options }
    }

    /// Returns `true` if a packet of the coalesced file expresses all parts of the record, so that nothing must
    /// be stored.
    pub(super) fn is_empty(&self) -> bool {
        self.time == Time::AsClock && self.head.is_empty() && self.options.is_empty()
    }

    /// Appends the parts to `to`: flags for the parts that exist, then the parts themselves.
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        let time = match self.time {
            Time::AsClock => 0,
            Time::Absent => NO_TIME,
            Time::Ticks(_) => TICKS,
        };
        let head = if self.head.is_empty() { 0 } else { HEAD };
        let options = if self.options.is_empty() { 0 } else { OPTIONS };
        to.push(time | head | options);
        if let Time::Ticks(ticks) = self.time {
            put_number(to, ticks);
        }
        for bytes in [&self.head, &self.options] {
            if !bytes.is_empty() {
                put_bytes(to, bytes);
            }
        }
    }

    /// Reads the parts of a record that [`Beside::put`] appended.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, BadNote> {
        let has = reader.byte()?;
        let time = match has & (NO_TIME | TICKS) {
            0 => Time::AsClock,
            NO_TIME => Time::Absent,
            TICKS => Time::Ticks(reader.number()?),
            _ => return Err(UNKNOWN),
        };
        let mut bytes = |bit| if has & bit == 0 { Ok(Vec::new()) } else { bytes(reader) };
        let (head, options) = (bytes(HEAD)?, bytes(OPTIONS)?);
        if has & !ALL != 0 { Err(UNKNOWN) } else { Ok(Self { time, head, options }) }
    }
}

/// The error for a note whose kind this version does not know, so that a later version may have written it.
pub(super) const UNKNOWN: BadNote = BadNote("is of a kind that this version does not know");

/// Appends the length of `bytes`, and then the bytes, to `to`.
pub(super) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Reads a length, and then that number of bytes.
pub(super) fn bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>, BadNote> {
    let count = reader.size(usize::MAX)?;
    Ok(reader.bytes(count)?.to_vec())
}

/// Splits the options of a packet. Returns the original options, and the joined contents of all options that
/// rxo has written.
pub(super) fn split(options: &Options) -> (PacketOptions, Vec<u8>) {
    let (mut before, mut ours) = (PacketOptions::new(), Vec::new());
    options.each_little_endian(|code, value| {
        let bytes = (code == CUSTOM_CODE)
            .then(|| value.strip_prefix(&ENTERPRISE.to_le_bytes()))
            .flatten()
            .filter(|bytes| !ours.is_empty() || begins_as_ours(bytes));
        match bytes {
            Some(bytes) => ours.extend_from_slice(bytes),
            None => put_option(&mut before, code, &value),
        }
    });
    (before, ours)
}

/// Returns `true` if `bytes` begin like an option that any version of rxo has written.
fn begins_as_ours(bytes: &[u8]) -> bool {
    let version = bytes.strip_prefix(NAME).and_then(<[u8]>::first);
    version.is_some_and(|version| VERSIONS.contains(version))
}

/// Returns `true` if any of the options was written by rxo.
pub(super) fn is_ours(options: &Options) -> bool {
    !options.is_empty() && !split(options).1.is_empty()
}

/// The code of a custom option with bytes as its value, which programs must not copy if they change the packet.
const CUSTOM_CODE: u16 = 19_373;
