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

impl Network {
    pub(super) const ALL: [Self; 3] = [Self::Clean, Self::Loss, Self::Delay];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Loss => "loss 1 %",
            Self::Delay => "delay 20 ms",
        }
    }

    /// Returns the impairments of the data direction and of the ACK direction.
    pub(super) fn impairments(self, link: Link) -> Ways {
        let none = ImpairmentSettings::default();
        let rate_bytes_per_s = Some(link.bytes_per_s);
        let data = ImpairmentSettings { seed: link.seed, rate_bytes_per_s, ..none };
        match self {
            Self::Clean => Ways { data, acks: none },
            Self::Loss => {
                Ways { data: ImpairmentSettings { loss_ppm: LOSS_PPM, ..data }, acks: none }
            }
            Self::Delay => Ways {
                data: ImpairmentSettings { delay: ONE_WAY, ..data },
                acks: ImpairmentSettings { delay: ONE_WAY, ..none },
            },
        }
    }
}

/// The link that all networks share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) bytes_per_s: u64,
    pub(super) seed: u64,
}

/// The settings of both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    pub(super) data: ImpairmentSettings,
    pub(super) acks: ImpairmentSettings,
}

const LOSS_PPM: u32 = 10_000;
const ONE_WAY: Duration = Duration::from_millis(10);
/// Round-trip time of the slowest network.
pub(super) const ROUND_TRIP: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_is_bad_in_one_way() {
        let link = Link { bytes_per_s: 1_000, seed: 5 };
        let [clean, loss, delay] = Network::ALL.map(|network| network.impairments(link));
        for ways in [clean, loss, delay] {
            assert_eq!((ways.data.rate_bytes_per_s, ways.data.seed), (Some(1_000), 5));
            assert_eq!((ways.acks.rate_bytes_per_s, ways.acks.loss_ppm), (None, 0));
        }
        assert_eq!((clean.data.loss_ppm, clean.data.delay), (0, Duration::ZERO));
        assert_eq!((loss.data.loss_ppm, loss.acks.delay), (10_000, Duration::ZERO));
        assert_eq!(delay.data.delay + delay.acks.delay, ROUND_TRIP);
    }
}
