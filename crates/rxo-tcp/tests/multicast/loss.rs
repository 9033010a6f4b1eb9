//! A cast under independent losses, beside as many unicasts over the same links. `rxo-lab cast` measures more of it.

use rxo_frame::Duration;
use rxo_tcp::Repairs;

use crate::costs::Case;
use crate::room::{group_config, parity_config};

/// Independent losses do not multiply: a cast beats as many unicasts in time and in bytes.
#[test]
fn a_cast_beats_as_many_unicasts_at_each_loss() {
    for (receivers, loss) in [(5, 0), (5, 1), (5, 10), (5, 30), (20, 10), (20, 30)] {
        let case = Case { receivers, bytes: 4_000_000, loss, stops: None };
        let unicasts = case.unicasts();
        for config in [parity_config(), group_config()] {
            let cast = case.cast(config);
            let is_less = cast.time < unicasts.time && 3 * cast.bytes < unicasts.bytes;
            assert!(is_less, "{case:?}: {cast:?}, unicasts {unicasts:?}");
        }
    }
}

#[test]
fn joins_and_farewells_take_less_than_300_ms() {
    for receivers in [5, 20] {
        let case = Case { receivers, bytes: 100_000, loss: 0, stops: None };
        for config in [parity_config(), group_config()] {
            let cast = case.cast(config);
            assert!(cast.around < Duration::from_millis(300), "{case:?}: {cast:?}");
        }
    }
}

/// Five receivers get segments sooner than parity packets, which wait for the end of their block; many do not.
#[test]
fn the_best_repairs_take_less_time_than_others() {
    for receivers in [5, 32] {
        let case = Case { receivers, bytes: 10_000_000, loss: 30, stops: None };
        let mut ways = [parity_config(), group_config()];
        ways.sort_by_key(|config| case.cast(*config).time);
        assert_eq!(ways[0].repairs, Repairs::best_for(receivers.into()), "{case:?}");
    }
}

/// One packet repairs a different loss at each receiver: the more receivers, the more bytes that saves.
#[test]
fn parity_packets_are_fewer_than_repeated_segments() {
    for (receivers, loss, most) in [(20, 10, 1.12), (20, 30, 1.20), (60, 10, 1.13), (60, 30, 1.22)]
    {
        let case = Case { receivers, bytes: 4_000_000, loss, stops: None };
        let (parity, group) = (case.cast(parity_config()), case.cast(group_config()));
        let files = parity.bytes as f64 / case.bytes as f64;
        assert!(files < most, "{case:?}: {files} files");
        assert!(parity.bytes < group.bytes, "{case:?}: {parity:?}, repeated {group:?}");
    }
}
