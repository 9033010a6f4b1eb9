//! The neighbours: a guest that receives from the peer, and one that answers its pings.

use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rxo_console::numbers::rounded;
use rxo_peers::Folder;
use rxo_testbed::Lab;
use serde::{Deserialize, Serialize};

use super::{ANSWERS, RECEIVES};
use crate::process::{self, Process};

/// Time between two pings, in seconds as `ping` takes it, and how long it waits for the last answers.
const BETWEEN_PINGS: &str = "0.005";
const PORT: u16 = 7_000;
const TIMEOUT: Duration = Duration::from_secs(20);

/// The service that the neighbours get.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Rate of the guest that receives.
    pub(super) gbits: f64,
    /// Round-trip times of the guest that answers, in milliseconds; `None` without an answer.
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    /// Pings without an answer.
    pub(super) lost_percent: f64,
}

pub(super) struct Neighbour<'l> {
    lab: &'l Lab,
    _hosts: [Process; 2],
    stream: TcpStream,
}

pub(super) fn mac(guest: usize) -> String {
    format!("52:54:00:00:00:{:02x}", guest + 1)
}

fn address(guest: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, 10 + guest as u8)
}

impl<'l> Neighbour<'l> {
    /// Starts both guests, and connects to the one that receives.
    pub(super) fn start(lab: &'l Lab, folder: &Folder) -> Result<Self> {
        let host = |guest| -> Result<Process> {
            let mut command = Command::new(process::program()?);
            let nic = format!("virtio:{}", folder.guest(guest).display());
            let ip = format!("{}/24", address(guest));
            command.args(["rxo", "sink", "--json", "--interval", "0s", "--nic", &nic, "--ip", &ip]);
            command.args(["--mac", &mac(guest), "--listen", &PORT.to_string()]);
            let mut host = lab.host().run(|| Process::spawn("rxo sink", &mut command))??;
            host.ignore_output()?;
            Ok(host)
        };
        let _hosts = [host(RECEIVES)?, host(ANSWERS)?];
        let begun = Instant::now();
        let stream = loop {
            let stream = lab.peer().run(|| TcpStream::connect((address(RECEIVES), PORT)))?;
            if let Ok(stream) = stream
                && !lab.peer().run(|| pings(Duration::from_millis(100)))??.1.is_empty()
            {
                break stream;
            }
            ensure!(begun.elapsed() < TIMEOUT, "the guests of the experiment do not answer");
        };
        Ok(Self { lab, _hosts, stream })
    }

    /// Sends to one guest, and pings the other.
    pub(super) fn measure(&self, time: Duration) -> Result<Seen> {
        thread::scope(|scope| {
            let sent = scope.spawn(|| self.send(time));
            let (sent_pings, mut round_trips) = self.lab.peer().run(|| pings(time))??;
            let bytes = sent.join().unwrap_or(Ok(0))?;
            round_trips.sort_by(f64::total_cmp);
            let quantile = |share: usize| {
                let last = round_trips.len().checked_sub(1)?;
                Some(rounded(round_trips[last * share / 100], 2))
            };
            let answered = round_trips.len() as f64 / sent_pings.max(1) as f64;
            Ok(Seen {
                gbits: rounded(bytes as f64 * 8.0 / time.as_secs_f64() / 1e9, 2),
                p50_ms: quantile(50),
                p99_ms: quantile(99),
                lost_percent: rounded(100.0 * (1.0 - answered.min(1.0)), 1),
            })
        })
    }

    /// Sends for a time. Returns the number of bytes that the connection took.
    fn send(&self, time: Duration) -> Result<u64> {
        let (block, begun, mut bytes) = (vec![7; 256 << 10], Instant::now(), 0);
        self.stream.set_write_timeout(Some(Duration::from_millis(50)))?;
        while begun.elapsed() < time {
            // Without room it waits for at most the timeout.
            bytes += (&self.stream).write(&block).unwrap_or(0) as u64;
        }
        Ok(bytes)
    }
}

/// Returns the number of pings that were sent, and the times of those that were answered, in milliseconds.
fn pings(time: Duration) -> Result<(usize, Vec<f64>)> {
    let count = (time.as_secs_f64() / 0.005).ceil().max(1.0);
    let (count, deadline) = (format!("{count:.0}"), format!("{:.0}", time.as_secs_f64().ceil()));
    let arguments = ["-n", "-i", BETWEEN_PINGS, "-c", &count, "-w", &deadline, "-W", "1"];
    let mut command = Command::new("ping");
    command.args(arguments).arg(address(ANSWERS).to_string()).stderr(Stdio::null());
    let output = command.output().context("ping does not start: install it (iputils-ping)")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |line: &str, before: &str| {
        let rest = line.split_once(before)?.1;
        rest.split(' ').next()?.parse::<f64>().ok()
    };
    let times = text.lines().filter_map(|line| number(line, "time=")).collect();
    let sent = text.lines().find_map(|line| line.split_once(" packets transmitted"));
    let sent = sent.and_then(|(count, _)| count.parse().ok()).unwrap_or(0);
    Ok((sent, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_have_addresses_of_their_own() {
        assert_ne!(address(RECEIVES), address(ANSWERS));
        assert_ne!(mac(RECEIVES), mac(ANSWERS));
    }
}
