//! Values: parses the value of each flag, and checks that it is within its limits.
//!
//! Each error names the flag, its value and the accepted values.

use std::time::Duration;

use anyhow::{Context, Result};
use rxo::worker::Coalesce;
use rxo_device::middleware::{BadImpairment, ImpairmentSettings};
use rxo_driver::{DeviceName, GuestMemory};

use super::guest::memory_bytes;
use crate::exit::usage;
use crate::flags::RunFlags;
use crate::numbers::parse_time;

/// Reads the value `text` of `flag` as the name of a device.
pub(super) fn device(flag: &'static str, text: &str) -> Result<DeviceName> {
    text.parse().context(flag)
}

/// Returns the limits of the memory that the guest behind one of these devices may share. The memory may have
/// no holes unless `--sparse` allows them.
pub(super) fn guest_memory(flags: &RunFlags, devices: [&DeviceName; 2]) -> Result<GuestMemory> {
    let Some(memory) = &flags.memory else {
        return Ok(GuestMemory { may_be_sparse: false, ..GuestMemory::default() });
    };
    if devices.iter().all(|device| device.kind().prefix != "vhost") {
        let [nic, host] = devices;
        return Err(usage(format!(
            "--memory bounds what a guest shares, and --nic {nic} --host {host} have none; give \
             --host vhost:PATH"
        )));
    }
    let bytes = memory_bytes(memory, || format!("--memory {memory}"))?;
    Ok(GuestMemory { most_bytes: Some(bytes), may_be_sparse: flags.sparse })
}

/// Reads a value of `--impair` or `--impair-back`.
pub(super) fn impairment(flag: &str, text: Option<&str>) -> Result<Option<ImpairmentSettings>> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: BadImpairment| usage(format!("{flag} {error}")))
}

/// Reads the value of `--coalesce`.
pub(super) fn coalesce(text: &str) -> Result<Coalesce> {
    text.parse().map_err(|error| usage(format!("--coalesce {text}: {error}")))
}

/// Reads the value of `--ack-split`; `None` for `off`.
pub(super) fn ack_split(text: &str) -> Result<Option<u16>> {
    match text.parse() {
        _ if text == "off" => Ok(None),
        Ok(every) if (1..=MOST_SEGMENTS_AN_ACK).contains(&every) => Ok(Some(every)),
        _ => Err(usage(format!(
            "--ack-split {text}: give 2, or another number of segments from 1 to \
             {MOST_SEGMENTS_AN_ACK}, or off"
        ))),
    }
}

/// Reads the value of `--stats`; `None` for `0s`, which means no lines.
pub(super) fn stats(text: &str) -> Result<Option<Duration>> {
    match parse_time(text) {
        Some(Duration::ZERO) => Ok(None),
        Some(time) if (SHORTEST..=LONGEST).contains(&time) => Ok(Some(time)),
        _ => Err(usage(format!("--stats {text}: give a time from 100ms to 3600s, or 0s for none"))),
    }
}

/// Reads the value of `--watchdog`; `None` for `off`.
pub(super) fn watchdog(text: &str) -> Result<Option<Duration>> {
    match parse_time(text) {
        _ if text == "off" => Ok(None),
        Some(time) if (LEAST_SILENCE..=MOST_SILENCE).contains(&time) => Ok(Some(time)),
        _ => Err(usage(format!("--watchdog {text}: give a time from 300ms to 60s, or off"))),
    }
}

/// Reads the value of `--nice`; `None` for `keep`.
pub(super) fn nice(text: &str) -> Result<Option<i8>> {
    match text.parse() {
        _ if text == "keep" => Ok(None),
        Ok(nice) if (FIRST..=LAST).contains(&nice) => Ok(Some(nice)),
        _ => Err(usage(format!("--nice {text}: give a number from -20 to 19, or keep"))),
    }
}

/// Reads the value of `--confirm`.
pub(super) fn confirm(text: &str) -> Result<Duration> {
    let time = parse_time(text).filter(|time| (SOONEST..=LONGEST).contains(time));
    time.ok_or_else(|| {
        usage(format!("--confirm {text}: give a time from 1s to 3600s, such as 60s"))
    })
}

/// Minimum value of `--watchdog`. An idle worker makes ten turns per second.
const LEAST_SILENCE: Duration = Duration::from_millis(300);
const MOST_SILENCE: Duration = Duration::from_secs(60);
/// The smallest nice value of Linux; `LAST` is the largest.
const FIRST: i8 = -20;
const LAST: i8 = 19;
/// Minimum value of `--confirm`: no user can confirm sooner than this after the start.
const SOONEST: Duration = Duration::from_secs(1);
/// Maximum value of `--ack-split`; with a larger value, no ACK would be inserted.
const MOST_SEGMENTS_AN_ACK: u16 = 64;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3_600);
