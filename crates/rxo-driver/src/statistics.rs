//! The kernel's own counters of an interface, read by netlink.
//!
//! It is separate because TAPs and packet sockets both read them, for what they cannot count themselves: what the
//! kernel drops before rxo reads it. Contract: the counters are totals since the interface was made, and reading
//! them changes nothing.

use std::io;

use rxo_netlink::{Netlink, Request, attribute, u64_at};

/// `if_stats_msg`: family and padding, index, and which counters.
const HEADER_BYTES: usize = 12;

/// `RTM_GETSTATS` of linux/rtnetlink.h.
const GET_STATISTICS: u16 = 94;

/// `IFLA_STATS_LINK_64` of linux/if_link.h, and its bit in the mask.
const LINK_64: u16 = 1;

/// Reads the counters of one interface. Reading needs no privilege.
#[derive(Debug)]
pub(crate) struct Statistics {
    netlink: Netlink,
    request: Request,
}

/// Totals of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Packets that arrived at the interface.
    pub(crate) received: u64,
    /// Packets that the host did not get to send because the interface dropped them.
    pub(crate) sent_drops: u64,
}

impl Statistics {
    /// Of the interface with this index, in the namespace of this thread.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub(crate) fn of(index: i32) -> io::Result<Self> {
        let mask = 1_u32 << (LINK_64 - 1);
        let header: [[u8; 4]; HEADER_BYTES / 4] = [[0; 4], index.to_ne_bytes(), mask.to_ne_bytes()];
        let request = Request::new(GET_STATISTICS, &header.concat());
        Ok(Self { netlink: Netlink::route()?, request })
    }

    /// The totals now; `None` if the interface is gone, or the kernel is older than 4.7. Allocates.
    pub(crate) fn read(&self) -> Option<Totals> {
        let answers = self.netlink.ask(&self.request).ok()?;
        let rest = answers.first()?.get(HEADER_BYTES..)?;
        // The fields of `rtnl_link_stats64` have 64 bits each.
        let field = |number: usize| u64_at(attribute(rest, LINK_64)?, 8 * number);
        Some(Totals { received: field(0)?, sent_drops: field(7)? })
    }
}
