//! What the flags of `rxo serve` mean.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use super::limits::Limits;
use crate::exit::usage;
use crate::flags::ServeFlags;
use crate::hosting::HostPlan;
use crate::numbers::parse_time;

/// What is to be served, and where.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) directory: PathBuf,
    pub(super) host: HostPlan,
    pub(super) port: u16,
    pub(super) clients: usize,
    pub(super) limits: Limits,
    pub(super) json: bool,
}

impl Plan {
    /// The plan for what was typed.
    ///
    /// # Errors
    /// When something cannot be; the message says what would be accepted.
    pub(super) fn from_flags(flags: &ServeFlags) -> Result<Self> {
        let ServeFlags { directory, port, clients, json, .. } = flags;
        if *port == 0 {
            return Err(usage("--port 0: choose 1 to 65535"));
        }
        if !CLIENTS.contains(clients) {
            return Err(usage(format!("--clients {clients}: choose 1 to 10000")));
        }
        let idle = parse_time(&flags.idle)
            .filter(|time| IDLE.contains(time))
            .ok_or_else(|| usage(format!("--idle {}: choose 1s to 1000s", flags.idle)))?;
        Ok(Self {
            directory: directory.clone(),
            host: HostPlan::from_flags(&flags.host)?,
            port: *port,
            clients: *clients,
            limits: Limits { idle, ..Limits::default() },
            json: *json,
        })
    }

    /// Where it listens: on every address of the host, each by itself.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.host.addresses().map(|address| SocketAddr::new(address, self.port))
    }
}

const CLIENTS: RangeInclusive<usize> = 1..=10_000;
const IDLE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(1_000);

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Cli, Command};

    fn plan(rest: &str) -> Result<Plan> {
        let line = format!("rxo serve /srv --nic packet:eth0 {rest}");
        match Cli::try_parse_from(line.split_whitespace())?.command {
            Command::Serve(flags) => Plan::from_flags(&flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_listens_on_every_address() {
        let plan = plan("--ip 10.0.0.2/24 --ip fd00::2/64 --port 8080").unwrap();
        let addresses: Vec<String> = plan.addresses().map(|address| address.to_string()).collect();
        assert_eq!(addresses, ["10.0.0.2:8080", "[fd00::2]:8080"]);
        assert_eq!((plan.clients, plan.limits.idle), (512, Duration::from_secs(15)));
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        let rows = [
            ("--ip 10.0.0.2/24 --port 0", "--port 0: choose 1 to 65535"),
            ("--ip 10.0.0.2/24 --clients 0", "--clients 0: choose 1 to 10000"),
            ("--ip 10.0.0.2/24 --idle 1ms", "--idle 1ms: choose 1s to 1000s"),
            ("--ip 10.0.0.2", "--ip 10.0.0.2: "),
            ("--ip 10.0.0.2/24 --gateway x", "--gateway x: "),
            ("--ip 10.0.0.2/24 --gateway fd00::1", "--gateway fd00::1: "),
        ];
        for (flags, message) in rows {
            let error = plan(flags).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
