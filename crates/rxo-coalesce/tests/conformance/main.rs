//! Named tests for behaviour that the test suites of other projects check.
//!
//! Every case runs with all three checksum forms. Besides the number of deliveries, their content is compared
//! byte for byte: merged headers, checksums, segmentation fields, records.

mod acks;
mod auto;
mod coalescing;
mod datagrams;
#[path = "../harness/mod.rs"]
mod harness;
mod headers;
mod hidden;
mod limits;
mod marks;
mod mistakes;
mod offload;
mod papers;
mod told;
mod tunnels;

use rxo_testkit::promise::{Observed, check_promises, matches_the_oracle};
use rxo_testkit::script::{Form, Script, Setup, Step};
use rxo_testkit::sender::senders_agree;
use rxo_testkit::{Packet, naive, seg};

const FORMS: [Form; 3] = [Form::PseudoHeader, Form::Complete, Form::Verified];

/// Runs `packets` in one poll under `policy` and checks every promise. Returns the observed deliveries and
/// the payload length of each.
fn deliver_under(policy: &'static str, packets: &[Packet]) -> (Observed, Vec<usize>) {
    let frames: Vec<_> = packets.iter().map(Packet::frame).collect();
    let script = Script::one_poll(Setup::new(policy), frames);
    let observed = run_all_forms(script.clone());
    let lengths = payload_lengths(&script, &observed);
    (observed, lengths)
}

/// Runs a script with every checksum form and checks every promise. Returns the deliveries, which must be
/// equal for all forms.
fn run_all_forms(mut script: Script) -> Observed {
    let runs = FORMS.map(|form| {
        script.setup.form = form;
        let observed = harness::run(&script);
        check_promises(&script, &observed);
        matches_the_oracle(&script, &observed);
        senders_agree(&script, &observed);
        observed
    });
    let orders: Vec<_> = runs.iter().map(Observed::frame_order).collect();
    assert!(orders.windows(2).all(|pair| pair[0] == pair[1]));
    let [first, ..] = runs;
    first
}

fn payload_lengths(script: &Script, observed: &Observed) -> Vec<usize> {
    let payload = |index: &usize| match naive::read(script.frame(*index), script.setup.link) {
        naive::Reading::Segment(segment) | naive::Reading::Datagram(segment) => {
            segment.payload.len()
        }
        _ => script.frame(*index).bytes.len(),
    };
    observed.deliveries().map(|shown| shown.frames.iter().map(payload).sum()).collect()
}

/// Returns the frame numbers of each delivery.
fn groups(observed: &Observed) -> Vec<Vec<usize>> {
    observed.deliveries().map(|shown| shown.frames.clone()).collect()
}

/// Asserts that `packets` arrive with these payload lengths under `linux-gro`.
fn arrives(packets: &[Packet], lengths: &[usize]) {
    let (_, arrived) = deliver_under("linux-gro", packets);
    assert_eq!(arrived, lengths);
}

/// Asserts the payload lengths for IPv4 and IPv6; `packets` builds the packets from a first segment.
fn arrives_v4_and_v6(packets: impl Fn(Packet) -> Vec<Packet>, lengths: &[usize]) {
    arrives(&packets(seg()), lengths);
    arrives(&packets(seg().v6()), lengths);
}

/// Builds the segment that begins `bytes` after the start of `base`.
fn at(base: &Packet, bytes: u32) -> Packet {
    base.clone().seq(100 + bytes)
}

/// Builds a script of several polls, each with its packets.
fn polls(policy: &'static str, polls: &[Vec<Packet>]) -> Script {
    let frames: Vec<_> = polls.iter().flatten().map(Packet::frame).collect();
    let mut script = Script::one_poll(Setup::new(policy), frames);
    script.steps.clear();
    let mut number = 0;
    for poll in polls {
        script.steps.extend((number..number + poll.len()).map(Step::Frame));
        script.steps.push(Step::Poll);
        number += poll.len();
    }
    script
}
