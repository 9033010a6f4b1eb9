//! The findings: text for people, JSON for programs.

use rxo_console::numbers::rounded;
use rxo_demo::experiment::Findings;
use rxo_demo::load::Timed;
use serde::Serialize;

use super::cost::Cost;
use super::figures;
use super::model::return_share;
use super::paper;
use super::plan::{Case, Plan};
use super::real;
use super::virtual_time::Cast;
use crate::figure::Figure;
use crate::menon::verdict::Verdict;

/// The results of all measurements.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Measured {
    pub(super) costs: Vec<Cost>,
    /// Link rate on virtual time, in bits per second.
    pub(super) simulated_rate: Option<f64>,
    pub(super) simulated: Vec<Cast>,
    /// Link rate between cores, in bits per second.
    pub(super) knee_rate: Option<f64>,
    /// ACKs of all receivers per segment between cores, with the most receivers.
    pub(super) acks_a_segment: Option<f64>,
    pub(super) knee: Vec<Times>,
    pub(super) real: Vec<Times>,
    /// Number of wrong copies in namespaces.
    pub(super) wrong: usize,
    pub(super) hardship: Vec<(Case, real::Sample)>,
}

/// Times of repeated casts of one case.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Times {
    pub(super) case: Case,
    /// Minimum time in which the link carries the file, in seconds.
    pub(super) least_s: f64,
    pub(super) seconds: Vec<f64>,
    /// ACKs of one receiver per segment to the group, the maximum over all casts.
    pub(super) acks_a_segment: f64,
}

impl Times {
    /// Makes the times from casts, given as pairs of seconds and ACKs per segment. `None` without casts.
    pub(super) fn of(case: Case, least_s: f64, casts: Vec<(f64, f64)>) -> Option<Self> {
        let (seconds, acks): (Vec<f64>, Vec<f64>) = casts.into_iter().unzip();
        let acks_a_segment = acks.into_iter().reduce(f64::max)?;
        Some(Self { case, least_s, seconds, acks_a_segment })
    }

    /// Returns the times in percent of the minimum.
    pub(super) fn percent(&self) -> Vec<f64> {
        self.seconds.iter().map(|seconds| 100.0 * seconds / self.least_s).collect()
    }
}

/// The repeated experiments of the paper.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    figures: Vec<Figure>,
    /// The project's own aims, in addition to the paper's statements.
    aims: Vec<Verdict>,
    #[serde(flatten)]
    pub(super) measured: Measured,
}

impl Found {
    pub(super) fn new(measured: Measured) -> Self {
        Self { figures: figures::all(&measured), aims: aims(&measured), measured }
    }
}

impl Findings for Found {
    fn paragraphs(&self) -> Vec<String> {
        let aims: Vec<String> = self.aims.iter().map(Verdict::text).collect();
        let aims = (!aims.is_empty()).then(|| aims.join("\n\n"));
        self.figures.iter().map(Figure::text).chain(aims).collect()
    }

    /// Withholds only timed figures: counts, virtual time and hashes do not change on a busy machine.
    fn withhold(&mut self) {
        let timed = |figure: &&mut Figure| figures::TIMED.contains(&figure.number);
        self.figures.iter_mut().filter(timed).for_each(Figure::withhold);
    }

    fn timed(&self) -> Timed {
        Timed::Only("the knee and the times in namespaces")
    }

    fn is_intact(&self) -> bool {
        let Measured { wrong, hardship, .. } = &self.measured;
        *wrong == 0 && hardship.iter().all(|((_, receivers), sample)| sample.right > *receivers)
    }

    fn drawings(&self) -> Vec<(String, String)> {
        self.figures.iter().map(|figure| (figure.file_name(), figure.svg())).collect()
    }
}

/// Returns verdicts on the project's own aims.
fn aims(measured: &Measured) -> Vec<Verdict> {
    let mut aims = Vec::new();
    let cost = |receivers: usize| {
        let mut all = measured.costs.iter();
        let is_it = |cost: &&Cost| cost.case == super::cost::Case::fast(receivers);
        all.find(is_it).map(|cost| cost.ack)
    };
    if let Some((few, many)) = cost(paper::FEWEST).zip(cost(MANY)) {
        aims.push(Verdict::new(
            "with the fast path an ACK of 1,000 receivers costs at most 1.2 times one of 88",
            Some(many <= 1.2 * few),
            format!("{:.3} times: {few:.0} and {many:.0} instructions.", many / few),
        ));
    }
    for ((way, receivers), sample) in &measured.hardship {
        // All receivers but the killed one must have the right file.
        let is_so = sample.right == receivers + 1
            && sample.failed.len() == 1
            && sample.exit_code == Some(1);
        aims.push(Verdict::new(
            format!(
                "{} receivers get the right file under 1 % loss, though one more is killed, and one of them is stopped \
                 for 3 s; {}",
                receivers + 1,
                way.name()
            ),
            Some(is_so),
            format!(
                "{} files with the right hash, {} frames lost, {} repairs to all and {} to one, {:.1} s; the other: {}; \
                 exit code {}.",
                sample.right,
                sample.lost,
                sample.group_repairs,
                sample.own_repairs,
                sample.seconds,
                sample.failed.join(", "),
                sample.exit_code.map_or("none".to_owned(), |code| code.to_string()),
            ),
        ));
    }
    aims
}

