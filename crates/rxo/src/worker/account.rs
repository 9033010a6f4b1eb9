//! Account: finds losses that no counter shows. Compares the frames that arrived at the nic with the frames
//! received or counted as lost, and the packets written to the nic with the packets sent.
//!
//! This module is separate because the numbers cannot be read at one instant: frames that have arrived may
//! still wait in the ring. So the number of arrivals is read first, and compared as soon as the ring is found
//! empty. Apart from the devices, the computation has no side effects. Contract: frames that arrive between
//! the two readings hide a loss, which a later comparison finds. A frame that a device has counted may wait
//! invisibly in the kernel while the ring is empty, so missing frames count as lost only if several
//! comparisons in a row find them missing. Packets that other programs send by the nic, and GSO frames that
//! the system counts as segments, hide losses of sent packets.

use std::time::Duration;

use rxo_device::{FrameSink, FrameSource, SourceCounters};
use rxo_frame::Instant;

#[derive(Debug, Default)]
pub(super) struct Account {
    /// The number of frames that had arrived at the device, as last read; `None` once this number has been
    /// compared.
    arrived: Option<u64>,
    /// The number of missing frames that each of the last comparisons found, latest first.
    missed: [u64; COMPARISONS - 1],
    /// The largest number of received frames found to be lost so far.
    pub(super) unaccounted: u64,
}

impl Account {
    /// Reads the number of frames that have arrived at the device, for the next comparison.
    pub(super) fn open(&mut self, source: &mut impl FrameSource) {
        self.arrived = source.arrived();
    }

    /// Compares the number of frames that have arrived with the counters of `source`, whose ring was found
    /// empty. Does nothing if no number was read since the last comparison.
    pub(super) fn compare_arrivals(&mut self, source: &mut impl FrameSource) {
        let Some(arrived) = self.arrived.take() else { return };
        let SourceCounters { frames, ring_drops, truncated, invalid, .. } = source.counters();
        let missing = arrived.saturating_sub(frames + ring_drops + truncated + invalid);
        let certain = self.missed.iter().fold(missing, |least, &missed| least.min(missed));
        self.missed.rotate_right(1);
        self.missed[0] = missing;
        // `gives_fewer` is called last, because it may take long.
        if certain > self.unaccounted && !source.gives_fewer() {
            self.unaccounted = certain;
        }
    }
}

/// The number of comparisons in a row that must find frames missing, so that these count as lost.
const COMPARISONS: usize = 3;
/// The account of packets that leave by the nic.
#[derive(Debug, Default)]
pub(super) struct Sendings {
    /// The time of the last comparison with the system's count of departed packets; `None` before the first.
    checked_at: Option<Instant>,
    /// The number of packets that the interface had sent, minus the number that the worker had written, when
    /// both numbers were first known; `None` before that.
    before: Option<u64>,
    /// The numbers of packets written so far, at the last checks that found more packets written than before,
    /// oldest first.
    written: [u64; LAG],
    /// The largest number of packets found not to be sent so far.
    pub(super) unsent: u64,
}

impl Sendings {
    /// Compares the number of packets written a few checks ago with the number that the system has sent by
    /// now. Checks at most about once per second, because a check needs a system call.
    pub(super) fn compare_departures(&mut self, now: Instant, sink: &mut impl FrameSink) {
        if self.checked_at.is_some_and(|at| now.since(at) < CHECK_INTERVAL) {
            return;
        }
        self.checked_at = Some(now);
        let departed = sink.departed();
        self.compare(sink.counters().packets, departed);
    }

    fn compare(&mut self, written: u64, departed: Option<u64>) {
        let Some(departed) = departed else { return };
        let Some(before) = self.before else {
            self.before = Some(departed.wrapping_sub(written));
            self.written = [written; LAG];
            return;
        };
        // Some drivers count a packet only when they send the next one.
        if self.written.last() == Some(&written) {
            return;
        }
        let missing = before.wrapping_add(self.written[0]).saturating_sub(departed);
        self.unsent = self.unsent.max(missing);
        self.written.rotate_left(1);
        self.written[LAG - 1] = written;
    }
}

/// The number of checks between writing and comparing: enough for drivers that read their counters from the
/// card only occasionally.
const LAG: usize = 3;
const CHECK_INTERVAL: Duration = Duration::from_millis(900);

#[cfg(test)]
mod tests {
    use rxo_device::{DeviceError, SourceCapabilities};
    use rxo_frame::{Frame, LinkKind};

    use super::*;

    /// A source with given numbers of arrived and of received frames.
    struct Said {
        arrived: Option<u64>,
        counters: SourceCounters,
        gives_fewer: bool,
    }

    impl FrameSource for Said {
        type Buffer = Vec<u8>;

        fn capabilities(&self) -> SourceCapabilities {
            SourceCapabilities { link: LinkKind::Ethernet, mtu: 1_500, gives_gso: false }
        }

        fn receive(
            &mut self,
            _batch: &mut Vec<Frame<Vec<u8>>>,
            _budget: usize,
        ) -> Result<usize, DeviceError> {
            Ok(0)
        }

        fn counters(&mut self) -> SourceCounters {
            self.counters
        }

        fn arrived(&mut self) -> Option<u64> {
            self.arrived
        }

        fn gives_fewer(&mut self) -> bool {
            self.gives_fewer
        }
    }

    /// Returns the number of frames found to be lost, if `arrived` have arrived and `frames` were received when the
    /// ring was empty.
    fn missing(arrived: Option<u64>, frames: u64) -> u64 {
        let counters = SourceCounters {
            frames,
            ring_drops: 100,
            truncated: 10,
            invalid: 1,
            ..SourceCounters::default()
        };
        let mut account = Account::default();
        let mut source = Said { arrived, counters, gives_fewer: false };
        compare(&mut account, &mut source, COMPARISONS);
        account.unaccounted
    }

