//! TCP_INFO: Linux's fields, computed from the host's statistics of a connection.
//!
//! The host counts bytes where Linux counts segments, so sizes are rounded up to segments here, and windows
//! are rounded down. Values that the host does not count have no field, and a script that uses one fails.

use rxo_frame::Duration;
use rxo_tcp::{RecoveryPhase, State, Statistics};

/// A snapshot of a connection's statistics.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    pub(super) seen: Statistics,
    /// State of the connection; `None` if it is closed or in TIME-WAIT, for which Linux reports a closed
    /// socket.
    pub(super) state: Option<State>,
    /// The link's MTU, in bytes.
    pub(super) mtu: u16,
    pub(super) delayed_ack: Duration,
}

impl TcpInfo {
    /// Returns the field `name`, given without its prefix `tcpi_`; `None` if there is none.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        let (seen, lost) = (&self.seen, &self.seen.recovery);
        let mss = seen.mss.max(1);
        let segments = |bytes: u32| u64::from(bytes.div_ceil(mss));
        let (send_scale, receive_scale) = seen.window_scales.unwrap_or((0, 0));
        Some(match name {
            "state" => self.state.map_or(TCP_CLOSE, number_of),
            "ca_state" => number_of_phase(lost.phase),
            "retransmits" | "backoff" => lost.backoff.into(),
            "probes" => seen.window_probes.max(seen.keep_alive_probes.into()).into(),
            "options" => self.options(),
            "snd_wscale" => send_scale.into(),
            "rcv_wscale" => receive_scale.into(),
            "rto" => micros(seen.rto),
            "ato" => micros(self.delayed_ack),
            "snd_mss" => seen.mss.into(),
            "rcv_mss" => seen.received_mss.into(),
            "unacked" => segments((seen.snd_nxt - seen.snd_una).max(0) as u32),
            "sacked" => segments(lost.sacked),
            // Like in Linux, this includes retransmitted segments until they are acknowledged.
            "lost" => segments(lost.lost + lost.retransmitted),
            "retrans" => segments(lost.retransmitted),
            "total_retrans" => lost.resent_segments.into(),
            "pmtu" => self.mtu.into(),
            "rtt" => seen.srtt.map_or(0, micros),
            "rttvar" => lost.rttvar.map_or(0, micros),
            "min_rtt" => lost.least_rtt.map_or(0, micros),
            "snd_ssthresh" => match seen.ssthresh {
                NO_THRESHOLD_BYTES.. => LINUX_NO_THRESHOLD,
                bytes => (bytes / mss).into(),
            },
            "snd_cwnd" => (seen.cwnd / mss).into(),
            "advmss" => seen.advertised_mss.into(),
            "reordering" => OVERTAKEN_BY,
            "bytes_acked" => seen.bytes_acked,
            "bytes_received" => seen.bytes_received,
            "notsent_bytes" => seen.unsent.into(),
            "delivered" => (seen.bytes_acked + u64::from(lost.sacked)).div_ceil(mss.into()),
            "dsack_dups" => lost.duplicates_reported.into(),
            "reord_seen" => lost.reordered.into(),
            "snd_wnd" => seen.snd_wnd.into(),
            "rcv_wnd" => seen.rcv_wnd.into(),
            _ => return None,
        })
    }

    /// Returns the TCPI_OPT_* flags.
    fn options(&self) -> u64 {
        let seen = &self.seen;
        let bits =
            [seen.timestamps, seen.sack, seen.window_scales.is_some(), seen.ecn].map(u64::from);
        bits.iter().rev().fold(0, |all, bit| all << 1 | bit)
    }
}

/// Returns Linux's number of a state: TCP_ESTABLISHED and the others.
fn number_of(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent(_) => 2,
        State::SynReceived(_) => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed(_) => TCP_CLOSE,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

/// Returns Linux's number of a recovery phase: TCP_CA_Open and the others.
fn number_of_phase(phase: RecoveryPhase) -> u64 {
    match phase {
        RecoveryPhase::Open => 0,
        RecoveryPhase::Disorder => 1,
        RecoveryPhase::Reduced => 2,
        RecoveryPhase::Recovery => 3,
        RecoveryPhase::Loss => 4,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

const TCP_CLOSE: u64 = 7;
/// Value of [`Statistics::ssthresh`] before the first loss, which Linux reports differently.
const NO_THRESHOLD_BYTES: u32 = 1 << 30;
const LINUX_NO_THRESHOLD: u64 = 0x7fff_ffff;
/// Number of later segments that must arrive before a segment counts as lost (RFC 8985, section 6.2.4). It
/// does not adapt.
const OVERTAKEN_BY: u64 = 3;
