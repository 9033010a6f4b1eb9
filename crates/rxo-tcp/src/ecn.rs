//! Explicit congestion notification (RFC 3168): the agreement between both sides, and the marks to send.

use rxo_wire::TcpFlags;

use crate::segment::Ecn;

/// The ECN state of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// `true` if both sides use ECN.
    pub(crate) is_agreed: bool,
    /// `true` from the arrival of a marked segment until the peer confirms our ECE by CWR (RFC 3168, section
    /// 6.1.3).
    echoes: bool,
    /// `true` if our window was reduced and no CWR has informed the peer of the reduction yet (RFC 3168,
    /// section 6.1.2).
    pub(crate) has_reduced: bool,
}

impl EcnState {
    /// Decides whether ECN is used, from the peer's SYN: a SYN requests ECN by ECE and CWR, a SYN-ACK accepts
    /// it by ECE alone (RFC 3168, section 6.1.1).
    pub(crate) fn agree(&mut self, flags: TcpFlags, is_wanted: bool) {
        let both = TcpFlags::ECE | TcpFlags::CWR;
        let asks = if flags.contains(TcpFlags::ACK) { TcpFlags::ECE } else { both };
        let received = TcpFlags::from_bits(flags.bits() & both.bits());
        *self = Self { is_agreed: is_wanted && received == asks, ..Self::default() };
    }

    /// Processes the marks of a received segment (RFC 3168, section 6.1.3).
    pub(crate) fn arrived(&mut self, ecn: Ecn, flags: TcpFlags) {
        if flags.contains(TcpFlags::CWR) {
            self.echoes = false;
        }
        if self.is_agreed && ecn == Ecn::Congestion {
            self.echoes = true;
        }
    }

    /// Returns `true` if segments to send must carry ECE now.
    #[inline]
    pub(crate) fn echoes(&self) -> bool {
        self.echoes
    }

    /// Returns the ECN flags of a segment to send. `is_new_text` is `true` if the segment carries data for
    /// the first time.
    pub(crate) fn flags(&mut self, is_new_text: bool) -> TcpFlags {
        let echo = if self.echoes { TcpFlags::ECE } else { TcpFlags::default() };
        if !(is_new_text && self.has_reduced) {
            return echo;
        }
        self.has_reduced = false;
        echo | TcpFlags::CWR
    }

    /// Returns the ECN field of the IP header of a segment to send. Only segments with new data are marked as
    /// ECN-capable (RFC 3168, sections 6.1.4 to 6.1.6).
    pub(crate) fn codepoint(&self, is_new_text: bool) -> Ecn {
        if self.is_agreed && is_new_text { Ecn::Capable0 } else { Ecn::NotCapable }
    }
}