    fn compare(account: &mut Account, source: &mut Said, times: usize) {
        for _ in 0..times {
            account.open(source);
            account.compare_arrivals(source);
        }
    }

    #[test]
    fn what_is_neither_given_nor_counted_is_missing() {
        assert_eq!(missing(Some(1_111), 1_000), 0);
        assert_eq!(missing(Some(1_116), 1_000), 5);
        assert_eq!(missing(Some(1_111), 2_000), 0, "arrived since it was asked");
        assert_eq!(missing(None, 1_000), 0, "the system does not say");
    }

    #[test]
    fn what_waits_in_the_ring_is_not_missing() {
        let (mut account, counters) = (Account::default(), SourceCounters::default());
        let mut source = Said { arrived: Some(10), counters, gives_fewer: false };
        account.open(&mut source);
        assert_eq!(account.unaccounted, 0, "not compared yet");
        source.counters.frames = 10;
        account.compare_arrivals(&mut source);
        assert_eq!(account.unaccounted, 0);
        source.arrived = Some(15);
        account.compare_arrivals(&mut source);
        assert_eq!(account.unaccounted, 0, "nothing was asked since");
    }

    #[test]
    fn a_loss_is_kept_though_later_frames_hide_it() {
        let (mut account, counters) = (Account::default(), SourceCounters::default());
        let mut source = Said { arrived: Some(3), counters, gives_fewer: false };
        compare(&mut account, &mut source, COMPARISONS);
        source.counters.frames = 50;
        compare(&mut account, &mut source, COMPARISONS);
        assert_eq!(account.unaccounted, 3);
    }

    #[test]
    fn frames_that_wait_in_the_kernel_for_a_moment_are_not_missing() {
        let (mut account, counters) = (Account::default(), SourceCounters::default());
        let mut source = Said { arrived: Some(45), counters, gives_fewer: false };
        compare(&mut account, &mut source, COMPARISONS - 1);
        source.counters.frames = 45;
        compare(&mut account, &mut source, 1);
        source.arrived = Some(50);
        compare(&mut account, &mut source, COMPARISONS - 1);
        assert_eq!(account.unaccounted, 0);
        compare(&mut account, &mut source, 1);
        assert_eq!(account.unaccounted, 5);
    }
    #[test]
    fn a_device_that_merges_frames_lacks_none() {
        let counters = SourceCounters { frames: 3, ..SourceCounters::default() };
        let (mut account, arrived) = (Account::default(), Some(60));
        let mut source = Said { arrived, counters, gives_fewer: true };
        compare(&mut account, &mut source, COMPARISONS);
        assert_eq!(account.unaccounted, 0);
    }

    /// Returns the number of packets found not to be sent after the checks `looks`, each a pair of packets written and
    /// packets sent.
    fn unsent(looks: &[(u64, Option<u64>)]) -> u64 {
        let mut sendings = Sendings::default();
        looks.iter().for_each(|(written, departed)| sendings.compare(*written, *departed));
        sendings.unsent
    }

    /// Builds checks with the numbers `written` of packets written, of which all but `missing` were sent; 5,000 packets
    /// had been sent before.
    fn looks(written: &[u64], missing: u64) -> Vec<(u64, Option<u64>)> {
        let left = |written: u64| 5_000 + (written - written.min(missing));
        written.iter().map(|&written| (written, Some(left(written)))).collect()
    }

    #[test]
    fn what_was_written_and_has_not_left_is_missing() {
        let written = [0, 20, 40, 60, 80, 100];
        assert_eq!(unsent(&looks(&written, 0)), 0);
        // Six of the 40 packets that were written three checks before the last are missing.
        let lost = |left| [&looks(&written[..5], 0)[..], &[(100, Some(left))]].concat();
        assert_eq!(unsent(&lost(5_034)), 6);
        assert_eq!(unsent(&lost(5_040)), 0, "the others may be counted later");
        assert_eq!(unsent(&lost(9_999)), 0, "others send, too");
    }

    #[test]
    fn what_may_still_be_counted_is_not_missing() {
        let some_wait = [(10, Some(5_000)), (30, None), (31, None), (32, None), (33, None)];
        assert_eq!(unsent(&some_wait), 0);
        let late = [(0, Some(5_000)), (30, Some(5_000)), (30, Some(5_000)), (30, Some(5_000))];
        assert_eq!(unsent(&late), 0, "nothing more was written");
        // A card whose counters are read only every two seconds.
        let seldom = (0..20).map(|look| (50 * look, Some(5_000 + 50 * (look - look % 2))));
        assert_eq!(unsent(&seldom.collect::<Vec<_>>()), 0);
    }

    #[test]
    fn a_nic_that_sends_nothing_at_all_is_noticed() {
        assert_eq!(unsent(&looks(&[0, 20, 40, 60, 80, 100], u64::MAX)), 40);
    }

    #[test]
    fn the_system_is_asked_once_a_second_however_often_it_is_looked() {
        let mut sendings = Sendings::default();
        let link = rxo_device::MemoryLink::new(rxo_device::MemoryOptions::default());
        let mut asked = 0;
        for step in 0..100 {
            let before = sendings.checked_at;
            let now = Instant::ZERO + Duration::from_millis(100) * step;
            sendings.compare_departures(now, &mut link.sink());
            asked += u32::from(sendings.checked_at != before);
        }
        assert_eq!(asked, 12);
    }
}
