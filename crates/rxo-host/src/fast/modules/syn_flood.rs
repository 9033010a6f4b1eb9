//! The SYN-flood detector: counts half-open connections by the network of their source.
//!
//! A flow is half-open from its SYN until it sends any other segment, for at most a minute. The detector only
//! counts flows. The defence against a SYN flood is SYN cookies
//! ([`HostConfig::syn_cookies`](crate::HostConfig::syn_cookies)).

use std::collections::HashMap;

use rxo_frame::{Duration, Instant};
use rxo_wire::{FlowKey, TcpFlags};

use crate::link::IpCidr;
use crate::timed_flows::TimedFlows;

/// The SYN-flood detector.
#[derive(Debug)]
pub(in crate::fast) struct Detector {
    half_open: TimedFlows<()>,
    networks: HashMap<IpCidr, i64>,
}

impl Detector {
    pub(in crate::fast) fn new(seed: u64) -> Self {
        Self { half_open: TimedFlows::new(MOST_FLOWS, seed), networks: HashMap::new() }
    }

    /// Records a segment of the flow `key` with `flags`. If the flow becomes half-open, returns the number of
    /// half-open flows of its network; otherwise `None`.
    pub(super) fn note(&mut self, key: FlowKey, flags: TcpFlags, now: Instant) -> Option<i64> {
        while let Some(over) = self.half_open.take_due(now) {
            self.change(over, -1);
        }
        let is_syn = flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK);
        let is_known = self.half_open.get_mut(&key).is_some() || key == FlowKey::NONE;
        let gone = match (is_syn, is_known) {
            (true, false) => self.half_open.insert(key, (), now + HALF_OPEN_FOR),
            (false, true) => self.half_open.remove(&key).then_some(key),
            // A retransmitted SYN opens no further flow.
            _ => None,
        };
        gone.map(|key| self.change(key, -1));
        (is_syn && !is_known).then(|| self.change(key, 1))
    }

    /// Adds `by` to the number of half-open flows of the network of `key`, and returns the new number.
    fn change(&mut self, key: FlowKey, by: i64) -> i64 {
        let network = IpCidr::of_source(key.source());
        let count = self.networks.remove(&network).unwrap_or(0) + by;
        if count > 0 {
            self.networks.insert(network, count);
        }
        count
    }

    /// Returns the current number of half-open flows, and the network that has the most half-open flows, with
    /// their number; `None` if there are none.
    pub(in crate::fast) fn report(&self) -> (u64, Option<(IpCidr, u64)>) {
        let networks = self.networks.iter().map(|(network, count)| (*network, *count as u64));
        let worst = networks.max_by_key(|(network, count)| (*count, network.address()));
        (self.half_open.len() as u64, worst)
    }
}

const MOST_FLOWS: usize = 8_192;
pub(super) const ALARM: i64 = 256;
/// The time after which a flow is no longer counted as half-open. A connection does not stay in SYN-RECEIVED
/// longer than this.
const HALF_OPEN_FOR: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    impl Detector {
        /// Returns how often there was an alarm.
        fn takes(&mut self, source: u32, port: u32, flags: TcpFlags, second: u64) -> usize {
            let key = FlowKey::v4(source, 0x0a00_0001, port << 16 | 80, 0);
            let opened = self.note(key, flags, Instant::from_micros(second * 1_000_000));
            usize::from(opened == Some(ALARM))
        }
    }

    #[test]
    fn a_flood_from_one_network_rings_once() {
        let mut detector = Detector::new(1);
        let flood = |host| detector.takes(0xc000_0200 | host & 0xff, host, TcpFlags::SYN, 1);
        assert_eq!((0..300).map(flood).sum::<usize>(), 1);
        detector.takes(0x0808_0808, 1, TcpFlags::SYN, 1);
        let worst = ("192.0.2.0/24".parse().unwrap(), 300);
        assert_eq!(detector.report(), (301, Some(worst)));
        detector.takes(1, 1, TcpFlags::ACK, 61);
        assert_eq!(detector.report(), (0, None), "after a minute");
    }

    #[test]
    fn handshakes_that_end_are_no_flood() {
        let mut detector = Detector::new(1);
        for port in 0..1_000 {
            assert_eq!(detector.takes(7, port, TcpFlags::SYN, 1), 0);
            assert_eq!(detector.takes(7, port, TcpFlags::SYN, 1), 0);
            assert_eq!(detector.takes(7, port, TcpFlags::ACK, 1), 0);
        }
        assert_eq!(detector.report(), (0, None));
    }

    #[test]
    fn memory_is_bounded() {
        let mut detector = Detector::new(1);
        for flow in 0..20_000 {
            detector.takes(flow << 8, flow & 0xffff, TcpFlags::SYN, 1);
        }
        assert_eq!(detector.report().0, MOST_FLOWS as u64);
        assert!(detector.networks.len() <= MOST_FLOWS);
    }
}
