use super::*;

fn us(micros: u64) -> Instant {
    Instant::from_micros(micros)
}

/// Returns the polls of `rule` for arrivals at these microseconds: the number of packets and the time of
/// each.
fn polls(rule: &str, arrivals: &[u64]) -> Vec<(u32, u64)> {
    let mut polls = Polls::new(rule.parse().unwrap());
    let mut seen = Vec::new();
    for at in arrivals {
        while let Some(poll) = polls.before(us(*at)) {
            seen.push(poll);
        }
        seen.extend(polls.after(us(*at)));
    }
    while let Some(poll) = polls.rest() {
        seen.push(poll);
    }
    assert_eq!(polls.waiting(), 0);
    seen.into_iter().map(|poll| (poll.packets, poll.at.as_nanos() / 1_000)).collect()
}

#[test]
fn packets_are_counted_whatever_the_time() {
    assert_eq!(polls("packets:3", &[0, 1, 900, 901, 902]), [(3, 900), (2, 902)]);
    assert_eq!(polls("packets:1", &[5, 6]), [(1, 5), (1, 6)]);
}

#[test]
fn a_time_runs_from_the_first_packet_of_the_poll() {
    // The packet at 50 arrives after the poll.
    assert_eq!(polls("time:50us", &[0, 10, 49, 50, 200]), [(3, 50), (1, 100), (1, 250)]);
}

#[test]
fn an_idle_host_takes_each_packet_at_once() {
    assert_eq!(polls("host:1us", &[0, 10, 20]), [(1, 0), (1, 10), (1, 20)]);
}

#[test]
fn a_busy_host_takes_all_that_came_meanwhile() {
    // Busy with the first packet until 10, then with those at 1, 2 and 10 until 40, then with the
    // rest.
    let arrivals = [0, 1, 2, 10, 11, 39, 60];
    assert_eq!(polls("host:10us", &arrivals), [(1, 0), (3, 10), (2, 40), (1, 60)]);
}

#[test]
fn a_host_takes_no_more_than_its_budget() {
    let arrivals: Vec<u64> = core::iter::once(0).chain(core::iter::repeat_n(1, 100)).collect();
    assert_eq!(polls("host:5us", &arrivals), [(1, 0), (64, 5), (36, 325)]);
}

#[test]
fn a_full_ring_ends_the_wait() {
    let arrivals = vec![0; RING_PACKETS as usize + 10];
    assert_eq!(polls("time:50us", &arrivals), [(RING_PACKETS, 0), (10, 50)]);
    let mut polls = Polls::new(PollRule::Host(Duration::from_secs(1)));
    let taken: u32 =
        (0..10_000).filter_map(|_| polls.after(Instant::ZERO)).map(|poll| poll.packets).sum();
    assert_eq!(taken + polls.waiting(), 10_000);
    assert!(polls.waiting() < RING_PACKETS && polls.overruns() > 0);
}

#[test]
fn every_packet_is_taken_once_and_time_never_goes_back() {
    let mut random = rxo_testkit::Random::new(7);
    for rule in ["packets:7", "time:3us", "host:700ns", "host:9us"] {
        let mut at = 0;
        let arrivals: Vec<u64> = (0..5_000)
            .map(|_| {
                at += random.below(6);
                at
            })
            .collect();
        let seen = polls(rule, &arrivals);
        assert_eq!(seen.iter().map(|poll| poll.0).sum::<u32>(), 5_000, "{rule}");
        assert!(seen.iter().all(|poll| poll.0 > 0), "{rule}: an empty poll");
        assert!(seen.is_sorted_by_key(|poll| poll.1), "{rule}");
    }
}

#[test]
fn rules_are_read_as_they_are_shown() {
    for text in ["packets:64", "time:50us", "time:1500ns", "host:1us", "host:20ms", "time:1s"] {
        assert_eq!(text.parse::<PollRule>().unwrap().to_string(), text);
    }
    for text in
        ["", "64", "packets:", "packets:0", "packets:32769", "time:0us", "time:2s", "host:1", "x:1"]
    {
        assert_eq!(text.parse::<PollRule>(), Err(BadPollRule), "{text}");
    }
}
