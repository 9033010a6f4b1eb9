//! The plan of `rxo serve`, from its flags.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use rxo_confine::Access;
use rxo_console::log::Form;
use rxo_serve::Limits;

use crate::control::ControlAddresses;
use crate::exit::usage;
use crate::flags::ServeFlags;
use crate::hosting::{HostPlan, Listeners, Running};
use crate::numbers::{parse_bytes, parse_time};

/// The work of `rxo serve`: the directory to serve, the host, and the limits of clients.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) directory: PathBuf,
    pub(super) host: HostPlan,
    pub(super) port: u16,
    pub(super) clients: usize,
    /// Maximum number of clients from one IPv4 address or one IPv6 /64.
    pub(super) per_peer: usize,
    pub(super) limits: Limits,
    /// The addresses of the sockets for requests (`--control`) and for metrics (`--metrics`).
    pub(super) addresses: ControlAddresses,
    pub(super) json: bool,
    /// The form of the log lines on standard error.
    pub(super) log: Form,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a value is invalid; the message describes valid values.
    pub(super) fn from_flags(flags: &ServeFlags) -> Result<Self> {
        let ServeFlags { directory, port, clients, control, json, .. } = flags;
        if *port == 0 {
            return Err(usage("--port 0: choose 1 to 65535"));
        }
        if !CLIENTS.contains(clients) {
            return Err(usage(format!("--clients {clients}: choose 1 to 500000")));
        }
        let per_peer = flags.per_peer.unwrap_or(clients.div_ceil(SHARES));
        if !(1..=*clients).contains(&per_peer) {
            return Err(usage(format!("--per-peer {per_peer}: choose 1 to {clients}")));
        }
        let least_rate = parse_bytes(&flags.least_rate).ok_or_else(|| {
            usage(format!(
                "--least-rate {}: give bytes a second, such as 4k or 0",
                flags.least_rate
            ))
        })?;
        let idle = parse_time(&flags.idle)
            .filter(|time| IDLE.contains(time))
            .ok_or_else(|| usage(format!("--idle {}: choose 1s to 1000s", flags.idle)))?;
        Ok(Self {
            directory: directory.clone(),
            host: HostPlan::from_flags(&flags.host)?.with_workers(&flags.workers)?,
            port: *port,
            clients: *clients,
            per_peer,
            limits: Limits { idle, least_rate, ..Limits::default() },
            addresses: ControlAddresses::from_flags(control)?,
            json: *json,
            log: flags.log.log.into(),
        })
    }

    /// Opens the device and starts the host, with twice as many sockets as clients, because connections also
    /// wait and close.
    ///
    /// # Errors
    /// The errors of [`HostPlan::start_with`].
    pub(super) fn start_host(&self) -> Result<Running> {
        let files = vec![(self.directory.clone(), Access::Read)];
        self.host.start_with(files, |config| config.sockets = config.sockets.max(2 * self.clients))
    }

    /// Listens on all addresses, with listeners for each worker of `host`.
    ///
    /// # Errors
    /// If the host has ended.
    pub(super) fn listen(&self, host: &Running) -> Result<Vec<Listeners>> {
        let backlog = self.clients.min(MOST_BACKLOG).div_ceil(host.handles().len());
        let listen = |handle| Ok(Listeners::open(handle, self.addresses(), backlog)?);
        host.handles().iter().map(listen).collect()
    }

    /// Returns a warning if `--memory` is too small for all clients, even if all clients are idle; otherwise
    /// `None`.
    pub(super) fn memory_note(&self) -> Option<String> {
        let (clients, most) = (self.clients, self.host.most_connections());
        (most < clients as u64).then(|| {
            format!(
                "--memory has room for {most} idle clients of {clients}: further ones get no answer; \
                 give 8 KiB for each, and more for those that are active"
            )
        })
    }

    /// Returns the addresses to listen on: every address of the host.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.host.addresses().map(|address| SocketAddr::new(address, self.port))
    }
}

/// Divisor of `--clients` for the default of `--per-peer`: one address gets at most one quarter.
const SHARES: usize = 4;
/// Most connections that are opening or wait to be accepted. Beyond that, SYNs are answered with cookies.
const MOST_BACKLOG: usize = 4_096;
const CLIENTS: RangeInclusive<usize> = 1..=500_000;
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
        assert_eq!((plan.clients, plan.limits.idle), (10_000, Duration::from_secs(15)));
        assert_eq!((plan.per_peer, plan.limits.least_rate), (2_500, 4_000));
    }

    #[test]
    fn an_address_gets_a_quarter_unless_it_is_said() {
        let per_peer = |rest: &str| plan(&format!("--ip 10.0.0.2/24 {rest}")).unwrap().per_peer;
        assert_eq!(per_peer("--clients 1"), 1);
        assert_eq!(per_peer("--clients 40"), 10);
        assert_eq!(per_peer("--clients 40 --per-peer 40"), 40);
        assert_eq!(plan("--ip 10.0.0.2/24 --least-rate 0").unwrap().limits.least_rate, 0);
    }

    #[test]
    fn memory_for_fewer_than_all_clients_is_said() {
        let note = |rest: &str| plan(&format!("--ip 10.0.0.2/24 {rest}")).unwrap().memory_note();
        assert_eq!(note(""), None);
        assert_eq!(note("--clients 200000"), None);
        let said = note("--clients 10000 --memory 64M").unwrap();
        assert!(said.starts_with("--memory has room for 7812 idle clients of 10000"), "{said}");
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("--ip 10.0.0.2/24 --port 0", "--port 0: choose 1 to 65535"),
            ("--ip 10.0.0.2/24 --clients 0", "--clients 0: choose 1 to 500000"),
            ("--ip 10.0.0.2/24 --per-peer 0", "--per-peer 0: choose 1 to 10000"),
            ("--ip 10.0.0.2/24 --clients 4 --per-peer 5", "--per-peer 5: choose 1 to 4"),
            ("--ip 10.0.0.2/24 --least-rate x", "--least-rate x: give bytes a second"),
            ("--ip 10.0.0.2/24 --neighbours 3", "--neighbours 3: choose 16 to 1048576"),
            ("--ip 10.0.0.2/24 --orphans 0", "--orphans 0: choose 1 to 1048576"),
            ("--ip 10.0.0.2/24 --time-waits 0", "--time-waits 0: choose 1 to 16777216"),
            ("--ip 10.0.0.2/24 --memory 5", "--memory 5: choose 1M to 1000G"),
            ("--ip 10.0.0.2/24 --max-buffer 5", "--max-buffer 5: choose 64KiB to 1000M"),
            ("--ip 10.0.0.2/24 --max-buffer x", "--max-buffer x: choose 64KiB to 1000M"),
            ("--ip 10.0.0.2/24 --congestion x", "--congestion x: choose cubic, reno or bbr"),
            (
                "--ip 10.0.0.2/24 --initial-window 65",
                "--initial-window 65: choose rfc6928, or 1 to 64 segments",
            ),
            ("--ip 10.0.0.2/24 --initial-window 0", "--initial-window 0: choose rfc6928"),
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
