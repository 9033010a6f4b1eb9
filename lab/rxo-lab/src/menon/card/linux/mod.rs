//! Measures Linux's own stack in place of the paper's Xen guest (sections 2.4 and 5.1, figure 10): an
//! emulated Linux guest, with rxo's worker between the card and the guest's ring as driver domain.
//!
//! The [`domain`] is a process under callgrind; the guest's instructions are counted by function ([`kernel`]). The
//! guest counts two transfers of different size; their difference excludes the start of the program and of the
//! connection.

pub(crate) mod domain;
mod kernel;

use anyhow::Result;
use rxo_peers::{Folder, GuestImage, Processor, Profile, Symbols};
use rxo_testbed::{Lab, LabOptions};
use serde::Serialize;

use self::domain::{Parameters, Passed};
use super::Scale;
use crate::callgrind::{self, COUNTED};
use crate::card;
use crate::counted::{Categories, Costs, Source};
use crate::guests::{boot, receive};
use crate::menon::stack::PAPERS_LIMIT;
use crate::process::Process;
use crate::step;

/// The form in which the driver domain delivers packets to the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Feed {
    /// Each frame separately.
    Plain,
    /// Aggregates. The guest acknowledges each aggregate once, so the sender receives fewer ACKs.
    Aggregates,
    /// Aggregates; the domain inserts the ACKs that the sender expects. This is ACK offload for a stack
    /// without templates.
    Split,
    /// Each frame separately, to a guest with its own GRO enabled.
    OwnGro,
}

impl Feed {
    pub(super) const ALL: [Self; 4] = [Self::Plain, Self::Aggregates, Self::Split, Self::OwnGro];
}

/// The categories of the domain's instructions. Inserting ACKs counts for the driver, as expanding templates does in
/// the paper; only the engine parses the headers of each packet. Both rings share the code that receives, but
/// nearly all frames come from the card; ACKs to the card are booked with the guest's packets.
const DOMAIN: Categories = Categories(
    &[
        ("per-byte", Source::Copies),
        ("non-proto", Source::Files("rxo", "")),
        ("driver", Source::Files("rxo-ack", "")),
        ("aggr", Source::Files("rxo-coalesce rxo-wire", "")),
        ("driver", Source::Files("rxo-driver", "src/virtio/ src/virtio_net/source")),
        ("driver", Source::Files("rxo-virtqueue", "src/driver")),
        ("netback", Source::Files("rxo-driver rxo-virtqueue rxo-vnet rxo-device", "")),
    ],
    "misc",
);

/// Cost of a packet in a guest and its driver domain.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    /// Instructions of the guest per byte of payload.
    guest_per_byte: f64,
    /// Instructions of the domain per byte of payload.
    domain_per_byte: f64,
    /// Instructions of the guest per packet on the wire, by category.
    guest: Costs,
    domain: Costs,
    /// Packets on the wire per delivery to the guest.
    packets_per_delivery: f64,
    /// ACKs of the guest per packet; the next field counts ACKs on the wire.
    guest_acks_per_packet: f64,
    acks_per_packet: f64,
}

/// Measures the cost of receiving in a guest with this feed.
pub(super) fn cost(feed: Feed, scale: Scale) -> Result<Cost> {
    let image = GuestImage::find()?;
    let (folder, core) = (Folder::new("menon")?, scale.cores.sender);
    let lab = Lab::through_with(LabOptions { peer_core: core, ..LabOptions::default() })?;
    let card = card::start(&lab, (folder.file("card.sock"), card::MODERATION), core)?;
    let mut domain = start(feed, &folder)?;
    let mut guest = boot(&image, Processor::Counted, &folder.file("guest.sock"), 0)?;
    guest.set_coalescing(feed == Feed::OwnGro)?;
    let symbols = guest.symbols()?;
    let (few, many) = (scale.guest_bytes / 4, scale.guest_bytes);
    let short = receive(&mut guest, lab.peer(), 0, few)?.profile;
    domain.start_step()?;
    domain.wait_for("counting")?;
    let long = receive(&mut guest, lab.peer(), 0, many)?.profile;
    domain.start_step()?;
    let passed: Passed = domain.finish()?;
    drop(guest);
    card.finish()?;
    let domain = DOMAIN.read(&folder.file("callgrind.out"))?;
    let counts = [by_part(&short, &symbols), by_part(&long, &symbols)];
    Ok(Cost::of((few, many), counts, (domain, passed)))
}

