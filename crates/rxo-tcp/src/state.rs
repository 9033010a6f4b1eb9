//! The connection states (RFC 9293, section 3.3.2).
//!
//! The connection holds everything that all synchronized states need: sequence variables, buffered data, and
//! the record of sent data. A state holds only the data that no other state needs.
//!
//! ```text
//!  CLOSED --passive open--> LISTEN --SYN--> SYN-RECEIVED --ACK of SYN--> ESTABLISHED
//!  CLOSED --active open---> SYN-SENT --SYN,ACK--> ESTABLISHED
//!                           SYN-SENT --SYN------> SYN-RECEIVED
//!  ESTABLISHED --shutdown--> FIN-WAIT-1 --ACK of FIN--> FIN-WAIT-2 --FIN--> TIME-WAIT
//!                            FIN-WAIT-1 --FIN--> CLOSING --ACK of FIN--> TIME-WAIT
//!  ESTABLISHED --FIN--> CLOSE-WAIT --our FIN leaves--> LAST-ACK --ACK of FIN--> CLOSED
//!  TIME-WAIT --2 MSL--> CLOSED        any --RST, abort, timeout--> CLOSED
//! ```
//!
//! In LAST-ACK and CLOSING our FIN has been sent, and all data before it. While data is queued (RFC 9293,
//! section 3.10.4), the connection is still in CLOSE-WAIT or FIN-WAIT-1.

use core::fmt;

use rxo_frame::Instant;

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// CLOSED: there is no connection.
    Closed(Closed),
    /// A listener waits for a SYN.
    Listen,
    /// Our SYN has been sent.
    SynSent(SynSent),
    /// Our SYN has been sent, and the peer's received.
    SynReceived(SynReceived),
    /// The connection is open; data flows in both directions.
    Established,
    /// The application has closed; our FIN is not acknowledged.
    FinWait1,
    /// The application has closed; our FIN is acknowledged.
    FinWait2,
    /// The peer has closed; our FIN has not been sent.
    CloseWait,
    /// Both sides have closed at the same time; our FIN is not acknowledged.
    Closing,
    /// Both sides have closed, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both sides have closed; the connection waits until old segments have expired.
    TimeWait,
}

/// The data of the state CLOSED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The reason why the connection failed; `None` if both sides have closed.
    pub failure: Option<Failure>,
}

/// The data of the state SYN-SENT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynSent {
    pub(crate) syn: Syn,
}

/// The data of the state SYN-RECEIVED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynReceived {
    pub(crate) syn: Syn,
    /// `true` after a passive open; the connection returns to LISTEN if the peer gives up.
    pub(crate) is_passive: bool,
}

/// The state of our SYN; it exists until the SYN is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Syn {
    /// `true` if the SYN must be sent now.
    pub(crate) is_due: bool,
    /// The number of retransmissions of the SYN.
    pub(crate) retransmissions: u32,
    /// The time at which the SYN was first sent; `None` before that.
    pub(crate) sent_at: Option<Instant>,
    /// `true` if the SYN was sent a second time without a timeout, because the peer still had an old connection
    /// on the same ports.
    pub(crate) is_anew: bool,
}

impl Syn {
    /// Makes the SYN due again without waiting for a timeout: at most once, and only if it was never
    /// retransmitted.
    pub(crate) fn begin_anew(&mut self) {
        if !self.is_anew && self.retransmissions == 0 {
            *self = Self { is_anew: true, ..Self::default() };
        }
    }
}

impl Default for Syn {
    fn default() -> Self {
        Self { is_due: true, retransmissions: 0, sent_at: None, is_anew: false }
    }
}

/// The reason why a connection ended before both sides had closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has reset the open connection.
    Reset,
    /// The peer has refused to open the connection.
    Refused,
    /// The peer did not answer before a time limit of the connection.
    TimedOut,
    /// The application aborted the connection.
    Aborted,
    /// The connection never opened: the peer, or the next hop, is unreachable.
    Unreachable,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "connection reset",
            Self::Refused => "connection refused",
            Self::TimedOut => "connection aborted due to user timeout",
            Self::Aborted => "connection aborted",
            Self::Unreachable => "nobody answers to that address, or to the gateway's",
        })
    }
}

impl core::error::Error for Failure {}

impl State {
    /// Returns `true` in all states after the handshake, except CLOSED.
    #[must_use]
    pub const fn is_synchronized(&self) -> bool {
        !matches!(self, Self::Closed(_) | Self::Listen | Self::SynSent(_) | Self::SynReceived(_))
    }

    /// Returns `true` if data from the peer is accepted in this state (RFC 9293, section 3.10.7.4, seventh
    /// step).
    pub(crate) const fn takes_text(&self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }

    /// Returns `true` if data or a FIN may be sent in this state.
    pub(crate) const fn sends_text(&self) -> bool {
        matches!(
            self,
            Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck
        )
    }

    /// Returns the state of our SYN until the SYN is acknowledged, then `None`.
    pub(crate) fn syn(&mut self) -> Option<&mut Syn> {
        match self {
            Self::SynSent(state) => Some(&mut state.syn),
            Self::SynReceived(state) => Some(&mut state.syn),
            _ => None,
        }
    }

    /// Returns the state after our FIN was acknowledged (RFC 9293, section 3.10.7.4, fifth step).
    pub(crate) const fn after_fin_acknowledged(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed(Closed { failure: None }),
            other => other,
        }
    }

    /// Returns the state after the peer's FIN (RFC 9293, section 3.10.7.4, eighth step). `has_left` is `true`
    /// if our FIN was sent.
    pub(crate) const fn after_fin_received(self, has_left: bool) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 if has_left => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// Returns the state after the application has closed.
    pub(crate) const fn after_shutdown(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            other => other,
        }
    }

    /// Returns the state after our FIN is sent, if the peer's FIN has arrived before.
    pub(crate) const fn after_both_fins(self) -> Self {
        match self {
            Self::CloseWait => Self::LastAck,
            Self::FinWait1 => Self::Closing,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every edge of RFC 9293, section 3.3.2, figure 5 that a FIN or its acknowledgement makes.
    #[test]
    fn the_figure() {
        use State::{CloseWait, Closing, Established, FinWait1, FinWait2, LastAck, TimeWait};
        let closed = State::Closed(Closed { failure: None });
        let rows = [
            // The columns: state, after shutdown, after our FIN is acknowledged, after the peer's FIN, after
            // both FINs.
            (Established, FinWait1, Established, CloseWait, Established),
            (FinWait1, FinWait1, FinWait2, Closing, Closing),
            (FinWait2, FinWait2, FinWait2, TimeWait, FinWait2),
            (CloseWait, CloseWait, CloseWait, CloseWait, LastAck),
            (Closing, Closing, TimeWait, Closing, Closing),
            (LastAck, LastAck, closed, LastAck, LastAck),
            (TimeWait, TimeWait, TimeWait, TimeWait, TimeWait),
        ];
        for (state, shut, acknowledged, received, both) in rows {
            assert_eq!(state.after_shutdown(), shut, "{state:?}");
            assert_eq!(state.after_fin_acknowledged(), acknowledged, "{state:?}");
            assert_eq!(state.after_fin_received(true), received, "{state:?}");
            assert_eq!(state.after_both_fins(), both, "{state:?}");
        }
        assert_eq!(FinWait1.after_fin_received(false), FinWait1);
    }
}
