//! Simulates a device with a constant rate, on virtual time.

use super::*;

/// A link with an unlimited queue.
struct Link {
    drain: Drain,
    now: Instant,
    queued: u64,
    bytes_a_second: u64,
    sent: u64,
    /// Total time in which the queue was empty.
    idle: Duration,
}

impl Link {
    fn with_rate(bytes_a_second: u64) -> Self {
        let now = Instant::from_micros(1);
        Self { drain: Drain::new(), now, queued: 0, bytes_a_second, sent: 0, idle: Duration::ZERO }
    }

    fn pass(&mut self, time: Duration) {
        let most = u128::from(self.bytes_a_second) * time.as_nanos() / NS_A_SECOND;
        let most = u64::try_from(most).unwrap();
        let out = most.min(self.queued);
        let idle_ns = ((most - out) * 1_000_000_000).checked_div(self.bytes_a_second);
        self.idle += Duration::from_nanos(idle_ns.unwrap_or(0));
        (self.queued, self.now) = (self.queued - out, self.now + time);
    }

    fn read(&mut self) {
        self.drain.read(self.now, Reading::Queued(self.queued));
    }

    /// Sends frames of `bytes` until there is no free space, as a worker does.
    fn fill(&mut self, bytes: u64) {
        loop {
            if self.drain.room() == 0 && self.drain.is_due(self.now) {
                self.read();
            }
            if self.drain.room() == 0 {
                return;
            }
            let bytes = bytes.min(self.drain.largest_send().into()).max(1_500);
            self.drain.sent(bytes);
            (self.queued, self.sent) = (self.queued + bytes, self.sent + bytes);
        }
    }

    /// Keeps the link full for `time`; each wait takes `late` longer than requested. Returns the maximum
    /// queue length, and the number of rounds.
    fn run(&mut self, time: Duration, late: Duration) -> (u64, u32) {
        let (end, mut most, mut turns) = (self.now + time, 0, 0);
        while self.now < end {
            self.fill(64_000);
            (most, turns) = (most.max(self.queued), turns + 1);
            let wait = self.drain.read_at().expect("it is full").since(self.now);
            self.pass(if wait < Duration::from_micros(1) { wait } else { wait + late });
        }
        (most, turns)
    }
}

/// Each rate with the maximum of the queue, expressed as the time that the device takes to send it.
#[test]
fn a_queue_is_two_milliseconds_and_a_frame_and_never_empty() {
    for (rate, most_ms) in [(1_250_000, 12), (12_500_000, 6), (125_000_000, 3), (1_250_000_000, 3)]
    {
        let mut link = Link::with_rate(rate);
        link.run(Duration::from_secs(1), Duration::ZERO);
        link.idle = Duration::ZERO;
        let (most, turns) = link.run(Duration::from_secs(1), Duration::ZERO);
        assert!(most <= rate * most_ms / 1_000, "{most} bytes wait at {rate}");
        assert!(link.idle < Duration::from_millis(1), "{:?} idle at {rate}", link.idle);
        assert!(turns < 5_000, "{turns} turns in a second");
    }
}

#[test]
fn a_thread_that_comes_late_leaves_more_in_the_queue() {
    let (late, second) = (Duration::from_millis(4), Duration::from_secs(1));
    let mut link = Link::with_rate(125_000_000);
    link.run(second, late);
    link.idle = Duration::ZERO;
    let (most, _) = link.run(second, late);
    assert!(link.idle < second / 20, "{:?} idle", link.idle);
    assert!(most <= 125_000 * 25, "{most} bytes");
    let (most, _) = link.run(second, Duration::ZERO);
    let (settled, _) = link.run(second, Duration::ZERO);
    assert!(settled < most, "and less again when it is in time: {settled} after {most}");
}

#[test]
fn a_link_that_becomes_slower_is_followed() {
    let mut link = Link::with_rate(1_250_000_000);
    link.run(Duration::from_millis(100), Duration::ZERO);
    link.bytes_a_second = 12_500_000;
    link.run(Duration::from_secs(1), Duration::ZERO);
    let (most, _) = link.run(Duration::from_secs(1), Duration::ZERO);
    assert!(most <= 12_500 * 6, "{most}");
    link.bytes_a_second = 1_250_000_000;
    link.run(Duration::from_secs(1), Duration::ZERO);
    link.idle = Duration::ZERO;
    link.run(Duration::from_secs(1), Duration::ZERO);
    assert!(link.idle < Duration::from_millis(1), "{:?}", link.idle);
}

#[test]
fn a_device_that_sends_at_once_is_never_waited_for() {
    let mut drain = Drain::new();
    for _ in 0..1_000 {
        if drain.room() == 0 {
            drain.read(Instant::ZERO, Reading::Queued(0));
        }
        assert!(drain.room() > 0 && drain.read_at().is_none());
        drain.sent(64_000);
    }
    assert_eq!(drain.limit, MOST_UNMEASURED_BYTES);
}

#[test]
fn a_device_that_cannot_know_is_not_limited() {
    let mut drain = Drain::new();
    assert!(drain.limits());
    drain.read(Instant::ZERO, Reading::Unknown);
    drain.sent(1 << 40);
    assert!(!drain.limits() && drain.room() > 0 && drain.read_at().is_none());
}

/// A device from which nothing leaves is given more data ten times a second, until it reports that it is
/// full.
#[test]
fn a_device_from_which_nothing_leaves_gets_more_and_it_is_counted() {
    let mut link = Link::with_rate(0);
    let (_, turns) = link.run(Duration::from_secs(1), Duration::ZERO);
    assert!((8..=10).contains(&link.drain.stalls), "{}", link.drain.stalls);
    assert!(link.queued < 2 << 20, "{}", link.queued);
    assert!(turns < 2_000, "{turns} turns in a second");
    link.bytes_a_second = 125_000_000;
    let before = link.sent;
    link.run(Duration::from_secs(1), Duration::ZERO);
    assert!(link.sent - before > 100_000_000, "it goes on: {}", link.sent - before);
}

#[test]
fn a_blocked_device_is_asked_again_soon_and_is_given_something_in_the_end() {
    let (mut drain, mut now, mut given) = (Drain::new(), Instant::from_micros(1), 0);
    let mut readings = 0;
    while now < Instant::from_micros(1_000_000) {
        drain.read(now, Reading::Blocked);
        readings += 1;
        given += drain.room();
        now = drain.read_at().unwrap_or(now.plus_nanos(1));
    }
    assert!((8..=10).contains(&drain.stalls) && given == drain.stalls * STUCK_ROOM_BYTES);
    assert!(readings < 2_100, "{readings}");
    drain.read(now, Reading::Queued(0));
    assert!(drain.room() > 0, "it has room again");
}
