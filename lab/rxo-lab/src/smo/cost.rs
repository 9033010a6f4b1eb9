//! Counts the instructions of an acknowledgement at the sender with callgrind (figures 6 and 8).
//!
//! This program runs itself under callgrind. In each round the group sends sixteen segments, and each
//! receiver acknowledges those of the previous round with one ACK. Two counts are made of the same rounds: of
//! turns that only process acknowledgements, and of turns that only send. Time is virtual and the card in
//! memory, so the counts are the same on any machine.

use std::time::Duration;

use anyhow::{Result, ensure};
use rxo::Instant;
use rxo::live::host::CAST_SEGMENTS_FOR_AN_ACK;
use serde::{Deserialize, Serialize};

use super::card::Card;
use super::model::SEGMENT_BYTES;
use super::sender::{Case, FEWEST, MOST, Sender};
use super::virtual_time::Scene;
use crate::counted::{Categories, Costs, Counted, MEMORY, Source, counted};

/// The paper's components (figures 6 and 8), by the source file that an instruction was compiled from.
///
/// RX is from the card's ring to the connection: ring, checks, engine or fast path, demultiplexing. Sync is locks
/// and atomic operations, and the backlog that locks protect. Block is the receiver's connection, the paper's TCP
/// control block; aggregate is the state of the group. Upkeep is the host's work on a connection after its ACK:
/// timers, and a check for data to send.
const CATEGORIES: Categories = Categories(
    &[
        (MEMORY, Source::Copies),
        (MEMORY, Source::Functions("malloc calloc realloc free __rust_alloc __rust_dealloc")),
        ("sync", Source::Path("core/src/sync/atomic std/src/sync/ std/src/sys/sync/")),
        ("aggregate", Source::Files("rxo-tcp", "src/multicast")),
        ("aggregate", Source::Files("rxo-host", "src/worker/cast.rs")),
        ("block", Source::Files("rxo-tcp", "")),
        ("sync", Source::Files("rxo-host", "src/cell")),
        ("upkeep", Source::Files("rxo-host", UPKEEP)),
        (MEMORY, Source::Files("rxo-host", "src/buffer.rs")),
        (MEMORY, Source::Files("rxo-frame", "src/pool src/chain")),
        ("RX", Source::Files("rxo-host rxo-device rxo-coalesce", "")),
        ("RX", Source::Files("rxo-lab", "src/smo/card.rs")),
    ],
    "other",
);

const UPKEEP: &str = "src/transmit src/worker/copy_overdue.rs src/worker/reclaim.rs src/worker/rests.rs \
                      src/worker/serve.rs src/worker/shares.rs src/worker/timers.rs";

/// Instructions of an acknowledgement, and of a segment to the group.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    /// Instructions per acknowledgement, by component, and their sum.
    parts: Costs,
    pub(super) ack: f64,
    /// Cycles per acknowledgement that callgrind estimates from simulated caches, and misses of the second cache;
    /// `None` if caches were not simulated.
    cycles: Option<f64>,
    misses: Option<f64>,
    /// Instructions per segment to the group.
    pub(super) segment: f64,
    /// Share of the acknowledgements that the fast path consumed.
    consumed: f64,
}

/// Report of the process under callgrind: its work in the counted turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    acks: u64,
    segments: u64,
    consumed: u64,
}

/// Counts `rounds` rounds.
pub(super) fn count(case: Case, rounds: usize) -> Result<Cost> {
    let run = |function, caches: &[&str]| -> Result<Counted<Done>> {
        counted(("Sender", &Parameters { case, rounds }), (function, caches), &CATEGORIES)
    };
    let Counted { costs, said: done, .. } = run("counted_acks", &[])?;
    let sending = run("counted_sends", &[])?.costs;
    let is_papers = [FEWEST, MOST].contains(&case.receivers);
    let simulated = is_papers.then(|| run("counted_acks", &CACHES)).transpose()?;
    let an_ack = |cost: f64| cost / done.acks as f64;
    let parts = costs.each(|_, cost| an_ack(cost));
    Ok(Cost {
        ack: parts.total(),
        parts,
        cycles: simulated.as_ref().map(|it| an_ack(it.costs.total())),
        misses: simulated.as_ref().map(|it| an_ack(it.misses)),
        segment: sending.total() / done.segments as f64,
        consumed: done.consumed as f64 / done.acks as f64,
    })
}

/// Options for the first and second cache of a core of the paper's Xeon E3-1230v2, 32 and 256 KiB.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,4,64", "--D1=32768,8,64", "--LL=262144,8,64"];

