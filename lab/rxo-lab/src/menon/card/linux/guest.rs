//! Runs one measurement: a wire, a card on it, the driver domain under callgrind, and a Linux guest that
//! counts instructions.
//!
//! The guest counts two transfers of different size; their difference excludes the start of the program and
//! of the connection.

use std::process::Command;

use anyhow::Result;
use rxo_peers::{GuestImage, Processor, Profile, Symbols};
use rxo_testbed::{Lab, LabOptions};
use serde::Serialize;

use super::super::plan::Plan;
use super::super::receiver::COUNTED;
use super::Feed;
use super::domain::{Parameters, Passed};
use super::kernel;
use super::part::{Part, Parts};
use crate::callgrind;
use crate::card;
use crate::folder::Folder;
use crate::guests::{boot, receive};
use crate::process::Process;
use crate::step;

/// Cost of a packet in a guest and its driver domain.
#[derive(Clone, Debug, Serialize)]
pub(in super::super) struct Cost {
    pub(super) feed: Feed,
    /// Instructions of the guest per byte of payload.
    pub(super) guest_per_byte: f64,
    /// Instructions of the domain per byte of payload.
    pub(super) domain_per_byte: f64,
    /// Instructions of the guest per packet on the wire, by category.
    #[serde(serialize_with = "by_name")]
    pub(super) guest: Parts,
    #[serde(serialize_with = "by_name")]
    pub(super) domain: Parts,
    /// Packets on the wire per delivery to the guest.
    pub(super) packets_per_delivery: f64,
    /// ACKs of the guest per packet; the next field counts ACKs on the wire.
    pub(super) guest_acks_per_packet: f64,
    pub(super) acks_per_packet: f64,
}

/// Measures the cost of receiving in a guest with this feed.
///
/// # Errors
/// If QEMU, a kernel for the guest or a C compiler is missing, which one line names, or a transfer breaks.
pub(in super::super) fn cost(feed: Feed, plan: &Plan) -> Result<Cost> {
    let image = GuestImage::find()?;
    let (folder, core) = (Folder::new("menon")?, plan.cores.sender);
    let lab = Lab::through_with(LabOptions { peer_core: core, ..LabOptions::default() })?;
    let card = card::start(&lab, (folder.file("card.sock"), card::MODERATION), core)?;
    let mut domain = Process::start("the driver domain", &mut command(feed, &folder)?)?;
    let mut guest = boot(&image, Processor::Counted, &folder.file("guest.sock"), 0)?;
    guest.set_coalescing(feed == Feed::OwnGro)?;
    let symbols = guest.symbols()?;
    let (few, many) = (plan.guest_bytes / 4, plan.guest_bytes);
    let short = receive(&mut guest, lab.peer(), 0, few)?.profile;
    domain.tell()?;
    domain.wait_for("counting")?;
    let long = receive(&mut guest, lab.peer(), 0, many)?.profile;
    domain.tell()?;
    let passed: Passed = domain.finish()?;
    drop(guest);
    card.finish()?;
    let domain =
        callgrind::read(&folder.file("callgrind.out"), |origin| Part::of_domain(origin) as usize)?;
    Ok(Cost::of(
        feed,
        (few, many),
        [by_part(&short, &symbols), by_part(&long, &symbols)],
        (domain, passed),
    ))
}

impl Cost {
    /// Returns a progress line about this measurement.
    pub(in super::super) fn line(&self) -> String {
        format!("{:>6.0} instructions/packet of the guest", self.guest.iter().sum::<f64>())
    }

    /// Computes the cost from the payload of two transfers, the guest's instructions in each, and the
    /// domain's counts in the longer one.
    fn of(
        feed: Feed,
        (few, many): (usize, usize),
        [short, long]: [Parts; 2],
        (domain, passed): (Parts, Passed),
    ) -> Self {
        let packets = passed.packets.max(1) as f64;
        let (payload, between) = (many as f64 / packets, (many - few) as f64);
        let guest_a_byte: Parts =
            std::array::from_fn(|part| (long[part] - short[part]).max(0.0) / between);
        Self {
            feed,
            guest_per_byte: guest_a_byte.iter().sum(),
            domain_per_byte: domain.iter().sum::<f64>() / many as f64,
            guest: guest_a_byte.map(|count| count * payload),
            domain: domain.map(|count| count / packets),
            packets_per_delivery: packets / passed.deliveries.max(1) as f64,
            guest_acks_per_packet: passed.from_guest as f64 / packets,
            acks_per_packet: passed.acks as f64 / packets,
        }
    }
}

fn command(feed: Feed, folder: &Folder) -> Result<Command> {
    let mut command = callgrind::command(COUNTED, &folder.file("callgrind.out"), &[])?;
    let (card, guest) = (folder.file("card.sock"), folder.file("guest.sock"));
    let (limit, ack_split) = (feed.stack().aggregation_limit, feed.ack_split());
    command.args(step::arguments("Domain", &Parameters { card, guest, limit, ack_split })?);
    Ok(command)
}

/// Returns the guest's instructions by category. Its user programs count as misc.
fn by_part(profile: &Profile, symbols: &Symbols) -> Parts {
    let mut parts = [0.0; Part::ALL.len()];
    parts[Part::Misc as usize] = profile.user() as f64;
    for (function, count) in profile.functions(symbols) {
        parts[kernel::part(function) as usize] += count as f64;
    }
    parts
}

fn by_name<S: serde::Serializer>(parts: &Parts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(Part::ALL.iter().zip(parts).map(|(part, count)| (part.name(), count)))
}

#[cfg(test)]
pub(in super::super) mod tests {
    use super::*;

    /// Makes the cost of a guest with `guest` instructions per packet in each category, and `domain` in its
    /// driver domain.
    pub(in crate::menon::card) fn cost(feed: Feed, guest: f64, domain: f64) -> Cost {
        let passed = Passed { packets: 1_000, deliveries: 100, from_guest: 50, acks: 500 };
        let bytes = 1_448_000;
        let short = [1_000.0; Part::ALL.len()];
        let long = [1_000.0 + guest * 750.0; Part::ALL.len()];
        let domain = [domain * 1_000.0; Part::ALL.len()];
        Cost::of(feed, (bytes / 4, bytes), [short, long], (domain, passed))
    }

    #[test]
    fn what_starts_a_program_is_in_no_cost() {
        let cost = cost(Feed::Plain, 100.0, 20.0);
        assert!((cost.guest[0] - 100.0).abs() < 1e-6, "{cost:?}");
        assert!((cost.guest_per_byte - 1_000.0 / 1_448.0).abs() < 1e-9);
        assert!((cost.domain_per_byte - 200.0 / 1_448.0).abs() < 1e-9);
        assert!((cost.packets_per_delivery - 10.0).abs() < 1e-9);
        assert!((cost.guest_acks_per_packet - 0.05).abs() < 1e-9);
    }
}
