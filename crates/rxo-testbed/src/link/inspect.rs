//! Properties and counters of an interface, read from the kernel.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage, State};

use super::{Interface, Mac, named};
use crate::error::{Context, Result};
use crate::namespace::until;

/// What an interface has carried since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounters {
    /// Frames received. An aggregate that was written to a TAP counts as one.
    pub received_frames: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Frames received and dropped.
    pub receive_drops: u64,
    /// Frames sent.
    pub sent_frames: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

impl Interface<'_> {
    /// The interface index in its namespace.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn index(&self) -> Result<u32> {
        self.query(|link| Some(link.header.index))
    }

    /// Its MAC address; all zeros for an interface without one.
    ///
    /// # Errors
    /// If the interface does not exist.
    pub fn mac(&self) -> Result<Mac> {
        self.query(|link| {
            link.attributes.iter().find_map(|attribute| match attribute {
                LinkAttribute::Address(bytes) => Mac::try_from(bytes.as_slice()).ok(),
                _ => None,
            })
        })
    }

    /// Its counters.
    ///
    /// # Errors
    /// If the interface does not exist.
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

    /// Whether the interface exists now.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.index().is_ok()
    }

    /// Waits until this end of a wire sends. When its other end is switched on later, the kernel takes a moment to
    /// notice, and drops without a word what this end sends until then.
    ///
    /// # Errors
    /// If the interface does not exist, or one of the ends stays down.
    pub fn await_wire(&self) -> Result<()> {
        until(|| self.query(state).map(|state| state == State::Up))?
            .context(|| self.cannot("send by"))
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

fn state(link: &LinkMessage) -> Option<State> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::OperState(state) => Some(*state),
        _ => None,
    })
}
