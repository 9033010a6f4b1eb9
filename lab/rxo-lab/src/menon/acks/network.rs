//! The emulated networks that a connection crosses. All have a link of the plan's rate.

use std::time::Duration;

use rxo_device::middleware::ImpairmentSettings;
use serde::Serialize;

/// The impairment between sender and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Network {
    /// The link without loss or delay.
    Clean,
    /// One data frame in a hundred is lost.
    Loss,
    /// A round trip of 20 ms: 10 ms each way.
    Delay,
}

/// The link that all networks share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) bytes_per_s: u64,
    pub(super) seed: u64,
}

impl Network {
    pub(super) const ALL: [Self; 3] = [Self::Clean, Self::Loss, Self::Delay];

    /// Returns the impairments of the data direction and of the ACK direction.
    pub(super) fn impairments(self, link: Link) -> (ImpairmentSettings, ImpairmentSettings) {
        let none = ImpairmentSettings::default();
        let rate_bytes_per_s = Some(link.bytes_per_s);
        let data = ImpairmentSettings { seed: link.seed, rate_bytes_per_s, ..none };
        let delay = ROUND_TRIP / 2;
        match self {
            Self::Clean => (data, none),
            Self::Loss => (ImpairmentSettings { loss_ppm: 10_000, ..data }, none),
            Self::Delay => {
                (ImpairmentSettings { delay, ..data }, ImpairmentSettings { delay, ..none })
            }
        }
    }
}

/// Round-trip time of the slowest network.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_bad_in_one_way() {
        let link = Link { bytes_per_s: 1_000, seed: 5 };
        let [clean, loss, delay] = Network::ALL.map(|network| network.impairments(link));
        for (data, acks) in [clean, loss, delay] {
            assert_eq!((data.rate_bytes_per_s, data.seed), (Some(1_000), 5));
            assert_eq!((acks.rate_bytes_per_s, acks.loss_ppm), (None, 0));
        }
        assert_eq!((clean.0.loss_ppm, clean.0.delay), (0, Duration::ZERO));
        assert_eq!((loss.0.loss_ppm, loss.1.delay), (10_000, Duration::ZERO));
        assert_eq!(delay.0.delay + delay.1.delay, ROUND_TRIP);
    }
}
