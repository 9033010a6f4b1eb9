//! Explicit congestion notification (RFC 3168): what was agreed, and which marks to send.

use rxo_wire::TcpFlags;

use crate::segment::Ecn;

/// One connection's ECN.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnState {
    /// Both sides use it.
    pub(crate) is_agreed: bool,
    /// A marked segment arrived, and the peer has not confirmed our ECE (section 6.1.3).
    echoes: bool,
    /// Our window was reduced, and CWR is to tell the peer (section 6.1.2).
    pub(crate) has_reduced: bool,
}

impl EcnState {
    /// Section 6.1.1: a SYN asks with ECE and CWR, a SYN-ACK agrees with ECE alone.
    pub(crate) fn agree(&mut self, flags: TcpFlags, is_wanted: bool) {
        let both = TcpFlags::ECE | TcpFlags::CWR;
        let asks = if flags.contains(TcpFlags::ACK) { TcpFlags::ECE } else { both };
        let said = TcpFlags::from_bits(flags.bits() & both.bits());
        *self = Self { is_agreed: is_wanted && said == asks, ..Self::default() };
    }

    /// Takes the marks of a segment that arrived (section 6.1.3).
    pub(crate) fn arrived(&mut self, ecn: Ecn, flags: TcpFlags) {
        if flags.contains(TcpFlags::CWR) {
            self.echoes = false;
        }
        if self.is_agreed && ecn == Ecn::Congestion {
            self.echoes = true;
        }
    }

    /// Whether segments carry ECE now.
    #[inline]
    pub(crate) fn echoes(&self) -> bool {
        self.echoes
    }

    /// The flags of a segment to send; `is_new_text` if it carries text for the first time.
    pub(crate) fn flags(&mut self, is_new_text: bool) -> TcpFlags {
        let echo = if self.echoes { TcpFlags::ECE } else { TcpFlags::default() };
        if !(is_new_text && self.has_reduced) {
            return echo;
        }
        self.has_reduced = false;
        echo | TcpFlags::CWR
    }

    /// The IP header's field: only new text is marked as capable (sections 6.1.4 to 6.1.6).
    pub(crate) fn codepoint(&self, is_new_text: bool) -> Ecn {
        if self.is_agreed && is_new_text { Ecn::Capable0 } else { Ecn::NotCapable }
    }
}
