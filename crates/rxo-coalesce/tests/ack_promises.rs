//! Promises for acknowledgements: a sender learns the same from the deliveries as from the original frames.

mod harness;

use proptest::prelude::{prop_assert_eq, proptest};
use rxo_testkit::oracle::PureAcks;
use rxo_testkit::promise::{check_promises, matches_the_oracle};
use rxo_testkit::script::{Script, ack_scripts, property};
use rxo_testkit::sender::senders_agree;

const MOST_EVENTS: usize = 150;

fn check(script: &Script) {
    let observed = harness::run(script);
    check_promises(script, &observed);
    matches_the_oracle(script, &observed);
    senders_agree(script, &observed);
}

proptest! {
    #![proptest_config(property(200))]

    #[test]
    fn every_promise_holds_for_acks(script in ack_scripts(MOST_EVENTS)) {
        check(&script);
    }

    #[test]
    fn a_sender_learns_the_same_from_the_last_of_several(mut script in ack_scripts(MOST_EVENTS)) {
        script.setup.pure_acks = Some(PureAcks::Single);
        check(&script);
    }

    #[test]
    fn a_sender_learns_everything_from_records(mut script in ack_scripts(MOST_EVENTS)) {
        script.setup.pure_acks = Some(PureAcks::Record);
        check(&script);
    }

    #[test]
    fn a_list_that_covers_another_says_what_it_said(mut script in ack_scripts(MOST_EVENTS)) {
        script.setup.policy = "gallatin-2007";
        script.setup.pure_acks = Some(PureAcks::Single);
        script.setup.sack_superset = Some(true);
        check(&script);
    }

    #[test]
    fn every_promise_holds_with_little_memory(mut script in ack_scripts(MOST_EVENTS)) {
        script.setup.batch_frames = 1 + script.setup.seed as usize % 8;
        let observed = harness::run(&script);
        check_promises(&script, &observed);
        senders_agree(&script, &observed);
    }

    #[test]
    fn the_hash_seed_shows_nowhere(mut script in ack_scripts(MOST_EVENTS)) {
        let before = harness::run(&script);
        script.setup.seed = !script.setup.seed;
        prop_assert_eq!(before, harness::run(&script));
    }
}
