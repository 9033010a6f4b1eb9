//! Faults of messages. Each is described in one line, and ends the connection.

use thiserror::Error;

use super::Region;

/// The reason why a message is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// The version of the message is not 1.
    #[error("a message has version {0} instead of 1")]
    Version(u32),
    /// The payload is longer than [`MOST_PAYLOAD_BYTES`](super::MOST_PAYLOAD_BYTES).
    #[error("a message has {0} bytes, more than any has")]
    TooLong(usize),
    /// The payload's length does not fit the request.
    #[error("a message has the wrong length")]
    Size,
    /// The message has more or fewer descriptors than its request requires.
    #[error("a message has the wrong number of descriptors")]
    Descriptors,
    /// A descriptor is neither a file in memory nor an eventfd.
    #[error(
        "a descriptor is neither an eventfd nor a file in memory; give the guest memory of \
         memory-backend-memfd, or of files on tmpfs or hugetlbfs"
    )]
    Foreign,
    /// The message is a reply although a request was expected, or it is a reply to another request.
    #[error("a message is no answer to what was asked")]
    Direction,
    /// The request has an unknown number.
    #[error("request {0} is unknown")]
    Request(u32),
    /// The request requires a feature that was not negotiated.
    #[error("request {0} needs a feature that was not agreed on")]
    NotAgreed(u32),
    /// The request sets features that were not offered.
    #[error("the features {0:#x} were not offered")]
    Features(u64),
    /// The device has no ring with this index.
    #[error("there is no ring {0}")]
    NoRing(u32),
    /// The number of entries of a ring is invalid.
    #[error("a ring of {0} entries is impossible: a size is 1 to 32768")]
    RingSize(u32),
    /// The base is not a valid entry of a split ring.
    #[error("a ring cannot start at {0:#x}")]
    RingBase(u32),
    /// A region is empty, or ends beyond the last address.
    #[error("{0:x?} is no region of memory")]
    Region(Region),
    /// A log or a record of chains in flight is empty, larger than permitted, or ends beyond the last offset.
    #[error(
        "{bytes} bytes at {offset:#x} are no log of dirty pages and no record of chains in flight"
    )]
    Area {
        /// The length, in bytes.
        bytes: u64,
        /// The offset in the file, in bytes.
        offset: u64,
    },
    /// A record of chains in flight is for more rings than the device has.
    #[error("chains in flight of {0} rings cannot be recorded: the device has fewer")]
    InflightRings(u16),
    /// Two memory regions share addresses.
    #[error("{0:x?} overlaps another region")]
    Overlap(Region),
    /// There are more regions than the session may have.
    #[error("there are more than {0} regions of memory")]
    TooManyRegions(usize),
    /// The region to remove does not exist.
    #[error("{0:x?} is not there to be removed")]
    NoSuchRegion(Region),
}
