//! Converts the set-up of a script to the engine's types.

use rxo_coalesce::{
    CeRule, ChecksumForm, Config, EceRule, Hold, IdRule, Policy, PureAckRule, TunnelRule, UdpRule,
};
use rxo_testkit::oracle::{HoldRule, PureAcks};
use rxo_testkit::script::{Form, Setup};

/// Returns the engine configuration that `setup` describes.
pub(crate) fn config(setup: &Setup) -> Config {
    let mut policy = Policy::by_name(setup.policy).expect("a policy of the design");
    policy.max_segments = setup.max_segments.unwrap_or(policy.max_segments);
    policy.max_bytes = setup.max_bytes.unwrap_or(policy.max_bytes);
    policy.flows = setup.flows.unwrap_or(policy.flows);
    policy.hold = setup.hold.map_or(policy.hold, hold);
    policy.max_hold = setup.max_hold;
    policy.pure_acks = setup.pure_acks.map_or(policy.pure_acks, pure_acks);
    policy.max_acks = setup.max_acks.unwrap_or(policy.max_acks);
    policy.keep_every = setup.keep_every.unwrap_or(policy.keep_every);
    policy.sack_superset = setup.sack_superset.unwrap_or(policy.sack_superset);
    policy.ip_id = setup.any_id.map_or(policy.ip_id, |any| match any {
        true => IdRule::Any,
        false => IdRule::Regular,
    });
    policy.needs_df = setup.needs_df.unwrap_or(policy.needs_df);
    policy.zero_echo = setup.zero_echo.unwrap_or(policy.zero_echo);
    policy.udp = setup.udp.map_or(policy.udp, |merges| match merges {
        true => UdpRule::Equal,
        false => UdpRule::Off,
    });
    policy.tunnels = setup.tunnels.map_or(policy.tunnels, |merges| match merges {
        true => TunnelRule::On,
        false => TunnelRule::Off,
    });
    policy.ce = setup.merges_ce.map_or(policy.ce, |merges| match merges {
        true => CeRule::Equal,
        false => CeRule::Bypass,
    });
    policy.ece = setup.merges_ece.map_or(policy.ece, |merges| match merges {
        true => EceRule::Equal,
        false => EceRule::Bypass,
    });
    let mut config = Config::new(policy, setup.seed);
    config.link = setup.link;
    config.trust_checksums = setup.trusts_checksums;
    config.form = form(setup.form);
    config.batch_frames = setup.batch_frames;
    config
}

fn hold(rule: HoldRule) -> Hold {
    match rule {
        HoldRule::EndOfPoll => Hold::EndOfPoll,
        HoldRule::Polls(polls) => Hold::EveryNthPoll(polls),
        HoldRule::Packets(packets) => Hold::EveryNPackets(packets),
        HoldRule::Time(time) => Hold::Within(time),
        HoldRule::Auto { budget, polls } => Hold::Auto { budget, most_polls: polls },
    }
}

const fn pure_acks(rule: PureAcks) -> PureAckRule {
    match rule {
        PureAcks::Bypass => PureAckRule::Bypass,
        PureAcks::Single => PureAckRule::Single,
        PureAcks::Record => PureAckRule::Record,
    }
}

fn form(form: Form) -> ChecksumForm {
    match form {
        Form::PseudoHeader => ChecksumForm::PseudoHeader,
        Form::Complete => ChecksumForm::Complete,
        Form::Verified => ChecksumForm::Verified,
    }
}
