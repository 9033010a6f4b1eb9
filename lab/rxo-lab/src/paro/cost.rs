//! The cost of a request, by component: runs the [`server`](super::server) under callgrind twice, once counting
//! everything, and once only the host's receiving. Both runs execute the same instructions.

use anyhow::{Result, ensure};
use rxo_console::numbers::ratio;
use serde::Serialize;

use super::case::Case;
use super::server::{COUNTED, Parameters, Scale, Served, WINDOW};
use crate::counted::{Categories, Costs, MEMORY, Source, counted};

/// The paper's components: receiving frames from the ring; received frames up to TCP, without memory; copies,
/// the allocator and pools, of both directions; from TCP to the device's frame; frames into the ring; the HTTP
/// server and its sockets.
const COMPONENTS: [&str; 6] =
    [DRIVER_RX, NETWORK_RX, MEMORY, "network TX", "driver TX", APPLICATION];
const DRIVER_RX: &str = "driver RX";
const NETWORK_RX: &str = "network RX";
const APPLICATION: &str = "application";

/// The parts of the server's code, before receiving and sending are told apart.
const PARTS: Categories = Categories(
    &[
        (MEMORY, Source::Copies),
        (MEMORY, Source::Functions("malloc calloc realloc free memset _int_ unlink_chunk")),
        (MEMORY, Source::Files("rxo-frame", "src/pool")),
        ("driver", Source::Files("rxo-driver rxo-virtqueue rxo-vnet rxo-device", "")),
        (APPLICATION, Source::Files("rxo-lab", "src/paro/app.rs")),
        (APPLICATION, Source::Files("rxo-serve", "")),
        (APPLICATION, Source::Files("rxo-host", "src/socket")),
        ("network", Source::Files("rxo-host rxo-tcp rxo-coalesce rxo-ack", "")),
        ("measuring", Source::Files("rxo-lab", "")),
    ],
    APPLICATION,
);

/// Cost of one request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Cost of each of [`COMPONENTS`]: instructions, or estimated cycles.
    components: Costs,
    /// The sum of the components.
    total: f64,
    acks_a_segment: f64,
    acks_a_request: f64,
    /// Share of pure ACKs in the received packets, in percent.
    pure_acks_percent: f64,
    /// ACKs that the fast path passed to a connection per call; 0 without the fast path.
    acks_a_call: f64,
    served: Served,
}

/// Counts `case`. With `is_simulated`, callgrind simulates caches too, and costs are estimated cycles.
pub(crate) fn count(case: Case, scale: Scale, is_simulated: bool) -> Result<Cost> {
    let forget = format!("--zero-before=*{WINDOW}*");
    let mut options = vec![forget.as_str()];
    if is_simulated {
        options.extend(CACHES);
    }
    let run = |function| {
        counted(("Server", &Parameters { case, scale }), (function, options.as_slice()), &PARTS)
    };
    let (all, receiving) = (run(COUNTED)?, run(RECEIVES)?);
    let (served, again): (Served, Served) = (all.said, receiving.said);
    ensure!(served == again, "two runs of one case differ: {served:?}, {again:?}");
    Ok(Cost::of(case, served, &components(&all.costs, &receiving.costs)))
}

/// Computes the components from the cost of everything and the cost of receiving alone.
fn components(all: &Costs, receiving: &Costs) -> Costs {
    let rx = |part| receiving.of(part);
    let tx = |part| all.of(part) - rx(part);
    let costs = [
        rx("driver"),
        // Standard library code that receiving calls counts for receiving.
        rx("network") + rx(APPLICATION),
        all.of(MEMORY),
        tx("network"),
        tx("driver"),
        tx(APPLICATION),
    ];
    COMPONENTS.into_iter().zip(costs).collect()
}

impl Cost {
    fn of(case: Case, served: Served, costs: &Costs) -> Self {
        let tally = served.tally;
        let requests = ratio(tally.bytes as f64, case.file_bytes as f64);
        let per = |count: u64, of: u64| ratio(count as f64, of as f64);
        let components = costs.each(|_, cost| ratio(cost, requests));
        Self {
            total: components.total(),
            components,
            acks_a_segment: per(tally.acks, tally.segments),
            acks_a_request: ratio(tally.acks as f64, requests),
            pure_acks_percent: 100.0 * per(tally.acks, tally.packets),
            acks_a_call: per(served.consumed, served.calls),
            served,
        }
    }
}

/// The host's receiving function, for callgrind's option.
const RECEIVES: &str = "Host<I,O>::receive";
/// A first-level cache of 32 KiB and a last-level cache of 8 MiB, as in the paper's Nehalem.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,4,64", "--D1=32768,8,64", "--LL=8388608,16,64"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_receive_sends() {
        let parts = ["driver", "network", MEMORY, "measuring", APPLICATION];
        let costs = |all: [f64; 5]| -> Costs { parts.into_iter().zip(all).collect() };
        let [all, receiving] =
            [[10.0, 100.0, 30.0, 7.0, 50.0], [4.0, 60.0, 10.0, 7.0, 1.0]].map(costs);
        let expected = [4.0, 61.0, 30.0, 40.0, 6.0, 49.0];
        assert_eq!(components(&all, &receiving), COMPONENTS.into_iter().zip(expected).collect());
    }
}
