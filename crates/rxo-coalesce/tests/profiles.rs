//! Each profile equals its column in the table of policies in the design document.

use rxo_coalesce::{
    AckRule, CeRule, Config, EceRule, Engine, FinRule, Hold, IdRule, OptionRule, PayloadRule,
    Policy, PshRule, UdpRule, WindowRule,
};

use rxo_frame::{Frame, Gather, Instant};
use rxo_testkit::seg;

const KIB: u32 = 1024;
const MTU: u32 = 1500;
const UNLIMITED: u16 = u16::MAX;

/// Returns the column of a policy, in the order of the rows.
fn column(policy: Policy) -> (u16, u32, u16, AckRule, WindowRule, OptionRule, PshRule, FinRule) {
    let Policy { max_segments, max_bytes, flows, ack, window, options, psh, fin, .. } = policy;
    (max_segments, max_bytes, flows, ack, window, options, psh, fin)
}

#[test]
fn the_profiles_are_those_of_the_design() {
    use {AckRule as A, FinRule as F, OptionRule as O, PshRule as P, WindowRule as W};
    let most = 65_535;
    let lro = 64 * KIB - MTU;
    let (any, timestamp, forward) = (W::Latest, O::TimestampOnly, O::TimestampNotDecreasing);
    let rsc = |segments| {
        (segments, most, 4, A::Latest, any, timestamp, P::AppendThenCloseAloneAsIs, F::Bypass)
    };
    for (policy, expected) in [
        (
            Policy::menon_2008(),
            (20, most, 1024, A::NotDecreasing, any, timestamp, P::Keep, F::Bypass),
        ),
        (Policy::inet_lro(), (64, lro, 8, A::Latest, any, forward, P::Keep, F::Bypass)),
        (Policy::gallatin_2007(), (64, lro, 8, A::Latest, any, forward, P::Keep, F::Bypass)),
        (Policy::rsc_2006(), rsc(UNLIMITED)),
        (Policy::rsc2(), rsc(2)),
        (Policy::rsc3(), rsc(3)),
        (Policy::rsc5(), rsc(5)),
        (Policy::xen_delayed(), (64, most, 8, A::Latest, any, forward, P::Keep, F::Bypass)),
        (
            Policy::linux_gro(),
            (
                1_022,
                most,
                64,
                A::Equal,
                W::Equal,
                O::Identical,
                P::AppendThenClose,
                F::AppendThenClose,
            ),
        ),
        (
            Policy::remember(),
            (64, most, 1024, A::NotDecreasing, any, forward, P::AppendThenClose, F::Bypass),
        ),
    ] {
        assert_eq!(column(policy), expected, "{}", policy.name);
    }
}

#[test]
fn marks_df_and_echoes_are_those_of_the_design() {
    let lro = (EceRule::Bypass, CeRule::Bypass, false, false);
    let rsc = (EceRule::Bypass, CeRule::Bypass, true, true);
    let gro = (EceRule::Equal, CeRule::Bypass, false, true);
    for policy in Policy::all() {
        let expected = match policy.name {
            "inet-lro" | "gallatin-2007" | "xen-delayed" => lro,
            "rsc-2006" | "rsc2" | "rsc3" | "rsc5" => rsc,
            "remember" => (EceRule::Equal, CeRule::Equal, false, true),
            _ => gro,
        };
        let Policy { ece, ce, needs_df, zero_echo, .. } = policy;
        assert_eq!((ece, ce, needs_df, zero_echo), expected, "{}", policy.name);
        let compares = matches!(policy.name, "linux-gro" | "remember" | "none");
        assert_eq!(policy.ip_id == IdRule::Regular, compares, "{}: no paper does", policy.name);
        assert_eq!(ce == CeRule::Equal, policy.needs_records, "{}: marks are told", policy.name);
    }
}

#[test]
fn holds_and_payload_sizes_are_those_of_the_design() {
    for policy in Policy::all() {
        let hold = match policy.name {
            "rsc-2006" | "rsc2" | "rsc3" | "rsc5" => Hold::EveryNPackets(20),
            "xen-delayed" => Hold::EveryNthPoll(2),
            _ => Hold::EndOfPoll,
        };
        assert_eq!(policy.hold, hold, "{}", policy.name);
        let payload = match policy.name {
            "linux-gro" | "none" => PayloadRule::SameThenShorter,
            _ => PayloadRule::Any,
        };
        assert_eq!(policy.payload, payload, "{}", policy.name);
        let buffer = if policy.name.starts_with("rsc") { 8 * KIB } else { u32::MAX };
        assert_eq!(policy.buffer_bytes, buffer, "{}", policy.name);
    }
}

#[test]
fn udp_is_for_those_whose_receiver_segments_it() {
    for policy in Policy::all() {
        let expected = if policy.name == "linux-gro" { UdpRule::Auto } else { UdpRule::Off };
        assert_eq!(policy.udp, expected, "{}", policy.name);
    }
}

#[test]
fn only_what_can_be_cut_again_says_so() {
    for policy in Policy::all() {
        let expected = matches!(policy.name, "linux-gro" | "none");
        assert_eq!(policy.is_resegmentable(), expected, "{}", policy.name);
    }
}

/// `writev` takes 1,024 pieces with the `virtio_net_hdr`, and cuts off the rest without an error.
#[test]
fn an_aggregate_of_many_short_segments_fits_into_one_gathered_write() {
    let batch_frames = 2_048;
    let config = Config { batch_frames, ..Config::new(Policy::linux_gro(), 1) };
    let mut engine = Engine::new(config).unwrap();
    let segment = |n| seg().id(n as u16).seq(1 + n * 20).len(20).bytes();
    let mut batch: Vec<_> =
        (0..batch_frames as u32).map(|n| Frame::new(segment(n), Instant::ZERO)).collect();
    let mut pieces = Vec::new();
    engine.poll(&mut batch, Instant::ZERO, |deliveries| {
        for delivery in deliveries.iter() {
            let mut count = 0;
            delivery.for_each_slice(|_| count += 1);
            pieces.push(count);
        }
    });
    assert_eq!(pieces, [1_023, 1_023, 5]);
}
