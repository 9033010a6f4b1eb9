//! Adaptive hold: each reason for a flush, separately, on virtual time.
//!
//! Unless a test says otherwise, the receiver is busy, polls are 10 µs apart, and a flow is held for at most
//! 50 µs and 8 polls. Every test is also compared with the oracle.

use rxo_frame::{Duration, Frame, Instant, Load};
use rxo_testkit::oracle::{HoldRule, Why};
use rxo_testkit::promise::Observed;
use rxo_testkit::script::{Script, Setup, Step};
use rxo_testkit::seg;

use crate::{groups, run_all_forms};

const BUSY: Event = Event::Load(Some(Load { unread: 3 }));
const IDLE: Event = Event::Load(Some(Load { unread: 0 }));
const UNKNOWN: Event = Event::Load(None);
const GAP: Duration = Duration::from_micros(10);
const AUTO: HoldRule = HoldRule::Auto { budget: Duration::from_micros(50), polls: 8 };
const PATIENT: HoldRule = HoldRule::Auto { budget: Duration::from_millis(1), polls: 8 };
/// The number of empty polls before each test, so that the smoothed gap between polls has settled.
const WARM_POLLS: usize = 20;

#[derive(Clone, Copy)]
enum Event {
    /// A gap between polls passes; then a poll receives this many segments of each flow.
    Poll(&'static [u32]),
    /// The receiver's load changes to this value.
    Load(Option<Load>),
    /// Time passes without a poll.
    Wait(Duration),
}
use Event::{Poll, Wait};

/// A delivery: the number of the poll (from 1) after which it left, its number of frames, and its reason.
type Left = (usize, usize, &'static str);

/// Builds the script of a test under `hold`.
fn script(hold: HoldRule, events: &[Event]) -> Script {
    let mut setup = Setup::new("inet-lro");
    setup.hold = Some(hold);
    let (mut frames, mut steps, mut now) = (Vec::new(), Vec::new(), Instant::ZERO);
    let mut sent = [0; 8];
    let warm = [BUSY].into_iter().chain([Poll(&[]); WARM_POLLS]);
    for event in warm.chain(events.iter().copied()) {
        match event {
            Event::Load(load) => steps.push(Step::Load(load)),
            Wait(time) => {
                now = now + time;
                steps.push(Step::Advance(time));
            }
            Poll(counts) => {
                now = now + GAP;
                steps.push(Step::Advance(GAP));
                for (flow, number) in of_flows(counts, &mut sent) {
                    let packet = seg().flow(flow).seq(100 + number * 100).id(number as u16);
                    steps.push(Step::Frame(frames.len()));
                    frames.push(Frame { arrived_at: now, ..packet.frame() });
                }
                steps.push(Step::Poll);
            }
        }
    }
    let mut script = Script::one_poll(setup, frames);
    script.steps = steps;
    script
}

/// Returns the flow and number of each segment that a poll receives.
fn of_flows(counts: &[u32], sent: &mut [u32; 8]) -> Vec<(u32, u32)> {
    let mut taken = Vec::new();
    for ((flow, count), sent) in (0..).zip(counts).zip(sent) {
        taken.extend((*sent..*sent + count).map(|number| (flow, number)));
        *sent += count;
    }
    taken
}

fn run(hold: HoldRule, events: &[Event]) -> Vec<Left> {
    let script = script(hold, events);
    let observed = run_all_forms(script.clone());
    by_poll(&script, &observed)
}

/// Returns the deliveries by poll. A delivery that leaves between two polls is assigned to the earlier poll.
fn by_poll(script: &Script, observed: &Observed) -> Vec<Left> {
    let mut left = Vec::new();
    let mut polls = 0;
    let steps = script.steps.iter().chain(&[Step::Flush]);
    for ((step, shown), reasons) in steps.zip(&observed.steps).zip(&observed.reasons) {
        polls += usize::from(*step == Step::Poll);
        for shown in shown {
            // A single delivery has no reason of its own, so it is taken from the counters of the step.
            let reason = shown.reason.unwrap_or_else(|| match reasons.keys().next() {
                Some(Why::Flush(reason)) if reasons.len() == 1 => reason,
                other => panic!("{other:?} and others in {step:?}"),
            });
            left.push((polls - WARM_POLLS, shown.frames.len(), reason));
        }
    }
    left
}

#[test]
fn a_segment_alone_leaves_at_the_end_of_its_poll() {
    assert_eq!(
        run(AUTO, &[Poll(&[1]), Poll(&[1])]),
        [(1, 1, "lone_segment"), (2, 1, "lone_segment")]
    );
}

#[test]
fn two_segments_wait_for_more() {
    let left = run(AUTO, &[Poll(&[2]), Poll(&[2]), IDLE, Poll(&[2])]);
    assert_eq!(left, [(2, 4, "receiver_idle"), (3, 2, "receiver_idle")]);
}

#[test]
fn a_receiver_that_becomes_idle_between_polls_is_given_all_at_once() {
    let nothing = Wait(Duration::ZERO);
    let left = run(AUTO, &[Poll(&[3, 2]), nothing, IDLE, nothing]);
    assert_eq!(left, [(1, 3, "receiver_idle"), (1, 2, "receiver_idle")]);
    for load in [BUSY, UNKNOWN] {
        let left = run(AUTO, &[Poll(&[3]), load, nothing]);
        assert_eq!(left, [(1, 3, "shutdown")], "nobody says that it is idle");
    }
}

#[test]
fn twenty_segments_are_enough() {
    assert_eq!(run(AUTO, &[Poll(&[10]), Poll(&[9]), Poll(&[1])]), [(3, 20, "enough_segments")]);
    assert_eq!(run(AUTO, &[Poll(&[10]), Poll(&[10])]), [(2, 20, "enough_segments")]);
}

#[test]
fn nothing_waits_that_the_next_poll_would_find_over_its_budget() {
    // The flow is 40 µs old at the fifth poll, and the next one is 10 µs away.
    let left = run(AUTO, &[Poll(&[2]); 6]);
    assert_eq!(left, [(5, 10, "hold_budget"), (6, 2, "shutdown")]);
}

#[test]
fn pauses_make_the_next_poll_uncertain_and_are_soon_forgotten() {
    let pause = Wait(Duration::from_millis(7));
    // Each pause counts as 50 µs. After five of them the smoothed gap is 41 µs, three polls later 23 µs: the
    // flow leaves 30 µs old, one poll earlier than otherwise. The next flow is held as long as usual.
    let pauses = [pause, Poll(&[])].repeat(4);
    let left = run(AUTO, &[&pauses[..], &[pause], &[Poll(&[2]); 9]].concat());
    assert_eq!(left, [(8, 8, "hold_budget"), (13, 10, "hold_budget")]);
}

#[test]
fn between_polls_the_budget_is_kept_by_the_clock() {
    let left = run(AUTO, &[Poll(&[3]), Wait(Duration::from_micros(49))]);
    assert_eq!(left, [(1, 3, "shutdown")]);
    let left = run(AUTO, &[Poll(&[3]), Wait(Duration::from_micros(50))]);
    assert_eq!(left, [(1, 3, "timeout")]);
}

#[test]
fn a_flow_that_gains_less_than_a_segment_a_poll_leaves() {
    // Shares at the three polls: 2, 1, 1/2.
    let left = run(AUTO, &[Poll(&[2]), Poll(&[]), Poll(&[]), Poll(&[])]);
    assert_eq!(left, [(3, 2, "little_gain")]);
    // Segments of another flow do not raise this flow's share.
    let left = run(AUTO, &[Poll(&[2, 2]), Poll(&[0, 2]), Poll(&[0, 2]), IDLE, Poll(&[0, 0])]);
    assert_eq!(left, [(3, 2, "little_gain"), (3, 6, "receiver_idle")]);
}

#[test]
fn the_share_starts_anew_with_each_aggregate() {
    // The share of an earlier aggregate does not count: two segments and none after leave as usual.
    let left = run(AUTO, &[Poll(&[20]), Poll(&[2]), Poll(&[]), Poll(&[])]);
    assert_eq!(left, [(1, 20, "enough_segments"), (4, 2, "little_gain")]);
}

#[test]
fn eight_polls_are_the_most() {
    let left = run(PATIENT, &[Poll(&[2]); 9]);
    assert_eq!(left, [(8, 16, "poll_limit"), (9, 2, "shutdown")]);
}

#[test]
fn nothing_waits_for_an_idle_receiver() {
    let left = run(AUTO, &[IDLE, Poll(&[3, 2]), Poll(&[4]), Poll(&[1])]);
    let idle = "receiver_idle";
    assert_eq!(left, [(1, 3, idle), (1, 2, idle), (2, 4, idle), (3, 1, idle)]);
}

/// Returns the poll and the number of frames of each delivery.
fn shown(hold: HoldRule, events: &[Event]) -> Vec<(usize, usize)> {
    run(hold, events).into_iter().map(|(poll, frames, _)| (poll, frames)).collect()
}

#[test]
fn where_the_load_is_idle_or_unknown_it_is_end_of_poll() {
    let traffic = [Poll(&[3, 2]), Poll(&[4, 1, 7]), Poll(&[1]), Poll(&[30]), Poll(&[2, 2, 2, 2])];
    for load in [IDLE, UNKNOWN] {
        let events: Vec<_> = [load].into_iter().chain(traffic).collect();
        assert_eq!(shown(AUTO, &events), shown(HoldRule::EndOfPoll, &events));
    }
    let events: Vec<_> = [UNKNOWN].into_iter().chain(traffic).collect();
    assert_eq!(run(AUTO, &events), run(HoldRule::EndOfPoll, &events), "for the same reasons too");
}

#[test]
fn requests_one_at_a_time_leave_as_without_coalescing_however_busy_the_receiver_is() {
    for load in [BUSY, IDLE, UNKNOWN] {
        let requests = script(AUTO, &[&[load][..], &[Poll(&[1]); 50]].concat());
        let mut alone = requests.clone();
        alone.setup.policy = "none";
        let (auto, none) = (run_all_forms(requests), run_all_forms(alone));
        assert_eq!(groups(&auto), groups(&none));
        let times =
            |observed: &Observed| observed.deliveries().map(|one| one.at).collect::<Vec<_>>();
        assert_eq!(times(&auto), times(&none));
    }
}

#[test]
fn a_flush_in_mid_poll_does_not_confuse_what_was_held_with_what_is_new() {
    // The first flow leaves within the poll (PSH); the second stays held; the first begins again at the index
    // that became free.
    let mut setup = Setup::new("linux-gro");
    setup.hold = Some(AUTO);
    let at = |flow: u32, number: u32| seg().flow(flow).seq(100 + number * 100).id(number as u16);
    let packets = [at(0, 0), at(0, 1), at(1, 0), at(1, 1), at(0, 2).psh(), at(0, 3), at(0, 4)];
    let mut script = Script::one_poll(setup, packets.map(|packet| packet.frame()).to_vec());
    let warm = [Step::Load(Some(Load { unread: 1 }))].into_iter().chain([Step::Poll; WARM_POLLS]);
    let story = [
        &[0, 1, 2, 3].map(Step::Frame)[..],
        &[Step::Poll, Step::Frame(4), Step::Push, Step::Frame(5), Step::Frame(6)],
        &[Step::Poll; 3],
    ];
    script.steps = warm.chain(story.concat()).collect();
    let observed = run_all_forms(script.clone());
    // Shares of the second flow: 2, 1, 1/2; of the first, which began again a poll later: 2, 1, 1/2.
    assert_eq!(
        by_poll(&script, &observed),
        [(1, 3, "psh"), (3, 2, "little_gain"), (4, 2, "little_gain")]
    );
}
