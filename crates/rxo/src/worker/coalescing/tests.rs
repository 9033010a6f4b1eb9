use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// The judge of coalescing, and the totals that it gets, one second at a time.
struct World {
    judge: Judge,
    now: Instant,
    totals: Sample,
    /// The number of times that the engine was switched off or on, probes included.
    switches: u64,
}

impl World {
    fn new() -> Self {
        let (judge, totals) = (Judge::new(), Sample::default());
        let mut world = Self { judge, now: Instant::ZERO, totals, switches: 0 };
        world.second(0, 1.0);
        world
    }

    /// Simulates a second with `frames` frames and, while the engine is on, `per_delivery` frames per
    /// delivery.
    fn second(&mut self, frames: u64, per_delivery: f64) {
        self.busy_second(frames, per_delivery, SECOND / 2);
    }

    fn busy_second(&mut self, frames: u64, per_delivery: f64, cpu: Duration) {
        let was_on = self.judge.is_on();
        self.now = self.now + SECOND;
        self.totals.frames += frames;
        let per_delivery = if was_on { per_delivery } else { 1.0 };
        self.totals.deliveries += (frames as f64 / per_delivery).round() as u64;
        self.totals.cpu += cpu;
        self.judge.observe(self.now, self.totals);
        self.switches += u64::from(self.judge.is_on() != was_on);
    }

    fn seconds(&mut self, count: u32, frames: u64, per_delivery: f64) {
        (0..count).for_each(|_| self.second(frames, per_delivery));
    }

    /// Returns the number of seconds until the engine is on, or off, with unchanged traffic.
    fn until(&mut self, is_on: bool, frames: u64, per_delivery: f64) -> u32 {
        for seconds in 0..2_000 {
            if self.judge.is_on() == is_on {
                return seconds;
            }
            self.second(frames, per_delivery);
        }
        panic!("it stays {:?}", self.judge);
    }
}

#[test]
fn what_never_pays_is_switched_off_and_tried_after_growing_pauses() {
    let mut world = World::new();
    world.seconds(9, 50_000, 1.0);
    assert!(world.judge.is_on());
    world.second(50_000, 1.0);
    assert!(!world.judge.is_on());
    let pauses: Vec<_> = (0..9)
        .map(|_| {
            let pause = world.until(true, 50_000, 1.0);
            assert!(world.judge.is_probe());
            // The first second is mixed, and the next two decide.
            assert_eq!(world.until(false, 50_000, 1.0), 3);
            pause
        })
        .collect();
    // The first second after a change is mixed, too.
    assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 600, 600, 600]);
    assert_eq!((world.judge.switched_off, world.judge.switched_on, world.judge.probes), (1, 0, 9));
}

#[test]
fn what_pays_stays_on() {
    let mut world = World::new();
    for per_delivery in [1.05, 1.5, 20.0, 1.03] {
        world.seconds(500, 50_000, per_delivery);
    }
    assert_eq!((world.switches, world.judge.probes), (0, 0));
}

#[test]
fn a_probe_that_pays_switches_it_on_and_later_pauses_are_short_again() {
    let mut world = World::new();
    world.until(false, 50_000, 1.0);
    for _ in 0..3 {
        world.until(true, 50_000, 1.0);
        world.until(false, 50_000, 1.0);
    }
    world.until(true, 50_000, 10.0);
    world.seconds(3, 50_000, 10.0);
    assert!(world.judge.is_on() && !world.judge.is_probe());
    assert_eq!(world.judge.switched_on, 1);
    // Coalescing has not paid for long, so the pause is still long.
    world.until(false, 50_000, 1.0);
    assert_eq!(world.until(true, 50_000, 10.0), 160);
    world.seconds(3 + LONG, 50_000, 10.0);
    world.until(false, 50_000, 1.0);
    assert_eq!(world.until(true, 50_000, 1.0), 20, "twice the shortest");
}

