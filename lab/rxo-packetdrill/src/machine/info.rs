//! TCP_INFO: the contents of Linux's `struct tcp_info`.
//!
//! Both the bytes for getsockopt and the values for assertions come from one list of names, widths
//! and values. Fields without a meaning here are 0: `tcpi_last_ack_sent` (0 in Linux, too),
//! `tcpi_fackets` (removed in Linux), `tcpi_pacing_rate`, `tcpi_delivery_rate` and
//! `tcpi_delivery_rate_app_limited` (no pacing or rate measurement), `tcpi_fastopen_client_fail`,
//! `tcpi_rcv_rtt` (the window does not follow a round trip), `tcpi_rehash`, `tcpi_total_rto_time`,
//! and all of accurate ECN. `tcpi_reordering` is always 3, because the threshold does not adapt
//! (RFC 8985, section 6.2.4). Sizes that Linux counts in segments are counted in bytes here and
//! rounded up to segments; windows are rounded down.

use rxo_frame::{Duration, Instant};
use rxo_tcp::{RecoveryPhase, State, Statistics};

use super::endpoint::Endpoint;

/// The fields in Linux's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    name: &'static str,
    bits: usize,
    value: u64,
}

impl TcpInfo {
    pub(super) fn of(endpoint: &Endpoint, now: Instant, limits: &Limits) -> Self {
        let seen = endpoint.tcp.statistics();
        let mut info = Self::default();
        info.state(endpoint, &seen);
        info.sizes(&seen, limits);
        info.times(endpoint, now);
        info.metrics(&seen, limits);
        info.amounts(endpoint, &seen);
        info.stalls(endpoint, now);
        info.totals(endpoint, &seen);
        info.marks(endpoint, &seen);
        info
    }