/// Starts the driver domain under callgrind.
fn start(feed: Feed, folder: &Folder) -> Result<Process> {
    let is_aggregated = matches!(feed, Feed::Aggregates | Feed::Split);
    let parameters = Parameters {
        card: folder.file("card.sock"),
        guest: folder.file("guest.sock"),
        limit: is_aggregated.then_some(PAPERS_LIMIT),
        ack_split: (feed == Feed::Split).then_some(2),
    };
    let mut command = callgrind::command(COUNTED, &folder.file("callgrind.out"), &[])?;
    Process::start("the driver domain", command.args(step::arguments("Domain", &parameters)?))
}

impl Cost {
    /// Computes the cost from the payload of two transfers, the guest's instructions in each, and the
    /// domain's counts in the longer one.
    fn of(
        (few, many): (usize, usize),
        [short, long]: [Costs; 2],
        (domain, passed): (Costs, Passed),
    ) -> Self {
        let packets = passed.packets.max(1) as f64;
        let (payload, between) = (many as f64 / packets, (many - few) as f64);
        let guest_a_byte = long.each(|part, count| (count - short.of(part)).max(0.0) / between);
        Self {
            guest_per_byte: guest_a_byte.total(),
            domain_per_byte: domain.total() / many as f64,
            guest: guest_a_byte.each(|_, count| count * payload),
            domain: domain.each(|_, count| count / packets),
            packets_per_delivery: packets / passed.deliveries.max(1) as f64,
            guest_acks_per_packet: passed.from_guest as f64 / packets,
            acks_per_packet: passed.acks as f64 / packets,
        }
    }
}

/// Returns the guest's instructions by category. Its user programs count as misc.
fn by_part(profile: &Profile, symbols: &Symbols) -> Costs {
    let functions = profile.functions(symbols).into_iter();
    let of_kernel = functions.map(|(function, count)| (kernel::part(function), count as f64));
    of_kernel.chain([("misc", profile.user() as f64)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callgrind::Origin;

    #[test]
    fn what_starts_a_program_is_in_no_cost() {
        let passed = Passed { packets: 1_000, deliveries: 100, from_guest: 50, acks: 500 };
        let parts = |count| -> Costs { [("tcp rx", count), ("misc", count)].into_iter().collect() };
        let (counts, domain) = ([parts(1_000.0), parts(76_000.0)], (parts(20_000.0), passed));
        let cost = Cost::of((362_000, 1_448_000), counts, domain);
        assert!((cost.guest.of("misc") - 100.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.guest_per_byte - 2.0 * 100.0 / 1_448.0).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.domain.of("tcp rx"), cost.packets_per_delivery), (20.0, 10.0));
        assert_eq!((cost.guest_acks_per_packet, cost.acks_per_packet), (0.05, 0.5));
    }

    #[test]
    fn the_two_rings_of_the_domain_are_told_apart() {
        let rows = [
            ("crates/rxo/src/worker/to_host.rs", "non-proto"),
            ("crates/rxo-driver/src/vhost/backend.rs", "netback"),
            ("/x/crates/rxo-virtqueue/src/device/split.rs", "netback"),
            ("crates/rxo-driver/src/virtio/driver.rs", "driver"),
            ("crates/rxo-virtqueue/src/driver/split.rs", "driver"),
            ("crates/rxo-driver/src/virtio_net/source.rs", "driver"),
            ("crates/rxo-ack/src/split/table.rs", "driver"),
            ("crates/rxo-wire/src/parse.rs", "aggr"),
            ("crates/rxo-frame/src/pool.rs", "misc"),
        ];
        for (home, part) in rows {
            let of = |inlined| DOMAIN.of(Origin { function: "poll", inlined, home });
            assert_eq!(
                [of(home), of("/rustc/1/library/core/src/slice/mod.rs")],
                [part; 2],
                "{home}"
            );
        }
    }
}
