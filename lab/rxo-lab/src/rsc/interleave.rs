//! Measures how the flows of a capture interleave, which matters for a card that can hold only a few of them at a time.
//!
//! Counts data segments only, whatever the policy. Separate from the study, because it describes
//! the traffic, not the result of an engine.

use rxo::wire::{FlowKey, Parsed, TcpFlags, Transport, parse, parse_ip};
use rxo_capture::{LinkType, Network, Record};
use serde::Serialize;

/// The result of measuring how flows interleave. Means are 0 if there are no data segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Interleaving {
    /// Packets per window. Windows follow each other like interrupts.
    pub(super) window_packets: u32,
    /// TCP packets with payload.
    pub(super) data_segments: u64,
    /// Data segments with PSH.
    pub(super) pushed_segments: u64,
    /// Mean number of flows with data in a window.
    pub(super) flows_per_window: f64,
    /// Mean number of consecutive data segments of one flow.
    pub(super) segments_per_run: f64,
}

/// Examines records one by one. Memory is bounded by the window.
#[derive(Clone, Debug)]
pub(super) struct Interleave {
    window_packets: u32,
    packets_in_window: u32,
    flows: Vec<FlowKey>,
    last: Option<FlowKey>,
    windows: u64,
    flows_in_windows: u64,
    runs: u64,
    data_segments: u64,
    pushed_segments: u64,
}

impl Interleave {
    /// Starts with an empty state. A window has at least one packet, even if 0 is given.
    ///
    /// # Examples
    /// ```
    /// use rxo_capture::{LinkType, Record};
    /// use rxo_trace::interleave::Interleave;
    /// # use rxo_wire::build::{Ipv4Header, TcpHeader, write_tcp_checksum};
    /// # use rxo_wire::{TcpFlags, checksum::Summer};
    /// # let tcp = TcpHeader { flags: TcpFlags::ACK, ..TcpHeader::default() };
    /// # let ip = Ipv4Header { protocol: 6, payload_bytes: 20 + 1_000, ..Ipv4Header::default() };
    /// # let mut segment = vec![0; 40 + 1_000];
    /// # let rest = ip.write(&mut segment)?;
    /// # tcp.write(rest)?;
    /// # write_tcp_checksum(rest, ip.pseudo_header(), Summer::detect())?;
    ///
    /// let record = Record { bytes: segment.into(), ..Record::default() };
    /// let mut interleave = Interleave::new(32);
    /// for _ in 0..3 {
    ///     interleave.take(LinkType::RAW, &record);
    /// }
    /// let found = interleave.finish();
    /// assert_eq!((found.data_segments, found.segments_per_run), (3, 3.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub(super) fn new(window_packets: u32) -> Self {
        Self {
            window_packets: window_packets.max(1),
            packets_in_window: 0,
            flows: Vec::new(),
            last: None,
            windows: 0,
            flows_in_windows: 0,
            runs: 0,
            data_segments: 0,
            pushed_segments: 0,
        }
    }

    /// Examines the next record, of an interface with this link type.
    pub(super) fn take(&mut self, link: LinkType, record: &Record) {
        if let Some((flow, flags)) = data_segment(link, record) {
            self.data(flow, flags);
        }
        self.packets_in_window += 1;
        if self.packets_in_window == self.window_packets {
            self.end_window();
        }
    }

    /// Returns the result, including an incomplete last window.
    pub(super) fn finish(mut self) -> Interleaving {
        if self.packets_in_window > 0 {
            self.end_window();
        }
        let mean = |sum: u64, count: u64| if count == 0 { 0.0 } else { sum as f64 / count as f64 };
        Interleaving {
            window_packets: self.window_packets,
            data_segments: self.data_segments,
            pushed_segments: self.pushed_segments,
            flows_per_window: mean(self.flows_in_windows, self.windows),
            segments_per_run: mean(self.data_segments, self.runs),
        }
    }

    fn data(&mut self, flow: FlowKey, flags: TcpFlags) {
        self.data_segments += 1;
        self.pushed_segments += u64::from(flags.contains(TcpFlags::PSH));
        if self.last != Some(flow) {
            self.last = Some(flow);
            self.runs += 1;
        }
        if !self.flows.contains(&flow) {
            self.flows.push(flow);
        }
    }

    fn end_window(&mut self) {
        self.windows += 1;
        self.flows_in_windows += self.flows.len() as u64;
        self.flows.clear();
        self.packets_in_window = 0;
    }
}

/// Returns the flow and the flags of a TCP packet with payload; `None` for other packets.
fn data_segment(link: LinkType, record: &Record) -> Option<(FlowKey, TcpFlags)> {
    let Network { link, packet, .. } = link.network(&record.bytes)?;
    let parsed: Parsed = link.read(packet.as_ref(), parse, parse_ip).ok()?;
    match parsed.transport {
        Transport::Tcp(segment) if parsed.payload_bytes() > 0 => Some((parsed.key, segment.flags)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rxo_capture::SharedBytes;
    use rxo_testkit::seg;

    use super::*;

    fn found(window: u32, segments: &[(u16, bool, usize)]) -> Interleaving {
        let mut interleave = Interleave::new(window);
        for &(port, pushed, bytes) in segments {
            let segment = seg().ports(port, 80).len(bytes);
            let segment = if pushed { segment.psh() } else { segment };
            let bytes = SharedBytes::from(segment.bytes());
            let record = Record { bytes, ..Record::default() };
            interleave.take(LinkType::ETHERNET, &record);
        }
        interleave.finish()
    }

    #[test]
    fn flows_are_counted_by_window_and_runs_across_them() {
        let segments = [(1, false, 9), (1, true, 9), (2, false, 9), (1, false, 9), (1, true, 9)];
        let found = found(3, &segments);
        assert_eq!((found.data_segments, found.pushed_segments), (5, 2));
        // Flows 1 and 2, then 1 alone. The runs have lengths 2, 1 and 2.
        assert!((found.flows_per_window - 1.5).abs() < 1e-9, "{found:?}");
        assert!((found.segments_per_run - 5.0 / 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_is_no_data_only_fills_windows() {
        let found = found(2, &[(1, false, 0), (1, true, 0), (1, false, 5), (1, false, 0)]);
        assert_eq!((found.data_segments, found.pushed_segments), (1, 0));
        assert!((found.flows_per_window - 0.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn of_nothing_there_is_nothing_to_say() {
        let found = found(20, &[]);
        assert_eq!(found, Interleaving { window_packets: 20, ..Interleaving::default() });
        let mut interleave = Interleave::new(0);
        interleave.take(LinkType::RAW, &Record::default());
        assert_eq!(interleave.finish().window_packets, 1);
    }
}
