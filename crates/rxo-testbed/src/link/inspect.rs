//! Properties and counters of an interface, read from the kernel.

use std::io;

use rxo_netlink::{attribute, u32_at, u64_at};

use super::{HEADER_BYTES, Interface, Mac, named};
use crate::error::{Context, Result};
use crate::namespace::until;

/// The totals of an interface since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// The number of frames received. An aggregate that was written to a TAP counts as one frame.
    pub received_frames: u64,
    /// The number of bytes received.
    pub received_bytes: u64,
    /// The number of frames that the interface received and then dropped.
    pub receive_drops: u64,
    /// The number of frames sent.
    pub sent_frames: u64,
    /// The number of bytes sent.
    pub sent_bytes: u64,
}

impl Interface<'_> {
    /// Returns the index of the interface in its network namespace.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn index(&self) -> Result<u32> {
        self.query(|header, _| u32_at(header, 4))
    }

    /// Returns the MAC address of the interface; all zeros if it has none.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn mac(&self) -> Result<Mac> {
        self.query(|_, rest| Mac::try_from(attribute(rest, libc::IFLA_ADDRESS)?).ok())
    }

    /// Reads the totals of the interface.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn counters(&self) -> Result<InterfaceCounters> {
        self.query(|_, rest| {
            let statistics = attribute(rest, libc::IFLA_STATS64)?;
            // The fields of `rtnl_link_stats64` have 64 bits each.
            let field = |number: usize| u64_at(statistics, 8 * number);
            Some(InterfaceCounters {
                received_frames: field(0)?,
                received_bytes: field(2)?,
                receive_drops: field(6)?,
                sent_frames: field(1)?,
                sent_bytes: field(3)?,
            })
        })
    }

    /// Returns `true` if the interface exists now.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.index().is_ok()
    }

    /// Waits until this end of a wire can send. If the other end was switched on later than this one, the
    /// kernel takes a moment to notice, and silently drops frames that are sent before.
    ///
    /// # Errors
    /// If the interface does not exist, or one of the ends stays down.
    pub fn await_wire(&self) -> Result<()> {
        until(|| self.query(|_, rest| Some(attribute(rest, libc::IFLA_OPERSTATE)? == [UP])))?
            .context(|| self.cannot("send by"))
    }

    /// Asks the kernel about the interface, and returns the value that `read` finds in the header and the attributes of
    /// the answer. If `read` returns `None`, the error is `NotFound`.
    fn query<T>(&self, read: impl Fn(&[u8], &[u8]) -> Option<T>) -> Result<T> {
        let links = self.namespace.netlink().ask(&named(libc::RTM_GETLINK, &self.name));
        let first = |links: Vec<Vec<u8>>| {
            let (header, rest) = links.first()?.split_at_checked(HEADER_BYTES)?;
            read(header, rest)
        };
        links
            .and_then(|links| first(links).ok_or_else(|| io::ErrorKind::NotFound.into()))
            .context(|| self.cannot("look at"))
    }
}

/// The operational state of an interface that is able to send.
const UP: u8 = libc::IF_OPER_UP as u8;
