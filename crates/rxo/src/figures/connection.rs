//! Figures of one connection of a host, as data that can be serialized: what `ss -ti` prints for a connection
//! of the system.

use std::time::Duration;

use rxo_console::numbers::rounded;
use rxo_host::ConnectionView;
use rxo_tcp::{Algorithm, RecoveryPhase, State, Statistics};
use serde::Serialize;

/// The figures of a connection. Times are in microseconds, sizes in bytes, rates in bytes per second.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionFigures {
    /// The connection's state, as `ss` names it: `ESTAB`, `SYN-SENT`, `CLOSE-WAIT` and so on.
    pub state: &'static str,
    /// The local address and port.
    pub local: String,
    /// The peer's address and port.
    pub peer: String,
    /// `true` if the application has closed the connection and the host is finishing it on its own.
    pub orphan: bool,
    /// The number of bytes that have arrived but that the application has not read.
    pub recv_q: usize,
    /// The number of bytes that the peer has not acknowledged, whether they were sent or not.
    pub send_q: u64,
    /// The congestion control algorithm: `cubic`, `reno` or `bbr`.
    pub congestion: &'static str,
    /// The window scales of both directions, in bits: first the peer's scale, then the scale of this host; left
    /// out if the option was not negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wscale: Option<(u8, u8)>,
    /// The negotiated TCP options: `ts` (timestamps), `sack`, `ecn`.
    pub options: Vec<&'static str>,
    /// The smoothed round-trip time (SRTT), in microseconds; left out before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_us: Option<f64>,
    /// The variation of the round-trip time (RTTVAR), in microseconds; left out before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar_us: Option<f64>,
    /// The smallest round-trip time, in microseconds; left out before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<f64>,
    /// The retransmission timeout, in microseconds.
    pub rto_us: f64,
    /// The number of times in a row that the retransmission timeout was doubled; 0 after an ACK of new data.
    pub backoff: u32,
    /// The payload of a full segment to the peer (MSS), in bytes.
    pub mss: u32,
    /// The largest payload of a segment received from the peer, in bytes.
    pub received_mss: u32,
    /// The maximum segment size (MSS option) that was offered to the peer, in bytes.
    pub advertised_mss: u32,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow-start threshold, in bytes; left out before the first loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// The phase of loss recovery: `open`, `disorder`, `cwr`, `recovery` or `loss`.
    pub recovery: &'static str,
    /// The number of bytes that count as in flight: sent, and neither acknowledged nor considered lost.
    pub in_flight: u32,
    /// The number of bytes that wait to be sent for the first time.
    pub unsent: u32,
    /// The number of bytes that the peer has received out of order, by its SACK blocks.
    pub sacked: u32,
    /// The number of bytes that are considered lost and wait for retransmission.
    pub lost: u32,
    /// The number of bytes in flight that were sent more than once.
    pub retransmitted: u32,
    /// The number of segments that were retransmitted so far.
    pub segments_retransmitted: u32,
    /// The number of bytes that the peer has acknowledged so far.
    pub bytes_acked: u64,
    /// The number of bytes that have arrived in order so far.
    pub bytes_received: u64,
    /// The number of ACKs that reported a segment received twice (D-SACK, RFC 2883).
    pub duplicates_reported: u32,
    /// The number of times that reordering was detected: the peer acknowledged a range of bytes after a later
    /// one, although the range was never retransmitted.
    pub reordered: u32,
    /// The delivery rate: the rate at which data arrives at the peer, in bytes per second; left out unless
    /// BBR is used, the only algorithm that measures it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_rate: Option<u64>,
    /// The pacing rate of segments, in bytes per second; left out if only the windows limit sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
    /// The send window: the window that the peer advertises, in bytes.
    pub snd_wnd: u32,
    /// The receive window: the window that is advertised to the peer, in bytes.
    pub rcv_wnd: u32,
    /// The capacity of the send buffer, in bytes.
    pub send_buffer: u32,
    /// The capacity of the receive buffer, in bytes.
    pub receive_buffer: u32,
}

impl ConnectionFigures {
    /// Returns the figures of the connection `of`. Allocates.
    #[must_use]
    pub fn new(of: &ConnectionView) -> Self {
        let statistics = &of.statistics;
        let Statistics { recovery, .. } = statistics;
        let outstanding = u64::from((statistics.snd_nxt - statistics.snd_una).unsigned_abs());
        let has_lost = statistics.ssthresh < NO_LOSS_YET;
        Self {
            state: state(of.state),
            local: of.local.to_string(),
            peer: of.peer.to_string(),
            orphan: of.is_orphan,
            recv_q: of.unread_bytes,
            send_q: outstanding + u64::from(statistics.unsent),
            congestion: congestion(of.algorithm),
            wscale: statistics.window_scales,
            options: options(statistics),
            rtt_us: statistics.srtt.map(micros),
            rttvar_us: recovery.rttvar.map(micros),
            min_rtt_us: recovery.least_rtt.map(micros),
            rto_us: micros(statistics.rto),
            backoff: recovery.backoff,
            mss: statistics.mss,
            received_mss: statistics.received_mss,
            advertised_mss: statistics.advertised_mss,
            cwnd: statistics.cwnd,
            ssthresh: has_lost.then_some(statistics.ssthresh),
            recovery: phase(recovery.phase),
            in_flight: statistics.in_flight,
            unsent: statistics.unsent,
            sacked: recovery.sacked,
            lost: recovery.lost,
            retransmitted: recovery.retransmitted,
            segments_retransmitted: recovery.resent_segments,
            bytes_acked: statistics.bytes_acked,
            bytes_received: statistics.bytes_received,
            duplicates_reported: recovery.duplicates_reported,
            reordered: recovery.reordered,
            delivery_rate: statistics.delivery_rate,
            pacing_rate: statistics.pacing_rate,
            snd_wnd: statistics.snd_wnd,
            rcv_wnd: statistics.rcv_wnd,
            send_buffer: of.buffers.send_bytes,
            receive_buffer: of.buffers.receive_bytes,
        }
    }
}

const fn state(state: State) -> &'static str {
    match state {
        State::Closed(_) => "CLOSED",
        State::Listen => "LISTEN",
        State::SynSent(_) => "SYN-SENT",
        State::SynReceived(_) => "SYN-RECV",
        State::Established => "ESTAB",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
    }
}

const fn congestion(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Cubic => "cubic",
        Algorithm::Reno => "reno",
        Algorithm::Bbr => "bbr",
    }
}

const fn phase(phase: RecoveryPhase) -> &'static str {
    match phase {
        RecoveryPhase::Open => "open",
        RecoveryPhase::Disorder => "disorder",
        RecoveryPhase::Reduced => "cwr",
        RecoveryPhase::Recovery => "recovery",
        RecoveryPhase::Loss => "loss",
    }
}

fn options(of: &Statistics) -> Vec<&'static str> {
    let rows = [("ts", of.timestamps), ("sack", of.sack), ("ecn", of.ecn)];
    rows.into_iter().filter(|(_, is_used)| *is_used).map(|(name, _)| name).collect()
}

fn micros(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e6, 1)
}

/// The slow-start threshold before the first loss, in bytes.
const NO_LOSS_YET: u32 = 1 << 30;
