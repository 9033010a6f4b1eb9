//! The decision for a live interface: the chosen policy compared with the host's current settings, at three rates.
//!
//! A capture does not show how the host received the packets, so the decision on a capture compares coalescing
//! with no coalescing at all. A live interface shows the host's actual deliveries, so the decision compares the
//! chosen policy with these deliveries.

use super::decide::{WORTH_CORES, is_significant, sealed, twice};
use super::load::Load;
use super::polls::is_hypothetical;
use crate::projection::Costs;
use crate::report::{Live, LiveRate, LiveReceiver, Report, Traffic};
use crate::study::{Merged, RateCourse, RateStep, Rates, Watched};
use crate::words::{agreeing, form, percent, plural};

/// The rates of a decision. Each rate has a name, and is the packet rate that this share of the time steps does
/// not exceed.
const RATES: [(&str, f64); 3] = [("median", 0.5), ("p95", 0.95), ("peak", 1.0)];
/// The threshold for listing receivers: a receiver is listed if it receives at least one in this number of packets.
const LISTED: u64 = 10;
/// The shortest time step for computing rates if the measurement was ended early, in nanoseconds.
const SHORTEST_STEP_NS: u64 = 100_000_000;

/// Adds the measurements in `watched` to the report of a live interface, and replaces the decision of the
/// report.
pub(crate) fn decide_live(report: &mut Report, watched: &Watched, merged: Merged, rates: &Rates) {
    let live = live(watched, merged, rates, report.decision.costs);
    let verdict = verdict(&live, &report.traffic, &report.outcome.poll);
    report.decision.is_worth_it = verdict.is_worth_it;
    report.decision.sentence = format!("{}{}", verdict.sentence, merged_remark(&live, watched));
    if let Some(advice) = &mut report.advice {
        // What the host does today was measured, and needs no model.
        advice.polls.iter_mut().for_each(|poll| poll.is_today = false);
        if verdict.is_worth_it != Some(true) {
            advice.linux = None;
        }
        let commands = advice.linux.iter_mut().flat_map(|linux| &mut linux.commands);
        commands.for_each(|line| *line = line.replace("IF", &watched.interface));
    }
    if live.lost_packets > 0 {
        report.notes.insert(0, lost_note(&live));
    }
    report.live = Some(live);
}

fn live(watched: &Watched, merged: Merged, rates: &Rates, costs: Costs) -> Live {
    let watched_ns = u64::try_from(watched.time.as_nanos()).unwrap_or(u64::MAX);
    // A watch that ended within its first step has this step only for as long as it lasted.
    let step_ns = rates.step_ns.min(watched_ns.max(SHORTEST_STEP_NS)).max(1);
    let steps = (watched_ns / step_ns).max(1) as usize;
    let mut receivers: Vec<LiveReceiver> =
        rates.courses.iter().map(|course| receiver(course, steps, step_ns, costs)).collect();
    let all = receivers.first().map_or(0, |all| all.packets);
    receivers.retain(|one| one.address.is_none() || one.packets.saturating_mul(LISTED) >= all);
    receivers.sort_by_key(|one| (one.address.is_some(), core::cmp::Reverse(one.packets)));
    Live {
        interface: watched.interface.clone(),
        watched_ns,
        settings: watched.settings.clone(),
        frames: receivers.first().map_or(0, |all| all.frames),
        merged_frames: merged.frames,
        merged_packets: merged.packets,
        lost_packets: watched.lost_packets,
        step_ns,
        receivers,
    }
}

/// Returns the effect of coalescing on one receiver at all rates. `course` contains the receiver's traffic over
/// time, and `steps` is the number of measured time steps, including steps without packets.
fn receiver(course: &RateCourse, steps: usize, step_ns: u64, costs: Costs) -> LiveReceiver {
    let sum = |of: fn(&RateStep) -> u64| course.steps.iter().map(of).sum();
    let mut sorted: Vec<RateStep> = course.steps.iter().take(steps).copied().collect();
    sorted.resize(steps, RateStep::default());
    sorted.sort_by_key(|step| step.packets);
    let rate = |(name, share): (&str, f64)| {
        let place = (share * steps as f64).ceil() as usize;
        let step = sorted.get(place.clamp(1, steps) - 1).copied().unwrap_or_default();
        at_rate(name, step, step_ns, costs)
    };
    LiveReceiver {
        address: course.address.map(|address| address.to_string()),
        packets: sum(|step| step.packets),
        frames: sum(|step| step.frames),
        deliveries: sum(|step| step.deliveries),
        rates: RATES.into_iter().map(rate).collect(),
    }
}

