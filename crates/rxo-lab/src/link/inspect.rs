//! What an interface is and has carried, asked of the kernel.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};

use super::{Interface, Mac, named};
use crate::error::{Context, Result};

/// What an interface has carried since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Frames (or what a TAP was given as one) that came in.
    pub received_frames: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Frames that came in and were dropped.
    pub receive_drops: u64,
    /// Frames that went out.
    pub sent_frames: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

impl Interface<'_> {
    /// The system's number of the interface in its namespace.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn index(&self) -> Result<u32> {
        self.query(|link| Some(link.header.index))
    }

    /// Its MAC address; all zeros for what has none.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn mac(&self) -> Result<Mac> {
        self.query(|link| {
            link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Address(bytes) => Mac::try_from(bytes.as_slice()).ok(),
                _ => None,
            })
        })
    }

    /// What it has carried so far.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn counters(&self) -> Result<InterfaceCounters> {
        self.query(|link| {
            link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Stats64(stats) => Some(InterfaceCounters {
                    received_frames: stats.rx_packets,
                    received_bytes: stats.rx_bytes,
                    receive_drops: stats.rx_dropped,
                    sent_frames: stats.tx_packets,
                    sent_bytes: stats.tx_bytes,
                }),
                _ => None,
            })
        })
    }

    /// Whether there is such an interface now.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.index().is_ok()
    }

    fn query<T>(&self, read: impl Fn(&LinkMessage) -> Option<T>) -> Result<T> {
        let request = RouteNetlinkMessage::GetLink(named(&self.name));
        let answers = self.namespace.netlink().ask(request);
        answers
            .and_then(|answers| {
                answers
                    .iter()
                    .find_map(|answer| match answer {
                        RouteNetlinkMessage::NewLink(link) => read(link),
                        _ => None,
                    })
                    .ok_or_else(|| io::ErrorKind::NotFound.into())
            })
            .context(|| self.cannot("look at"))
    }
}
