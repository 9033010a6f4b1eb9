//! Translates a poll rule in time into settings of a Linux host.
//!
//! * `rx-usecs` is the time of the poll rule: the network card waits for this time after the first packet
//!   before it raises an interrupt.
//! * `rx-frames` ends the wait early after this number of packets. The value is a number that 99 % of the polls
//!   do not exceed at this capture's rates, so that usually the time ends the wait.
//! * `gro_flush_timeout` with `napi_defer_hard_irqs` does in the kernel what `rx-usecs` does in the card: after
//!   a poll the interrupt stays off, and a timer starts the next poll. The timer is also set to the time of the
//!   poll rule.
//! * `napi_defer_hard_irqs` is the number of empty polls in a row after which the interrupt is switched on
//!   again. The value is chosen so that interrupts stay off during three of four pauses in this capture; a
//!   pause is the time from the end of a poll to the next packet. The value is at most [`MOST_EMPTY_POLLS`],
//!   because an idle host should sleep.

use super::load::fewer_packets;
use crate::report::{LinuxAdvice, Outcome};
use crate::study::PollRule;
use crate::words::plural;

const MOST_EMPTY_POLLS: u64 = 10;
/// The index of 75 % in a distribution with steps of 5 %.
const THREE_QUARTERS: usize = 15;
/// The largest value of `rx-frames` that every driver accepts.
const MOST_RX_FRAMES: u64 = 255;

/// Returns the settings of a Linux host for the poll rule of `outcome`; `None` if the rule is not a time.
pub(super) fn advice(outcome: &Outcome) -> Option<LinuxAdvice> {
    let Ok(PollRule::Time(time)) = outcome.poll.parse() else { return None };
    let time_ns = time.as_nanos() as u64;
    let rx_usecs = time_ns.div_ceil(1_000);
    let busy = outcome.packets_per_poll.p99.max(1);
    let rx_frames = busy.min(MOST_RX_FRAMES);
    let pause_ns = outcome.pause_ns.every_5_percent[THREE_QUARTERS];
    let empty_polls = pause_ns.div_ceil(time_ns.max(1)).clamp(1, MOST_EMPTY_POLLS);
    Some(LinuxAdvice {
        fewer_packets: fewer_packets(outcome),
        rx_usecs,
        rx_frames,
        gro_flush_timeout_ns: time_ns,
        napi_defer_hard_irqs: empty_polls,
        derivation: vec![
            format!("rx-usecs: the wait that these figures are for, {rx_usecs} us"),
            frames_because(busy),
            "gro_flush_timeout: the same time, for cards that cannot wait themselves".to_owned(),
            format!(
                "napi_defer_hard_irqs: 75 % of the pauses after a poll last at most {} us",
                pause_ns.div_ceil(1_000)
            ),
        ],
        commands: vec![
            format!("ethtool -C IF rx-usecs {rx_usecs} rx-frames {rx_frames}"),
            format!("echo {time_ns} > /sys/class/net/IF/gro_flush_timeout"),
            format!("echo {empty_polls} > /sys/class/net/IF/napi_defer_hard_irqs"),
        ],
    })
}

fn frames_because(busy: u64) -> String {
    let text = format!("rx-frames: 99 % of such polls have at most {}", plural(busy, "packet"));
    if busy > MOST_RX_FRAMES {
        format!("{text}; {MOST_RX_FRAMES} is the most that every driver takes")
    } else {
        format!("{text}, so the time decides")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Distribution;

    fn outcome(poll: &str, pause_ns: u64, packets: u64) -> Outcome {
        Outcome {
            poll: poll.to_owned(),
            pause_ns: Distribution { every_5_percent: [pause_ns; 21], ..Distribution::default() },
            packets_per_poll: Distribution { p99: packets, ..Distribution::default() },
            ..Outcome::default()
        }
    }

    #[test]
    fn the_time_of_a_poll_is_the_cards_and_the_timers() {
        let advice = advice(&outcome("time:50us", 120_000, 40)).unwrap();
        assert_eq!((advice.rx_usecs, advice.rx_frames), (50, 40));
        assert_eq!((advice.gro_flush_timeout_ns, advice.napi_defer_hard_irqs), (50_000, 3));
        assert_eq!(advice.commands[0], "ethtool -C IF rx-usecs 50 rx-frames 40");
    }

    #[test]
    fn an_idle_host_sleeps_and_a_busy_one_is_not_interrupted_early() {
        let idle = advice(&outcome("time:50us", 10_000_000_000, 1)).unwrap();
        assert_eq!(idle.napi_defer_hard_irqs, MOST_EMPTY_POLLS);
        let busy = advice(&outcome("time:500us", 0, 4_096)).unwrap();
        assert_eq!((busy.rx_frames, busy.napi_defer_hard_irqs), (MOST_RX_FRAMES, 1));
    }

    #[test]
    fn other_rules_say_nothing_of_time() {
        assert!(advice(&outcome("packets:64", 0, 64)).is_none());
        assert!(advice(&outcome("host:1us", 0, 64)).is_none());
    }
}
