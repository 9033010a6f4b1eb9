//! `rxo-lab soak`: runs rxo under mixed traffic for a given time, and checks that nothing is lost and no
//! resource grows.
//!
//! A private network has `rxo run --take-over` between a peer and a host, and `rxo serve` behind the peer.
//! The time is divided into rounds. In a round short connections, bulk, datagrams and requests pass in both
//! directions, each byte checked, while rxo answers requests on its control socket. Then traffic stops: rxo's
//! counters must equal those of the interfaces on both sides, and the memory, descriptors and threads of its
//! processes are sampled. From the bottom up:
//!
//! * `counts`: the counters at a quiet moment, and the equations that must hold.
//! * `trend` and `resources`: the resources of each process, and their growth.
//! * `load`: the traffic of a round.
//! * `scene`: the networks and processes.
//! * `findings`: the result as a table and as JSON.
//!
//! The verdict depends on no rate and no time: a slow machine carries less traffic.

mod counts;
mod findings;
mod load;
mod resources;
mod scene;
mod trend;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rxo_console::fault::{partial, usage};
use rxo_console::{numbers, output};
use rxo_testbed::become_root_in_user_namespace;

use self::findings::Findings;
use self::scene::Scene;
use crate::flags::SoakFlags;

/// Runs rounds until the time is over, and prints the result.
///
/// # Errors
/// If the time is invalid, a byte arrives wrong, a process ends, a counter does not add up, or something
/// grows; after `stop`, once the partial result has been printed.
pub(crate) fn run(flags: &SoakFlags, stop: &AtomicBool) -> Result<()> {
    let time = time(flags)?;
    let round = round_of(time);
    become_root_in_user_namespace()?;
    let mut scene = Scene::start()?;
    let mut findings = Findings::new(scene.counts()?);
    let begun = Instant::now();
    let mut broken = None;
    while begun.elapsed() < time && !stop.load(Ordering::Relaxed) && broken.is_none() {
        broken = one_round(&mut scene, &mut findings, round, begun).err();
    }
    let broken = match broken {
        Some(why) => Some(anyhow!("{why:#}; {}", scene.last_words())),
        None => scene.finish().err(),
    };
    findings.print(flags.json)?;
    if let Some(why) = broken {
        return Err(why);
    }
    findings.verdict()?;
    if begun.elapsed() < time {
        return Err(partial("stopped by a signal before the time was over".to_owned()));
    }
    Ok(())
}

/// Runs traffic, then stops it and compares all counters.
fn one_round(
    scene: &mut Scene,
    findings: &mut Findings,
    round: Duration,
    begun: Instant,
) -> Result<()> {
    let carried = scene.carry(round)?;
    let counts = scene.counts()?;
    let samples = scene.sample(begun.elapsed().as_secs_f64())?;
    findings.add(carried, counts, samples);
    output::aside(&findings.line());
    findings.holds()
}

fn time(flags: &SoakFlags) -> Result<Duration> {
    let text = flags.seconds.clone().unwrap_or_else(|| format!("{}m", flags.minutes));
    let time = match &flags.seconds {
        Some(text) => numbers::parse_time(text),
        None => Some(Duration::from_secs(60 * flags.minutes)),
    };
    let range = LEAST..=MOST;
    time.filter(|time| range.contains(time)).ok_or_else(|| {
        usage(format!("a soak of {text}: choose 10s (--seconds) to 10080 minutes (--minutes)"))
    })
}

/// Returns the length of a round: short enough for a trend, and long enough for traffic to start.
fn round_of(time: Duration) -> Duration {
    (time / 60).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

const LEAST: Duration = Duration::from_secs(10);
const MOST: Duration = Duration::from_secs(7 * 24 * 3_600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::typed;

    #[test]
    fn the_time_is_typed_in_minutes_or_seconds_and_bounded() {
        let time = |line: &str| time(&typed(line).unwrap());
        assert_eq!(time("").unwrap(), Duration::from_secs(1_200));
        assert_eq!(time("--minutes 3").unwrap(), Duration::from_secs(180));
        assert_eq!(time("--seconds 30s").unwrap(), Duration::from_secs(30));
        for wrong in ["--minutes 0", "--seconds 1s", "--seconds x", "--minutes 99999"] {
            let said = time(wrong).unwrap_err().to_string();
            assert!(said.contains("choose 10s"), "{said}");
        }
    }

    #[test]
    fn a_long_soak_has_rounds_of_ten_seconds() {
        let seconds = |time| round_of(Duration::from_secs(time)).as_secs();
        assert_eq!([30, 300, 1_200, 90_000].map(seconds), [1, 5, 10, 10]);
    }
}