fn at_rate(name: &str, step: RateStep, step_ns: u64, costs: Costs) -> LiveRate {
    let RateStep { packets, bytes, frames, deliveries, wakes, coldness } = step;
    let traffic = Traffic { packets, bytes, active_ns: step_ns, ..Traffic::default() };
    let Some(load) = Load::of(&traffic, costs) else {
        return LiveRate { rate: name.to_owned(), ..LiveRate::default() };
    };
    let woken = (costs.wake_ns * wakes as f64 + costs.cold_ns * coldness) / step_ns as f64;
    let each = |deliveries: u64| {
        load.cores_at(packets as f64 / deliveries.clamp(1, packets) as f64).plus(woken)
    };
    let (today, chosen) = (each(frames), each(deliveries));
    // A host that merges nothing pays nothing for merging.
    let cores_today = if frames >= packets { today.without } else { today.with };
    let seconds = step_ns as f64 / 1e9;
    LiveRate {
        rate: name.to_owned(),
        packets_per_second: packets as f64 / seconds,
        gbit_per_second: bytes as f64 * 8.0 / step_ns as f64,
        cores_without: chosen.without,
        cores_today,
        cores_with: chosen.with,
        is_worth_it: cores_today - chosen.with >= WORTH_CORES,
    }
}

struct Verdict {
    sentence: String,
    is_worth_it: Option<bool>,
}

fn verdict(live: &Live, traffic: &Traffic, poll: &str) -> Verdict {
    let cannot = |sentence: String| Verdict { sentence, is_worth_it: None };
    let Some(all) = live.receivers.first().filter(|all| all.packets > 0) else {
        return cannot(format!("There were no packets on {} in this time.", live.interface));
    };
    if is_significant(live.lost_packets, arrived(live)) {
        return cannot(format!(
            "This watch cannot say: {} of the frames came faster than this machine could analyze them, and were not \
             seen. --no-advice takes a third of the time for each; or capture with `tcpdump -s 128 -w FILE`, and analyze \
             the file.",
            percent(lost_share(live))
        ));
    }
    if let Some(reason) = twice(traffic).or_else(|| sealed(traffic)) {
        return cannot(reason);
    }
    if is_hypothetical(poll) {
        return cannot(format!(
            "No prediction: no host waits for packets as long as --poll {poll} does; --poll time:50us says what one \
             would see."
        ));
    }
    let worth: Vec<bool> = all.rates.iter().map(|rate| rate.is_worth_it).collect();
    let begin = match worth[..] {
        [true, true, ..] => "Worth it",
        [true, false, ..] => "Not worth it when the interface is busy, only at the median rate",
        [_, true, _] => "Worth it when the interface is busy",
        [.., true] => "Not worth it, except at the peak",
        _ => "Not worth it",
    };
    let others = live.receivers.iter().skip(1);
    let differs = others.filter(|one| busy(one) != busy(all)).count();
    let differs = match differs {
        0 => "",
        _ => " The receiving addresses differ: the table has the decision for each.",
    };
    Verdict {
        sentence: format!(
            "{begin}: compared with your host today, --poll {poll} {}.{differs}",
            savings(&all.rates)
        ),
        is_worth_it: Some(busy(all)),
    }
}

/// Returns `true` if coalescing is worth it for the receiver at the 95th percentile of the receiver's packet rate.
fn busy(receiver: &LiveReceiver) -> bool {
    receiver.rates.iter().any(|rate| rate.rate == "p95" && rate.is_worth_it)
}

/// Formats the savings at each rate, as a part of a sentence.
fn savings(rates: &[LiveRate]) -> String {
    let saved = |rate: &LiveRate| (rate.cores_today - rate.cores_with).max(0.0);
    if rates.iter().all(|rate| saved(rate) == 0.0) {
        return "saves nothing at any rate that it had".to_owned();
    }
    let one = |rate: &LiveRate| format!("{} at the {} rate", percent(saved(rate)), rate.rate);
    let all: Vec<String> = rates.iter().map(one).collect();
    format!("saves of a core {}", all.join(", "))
}

