//! What can be wrong with a message. Each is one line, and ends the connection.

use thiserror::Error;

use super::Region;

/// Why a message is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Wrong {
    /// Its version is not 1.
    #[error("a message has version {0} instead of 1")]
    Version(u32),
    /// Its payload is longer than any that is known.
    #[error("a message has {0} bytes, more than any has")]
    TooLong(usize),
    /// Its payload has another length than its request has.
    #[error("a message has the wrong length")]
    Size,
    /// It has more descriptors than its request, or too few.
    #[error("a message has the wrong number of descriptors")]
    Descriptors,
    /// It has a descriptor of something else than memory or an eventfd.
    #[error(
        "a descriptor is neither an eventfd nor a file in memory; give the guest memory of \
         memory-backend-memfd, or of files on tmpfs or hugetlbfs"
    )]
    Foreign,
    /// It is a reply where a request belongs, or answers another request.
    #[error("a message is no answer to what was asked")]
    Direction,
    /// Its request is not known.
    #[error("request {0} is unknown")]
    Request(u32),
    /// It needs a feature that was not agreed on.
    #[error("request {0} needs a feature that was not agreed on")]
    NotAgreed(u32),
    /// It asks for features that were not offered.
    #[error("the features {0:#x} were not offered")]
    Features(u64),
    /// There is no ring of this index.
    #[error("there is no ring {0}")]
    NoRing(u32),
    /// A ring cannot have this size.
    #[error("a ring of {0} entries is impossible: a size is 1 to 32768")]
    RingSize(u32),
    /// A ring cannot begin there.
    #[error("a ring cannot start at {0:#x}")]
    RingBase(u32),
    /// A region is empty, or ends beyond the last address.
    #[error("{0:x?} is no region of memory")]
    Region(Region),
    /// Two regions have addresses in common.
    #[error("{0:x?} overlaps another region")]
    Overlap(Region),
    /// More regions than there are places for.
    #[error("there are more than {0} regions of memory")]
    TooManyRegions(usize),
    /// A region to be removed is not there.
    #[error("{0:x?} is not there to be removed")]
    NoSuchRegion(Region),
}
