//! What a byte costs a guest: the instructions of a real Linux in emulation, counted by the emulator.
//!
//! A Linux sender's frames cross rxo's worker, whose polls have so many frames, and reach the guest through
//! `vhost:`. Under Linux the worker stands for the guest's own card, which gives it frames in the same polls: from a ring
//! that nothing holds back an emulated guest takes far more at once, and its GRO then has other work than the paper's
//! receiver. Two transfers of different size are counted; their difference has nothing of starting a program or a connection.
//!
//! What single requests take on the paper's [`machine`] is in [`exchange`], what it carries in [`rate`], several guests
//! at once in [`several`]. All have rxo on a thread, as [`domain`] starts it.

mod alignment;
mod domain;
pub(super) mod exchange;
mod machine;
pub(super) mod rate;
pub(super) mod several;

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Reading;
use rxo_driver::PayloadPlaces;
use rxo_peers::{GuestImage, Processor, Profile, Symbols};
use rxo_testbed::Lab;
use serde::Serialize;

pub(super) use self::alignment::Alignment;
use super::plan::GuestCase;
use super::system::System;
use crate::folder::Folder;
use crate::guests::{boot, receive};

/// What a byte costs a guest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct GuestCost {
    pub(super) system: System,
    /// The most frames of a poll.
    pub(super) frames_a_poll: f64,
    /// True if the guest's kernel coalesces, too; the paper's did not.
    pub(super) gro: bool,
    /// Instructions of the guest's kernel and programs.
    pub(super) instructions_a_byte: f64,
    /// Those of the functions that copy to the program.
    pub(super) copying_a_byte: f64,
    /// Packets of the wire in each that the guest's card got.
    pub(super) packets_an_aggregate: f64,
    /// How often each byte was copied on the way into the guest.
    pub(super) copies: f64,
    /// The time for which the first segment of a delivery was held, from its arrival at the wire.
    pub(super) hold_p50_us: f64,
    pub(super) hold_p99_us: f64,
    pub(super) alignment: Alignment,
}

/// Receives through the system of `case` and counts the guest's instructions for `bytes` bytes.
///
/// # Errors
/// If QEMU, a kernel for the guest or a C compiler is missing, which one line names, or a transfer breaks.
pub(super) fn cost(case: GuestCase, bytes: usize) -> Result<GuestCost> {
    let GuestCase { system, frames_a_poll, gro } = case;
    let (image, lab, folder) = (GuestImage::find()?, Lab::through()?, Folder::new("xen")?);
    let socket = folder.guest(0);
    // The device is on a thread that may outlive this call, if that fails; it has few hundred bytes.
    let places: &'static PayloadPlaces = Box::leak(Box::default());
    let domain = domain::polling(&lab, system, frames_a_poll, (&socket, places))?;
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
    let deliveries = engine.aggregates + engine.singles;
    Ok(GuestCost {
        system,
        frames_a_poll,
        gro,
        instructions_a_byte: a_byte(&all),
        copying_a_byte: a_byte(&|profile| copying(profile, &symbols)),
        packets_an_aggregate: match deliveries {
            0 => host_out.frames as f64 / host_out.packets as f64,
            _ => (engine.aggregated_segments + engine.singles) as f64 / deliveries as f64,
        },
        copies: host_out.bytes_copied as f64 / host_out.bytes as f64,
        hold_p50_us: hold_us(0.5),
        hold_p99_us: hold_us(0.99),
        alignment: Alignment(places.bytes()),
    })
}

/// All instructions of a guest.
fn all(profile: &Profile) -> u64 {
    profile.user() + profile.kernel()
}

fn mbit_per_s(bytes: usize, took: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / took.as_secs_f64()
}

/// Instructions of the kernel's functions that copy to a program.
fn copying(profile: &Profile, symbols: &Symbols) -> u64 {
    let functions = profile.functions(symbols);
    let copies =
        functions.iter().filter(|(name, _)| COPYING.iter().any(|copy| name.contains(copy)));
    copies.map(|(_, count)| count).sum()
}

/// Parts of the names of functions that copy to a program.
const COPYING: [&str; 3] = ["copy_user", "copy_to_iter", "rep_movs"];
