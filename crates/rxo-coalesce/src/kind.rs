//! The kinds of packets that are coalesced, and functions that classify a packet.
//!
//! This module is separate because candidates, held flows and deliveries must use the same kinds: a flow holds
//! packets of one kind only.

use rxo_wire::TcpFlags;

/// The kind of a packet or of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP segments with payload, including coalesced ones inside a tunnel. A single segment inside a tunnel is
    /// [`Kind::Other`].
    Data,
    /// Coalesced UDP datagrams. A single datagram is [`Kind::Other`].
    Datagrams,
    /// TCP segments without payload and with no flags but ACK and ECN flags.
    PureAck,
    /// Anything else: SYN, FIN and RST without payload, fragments, other protocols, unreadable frames.
    Other,
}

impl Kind {
    /// Classifies a packet that may be coalesced. The payload is checked first: a packet without payload is a
    /// pure ACK, because a datagram without payload may not be coalesced.
    #[inline]
    pub(crate) const fn of_candidate(payload_bytes: u32, is_datagram: bool) -> Self {
        match payload_bytes {
            0 => Self::PureAck,
            _ if is_datagram => Self::Datagrams,
            _ => Self::Data,
        }
    }

    /// Classifies a TCP segment that may have any flags.
    #[inline]
    pub(crate) fn of_segment(payload_bytes: u32, flags: TcpFlags) -> Self {
        match payload_bytes {
            0 if flags.without(MARKS) != TcpFlags::ACK => Self::Other,
            bytes => Self::of_candidate(bytes, false),
        }
    }
}

/// ECN flags (RFC 3168, RFC 9768), which a pure ACK may have.
const MARKS: TcpFlags = TcpFlags::ECE.union(TcpFlags::CWR).union(TcpFlags::AE);
