//! The settings by which a Linux host receives on an interface: interrupts, polls and the kernel's GRO.
//!
//! This module is separate from the other settings because it changes nothing: it only reads values to show
//! to the user.

use std::fs;

use super::ethtool::Command;
use super::{Feature, Interface};

/// The settings by which the kernel receives on an interface. A field is `None` if neither the driver nor the
/// kernel reports the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiveSettings {
    /// The name of the driver.
    pub driver: Option<String>,
    /// `true` if the kernel merges received packets (GRO).
    pub gro: Option<bool>,
    /// `true` if the device merges received packets (LRO).
    pub lro: bool,
    /// The maximum time from the arrival of a packet to the device's interrupt, in microseconds.
    pub rx_usecs: Option<u32>,
    /// The number of packets after which the device interrupts at once; 0 for no such number.
    pub rx_frames: Option<u32>,
    /// `true` if the driver adapts [`rx_usecs`](Self::rx_usecs) to the traffic.
    pub is_adaptive: bool,
    /// The time between two polls while interrupts are off, in nanoseconds. 0 means that the kernel enables
    /// interrupts again after each poll.
    pub gro_flush_timeout_ns: Option<u64>,
    /// The number of consecutive empty polls after which the kernel enables interrupts again.
    pub napi_defer_hard_irqs: Option<u64>,
}

/// The kernel's structure `ethtool_coalesce`: when the device interrupts.
#[repr(C)]
#[derive(Default)]
struct Coalesce {
    command: u32,
    rx_usecs: u32,
    rx_frames: u32,
    unread_before: [u32; 7],
    is_adaptive: u32,
    unread_after: [u32; 12],
}

impl Command for Coalesce {}

impl Interface {
    /// Reads the settings by which the kernel receives on this interface. Needs no privilege, and changes nothing.
    #[must_use]
    pub fn receive_settings(&self) -> ReceiveSettings {
        let mut coalesce = Coalesce { command: GET_COALESCE, ..Coalesce::default() };
        let is_read = self.ethtool(&mut coalesce, "read the interrupts of").is_ok();
        ReceiveSettings {
            driver: self.driver(),
            gro: self.feature(Feature::Gro).ok(),
            lro: self.has_lro(),
            rx_usecs: is_read.then_some(coalesce.rx_usecs),
            rx_frames: is_read.then_some(coalesce.rx_frames),
            is_adaptive: is_read && coalesce.is_adaptive != 0,
            gro_flush_timeout_ns: self.number("gro_flush_timeout"),
            napi_defer_hard_irqs: self.number("napi_defer_hard_irqs"),
        }
    }

    /// Returns a number from the interface's directory in `/sys`. `None` if there is none, or if `/sys` is mounted for
    /// another network namespace, whose interface of this name may have other values.
    fn number(&self, file: &str) -> Option<u64> {
        let read = |file: &str| -> Option<String> {
            let text = fs::read_to_string(format!("/sys/class/net/{}/{file}", self.name)).ok()?;
            Some(text.trim().to_owned())
        };
        let address: Vec<String> =
            self.hardware_address().ok()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_own =
            read("ifindex")? == self.index.to_string() && read("address")? == address.join(":");
        read(file).filter(|_| is_own)?.parse().ok()
    }
}

// linux/ethtool.h.
const GET_COALESCE: u32 = 0x0e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_length_that_the_kernel_expects() {
        assert_eq!(size_of::<Coalesce>(), 23 * 4);
    }

    #[test]
    fn a_device_without_interrupts_reports_the_rest() {
        let settings = Interface::find("lo").unwrap().receive_settings();
        assert_eq!(settings.rx_usecs, None);
        assert!(settings.gro.is_some() && !settings.is_adaptive, "{settings:?}");
    }
}
