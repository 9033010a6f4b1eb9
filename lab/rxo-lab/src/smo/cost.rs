//! Counts the instructions of an acknowledgement at the sender with callgrind (figures 6 and 8).
//!
//! This program runs itself under callgrind. In each round the group sends sixteen segments, and each
//! receiver acknowledges those of the previous round with one ACK. Two counts are made of the same rounds: of
//! turns that only process acknowledgements, and of turns that only send. Time is virtual and the card in
//! memory, so the counts are the same on any machine.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use rxo::Instant;
use rxo::live::host::CAST_SEGMENTS_FOR_AN_ACK;
use serde::{Deserialize, Serialize, Serializer};

use super::card::Card;
use super::category::Category;
use super::model::{Network, SEGMENT_BYTES};
use super::paper;
use super::sender::{Sender, Way};
use crate::callgrind;
use crate::folder::Folder;
use crate::process::Process;
use crate::step;

/// A counted case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Case {
    pub(super) way: Way,
    pub(super) receivers: usize,
}

/// Instructions of an acknowledgement, and of a segment to the group.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    #[serde(flatten)]
    pub(super) case: Case,
    /// Instructions per acknowledgement, in the order of [`Category::ALL`].
    #[serde(serialize_with = "by_name")]
    pub(super) parts: Counts,
    /// Instructions per acknowledgement.
    pub(super) ack: f64,
    /// Cycles per acknowledgement that callgrind estimates from simulated caches; `None` if caches were not
    /// simulated.
    pub(super) cycles: Option<f64>,
    /// Misses of the second simulated cache per acknowledgement; `None` if caches were not simulated.
    pub(super) misses: Option<f64>,
    /// Instructions per segment to the group.
    pub(super) segment: f64,
    /// Share of the acknowledgements that the fast path consumed.
    pub(super) consumed: f64,
}

/// Report of the process under callgrind: its work in the counted turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Done {
    acks: u64,
    segments: u64,
    consumed: u64,
}

/// Counts `rounds` rounds.
///
/// # Errors
/// If valgrind is missing, or the process under it fails.
pub(super) fn count(case: Case, rounds: usize) -> Result<Cost> {
    callgrind::check()?;
    let Counted { parts, done, .. } = run_counted(case, rounds, "counted_acks", &[])?;
    let sending = run_counted(case, rounds, "counted_sends", &[])?.parts;
    let is_papers = [paper::FEWEST, paper::MOST].contains(&case.receivers);
    let simulated = is_papers.then(|| run_counted(case, rounds, "counted_acks", &CACHES));
    let simulated = simulated.transpose()?;
    let simulated = simulated.as_ref();
    let cycles = |it: &Counted| it.parts.iter().sum::<f64>() / it.done.acks as f64;
    let misses = |it: &Counted| it.misses / it.done.acks as f64;
    let parts = parts.map(|count| count / done.acks as f64);
    Ok(Cost {
        case,
        ack: parts.iter().sum(),
        parts,
        cycles: simulated.map(cycles),
        misses: simulated.map(misses),
        segment: sending.iter().sum::<f64>() / done.segments as f64,
        consumed: done.consumed as f64 / done.acks as f64,
    })
}

fn by_name<S: Serializer>(parts: &Counts, serializer: S) -> Result<S::Ok, S::Error> {
    let named = Category::ALL.iter().zip(parts);
    serializer.collect_map(named.map(|(category, count)| (category.name(), count)))
}

type Counts = [f64; Category::ALL.len()];

/// Options for the first and second cache of a core of the paper's Xeon E3-1230v2, 32 and 256 KiB.
const CACHES: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,4,64", "--D1=32768,8,64", "--LL=262144,8,64"];

/// Counts of the rounds of a case.
struct Counted {
    parts: Counts,
    /// Misses of the last cache; 0 if caches were not simulated.
    misses: f64,
    done: Done,
}

fn run_counted(case: Case, rounds: usize, counted: &str, caches: &[&str]) -> Result<Counted> {
    let folder = Folder::new("smo")?;
    let profile = folder.file("callgrind.out");
    let mut command = callgrind::command(counted, &profile, caches)?;
    command.args(step::arguments("Sender", &Parameters { case, rounds })?);
    let done = Process::spawn("the sender under valgrind", &mut command)?.finish()?;
    let parts = callgrind::read(&profile, |origin| Category::of(origin) as usize)?;
    Ok(Counted { parts, misses: callgrind::last_misses(&profile)?, done })
}

/// The parameters of the process under callgrind.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Parameters {
    case: Case,
    rounds: usize,
}