#[test]
fn little_traffic_and_an_idle_worker_decide_nothing() {
    let mut world = World::new();
    world.seconds(100, LEAST_FRAMES - 1, 1.0);
    for _ in 0..100 {
        world.busy_second(100_000, 1.0, SECOND / 21);
    }
    assert_eq!(world.switches, 0);
    // Seconds without traffic in between count neither way.
    for _ in 0..9 {
        world.second(50_000, 1.0);
        world.second(0, 1.0);
    }
    assert!(world.judge.is_on());
    world.second(50_000, 1.0);
    assert!(!world.judge.is_on());
    // A probe waits for traffic.
    world.until(true, 0, 1.0);
    world.seconds(100, 0, 1.0);
    assert!(world.judge.is_probe());
    world.seconds(2, 50_000, 9.0);
    assert!(world.judge.is_on() && !world.judge.is_probe());
}

/// Reports come ten times per second.
#[test]
fn an_interval_is_a_second_however_often_it_is_looked() {
    let mut world = World::new();
    let step = SECOND / 10;
    for _ in 0..80 {
        world.now = world.now + step;
        (world.totals.frames, world.totals.deliveries) =
            (world.totals.frames + 5_000, world.totals.deliveries + 5_000);
        world.totals.cpu += step;
        world.judge.observe(world.now, world.totals);
    }
    assert!(world.judge.is_on(), "ten intervals have not passed");
    world.seconds(2, 50_000, 1.0);
    assert!(!world.judge.is_on());
}

#[test]
fn much_more_traffic_is_tried_at_once_but_not_again_and_again() {
    let mut world = World::new();
    world.until(false, 10_000, 1.0);
    for _ in 0..6 {
        world.until(true, 10_000, 1.0);
        world.until(false, 10_000, 1.0);
    }
    world.seconds(11, 10_000, 1.0);
    assert!(!world.judge.is_on(), "the pause is ten minutes by now");
    // A transfer begins, with ten times the traffic.
    assert_eq!(world.until(true, 100_000, 20.0), 1);
    world.until(false, 100_000, 1.0);
    // It did not pay, so the same amount of traffic causes no new probe.
    assert_eq!(world.until(true, 100_000, 1.0), 600);
}

#[test]
fn traffic_that_oscillates_switches_seldom_whatever_its_period() {
    let seconds = 36_000_u32;
    for period in 1..28 {
        for poor in 1..=period {
            let mut world = World::new();
            for second in 0..seconds {
                let per_delivery = if second % period < poor { 1.0 } else { 30.0 };
                world.second(50_000, per_delivery);
            }
            // Between two probes is a pause, which doubles until it reaches its limit.
            let (probes, switches) = (world.judge.probes, world.switches);
            let most = 7 + u64::from(seconds) / LONGEST_PAUSE.as_secs();
            assert!(probes <= most, "{probes} of at most {most}, {poor} of {period} s are poor");
            assert!(switches <= 2 * probes + 1, "{switches}");
        }
    }
}

proptest! {
    /// The shortest cycle is 30 s in which coalescing pays, 10 s in which it does not, 10 s off, and 3 s of a
    /// probe.
    #[test]
    fn switches_are_bounded_whatever_arrives(
        parts in prop::collection::vec((1..120_u32, 0..400_000_u64, 1.0..3.0_f64), 1..300),
    ) {
        let mut world = World::new();
        let mut seconds = 0;
        for (length, frames, per_delivery) in parts {
            // Half of the values are near the limits.
            let per_delivery = if per_delivery < 2.0 { 1.0 + (per_delivery - 1.0) / 10.0 } else { per_delivery };
            world.seconds(length, frames, per_delivery);
            seconds += u64::from(length);
        }
        let most = 2 * (seconds / 53 + 1) + 2 * 8;
        prop_assert!(world.switches <= most, "{} of at most {most} in {seconds} s", world.switches);
    }
}

#[test]
fn the_modes_are_read_and_written() {
    for mode in [Coalesce::On, Coalesce::Off, Coalesce::Auto] {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    assert_eq!("yes".parse::<Coalesce>(), Err(BadCoalesce));
}