/// Returns the number of frames that arrived, including frames that the socket lost. A frame may consist of
/// many merged packets.
fn arrived(live: &Live) -> u64 {
    live.frames.saturating_add(live.lost_packets).max(1)
}

fn lost_share(live: &Live) -> f64 {
    live.lost_packets as f64 / arrived(live) as f64
}

fn lost_note(live: &Live) -> String {
    let text = format!(
        "{{}} [frame|frames], {} of all, came faster than [it was|they were] analyzed: the socket lost [it|them], and no figure \
         counts [it|them]; the host itself got [it|them]",
        percent(lost_share(live))
    );
    agreeing(live.lost_packets, &text)
}

/// Returns a sentence on frames that were segmented for the analysis; empty if there are none.
fn merged_remark(live: &Live, watched: &Watched) -> String {
    if live.merged_frames == 0 {
        return String::new();
    }
    let whole = if watched.is_virtual {
        " On a virtual interface some may have come as they are, from a sender on this machine."
    } else {
        ""
    };
    format!(
        " {} that the host merged {} as the {} that must have arrived, all at once.{whole}",
        plural(live.merged_frames, "frame"),
        form(live.merged_frames, "counts", "count"),
        plural(live.merged_packets, "packet")
    )
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    /// Returns a course whose steps of 100 ms have this many packets of 1,000 bytes, in frames of `merged` packets as the
    /// host is, and in deliveries of ten.
    fn course(packets: &[u64], merged: u64) -> RateCourse {
        let step = |packets: &u64| RateStep {
            packets: *packets,
            bytes: 1_000 * packets,
            frames: packets.div_ceil(merged),
            deliveries: packets.div_ceil(10),
            ..RateStep::default()
        };
        RateCourse { address: None, steps: packets.iter().map(step).collect(), last: None }
    }

    fn decided(course: RateCourse, seconds: u64) -> Report {
        let mut rates = Rates::new(Duration::from_secs(30));
        let packets = course.steps.iter().map(|step| step.packets).sum();
        rates.courses = vec![course];
        let mut report = Report::default();
        report.traffic.packets = packets;
        report.decision.costs = Costs::ASSUMED;
        report.outcome.poll = "time:50us".into();
        let time = Duration::from_secs(seconds);
        let watched = Watched { interface: "eth0".into(), time, ..Watched::default() };
        decide_live(&mut report, &watched, Merged::default(), &rates);
        report
    }

    #[test]
    fn rates_are_those_of_all_steps_and_also_of_idle_ones() {
        let report = decided(course(&[100, 9_000, 2_000], 1), 1);
        let rates = &report.live.unwrap().receivers[0].rates;
        let per_second: Vec<f64> = rates.iter().map(|rate| rate.packets_per_second).collect();
        assert_eq!(per_second, [0.0, 90_000.0, 90_000.0]);
        // 90,000 packets of 300 + 100 + 800 ns, and of 300 + 100 + 30 + 80 ns.
        assert!((rates[2].cores_today - 0.108).abs() < 1e-9, "{rates:?}");
        assert!((rates[2].cores_with - 0.045_9).abs() < 1e-9, "{rates:?}");
    }

    #[test]
    fn wake_ups_cost_the_same_with_and_without_coalescing() {
        let mut course = course(&[9_000], 1);
        course.steps[0].wakes = 100;
        course.steps[0].coldness = 10.0;
        let costs = Costs { wake_ns: 8_000.0, cold_ns: 20_000.0, ..Costs::ASSUMED };
        let rate = |course: &RateCourse| receiver(course, 1, 100_000_000, costs).rates[2].clone();
        let woken = rate(&course);
        (course.steps[0].wakes, course.steps[0].coldness) = (0, 0.0);
        let rate = rate(&course);
        // 100 times 8 us and 10 times 20 us in 100 ms.
        for (woken, one) in [
            (woken.cores_without, rate.cores_without),
            (woken.cores_today, rate.cores_today),
            (woken.cores_with, rate.cores_with),
        ] {
            assert!((woken - one - 0.01).abs() < 1e-9, "{woken} {one}");
        }
    }

    #[test]
    fn the_decision_compares_with_the_host_as_it_is() {
        let says = |course, begin: &str, is_worth_it| {
            let decision = decided(course, 1).decision;
            assert!(decision.sentence.starts_with(begin), "{decision:?}");
            assert_eq!(decision.is_worth_it, is_worth_it, "{decision:?}");
        };
        says(course(&[5_000; 10], 1), "Worth it: compared with your host today", Some(true));
        says(course(&[5_000; 10], 10), "Not worth it: compared", Some(false));
        says(course(&[5_000; 10], 40), "Not worth it: compared", Some(false));
        says(course(&[5_000], 1), "Worth it when the interface is busy", Some(true));
        let mut spikes = [0; 100];
        spikes[7] = 5_000;
        let decision = decided(course(&spikes, 1), 10).decision;
        assert!(decision.sentence.starts_with("Not worth it, except at the peak"), "{decision:?}");
        says(course(&[], 1), "There were no packets on eth0", None);
    }

    /// Returns the report of a watch of ten even steps, changed by `change`.
    fn changed(change: impl FnOnce(&mut Report, &mut Watched)) -> Report {
        let mut rates = Rates::new(Duration::from_secs(30));
        rates.courses = vec![course(&[5_000; 10], 40)];
        let mut report = Report::default();
        report.traffic.packets = 50_000;
        report.decision.costs = Costs::ASSUMED;
        report.outcome.poll = "time:50us".into();
        let time = Duration::from_secs(1);
        let mut watched = Watched { interface: "eth0".into(), time, ..Watched::default() };
        change(&mut report, &mut watched);
        decide_live(&mut report, &watched, Merged::default(), &rates);
        report
    }

    #[test]
    fn lost_frames_are_compared_with_frames_and_not_with_their_segments() {
        // 1,250 frames of 40 packets each, and as many lost.
        let report = changed(|_, watched| watched.lost_packets = 1_250);
        assert_eq!(report.decision.is_worth_it, None, "{:?}", report.decision);
        assert!(report.decision.sentence.contains("50 % of the frames"), "{:?}", report.decision);
    }

    #[test]
    fn what_makes_a_capture_undecided_makes_a_watch_undecided() {
        let doubled = changed(|report, _| report.traffic.duplicate_packets = 25_000);
        let sealed = changed(|report, _| report.traffic.sealed_packets = 40_000);
        let gathered = changed(|report, _| report.outcome.poll = "packets:64".into());
        for report in [doubled, sealed, gathered] {
            assert_eq!(report.decision.is_worth_it, None, "{:?}", report.decision);
        }
    }

    #[test]
    fn a_watch_that_ends_in_its_first_step_has_the_rate_of_its_time() {
        let mut rates = Rates::new(Duration::from_secs(3_600));
        rates.courses = vec![course(&[20_000], 1)];
        let time = Duration::from_secs(2);
        let watched = Watched { interface: "eth0".into(), time, ..Watched::default() };
        let mut report = Report::default();
        report.decision.costs = Costs::ASSUMED;
        report.outcome.poll = "time:50us".into();
        decide_live(&mut report, &watched, Merged::default(), &rates);
        let rate = &report.live.unwrap().receivers[0].rates[0];
        assert!((rate.packets_per_second - 10_000.0).abs() < 1.0, "{rate:?}");
    }

    #[test]
    fn the_headline_is_that_of_the_busy_interface() {
        // Most steps are slow, and there the host merges nothing; in the others it merges as well as rxo does.
        let mut mixed = course(&[5_000; 10], 1);
        for step in &mut mixed.steps[6..] {
            *step = RateStep {
                packets: 50_000,
                bytes: 50_000_000,
                frames: 2_500,
                deliveries: 5_000,
                ..RateStep::default()
            };
        }
        let decision = decided(mixed, 1).decision;
        assert!(
            decision.sentence.starts_with("Not worth it when the interface is busy"),
            "{decision:?}"
        );
        assert_eq!(decision.is_worth_it, Some(false));
    }
}
