//! The deliveries that a workload permits, by the test kit's oracle, which shares no code with the engine.

use rxo_coalesce::PureAckRule;
use rxo_frame::{Frame, Instant};
use rxo_testkit::oracle::{self, PureAcks};
use rxo_testkit::{Script, Setup, Step, Traffic};

use crate::contender::{Acks, Outcome, policy};
use crate::lineup::Checksum;

/// Returns the outcome of a pass over `traffic` in which every batch is coalesced as far as `linux-gro` permits.
pub(crate) fn expected(traffic: &Traffic, checksum: Checksum, acks: Acks) -> Outcome {
    let pure_acks = match acks.rule {
        PureAckRule::Bypass => PureAcks::Bypass,
        PureAckRule::Single => PureAcks::Single,
        PureAckRule::Record => PureAcks::Record,
    };
    let setup = Setup {
        pure_acks: Some(pure_acks),
        udp: Some(policy(traffic).takes_datagrams()),
        trusts_checksums: checksum == Checksum::Trusted,
        ..Setup::new("linux-gro")
    };
    let frames: Vec<_> =
        traffic.iter().map(|bytes| Frame::new(bytes.to_vec(), Instant::ZERO)).collect();
    let numbers: Vec<_> = (0..frames.len()).map(Step::Frame).collect();
    let mut script = Script::one_poll(setup, frames);
    let polls = numbers.chunks(acks.batch_frames);
    script.steps = polls.flat_map(|poll| poll.iter().copied().chain([Step::Poll])).collect();
    let deliveries = oracle::expected(&script).concat().len() as u64;
    Outcome { deliveries, frames: traffic.len() as u64 }
}
