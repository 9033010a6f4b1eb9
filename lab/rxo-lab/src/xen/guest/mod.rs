//! Measures a guest's cost per byte: the instructions of an emulated Linux, counted by the emulator.
//!
//! A Linux sender's frames cross rxo's worker, which polls a set number of frames, and reach the guest
//! through `vhost:`. Under Linux the worker replaces the guest's own card and delivers frames in the same
//! polls: from an unpaced ring an emulated guest takes far more frames at once, and its GRO would work unlike
//! the paper's receiver. Two transfers of different size are counted; their difference excludes the start of
//! the program and of the connection.
//!
//! [`exchange`] measures single requests on the paper's machine, [`rate`] its throughput, and [`several`]
//! several guests at once.

pub(super) mod exchange;
pub(super) mod rate;
pub(super) mod several;

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Reading;
use rxo_driver::{LINE_BYTES, PayloadPlaces};
use rxo_peers::{Folder, GuestImage, Processor, Profile, Symbols};
use rxo_testbed::Lab;
use serde::{Serialize, Serializer};

use super::domain::packets_an_aggregate;
use super::{Case, GuestCase};
use crate::guests::domain::{Treatment, polling};
use crate::guests::{boot, receive};

/// Cost per byte of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct GuestCost {
    /// Instructions per byte of the guest's kernel and programs.
    pub(super) instructions_a_byte: f64,
    /// Instructions per byte of the functions that copy to the program.
    pub(super) copying_a_byte: f64,
    /// Packets on the wire per delivery to the guest's card.
    pub(super) packets_an_aggregate: f64,
    /// Number of copies of each byte on the way into the guest.
    pub(super) copies: f64,
    /// Median time for which the first segment of a delivery was held, from its arrival on the wire, in
    /// microseconds.
    pub(super) hold_p50_us: f64,
    pub(super) hold_p99_us: f64,
    /// Bytes of payload, by the start address of their buffer modulo a cache line.
    #[serde(serialize_with = "without_empty")]
    pub(super) alignment: [u64; LINE_BYTES],
}

/// Receives through the system of `case` and counts the guest's instructions for `bytes` bytes.
///
/// # Errors
/// If QEMU, a kernel for the guest or a C compiler is missing, which one line names, or a transfer breaks.
pub(super) fn cost(case: GuestCase, bytes: usize) -> Result<GuestCost> {
    let GuestCase { case: Case { system, frames_a_poll }, gro } = case;
    let (image, lab, folder) = (GuestImage::find()?, Lab::through()?, Folder::new("xen")?);
    let socket = folder.guest(0);
    // The device runs on a thread that may outlive this call if it fails, so its few hundred bytes are
    // leaked.
    let places: &'static PayloadPlaces = Box::leak(Box::default());
    let treatment = Treatment { policy: system.policy(), path: system.path() };
    let domain = polling(&lab, treatment, frames_a_poll, (&socket, places))?;
    let mut guest = boot(&image, Processor::Counted, &socket, 0)?;
    guest.set_coalescing(gro)?;
    let symbols = guest.symbols()?;
    let (few, many) = (bytes / 4, bytes);
    let short = receive(&mut guest, lab.peer(), 0, few)?;
    let long = receive(&mut guest, lab.peer(), 0, many)?;
    drop(guest);
    let Reading { host_out, engine, .. } = domain.finish()?;
    ensure!(host_out.packets > 0, "the guest got no packets");
    let a_byte = |count: &dyn Fn(&Profile) -> u64| {
        count(&long.profile).saturating_sub(count(&short.profile)) as f64 / (many - few) as f64
    };
    let hold_us = |share| engine.hold_ns.quantile(share) as f64 / 1e3;
    Ok(GuestCost {
        instructions_a_byte: a_byte(&all),
        copying_a_byte: a_byte(&|profile| copying(profile, &symbols)),
        packets_an_aggregate: packets_an_aggregate(&engine)
            .unwrap_or(host_out.frames as f64 / host_out.packets as f64),
        copies: host_out.bytes_copied as f64 / host_out.bytes as f64,
        hold_p50_us: hold_us(0.5),
        hold_p99_us: hold_us(0.99),
        alignment: places.bytes(),
    })
}

fn without_empty<S: Serializer>(places: &[u64; LINE_BYTES], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(places.iter().enumerate().filter(|(_, bytes)| **bytes > 0))
}

/// Returns all instructions of a guest.
fn all(profile: &Profile) -> u64 {
    profile.user() + profile.kernel()
}

fn mbit_per_s(bytes: usize, took: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / took.as_secs_f64()
}

/// Returns the instructions of kernel functions that copy to a program.
fn copying(profile: &Profile, symbols: &Symbols) -> u64 {
    let functions = profile.functions(symbols);
    let copies =
        functions.iter().filter(|(name, _)| COPYING.iter().any(|copy| name.contains(copy)));
    copies.map(|(_, count)| count).sum()
}

/// Parts of the names of functions that copy to a program.
const COPYING: [&str; 3] = ["copy_user", "copy_to_iter", "rep_movs"];
