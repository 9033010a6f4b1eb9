//! The costs of receiving packets, in processor time.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The processor time for receiving packets, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// The cost of each packet that the stack handles, whatever its size, in nanoseconds. An aggregate counts as one.
    pub packet_ns: f64,
    /// The cost of each byte on the wire, in nanoseconds.
    pub byte_ns: f64,
    /// The cost of each packet that coalescing examines, in nanoseconds; 0 if a card does it, and in the costs of a kernel,
    /// whose measurement cannot distinguish it from `device_ns`.
    pub coalesce_ns: f64,
    /// The cost of each packet from the device, coalesced or not, in nanoseconds. Menon's figures call it the driver.
    #[serde(default)]
    pub device_ns: f64,
    /// The cost of each time that packets arrive after the receiving side had nothing to do, in nanoseconds: the interrupt, and
    /// waking whoever reads. It matters at low rates.
    #[serde(default)]
    pub wake_ns: f64,
    /// The largest additional cost of such a time, in nanoseconds, after a long idle time: caches are cold then, and the
    /// processor has slept. After 5 ms without packets it is half of that, and after 0.1 ms almost nothing.
    #[serde(default)]
    pub cold_ns: f64,
}

/// The origin of [`Costs::ASSUMED`], as reports name it.
pub const ASSUMED_FROM: &str = "assumed; rxo calibrate measures them on your machine";

/// The error of invalid costs. The text names the invalid value and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CostsError(pub(super) String);

impl Costs {
    /// Approximate costs of a current Linux server, for use without a measurement. A full-size packet costs
    /// 1.35 µs. Coalescing divides 0.8 µs of this cost by the number of packets per delivery.
    pub const ASSUMED: Self = Self {
        packet_ns: 800.0,
        byte_ns: 0.3,
        coalesce_ns: 30.0,
        device_ns: 100.0,
        wake_ns: 0.0,
        cold_ns: 0.0,
    };
    /// The idle time after which a wake-up costs half of [`Costs::cold_ns`] more, in nanoseconds.
    const HALF_COLD_NS: f64 = 5_000_000.0;

    /// Returns the share of [`Costs::cold_ns`] that a wake-up costs after `idle_ns` nanoseconds without packets, from 0 to 1.
    #[must_use]
    pub fn coldness(idle_ns: f64) -> f64 {
        idle_ns / (idle_ns + Self::HALF_COLD_NS)
    }

    /// Returns the processor time of a packet with `packet_bytes` bytes, in nanoseconds: first without
    /// coalescing, then with `k` packets per delivery.
    #[must_use]
    pub fn of_packet(&self, packet_bytes: f64, k: f64) -> (f64, f64) {
        let plain_ns = self.byte_ns * packet_bytes + self.device_ns;
        (plain_ns + self.packet_ns, plain_ns + self.coalesce_ns + self.packet_ns / k)
    }

    /// Returns the costs unchanged if they are valid.
    ///
    /// # Errors
    /// If a cost is negative or not a number, or all costs are 0.
    pub fn checked(self) -> Result<Self, CostsError> {
        let all = [
            ("packet", self.packet_ns),
            ("byte", self.byte_ns),
            ("coalesce", self.coalesce_ns),
            ("device", self.device_ns),
            ("wake", self.wake_ns),
            ("cold", self.cold_ns),
        ];
        for (name, ns) in all {
            if !(ns.is_finite() && (0.0..=MOST_NS).contains(&ns)) {
                let text = format!("{name}={ns}ns: choose 0ns to 1s");
                return Err(CostsError(text));
            }
        }
        if self.packet_ns + self.byte_ns <= 0.0 {
            let text = "packet and byte cost nothing: at least one of them must";
            return Err(CostsError(text.to_owned()));
        }
        Ok(self)
    }
}

impl FromStr for Costs {
    type Err = CostsError;

    /// Parses `packet=800ns,byte=0.3ns,coalesce=30ns,device=100ns,wake=5us,cold=20us`. All but the first two are optional
    /// and default to 0.
    fn from_str(text: &str) -> Result<Self, CostsError> {
        let [mut packet, mut byte, mut coalesce, mut device, mut wake, mut cold] = [None; 6];
        for part in text.split(',') {
            let (name, time) = part.split_once('=').ok_or_else(|| unreadable(part))?;
            let place = match name.trim() {
                "packet" => &mut packet,
                "byte" => &mut byte,
                "coalesce" => &mut coalesce,
                "device" => &mut device,
                "wake" => &mut wake,
                "cold" => &mut cold,
                _ => return Err(unreadable(part)),
            };
            let ns = nanoseconds(time.trim()).ok_or_else(|| unreadable(part))?;
            if place.replace(ns).is_some() {
                return Err(CostsError(format!("{name} is there twice")));
            }
        }
        let missing = |name| CostsError(format!("{name}=TIME is missing, such as {EXAMPLE}"));
        Self {
            packet_ns: packet.ok_or_else(|| missing("packet"))?,
            byte_ns: byte.ok_or_else(|| missing("byte"))?,
            coalesce_ns: coalesce.unwrap_or(0.0),
            device_ns: device.unwrap_or(0.0),
            wake_ns: wake.unwrap_or(0.0),
            cold_ns: cold.unwrap_or(0.0),
        }
        .checked()
    }
}

fn unreadable(part: &str) -> CostsError {
    CostsError(format!("`{part}` is not a cost: write {EXAMPLE}"))
}

/// Parses a time with its unit; returns it in nanoseconds, or `None` if it is invalid.
fn nanoseconds(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, ns) = UNITS.iter().find(|(unit, _)| text.ends_with(unit))?;
    let number = text.strip_suffix(unit)?.trim_end();
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    number.parse::<f64>().ok().filter(|_| plain).map(|number| number * ns)
}

const EXAMPLE: &str = "packet=800ns,byte=0.3ns,coalesce=30ns";
const MOST_NS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_with_their_units() {
        let rows = [
            ("packet=800ns,byte=0.3ns,coalesce=30ns", [800.0, 0.3, 30.0, 0.0, 0.0, 0.0]),
            ("byte=0.3ns, packet=1.2us", [1_200.0, 0.3, 0.0, 0.0, 0.0, 0.0]),
            ("packet=0ns,byte=1ns,device=5ns,wake=4us", [0.0, 1.0, 0.0, 5.0, 4_000.0, 0.0]),
            ("packet=9ns,byte=1ns,cold=20us,wake=4us", [9.0, 1.0, 0.0, 0.0, 4_000.0, 20_000.0]),
        ];
        for (text, [packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns, cold_ns]) in rows {
            let costs = Costs { packet_ns, byte_ns, coalesce_ns, device_ns, wake_ns, cold_ns };
            assert_eq!(text.parse(), Ok(costs), "{text}");
        }
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows = [
            ("", "`` is not a cost: write packet=800ns,byte=0.3ns,coalesce=30ns"),
            ("packet=800", "`packet=800` is not a cost"),
            ("packet=-1ns,byte=1ns", "`packet=-1ns` is not a cost"),
            ("packet=NaNns,byte=1ns", "`packet=NaNns` is not a cost"),
            ("packet=1e3ns,byte=1ns", "`packet=1e3ns` is not a cost"),
            ("speed=1ns", "`speed=1ns` is not a cost"),
            ("packet=1ns", "byte=TIME is missing"),
            ("packet=1ns,packet=2ns", "packet is there twice"),
            ("packet=0ns,byte=0ns", "cost nothing"),
            ("packet=5s,byte=0ns", "choose 0ns to 1s"),
        ];
        for (text, part) in rows {
            let error = text.parse::<Costs>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
