//! `rxo-lab menon card`: measures the gain of Receive Aggregation and Acknowledgment Offload for a host
//! behind a card that costs the host nothing (section 5).
//!
//! The host is rxo's own on `virtio:`, in a separate process ([`receiver`]). `rxo card` moves frames between
//! that process and the wire on the sender's core, as a card does by DMA, so the process's cost is the
//! receiver's alone. A [`case`] is measured in a [`network`] twice: natively for processor time, and under
//! [`callgrind`] for instructions. If the receiver must never wait, a [`generator`](crate::generator) sends. Two
//! more tables are a guest with [`linux`]'s own stack, and a simulation of prefetching processors.

mod case;
pub(crate) mod linux;
mod network;
pub(crate) mod receiver;

use anyhow::{Context, Result};
use rxo_demo::limits::within;
use rxo_demo::machine::Cores;
use rxo_peers::GuestImage;

use self::case::cases;
use self::linux::Feed;
use self::network::Prefetch;
use super::add_fit;
use crate::callgrind;
use crate::claim::{Fact, if_so};
use crate::flags::{Part, RunFlags};
use crate::guests;
use crate::study::{Rows, Study, Table, by_fields};

/// One connection, read on the worker's thread (figures 7 and 8) and on a thread of its own (figures 7 and 9);
/// both with a generator that sends more than the receiver takes; the Aggregation Limit (figure 11); 1 to 400
/// connections (figure 12); requests (table 1); Linux's own stack in a guest (figure 10); a simulation of
/// prefetching (figure 1). Linux senders decide what a poll finds, so that no count is the same everywhere.
pub(crate) const PARTS: &[Part] = &[
    Part::timed("profile"),
    Part::timed("threads"),
    Part::timed("saturation"),
    Part::timed("limit"),
    Part::timed("connections"),
    Part::timed("exchange"),
    Part::timed("linux"),
    Part::timed("prefetch"),
];

/// The extent of a measurement.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Bytes of a transfer whose processor time is measured, and of one whose instructions are counted. Only the
    /// middle half counts. Callgrind slows a receiver by a factor of about fifty.
    bytes: [u64; 2],
    /// Requests of both.
    requests: [u64; 2],
    /// Bytes of the longer of a guest's two transfers.
    guest_bytes: usize,
    cores: Cores,
}

/// Makes the experiment from the flags.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    let (parts, quick) = (flags.chosen(PARTS)?, flags.is_quick());
    let rounds = flags.rounds.unwrap_or(if quick { 1 } else { ROUNDS });
    within("--rounds", rounds, 1..=MOST_ROUNDS)?;
    let scale = scale(quick);
    let is_long = |part| parts.has(part) && (parts.is_named(part) || !quick);
    let cases = cases(&parts, quick);
    let feeds: Vec<_> = Feed::ALL.into_iter().filter(|_| is_long("linux")).collect();
    let simulated: Vec<_> = Prefetch::ALL.into_iter().filter(|_| is_long("prefetch")).collect();
    let has = [!cases.is_empty(), !feeds.is_empty(), !simulated.is_empty()];
    let rows = Table::timed(
        ("rows", cases),
        rounds,
        by_fields,
        move |case, _| network::measure(case, scale),
        ("per_packet", "instructions a packet"),
    );
    let linux = Table::timed(
        ("linux", feeds),
        1,
        by_fields,
        move |feed, _| linux::cost(feed, scale),
        ("guest_per_byte", "instructions a byte of the guest"),
    );
    let simulated = Table::counted(
        "simulated",
        simulated,
        by_fields,
        move |prefetch| network::simulate(prefetch, scale),
        ("per_packet", "cycles a packet"),
    );
    let has_guest = has[1];
    let linux = linux.by("feed").row_by_row().optional();
    let simulated = simulated.by("prefetch");
    Ok(Study {
        prepare: Box::new(move || prepare(has_guest)),
        derive: Box::new(derive),
        facts: Box::new(move |_| facts(scale, rounds, has)),
        needs_networks: true,
        ..Study::of("menon-card", vec![Box::new(rows), Box::new(linux), Box::new(simulated)])
    })
}

/// Checks for valgrind, and finds or downloads the guests' kernel, which a private network could not reach.
fn prepare(has_guest: bool) -> Result<()> {
    callgrind::check()?;
    if !has_guest {
        return Ok(());
    }
    let found = GuestImage::compiler().map_err(Into::into).and_then(|_| guests::image());
    found.map(drop).context("Linux's own stack needs a guest; name other experiments with --only")
}

/// Adds the curve over the Aggregation Limit.
fn derive(rows: &mut Rows) -> Result<()> {
    add_fit(rows, "rows", ("per_packet", 1.0), |row| {
        let is_plain = row["traffic"] == "bulk" && row["expansion"] == "host";
        is_plain && row["connections"] == 1 && row["application"] == "worker"
    });
    Ok(())
}

fn scale(quick: bool) -> Scale {
    let (bytes, requests, guest_bytes) = match quick {
        true => ([40_000_000, 12_000_000], [400, 80], 4 << 20),
        false => ([2_000_000_000, 120_000_000], [20_000, 1_000], 16 << 20),
    };
    Scale { bytes, requests, guest_bytes, cores: Cores::choose() }
}

fn facts(
    scale: Scale,
    rounds: usize,
    [has_cases, has_guest, is_simulated]: [bool; 3],
) -> Vec<Fact> {
    let mb = |bytes: u64| (bytes / 1_000_000).to_string();
    let of_cases = [
        ("rounds", rounds.to_string()),
        ("timed_mb", mb(scale.bytes[0])),
        ("counted_mb", mb(scale.bytes[1])),
        ("has_cases", String::new()),
    ];
    // The difference of a guest's two transfers.
    let of_guest = has_guest.then(|| ("guest_mb", mb(scale.guest_bytes as u64 / 4 * 3)));
    let of_cases = of_cases.into_iter().filter(|_| has_cases);
    of_cases.chain(of_guest).chain(if_so("is_simulated", is_simulated)).collect()
}

const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    #[test]
    fn what_parts_share_is_measured_once() {
        let steps = |line: &str| study(&typed(line).unwrap()).unwrap().steps();
        assert_eq!(steps(""), 3 * (5 + 4 + 8 + 9 + 8 + 2) + 4 + 3);
        let rows = [
            ("profile", 3 * 5),
            ("threads", 3 * 4),
            ("saturation", 3 * 8),
            ("limit", 3 * 11),
            ("connections", 3 * 10),
            ("exchange", 3 * 2),
            ("linux,prefetch --quick", 4 + 3),
        ];
        for (only, count) in rows {
            assert_eq!(steps(&format!("--only {only}")), count, "{only}");
        }
        assert_eq!(steps("--quick"), 8);
        let error = study(&typed("--rounds 101").unwrap()).err().unwrap().to_string();
        assert_eq!(error, "--rounds 101: choose 1 to 100");
    }
}
