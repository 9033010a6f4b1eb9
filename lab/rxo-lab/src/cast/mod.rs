//! `rxo-lab cast`: a file for many receivers by one cast, beside as many downloads, under independent losses and on
//! virtual time.
//!
//! The network is that of the endpoint's own tests, whose receivers compare every byte. [`live`] measures casts of
//! real processes beside `udpcast`.

#[path = "../../../../crates/rxo-tcp/tests/multicast/costs.rs"]
mod costs;
#[path = "../../../../crates/rxo-tcp/tests/multicast/links.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod links;
pub(crate) mod live;
#[path = "../../../../crates/rxo-tcp/tests/multicast/receivers.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod receivers;
#[path = "../../../../crates/rxo-tcp/tests/multicast/room.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod room;
#[path = "../../../../crates/rxo-tcp/tests/multicast/settings.rs"]
mod settings;
#[path = "../../../../crates/rxo-tcp/tests/multicast/unicasts.rs"]
#[expect(dead_code, reason = "the stories use all of it")]
mod unicasts;
#[path = "../../../../crates/rxo-tcp/tests/harness/wire.rs"]
mod wire;

use anyhow::Result;
use rxo_tcp::{GroupConfig, Repairs};
use serde::Serialize;

use self::room::{group_config, parity_config};
use crate::flags::{Part, RunFlags};
use crate::study::{Study, Table};

pub(crate) const PARTS: &[Part] = &[Part::counted("loss")];

/// The way to the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    /// A cast that repairs losses by parity packets.
    Parity,
    /// A cast that repeats lost segments to the group.
    Repeats,
    Unicasts,
    /// A cast as `rxo cast` does it by default, whose first receiver, the leader, stops for ever.
    Stopped,
}

/// The parameters of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Case {
    way: Way,
    /// `true` if `rxo cast` does it this way by default.
    is_default: bool,
    receivers: u16,
    /// Lost segments of 1,000.
    loss: u64,
    /// Megabytes of the file.
    mb: usize,
}

/// The cost of a file.
#[derive(Serialize)]
struct Cost {
    ms: f64,
    /// Bytes on the sender's link for a byte of the file.
    copies: f64,
    /// Time for joins and farewells.
    around_ms: f64,
}

impl Case {
    fn new(way: Way, receivers: u16, loss: u64, mb: usize) -> Self {
        Self { way, is_default: way == Way::default_for(receivers), receivers, loss, mb }
    }
}

impl Way {
    fn default_for(receivers: u16) -> Self {
        match Repairs::best_for(receivers.into()) {
            Repairs::Parity => Self::Parity,
            _ => Self::Repeats,
        }
    }
}

const RECEIVERS: [u16; 3] = [5, 20, 168];
const LOSSES: [u64; 4] = [0, 1, 10, 30];

/// Makes the experiment from the flags.
///
/// # Errors
/// If `--only` names no part.
pub(crate) fn study(flags: &RunFlags) -> Result<Study> {
    flags.chosen(PARTS)?;
    let mb = if flags.is_quick() { QUICK_MB } else { MB };
    let all = RECEIVERS.iter().flat_map(|count| LOSSES.map(|loss| (*count, loss)));
    let ways = |(receivers, loss)| {
        [Way::Parity, Way::Repeats, Way::Unicasts].map(|way| Case::new(way, receivers, loss, mb))
    };
    let mut cases: Vec<Case> = all.flat_map(ways).collect();
    for (receivers, mb) in SIZES {
        let ways = [Way::default_for(receivers), Way::Stopped];
        let stops = ways.map(|way| Case::new(way, receivers, 0, mb));
        cases.extend(stops.into_iter().filter(|case| !cases.contains(case)).collect::<Vec<_>>());
    }
    let name = |Case { way, receivers, loss, mb, .. }: Case| {
        format!("{way:?}, {receivers}, {mb} MB, {} %", loss as f64 / 10.0)
    };
    let table = Table::counted("casts", cases, name, |case| Ok(measure(case)), ("ms", "ms"));
    Ok(Study {
        facts: Box::new(move |_| vec![("mb", mb.to_string())]),
        ..Study::of("cast", vec![Box::new(table)])
    })
}

fn measure(Case { way, receivers, loss, mb, .. }: Case) -> Cost {
    let bytes = mb * 1_000_000;
    let stops = (way == Way::Stopped).then_some(0);
    let case = costs::Case { receivers, bytes, loss, stops };
    let cost = match way {
        Way::Unicasts => case.unicasts(),
        Way::Repeats => case.cast(group_config()),
        Way::Parity => case.cast(parity_config()),
        Way::Stopped => {
            let repairs = Repairs::best_for(receivers.into());
            case.cast(GroupConfig { repairs, ..group_config() })
        }
    };
    let ms = |time: core::time::Duration| time.as_secs_f64() * 1e3;
    Cost { ms: ms(cost.time), copies: cost.bytes as f64 / bytes as f64, around_ms: ms(cost.around) }
}

const MB: usize = 10;
const QUICK_MB: usize = 2;
/// Casts in which one receiver stops: the number of receivers, and the size of the file in megabytes.
const SIZES: [(u16, usize); 4] = [(5, 10), (5, 60), (20, 10), (20, 60)];
