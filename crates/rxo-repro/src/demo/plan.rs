//! What the demo's flags mean.

use std::time::Duration;

use anyhow::Result;
use rxo::live::defaults;
use rxo_coalesce::Policy;
use rxo_console::fault::usage;
use rxo_console::numbers::parse_time;
use rxo_console::output::fields;
use rxo_lab::LabOptions;

use super::report::Setup;
use crate::flags::DemoFlags;
use crate::machine::Cores;

/// What is to be measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: usize,
    pub(crate) rounds: usize,
    /// How long one bulk transfer is measured.
    pub(crate) bulk: Duration,
    /// How long it runs before that, so that windows have opened.
    pub(crate) warm_up: Duration,
    pub(crate) request_response: Duration,
    pub(crate) cores: Cores,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When a number or a time cannot be; the message says what would be accepted.
    pub(crate) fn from_flags(flags: &DemoFlags) -> Result<Self> {
        let DemoFlags { connections, rounds, seconds, .. } = flags;
        if !CONNECTIONS.contains(connections) {
            return Err(usage(format!("--connections {connections}: choose 1 to 400")));
        }
        if !ROUNDS.contains(rounds) {
            return Err(usage(format!("--rounds {rounds}: choose 1 to 1000")));
        }
        let bulk = parse_time(seconds)
            .filter(|time| (SHORTEST_BULK..=LONGEST_BULK).contains(time))
            .ok_or_else(|| usage(format!("--seconds {seconds}: choose 0.1s to 60s")))?;
        Ok(Self {
            connections: *connections,
            rounds: *rounds,
            bulk,
            warm_up: WARM_UP,
            request_response: REQUEST_RESPONSE.min(bulk),
            cores: Cores::choose(),
        })
    }

    /// How many measurements there will be.
    pub(crate) const fn measurements(&self) -> usize {
        self.rounds * super::path::Path::ALL.len()
    }

    /// The part of it that belongs into the report.
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            rounds: self.rounds,
            bulk_s: self.bulk.as_secs_f64(),
            request_response_s: self.request_response.as_secs_f64(),
            mtu: LabOptions::default().mtu,
            sender_core: self.cores.sender,
            receiver_core: self.cores.receiver,
            policy: fields(defaults::live(Policy::linux_gro()).settings()),
        }
    }
}

const CONNECTIONS: std::ops::RangeInclusive<usize> = 1..=400;
const ROUNDS: std::ops::RangeInclusive<usize> = 1..=1_000;
const SHORTEST_BULK: Duration = Duration::from_millis(100);
const LONGEST_BULK: Duration = Duration::from_secs(60);
const WARM_UP: Duration = Duration::from_millis(150);
const REQUEST_RESPONSE: Duration = Duration::from_millis(350);

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(connections: usize, rounds: usize, seconds: &str) -> DemoFlags {
        DemoFlags {
            connections,
            rounds,
            seconds: seconds.into(),
            reverse: false,
            peer_acks: "each".into(),
            hold: "end-of-poll".into(),
            json: false,
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        let rows = [
            (flags(0, 1, "1s"), "--connections 0: choose 1 to 400"),
            (flags(401, 1, "1s"), "--connections 401: choose 1 to 400"),
            (flags(1, 0, "1s"), "--rounds 0: choose 1 to 1000"),
            (flags(1, 1, "1h"), "--seconds 1h: choose 0.1s to 60s"),
            (flags(1, 1, "50ms"), "--seconds 50ms: choose 0.1s to 60s"),
        ];
        for (flags, message) in rows {
            assert_eq!(Plan::from_flags(&flags).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_short_run_is_short_throughout() {
        let plan = Plan::from_flags(&flags(400, 3, "200ms")).unwrap();
        assert_eq!(plan.request_response, Duration::from_millis(200));
        assert_eq!(plan.measurements(), 15);
    }
}