/// Returns notes on the method.
pub(super) fn notes(plan: &Plan, found: &Found) -> Vec<String> {
    let Measured { knee_rate, simulated_rate, acks_a_segment, .. } = &found.measured;
    let mut notes = Vec::new();
    let mbit = |rate: f64| rounded(rate / 1e6, 1);
    if !plan.costs.is_empty() {
        notes.push(format!(
            "Without the fast path: each ACK by itself through the stack, as in the paper's kernel (pure_acks=bypass). \
             Instructions: callgrind over {} rounds of 16 segments to the group and an ACK from each receiver, in release \
             builds the cost of what is shipped. The turns that take ACKs have nothing to send. The card is a ring in memory; \
             upkeep is what the host does for a connection after its ACK, which the paper does not name.",
            plan.counted_rounds
        ));
        notes.push(
            "Cycles and misses are a simulation by callgrind, not a measurement: caches of 32 and 256 KiB, as a core of the paper's \
             machine has. Cycles are estimated: one an instruction, 10 a miss of the first cache, 100 a miss of the second. The \
             paper's figure 8 compares network processing on several cores with one (figure 6), at 160 receivers."
                .to_owned(),
        );
    }
    if let Some(rate) = simulated_rate {
        notes.push(format!(
            "Virtual time is a simulation: the sender's own code, with one instruction of the counts above a nanosecond, and \
             a link of {} Mbit/s. The rate is that of the knee: the link would carry the file in 1/1.126 of the time that the \
             sender without the fast path needs for the most receivers.",
            mbit(*rate)
        ));
    }
    if let Some(rate) = knee_rate {
        notes.push(format!(
            "The knee: the sender polls on one core; a link of {} Mbit/s and the receivers are modelled on another, behind \
             rings in shared memory. The rate is found by the same rule. All receivers together send {:.1} ACKs for a \
             segment, which take {:.0} % of a return link of this rate.",
            mbit(*rate),
            acks_a_segment.unwrap_or_default(),
            100.0 * return_share(acks_a_segment.unwrap_or_default()),
        ));
    }
    if !plan.real.is_empty() {
        notes.push(format!(
            "Namespaces: rxo cast send on a link of {} Mbit/s, a bridge, and eight namespaces, in each a process with up to \
             21 hosts of rxo. The receivers share the machine with the sender and limit the rate. SHA-256 of every copy is \
             compared with the file's. A receiver sends at most {:.3} ACKs for a segment.",
            mbit(real::BITS_PER_S as f64),
            found.measured.real.iter().map(|times| times.acks_a_segment).fold(0.0, f64::max)
        ));
    }
    notes.push(
        "Not repeated: figures 7 and 8, network processing on several cores. There the paper's transfers take as long as on one core \
         with TCP-PARO, and 19 % longer without. A cast belongs to one worker of a host."
            .to_owned(),
    );
    notes
}

const MANY: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smo::sender::Way;

    /// Makes the sample of a cast to 168 receivers under loss, with `right` correct copies.
    fn under_loss(right: usize) -> real::Sample {
        real::Sample {
            seconds: 41.0,
            right,
            receivers: 170,
            failed: vec!["ejected".to_owned()],
            exit_code: Some(1),
            group_repairs: 1,
            own_repairs: 1,
            lost: 1,
            acks_a_segment: 0.1,
        }
    }

    /// A wrong copy must change the exit code.
    #[test]
    fn a_wrong_copy_under_loss_is_one() {
        let found = |right| {
            let hardship = vec![((Way::Fast, 168), under_loss(right))];
            Found::new(Measured { hardship, ..Measured::default() })
        };
        assert!(found(169).is_intact(), "all but the one that was killed");
        assert!(!found(168).is_intact());
        let wrong = Measured { wrong: 1, ..Measured::default() };
        assert!(!Found::new(wrong).is_intact());
    }

    #[test]
    fn times_have_the_most_acks_of_their_casts() {
        let times = Times::of((Way::Fast, 8), 1.0, vec![(2.0, 0.07), (3.0, 0.06)]).unwrap();
        assert_eq!((times.seconds.as_slice(), times.acks_a_segment), (&[2.0, 3.0][..], 0.07));
        assert!(Times::of((Way::Fast, 8), 1.0, Vec::new()).is_none());
    }
}
