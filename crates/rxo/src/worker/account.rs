//! Account: whether all that arrived at the nic's device was given or counted.
//!
//! It is separate because the two numbers cannot be read at one instant: what has arrived may still wait in the ring. So
//! what had arrived is asked first, and compared once the ring was found empty after that. Pure but for the source.
//! Contract: frames that arrive meanwhile hide a loss, and a later comparison finds it. A frame that a device has counted may
//! wait in the kernel, where nobody sees it, while the ring is empty; so a loss is what several comparisons in a row find.

use rxo_device::{FrameSource, SourceCounters};

#[derive(Debug, Default)]
pub(super) struct Account {
    /// What had arrived, until it is compared.
    arrived: Option<u64>,
    /// What the last comparisons found missing.
    missed: [u64; COMPARISONS - 1],
    /// Most frames ever found missing.
    pub(super) unaccounted: u64,
}

impl Account {
    /// Asks what has arrived.
    pub(super) fn open(&mut self, source: &mut impl FrameSource) {
        self.arrived = source.arrived();
    }

    /// Compares, after the source was found empty. Costs nothing if nothing was asked since.
    pub(super) fn settle(&mut self, source: &mut impl FrameSource) {
        let Some(arrived) = self.arrived.take() else { return };
        let SourceCounters { frames, ring_drops, truncated, invalid, .. } = source.counters();
        let missing = arrived.saturating_sub(frames + ring_drops + truncated + invalid);
        let certain = self.missed.iter().fold(missing, |least, &missed| least.min(missed));
        self.missed.rotate_right(1);
        self.missed[0] = missing;
        // The source is asked last, because that may take long.
        if certain > self.unaccounted && !source.gives_fewer() {
            self.unaccounted = certain;
        }
    }
}

/// Comparisons in a row that must find a loss.
const COMPARISONS: usize = 3;

#[cfg(test)]
mod tests {
    use rxo_device::{DeviceError, SourceCapabilities};
    use rxo_frame::{Frame, LinkKind};

    use super::*;

    /// A device that says what arrived, and what it gave of that.
    struct Said {
        arrived: Option<u64>,
        counters: SourceCounters,
        gives_fewer: bool,
    }

    impl FrameSource for Said {
        type Buffer = Vec<u8>;

        fn capabilities(&self) -> SourceCapabilities {
            SourceCapabilities {
                link: LinkKind::Ethernet,
                mtu: 1_500,
                says_checksum: false,
                gives_gso: false,
            }
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

    /// What is missing if so many arrived, and the ring was empty when so many had been given.
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
            account.settle(source);
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
        account.settle(&mut source);
        assert_eq!(account.unaccounted, 0);
        source.arrived = Some(15);
        account.settle(&mut source);
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
}