    /// The value of the field `name`; `None` if there is no such field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<u64> {
        self.fields.iter().find(|field| field.name == name).map(|field| field.value)
    }

    /// The struct as C lays it out on a little-endian machine. Each field is at a multiple of its
    /// size; bit fields are packed into a byte from the lowest bit.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let (mut bytes, mut at) = (Vec::new(), 0);
        for Field { bits, value, .. } in &self.fields {
            if bits % 8 == 0 {
                at = usize::next_multiple_of(at, *bits);
            }
            bytes.resize((at + bits).div_ceil(8), 0);
            for bit in 0..*bits {
                bytes[(at + bit) / 8] |= ((value >> bit & 1) as u8) << ((at + bit) % 8);
            }
            at += bits;
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }

    fn put(&mut self, bits: usize, rows: &[(&'static str, u64)]) {
        let most = u64::MAX >> (64 - bits);
        for (name, value) in rows {
            self.fields.push(Field { name, bits, value: (*value).min(most) });
        }
    }

    fn state(&mut self, endpoint: &Endpoint, seen: &Statistics) {
        let (send_scale, receive_scale) = seen.window_scales.unwrap_or((0, 0));
        let probes = seen.window_probes.max(seen.keep_alive_probes.into());
        let backoff = seen.recovery.backoff;
        self.put(
            8,
            &[
                ("tcpi_state", number_of(endpoint.tcp.state())),
                ("tcpi_ca_state", number_of_phase(seen.recovery.phase)),
                ("tcpi_retransmits", backoff.into()),
                ("tcpi_probes", probes.into()),
                ("tcpi_backoff", backoff.into()),
                ("tcpi_options", options(endpoint, seen)),
            ],
        );
        self.put(4, &[("tcpi_snd_wscale", send_scale.into())]);
        self.put(4, &[("tcpi_rcv_wscale", receive_scale.into())]);
        self.put(1, &[("tcpi_delivery_rate_app_limited", 0)]);
        self.put(2, &[("tcpi_fastopen_client_fail", 0)]);
    }

    fn sizes(&mut self, seen: &Statistics, limits: &Limits) {
        let segments = |bytes: u32| u64::from(bytes.div_ceil(seen.mss.max(1)));
        self.put(
            32,
            &[
                ("tcpi_rto", micros(seen.rto)),
                ("tcpi_ato", micros(limits.delayed_ack)),
                ("tcpi_snd_mss", seen.mss.into()),
                ("tcpi_rcv_mss", seen.received_mss.into()),
                ("tcpi_unacked", segments((seen.snd_nxt - seen.snd_una).max(0) as u32)),
                ("tcpi_sacked", segments(seen.recovery.sacked)),
                // Like Linux, this includes retransmitted segments until they are acknowledged.
                ("tcpi_lost", segments(seen.recovery.lost + seen.recovery.retransmitted)),
                ("tcpi_retrans", segments(seen.recovery.retransmitted)),
                ("tcpi_fackets", 0),
            ],
        );
    }

    fn times(&mut self, endpoint: &Endpoint, now: Instant) {
        let since = |at: Option<Instant>| at.map_or(0, |at| now.since(at).as_millis() as u64);
        let record = &endpoint.record;
        self.put(
            32,
            &[
                ("tcpi_last_data_sent", since(record.data_sent_at)),
                ("tcpi_last_ack_sent", 0),
                ("tcpi_last_data_recv", since(record.data_received_at)),
                ("tcpi_last_ack_recv", since(record.ack_received_at)),
            ],
        );
    }

    fn metrics(&mut self, seen: &Statistics, limits: &Limits) {
        let mss = seen.mss.max(1);
        let threshold = match seen.ssthresh {
            NO_THRESHOLD_BYTES.. => LINUX_NO_THRESHOLD,
            bytes => (bytes / mss).into(),
        };
        self.put(
            32,
            &[
                ("tcpi_pmtu", limits.path_bytes.into()),
                ("tcpi_rcv_ssthresh", limits.receive_bytes.into()),
                ("tcpi_rtt", seen.srtt.map_or(0, micros)),
                ("tcpi_rttvar", seen.recovery.rttvar.map_or(0, micros)),
                ("tcpi_snd_ssthresh", threshold),
                ("tcpi_snd_cwnd", (seen.cwnd / mss).into()),
                ("tcpi_advmss", seen.advertised_mss.into()),
                ("tcpi_reordering", OVERTAKEN_BY),
                ("tcpi_rcv_rtt", 0),
                ("tcpi_rcv_space", limits.receive_bytes.into()),
            ],
        );
    }

    fn amounts(&mut self, endpoint: &Endpoint, seen: &Statistics) {
        let record = &endpoint.record;
        self.put(32, &[("tcpi_total_retrans", record.segments_again.into())]);
        self.put(
            64,
            &[
                ("tcpi_pacing_rate", 0),
                ("tcpi_max_pacing_rate", u64::MAX),
                ("tcpi_bytes_acked", record.bytes_acked),
                ("tcpi_bytes_received", record.bytes_received),
            ],
        );
        self.put(
            32,
            &[
                ("tcpi_segs_out", record.segments_out.into()),
                ("tcpi_segs_in", record.segments_in.into()),
                ("tcpi_notsent_bytes", u64::from(seen.unsent) + endpoint.outbox.len() as u64),
                ("tcpi_min_rtt", seen.recovery.least_rtt.map_or(0, micros)),
                ("tcpi_data_segs_in", record.data_segments_in.into()),
                ("tcpi_data_segs_out", record.data_segments_out.into()),
            ],
        );
    }

    fn stalls(&mut self, endpoint: &Endpoint, now: Instant) {
        let stalls = endpoint.stalls.until(now);
        self.put(
            64,
            &[
                ("tcpi_delivery_rate", 0),
                ("tcpi_busy_time", micros(stalls.busy)),
                ("tcpi_rwnd_limited", micros(stalls.by_window)),
                ("tcpi_sndbuf_limited", micros(stalls.by_buffer)),
            ],
        );
    }

    fn totals(&mut self, endpoint: &Endpoint, seen: &Statistics) {
        let record = &endpoint.record;
        let mss = u64::from(seen.mss.max(1));
        let delivered = (record.bytes_acked + u64::from(seen.recovery.sacked)).div_ceil(mss);
        self.put(
            32,
            &[
                ("tcpi_delivered", delivered),
                ("tcpi_delivered_ce", record.bytes_echoed.div_ceil(mss)),
            ],
        );
        self.put(
            64,
            &[("tcpi_bytes_sent", record.bytes_sent), ("tcpi_bytes_retrans", record.bytes_again)],
        );
        self.put(
            32,
            &[
                ("tcpi_dsack_dups", seen.recovery.duplicates_reported.into()),
                ("tcpi_reord_seen", seen.recovery.reordered.into()),
                ("tcpi_rcv_ooopack", record.out_of_order_in.into()),
                ("tcpi_snd_wnd", seen.snd_wnd.into()),
                ("tcpi_rcv_wnd", seen.rcv_wnd.into()),
                ("tcpi_rehash", 0),
            ],
        );
        self.put(
            16,
            &[
                ("tcpi_total_rto", record.timeouts.into()),
                ("tcpi_total_rto_recoveries", record.timeout_recoveries.into()),
            ],
        );
    }

    fn marks(&mut self, endpoint: &Endpoint, seen: &Statistics) {
        self.put(32, &[("tcpi_total_rto_time", 0)]);
        self.put(32, &[("tcpi_received_ce", endpoint.record.marked_in.into())]);
        self.put(
            32,
            &[
                ("tcpi_delivered_e1_bytes", 0),
                ("tcpi_delivered_e0_bytes", 0),
                ("tcpi_delivered_ce_bytes", 0),
                ("tcpi_received_e1_bytes", 0),
                ("tcpi_received_e0_bytes", 0),
                ("tcpi_received_ce_bytes", 0),
            ],
        );
        // The two lowest bits of a word; accurate ECN uses the rest.
        self.put(32, &[("tcpi_ecn_mode", seen.ecn.into())]);
    }
}

/// Values that do not come from the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) delayed_ack: Duration,
    /// The path MTU, in bytes.
    pub(super) path_bytes: u32,
    /// Size of the receive buffer, in bytes.
    pub(super) receive_bytes: u32,
}