/// The parameters of the process under callgrind.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    case: Case,
    rounds: usize,
}

/// Runs the rounds under callgrind, and prints their counts as JSON.
pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let Parameters { case, rounds } = *parameters;
    rxo_console::output::json_line(&in_rounds(case, rounds)?)
}

fn in_rounds(case: Case, rounds: usize) -> Result<Done> {
    // The link is so fast that everything arrives before the next round.
    let mut rounds_of = Rounds { scene: Scene::open(case, 1e12)?, late: Vec::new() };
    rounds_of.scene.sender.start(0);
    let uncounted = (0..WARM_ROUNDS).map(|_| rounds_of.next(Counting::Off));
    uncounted.collect::<Result<Vec<_>>>()?;
    let consumed = |rounds: &mut Rounds| rounds.scene.sender.host.counters().fast.consumed;
    let (before, mut done) = (consumed(&mut rounds_of), Done::default());
    for _ in 0..rounds {
        let (acks, sent) = rounds_of.next(Counting::On)?;
        ensure!(sent == 0, "acknowledgements made the host send");
        done.acks += acks;
        done.segments += u64::from(CAST_SEGMENTS_FOR_AN_ACK);
    }
    Ok(Done { consumed: consumed(&mut rounds_of) - before, ..done })
}

/// Switches callgrind's counting `On` or `Off` for a round.
#[derive(Clone, Copy, Debug)]
enum Counting {
    Off,
    On,
}

/// Rounds of a cast.
struct Rounds {
    scene: Scene,
    /// Acknowledgements of the previous round that are still in flight.
    late: Vec<Vec<u8>>,
}

impl Rounds {
    /// Runs a round: the group sends sixteen segments, and the ACKs of the previous sixteen arrive. Returns the
    /// number of ACKs, and of packets sent by the turns that processed them; 0 once the window is large enough.
    fn next(&mut self, counting: Counting) -> Result<(u64, u64)> {
        let Self { scene: Scene { sender, card, network, now, .. }, late } = self;
        *now = *now + STEP;
        card.set_now(*now);
        sender.extend(u64::from(CAST_SEGMENTS_FOR_AN_ACK) * SEGMENT_BYTES as u64);
        sender.feed(false);
        match counting {
            Counting::Off => while_busy(sender, card, *now),
            Counting::On => counted_sends(|| while_busy(sender, card, *now)),
        }?;
        let mut next = Vec::new();
        let mut answer = |frame: &[u8]| next.push(frame.to_vec());
        while let Some(sent) = card.take() {
            network.take(&sent.headers, sent.at, &mut answer)?;
        }
        network.on_time(*now + STEP / 2, &mut answer)?;
        let acks = std::mem::replace(late, next);
        acks.iter().for_each(|frame| card.arrive(frame));
        let sent = match counting {
            Counting::Off => while_busy(sender, card, *now),
            Counting::On => counted_acks(|| while_busy(sender, card, *now)),
        }?;
        Ok((acks.len() as u64, sent))
    }
}

/// Runs turns until the sender is idle. Returns the number of packets sent.
fn while_busy(sender: &mut Sender<Card, Card>, card: &Card, now: Instant) -> Result<u64> {
    let mut sent = 0;
    loop {
        let turn = sender.turn(now)?;
        sent += turn.sent;
        if turn.is_idle() && !card.has_arrived() {
            return Ok(sent);
        }
    }
}

/// Runs `work`, which processes acknowledgements; callgrind counts inside this function.
#[inline(never)]
fn counted_acks<T>(work: impl FnOnce() -> T) -> T {
    // Without `black_box` the call could become a tail jump, which callgrind would not see as a call.
    std::hint::black_box(work())
}

/// Runs `work`, which sends; callgrind counts inside this function.
#[inline(never)]
fn counted_sends<T>(work: impl FnOnce() -> T) -> T {
    // Without this difference the compiler could merge both functions.
    std::hint::black_box("sends");
    std::hint::black_box(work())
}

const STEP: Duration = Duration::from_micros(200);
/// Uncounted rounds, until the windows are as large as two rounds.
const WARM_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smo::sender::Way;

    #[test]
    fn each_receiver_acknowledges_once_a_round_and_the_fast_path_takes_it() {
        for way in Way::ALL {
            let done = in_rounds(Case { way, receivers: 20 }, 10).unwrap();
            let consumed = if way == Way::Stack { 0 } else { 200 };
            assert_eq!(done, Done { acks: 200, segments: 160, consumed }, "{way:?}");
        }
    }
}
