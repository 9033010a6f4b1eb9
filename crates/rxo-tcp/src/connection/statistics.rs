//! Statistics: a snapshot of a connection's state and counters, for tests, logs and tuning.

use rxo_frame::Duration;
use rxo_wire::SeqNumber;

use super::Connection;
use crate::PathCounts;
use crate::arrives::GroupCounts;
use crate::recovery::RecoveryStatistics;

/// A snapshot of a connection, for tests, logs and tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// SND.UNA: the oldest unacknowledged sequence number.
    pub snd_una: SeqNumber,
    /// SND.NXT: the next sequence number to be sent for the first time.
    pub snd_nxt: SeqNumber,
    /// Number of bytes of data that the peer has acknowledged so far.
    pub bytes_acked: u64,
    /// Number of bytes of data that have arrived in order so far.
    pub bytes_received: u64,
    /// Number of bytes that were not sent yet; a FIN that was not sent counts as one.
    pub unsent: u32,
    /// SND.WND: the number of bytes after SND.UNA that the peer allows.
    pub snd_wnd: u32,
    /// Eff.snd.MSS: the payload of a full segment, in bytes.
    pub mss: u32,
    /// RCV.NXT: the next sequence number expected from the peer.
    pub rcv_nxt: SeqNumber,
    /// RCV.WND: the receive window that the peer was offered, in bytes.
    pub rcv_wnd: u32,
    /// The congestion window, in bytes.
    pub cwnd: u32,
    /// The slow-start threshold, in bytes; 2³⁰ before the first loss.
    pub ssthresh: u32,
    /// The highest delivery rate of the last round trips, in bytes per second. `None` before the first
    /// measurement, and always with a congestion control other than BBR.
    pub delivery_rate: Option<u64>,
    /// The pacing rate of segments, in bytes per second; `None` if only the windows limit sending.
    pub pacing_rate: Option<u64>,
    /// The number of bytes that count as in flight to the peer.
    pub in_flight: u32,
    /// The smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// The retransmission timeout, including backoff.
    pub rto: Duration,
    /// The shifts of the peer's window and of ours in bits (RFC 7323); `None` if window scaling is not in
    /// use.
    pub window_scales: Option<(u8, u8)>,
    /// The maximum segment size that the peer was offered, in bytes.
    pub advertised_mss: u32,
    /// The largest payload of a segment that has arrived, in bytes.
    pub received_mss: u32,
    /// The number of probes of a closed window since it was last open.
    pub window_probes: u32,
    /// The number of unanswered keep-alive probes.
    pub keep_alive_probes: u8,
    /// The state and counters of loss recovery.
    pub recovery: RecoveryStatistics,
    /// `true` if timestamps are in use.
    pub timestamps: bool,
    /// `true` if SACK is in use.
    pub sack: bool,
    /// `true` if ECN is in use.
    pub ecn: bool,
    /// The counters of path MTU discovery.
    pub path: PathCounts,
    /// The counters of segments to a group.
    pub group: GroupCounts,
}

impl<B: AsRef<[u8]>> Connection<B> {
    /// Returns a snapshot. Does not allocate. Costs O(ranges in flight).
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let of_text = |bytes: u64| if self.state.is_synchronized() { bytes } else { 0 };
        Statistics {
            snd_una: self.snd.una,
            snd_nxt: self.snd.nxt,
            bytes_acked: of_text(self.snd.acked_bytes()),
            bytes_received: of_text(self.rcv.received_bytes()),
            unsent: self.snd.unsent(),
            snd_wnd: self.snd.wnd,
            mss: self.snd.mss,
            rcv_nxt: self.rcv.nxt,
            rcv_wnd: self.rcv.wnd(),
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            delivery_rate: self.congestion.delivery_rate(),
            pacing_rate: self.congestion.pacing_rate(),
            in_flight: self.recovery.in_flight(),
            srtt: self.recovery.rtt.smoothed(),
            rto: self.recovery.rtt.timeout(),
            window_scales: self.agreed_on_scaling.then_some((self.snd.scale, self.rcv.scale)),
            advertised_mss: self.rcv.mss,
            received_mss: self.rcv.full_segment(),
            window_probes: self.persist.probes,
            keep_alive_probes: self.keep_alive.unanswered,
            recovery: self.recovery.statistics(),
            timestamps: self.timestamps.is_agreed,
            sack: self.uses_sack,
            ecn: self.ecn.is_agreed,
            path: self.path.counts,
            group: self.group_counts,
        }
    }
}
