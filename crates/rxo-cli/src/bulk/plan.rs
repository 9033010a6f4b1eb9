//! The plan of `rxo sink` and `rxo source`, from their flags.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use rxo_console::log::Form;

use crate::control::{ControlAddresses, Interval};
use crate::endpoint::EndpointPlan;
use crate::exit::usage;
use crate::flags::{MeterFlags, SinkFlags, SourceFlags};
use crate::numbers::{parse_bytes, parse_time};

/// The plan of `rxo sink` or `rxo source`: the host and its peer, the work of each connection, and the
/// output.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) endpoint: EndpointPlan,
    pub(super) work: Work,
    pub(super) connections: usize,
    /// Time between two statistics lines; `None` prints only the totals.
    pub(super) interval: Arc<Interval>,
    /// The addresses of the sockets for requests (`--control`) and for metrics (`--metrics`).
    pub(super) addresses: ControlAddresses,
    pub(super) hash: bool,
    pub(super) json: bool,
    /// The form of the log.
    pub(super) log: Form,
}

/// The work of each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// The connection receives until the peer closes.
    Receive,
    /// The connection receives, and sends everything back.
    Answer,
    /// The connection sends this amount.
    Send(Amount),
    /// The connection sends requests of `bytes` bytes, and waits after each for a response of the same size.
    Ask { bytes: usize, amount: Amount },
}

/// The condition that ends sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    /// The connection sends until this time has passed.
    Time(Duration),
    /// The connection sends this number of bytes.
    Bytes(u64),
}

impl Work {
    /// Returns the time for which each connection works; `None` if a number of bytes ends its work.
    pub(super) const fn time(self) -> Option<Duration> {
        match self {
            Self::Send(Amount::Time(time)) | Self::Ask { amount: Amount::Time(time), .. } => {
                Some(time)
            }
            _ => None,
        }
    }
}

impl Plan {
    /// Makes the plan from the flags of `rxo sink`.
    ///
    /// # Errors
    /// If a value is invalid; the message describes valid values.
    pub(super) fn of_sink(flags: &SinkFlags) -> Result<Self> {
        let work = if flags.rr { Work::Answer } else { Work::Receive };
        Self::new(EndpointPlan::from_flags(&flags.endpoint)?, work, &flags.meter)
    }

    /// Makes the plan from the flags of `rxo source`.
    ///
    /// # Errors
    /// The errors of [`Plan::of_sink`].
    pub(super) fn of_source(flags: &SourceFlags) -> Result<Self> {
        let amount = match &flags.bytes {
            Some(text) => Amount::Bytes(bytes(text)?),
            None => Amount::Time(time(&flags.time)?),
        };
        let work = match flags.rr {
            None => Work::Send(amount),
            Some(bytes @ 1..=MOST_ASKED) => Work::Ask { bytes, amount },
            Some(bytes) => {
                return Err(usage(format!("--rr {bytes}: give 1 to {MOST_ASKED} bytes")));
            }
        };
        Self::new(EndpointPlan::from_flags(&flags.endpoint)?, work, &flags.meter)
    }

    fn new(endpoint: EndpointPlan, work: Work, flags: &MeterFlags) -> Result<Self> {
        let connections = flags.connections;
        if !(1..=MOST_CONNECTIONS).contains(&connections) {
            return Err(usage(format!(
                "--connections {connections}: choose 1 to {MOST_CONNECTIONS}"
            )));
        }
        let endpoint = endpoint.with_workers(&flags.workers)?;
        let interval = Arc::new(Interval::new(interval(&flags.interval)?));
        let addresses = ControlAddresses::from_flags(&flags.control)?;
        let MeterFlags { hash, json, .. } = *flags;
        let log = flags.log.log.into();
        Ok(Self { endpoint, work, connections, interval, addresses, hash, json, log })
    }
}

fn interval(text: &str) -> Result<Option<Duration>> {
    match parse_time(text) {
        Some(Duration::ZERO) => Ok(None),
        Some(time) if (LEAST_INTERVAL..=MOST_TIME).contains(&time) => Ok(Some(time)),
        _ => Err(usage(format!(
            "--interval {text}: give a time from 100ms to 3600s, or 0s for none"
        ))),
    }
}

fn time(text: &str) -> Result<Duration> {
    parse_time(text)
        .filter(|time| (LEAST_INTERVAL..=MOST_TIME).contains(time))
        .ok_or_else(|| usage(format!("--time {text}: give a time from 100ms to 3600s")))
}

fn bytes(text: &str) -> Result<u64> {
    parse_bytes(text).filter(|&bytes| bytes > 0).ok_or_else(|| {
        usage(format!("--bytes {text}: give a number such as 1000000, 64k, 10M or 1G"))
    })
}

const MOST_CONNECTIONS: usize = 10_000;
const MOST_ASKED: usize = 65_536;
const LEAST_INTERVAL: Duration = Duration::from_millis(100);
const MOST_TIME: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_unit() {
        let rows = [("1", 1), ("64k", 64_000), ("10M", 10_000_000), ("1G", 1_000_000_000)];
        for (text, amount) in rows {
            assert_eq!(bytes(text).unwrap(), amount);
        }
        for text in
            ["", "0", "k", "-1", "1.5M", "1T", "99999999999999999999", "18446744073709551615G"]
        {
            let said = bytes(text).unwrap_err().to_string();
            assert!(said.starts_with(&format!("--bytes {text}: give a number")), "{said}");
        }
    }

    #[test]
    fn times_are_bounded() {
        assert_eq!(interval("0s").unwrap(), None);
        assert_eq!(interval("500ms").unwrap(), Some(Duration::from_millis(500)));
        assert!(interval("1ms").is_err() && interval("often").is_err() && interval("2h").is_err());
        assert!(time("0s").is_err() && time("10s").is_ok());
    }
}
