//! The SYN-flood detector: counts half-open connections by the network of their source.
//!
//! A flow is half-open from its SYN until it sends any other segment, for at most a minute. The detector only
//! counts; SYN cookies answer a flood ([`HostConfig::syn_cookies`](crate::HostConfig::syn_cookies)).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rxo_frame::Instant;
use rxo_wire::{FlowKey, TcpFlags};

use crate::link::IpCidr;

/// The counters of the SYN-flood detector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfOpen {
    /// Number of SYNs that opened a connection since the host was created; retransmitted SYNs do not count.
    pub syns: u64,
    /// Number of half-open flows now, at most 8,192.
    pub now: u64,
    /// Number of times that the half-open flows of one network reached 256.
    pub alarms: u64,
    /// The network with the most half-open flows now, and their number.
    pub worst: Option<(IpCidr, u64)>,
}

/// The half-open flows, by flow and by network.
#[derive(Debug, Default)]
pub(in crate::fast) struct Detector {
    /// The half-open flows, with the time of their SYN.
    flows: HashMap<FlowKey, Instant>,
    /// The flows in order of their SYN. An entry is skipped if its flow has completed since, or was opened
    /// again.
    order: VecDeque<(Instant, FlowKey)>,
    networks: HashMap<IpCidr, u64>,
    totals: HalfOpen,
}

impl Detector {
    /// Counts a TCP segment of the flow `key` with `flags`.
    pub(in crate::fast) fn count(&mut self, key: FlowKey, flags: TcpFlags, now: Instant) {
        while self.order.front().is_some_and(|(at, _)| now.since(*at) >= HALF_OPEN_FOR) {
            self.forget_oldest();
        }
        if !flags.contains(TcpFlags::SYN) || flags.contains(TcpFlags::ACK) {
            self.close(&key);
        } else if !self.flows.contains_key(&key) {
            // A retransmitted SYN does not open a second flow.
            self.open(key, now);
        }
    }

    fn open(&mut self, key: FlowKey, now: Instant) {
        self.totals.syns += 1;
        while self.order.len() >= MOST_FLOWS {
            self.forget_oldest();
        }
        self.flows.insert(key, now);
        self.order.push_back((now, key));
        let count = self.networks.entry(IpCidr::of_source(key.source())).or_default();
        *count += 1;
        self.totals.alarms += u64::from(*count == ALARM);
    }

    fn close(&mut self, key: &FlowKey) {
        if self.flows.remove(key).is_some()
            && let Entry::Occupied(mut count) = self.networks.entry(IpCidr::of_source(key.source()))
        {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((at, key)) = self.order.pop_front()
            && self.flows.get(&key) == Some(&at)
        {
            self.close(&key);
        }
    }

    pub(in crate::fast) fn report(&self) -> HalfOpen {
        let networks = self.networks.iter().map(|(network, count)| (*network, *count));
        let worst = networks.max_by_key(|(network, count)| (*count, network.address()));
        HalfOpen { now: self.flows.len() as u64, worst, ..self.totals }
    }
}

const MOST_FLOWS: usize = 8_192;
const ALARM: u64 = 256;
/// The longest time that a connection may stay in SYN-RECEIVED.
const HALF_OPEN_FOR: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    impl Detector {
        fn takes(&mut self, source: u32, port: u32, flags: TcpFlags, second: u64) {
            let key = FlowKey::v4(source, 0x0a00_0001, port << 16 | 80, 0);
            self.count(key, flags, Instant::from_micros(second * 1_000_000));
        }
    }

    #[test]
    fn a_flood_from_one_network_rings_once() {
        let mut detector = Detector::default();
        for host in 0..300 {
            detector.takes(0xc000_0200 | host & 0xff, host, TcpFlags::SYN, 1);
        }
        detector.takes(0x0808_0808, 1, TcpFlags::SYN, 1);
        let report = detector.report();
        assert_eq!((report.syns, report.now, report.alarms), (301, 301, 1));
        assert_eq!(report.worst, Some(("192.0.2.0/24".parse().unwrap(), 300)));
        detector.takes(1, 1, TcpFlags::ACK, 61);
        assert_eq!(detector.report().now, 0, "after a minute");
    }

    #[test]
    fn handshakes_that_end_are_no_flood() {
        let mut detector = Detector::default();
        for port in 0..1_000 {
            detector.takes(7, port, TcpFlags::SYN, 1);
            detector.takes(7, port, TcpFlags::SYN, 1);
            detector.takes(7, port, TcpFlags::ACK, 1);
        }
        assert_eq!(detector.report(), HalfOpen { syns: 1_000, ..HalfOpen::default() });
    }

    #[test]
    fn memory_is_bounded() {
        let mut detector = Detector::default();
        for flow in 0..20_000 {
            detector.takes(flow << 8, flow & 0xffff, TcpFlags::SYN, 1);
        }
        assert_eq!(detector.report().now, MOST_FLOWS as u64);
        assert!(detector.networks.len() <= MOST_FLOWS && detector.order.len() <= MOST_FLOWS);
    }
}
