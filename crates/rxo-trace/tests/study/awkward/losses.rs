//! Captures that lack packets which their host received.

use rxo_capture::Record;
use rxo_testkit::{Random, Workload};

use super::transfer::clean;
use super::{assert_cannot_say, assert_same_answer, studied};
use crate::traffic::{ethernet, generated};

/// Returns the clean capture without about `percent` percent of its packets, in runs of `run` packets.
fn lossy(percent: u64, run: u64) -> Vec<Record> {
    let mut random = Random::new(3);
    let mut lost = 0;
    let is_kept = |_: &Record| {
        if lost == 0 && random.below(100 * run) < percent {
            lost = run;
        }
        let is_lost = lost > 0;
        lost -= u64::from(is_lost);
        !is_lost
    };
    clean().into_iter().filter(is_kept).collect()
}

#[test]
fn what_the_capturing_program_lost_cannot_say() {
    for (percent, run) in [(10, 1), (30, 1), (30, 50)] {
        let report = studied(&ethernet(), &lossy(percent, run));
        assert_cannot_say(&format!("{percent} % in runs of {run}"), &report, "tcpdump -s 128 -B");
    }
    assert_same_answer("little is lost", &studied(&ethernet(), &lossy(1, 1)));
}

/// A segment that the network lost is sent again, so the capture has it once.
#[test]
fn what_the_network_lost_is_not_missing() {
    let mut records = clean();
    for at in (5..records.len() - 40).step_by(50) {
        let time = records[at + 30].at;
        let late = records.remove(at);
        records.insert(at + 29, Record { at: time, ..late });
    }
    let report = studied(&ethernet(), &records);
    assert!(report.traffic.missing_bytes == 0, "{:?}", report.traffic);
    for kind in [Workload::W1, Workload::W2, Workload::W6, Workload::W7] {
        let traffic = studied(&ethernet(), &generated(kind, 10_000)).traffic;
        let missing = traffic.missing_bytes;
        assert!(missing < traffic.tcp_payload_bytes / 100, "{kind:?}: {missing}");
    }
}