/// The TCPI_OPT_* flags.
fn options(endpoint: &Endpoint, seen: &Statistics) -> u64 {
    let bits = [
        (seen.timestamps, 1),
        (seen.sack, 2),
        (seen.window_scales.is_some(), 4),
        (seen.ecn, 8),
        (endpoint.record.is_ect_seen, 16),
    ];
    bits.iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum()
}

/// Linux's number of a state: TCP_ESTABLISHED and the others.
fn number_of(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent(_) => 2,
        State::SynReceived(_) => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed(_) => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

/// Linux's number of a recovery phase: TCP_CA_Open and the others.
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

/// [`Statistics::ssthresh`] before the first loss, for which Linux has a value of its own.
const NO_THRESHOLD_BYTES: u32 = 1 << 30;
const LINUX_NO_THRESHOLD: u64 = 0x7fff_ffff;
/// Number of later segments that must arrive before one is lost (RFC 8985, section 6.2.4). It does
/// not adapt.
const OVERTAKEN_BY: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stand_where_c_puts_them() {
        let mut info = TcpInfo::default();
        info.put(8, &[("a", 7), ("b", 300)]);
        info.put(4, &[("low", 3), ("high", 5)]);
        info.put(1, &[("bit", 1)]);
        info.put(32, &[("word", 0x0102_0304)]);
        info.put(64, &[("long", u64::MAX)]);
        let bytes = info.bytes();
        assert_eq!(bytes[..8], [7, 255, 0x53, 1, 4, 3, 2, 1]);
        assert_eq!((bytes.len(), bytes[15]), (16, 255));
        assert_eq!((info.get("word"), info.get("none")), (Some(0x0102_0304), None));
    }
}
