//! The decision for a live interface: the chosen policy compared with the host as it is, at three rates.
//!
//! A capture cannot show how its host took the packets, so the decision on a capture compares with no coalescing at all. A
//! live interface shows the deliveries that its host really had; what counts is the difference to these.

use super::decide::{WORTH_CORES, is_significant};
use super::load::Load;
use crate::projection::Costs;
use crate::report::{Live, LiveRate, LiveReceiver, Report, Traffic};
use crate::study::{Merged, RateCourse, RateStep, Rates, Watched};
use crate::words::{count, percent};

/// The rates of a decision: their names, and the share of the steps of time that are not faster.
const RATES: [(&str, f64); 3] = [("median", 0.5), ("p95", 0.95), ("peak", 1.0)];
/// A receiver is listed if it receives at least one packet in this number.
const LISTED: u64 = 10;

/// Adds what was watched to the report of a live interface, and replaces its decision.
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
        report.notes.insert(0, lost_note(&live, &report.traffic));
    }
    report.live = Some(live);
}

fn live(watched: &Watched, merged: Merged, rates: &Rates, costs: Costs) -> Live {
    let watched_ns = u64::try_from(watched.time.as_nanos()).unwrap_or(u64::MAX);
    let steps = (watched_ns / rates.step_ns.max(1)).max(1) as usize;
    let mut receivers: Vec<LiveReceiver> =
        rates.courses.iter().map(|course| receiver(course, steps, rates.step_ns, costs)).collect();
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
        step_ns: rates.step_ns,
        receivers,
    }
}

/// Returns the effect on one course at all rates. Steps without packets count: `steps` is the number of steps watched.
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
    let RateStep { packets, bytes, frames, deliveries } = step;
    let traffic = Traffic { packets, bytes, active_ns: step_ns, ..Traffic::default() };
    let Some(load) = Load::of(&traffic, costs) else {
        return LiveRate { rate: name.to_owned(), ..LiveRate::default() };
    };
    let each =
        |deliveries: u64| load.cores_at(packets as f64 / deliveries.clamp(1, packets) as f64);
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
    if is_significant(live.lost_packets, traffic.packets.saturating_add(live.lost_packets)) {
        return cannot(format!(
            "This watch cannot say: {} of the packets came faster than this machine could analyze them, and were not \
             seen. --no-advice takes a third of the time for each; or capture with `tcpdump -s 128 -w FILE`, and analyze \
             the file.",
            percent(lost_share(live, traffic))
        ));
    }
    let worth: Vec<bool> = all.rates.iter().map(|rate| rate.is_worth_it).collect();
    let begin = match worth[..] {
        [true, ..] => "Worth it",
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

/// Returns `true` if coalescing is worth it for the receiver at the 95th percentile of its rate.
fn busy(receiver: &LiveReceiver) -> bool {
    receiver.rates.iter().any(|rate| rate.rate == "p95" && rate.is_worth_it)
}

/// Formats what each rate saves.
fn savings(rates: &[LiveRate]) -> String {
    let saved = |rate: &LiveRate| (rate.cores_today - rate.cores_with).max(0.0);
    if rates.iter().all(|rate| saved(rate) == 0.0) {
        return "saves nothing at any rate that it had".to_owned();
    }
    let one = |rate: &LiveRate| format!("{} at the {} rate", percent(saved(rate)), rate.rate);
    let all: Vec<String> = rates.iter().map(one).collect();
    format!("saves of a core {}", all.join(", "))
}

fn lost_share(live: &Live, traffic: &Traffic) -> f64 {
    let all = traffic.packets.saturating_add(live.lost_packets).max(1);
    live.lost_packets as f64 / all as f64
}

fn lost_note(live: &Live, traffic: &Traffic) -> String {
    format!(
        "{} packets, {} of all, came faster than they were analyzed: the socket lost them, and no figure counts them; the \
         host itself got them",
        count(live.lost_packets),
        percent(lost_share(live, traffic))
    )
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
        " {} frames that the host merged count as the {} packets that must have arrived, all at once.{whole}",
        count(live.merged_frames),
        count(live.merged_packets)
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
        };
        RateCourse { address: None, steps: packets.iter().map(step).collect() }
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
}