/// Runs the rounds under callgrind, and prints their counts as JSON.
///
/// # Errors
/// If a receiver fails.
pub(crate) fn run(parameters: &Parameters) -> Result<()> {
    let Parameters { case, rounds } = *parameters;
    rxo_console::output::json_line(&in_rounds(case, rounds)?)
}

fn in_rounds(case: Case, rounds: usize) -> Result<Done> {
    let mut scene = Scene::open(case)?;
    for _ in 0..WARM_ROUNDS {
        scene.round(Counting::Off)?;
    }
    let before = scene.sender.counters().fast.consumed;
    scene.done = Done::default();
    for _ in 0..rounds {
        ensure!(scene.round(Counting::On)? == 0, "acknowledgements made the host send");
    }
    let consumed = scene.sender.counters().fast.consumed - before;
    Ok(Done { consumed, ..scene.done })
}

/// Switches callgrind's counting `On` or `Off` for a round.
#[derive(Clone, Copy, Debug)]
enum Counting {
    Off,
    On,
}

/// A sender, its card, and its receivers.
struct Scene {
    card: Card,
    sender: Sender<Card, Card>,
    network: Network,
    now: Instant,
    /// Acknowledgements of the previous round that are still in flight.
    late: Vec<Vec<u8>>,
    done: Done,
}

impl Scene {
    /// Opens a cast and waits until its receivers have joined.
    fn open(case: Case) -> Result<Self> {
        let card = Card::new();
        let sender = Sender::new((card.clone(), card.clone()), case.receivers, case.way)?;
        // The link is so fast that everything arrives before the next round.
        let network = Network::new(case.receivers, 1e12);
        let now = Instant::from_micros(1_000_000);
        let (late, done) = (Vec::new(), Done::default());
        let mut scene = Self { card, sender, network, now, late, done };
        for _ in 0..MOST_TURNS * case.receivers {
            scene.now = scene.now + STEP;
            scene.card.set_now(scene.now);
            scene.late = scene.carry()?;
            scene.deliver();
            while_busy(&mut scene.sender, &scene.card, scene.now)?;
            scene.sender.hear()?;
            if scene.sender.joined == case.receivers {
                scene.sender.start(0);
                return Ok(scene);
            }
        }
        bail!("{} of {} receivers have come", scene.sender.joined, case.receivers)
    }

    /// Runs a round: the group sends sixteen segments, and the ACKs of the previous sixteen arrive. Returns
    /// the packets sent by the turns that processed these ACKs; 0 once the window is large enough.
    fn round(&mut self, counting: Counting) -> Result<u64> {
        let segments = u64::from(CAST_SEGMENTS_FOR_AN_ACK);
        self.now = self.now + STEP;
        self.card.set_now(self.now);
        self.sender.extend(segments * SEGMENT_BYTES as u64);
        self.sender.feed(false);
        let Self { sender, card, now, .. } = self;
        match counting {
            Counting::Off => while_busy(sender, card, *now),
            Counting::On => counted_sends(|| while_busy(sender, card, *now)),
        }?;
        let next = self.carry()?;
        self.done.segments += segments;
        self.done.acks += self.late.len() as u64;
        self.deliver();
        let Self { sender, card, now, .. } = self;
        let sent = match counting {
            Counting::Off => while_busy(sender, card, *now),
            Counting::On => counted_acks(|| while_busy(sender, card, *now)),
        }?;
        self.late = next;
        Ok(sent)
    }

    /// Passes the sent frames to the receivers. Returns their answers.
    fn carry(&mut self) -> Result<Vec<Vec<u8>>> {
        let (mut answers, now) = (Vec::new(), self.now);
        let mut answer = |frame: &[u8]| answers.push(frame.to_vec());
        while let Some(sent) = self.card.take() {
            self.network.take(&sent.headers, sent.at, &mut answer)?;
        }
        self.network.on_time(now + STEP / 2, &mut answer)?;
        Ok(answers)
    }

    fn deliver(&mut self) {
        self.late.drain(..).for_each(|frame| self.card.arrive(&frame));
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
/// Most turns per receiver that joins.
const MOST_TURNS: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_receiver_acknowledges_once_a_round_and_the_fast_path_takes_it() {
        for way in Way::ALL {
            let done = in_rounds(Case { way, receivers: 20 }, 10).unwrap();
            let consumed = if way == Way::Stack { 0 } else { 200 };
            assert_eq!(done, Done { acks: 200, segments: 160, consumed }, "{way:?}");
        }
    }
}
