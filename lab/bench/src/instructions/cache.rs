//! Misses of simulated caches, which show what a count of instructions hides: memory that many connections share out
//! of the caches.
//!
//! The sizes are those of one core, whatever the machine has: 48 KiB of first level, 1 MiB of second. Callgrind has no
//! prefetcher, so copies miss here that a processor reads ahead of time. Compare rows, not machines.

use anyhow::{Context, Result};

/// The options that make callgrind simulate caches. Its last level stands for a core's second.
pub(super) const SIMULATION: [&str; 4] =
    ["--cache-sim=yes", "--I1=32768,8,64", "--D1=49152,12,64", "--LL=1048576,16,64"];

/// Prints instructions and misses of data per item.
pub(super) fn print(
    profiles: impl IntoIterator<Item = (String, Result<(String, f64)>)>,
) -> Result<()> {
    println!("{:<21} {:>9} {:>9} {:>9}", "workload", "executed", "L1 misses", "L2 misses");
    for (subject, profile) in profiles {
        let (profile, items) = profile?;
        let counts = sums(&profile).context("a profile without simulated caches")?;
        let [executed, first, last] = counts.map(|count| count / items);
        println!("{subject:<21} {executed:>9.1} {first:>9.2} {last:>9.2}");
    }
    Ok(())
}

/// Returns the instructions of a profile, and the misses of data in its first and its last cache.
fn sums(profile: &str) -> Option<[f64; 3]> {
    let list = |name| profile.lines().find_map(|line: &str| line.strip_prefix(name));
    let totals: Vec<&str> = list("totals:")?.split_whitespace().collect();
    let events: Vec<&str> = list("events:")?.split_whitespace().collect();
    let of = |wanted: &str| {
        let at = events.iter().position(|event| *event == wanted)?;
        // Callgrind leaves out zeros at the end.
        totals.get(at).map_or(Some(0.0), |count| count.parse().ok())
    };
    Some([of("Ir")?, of("D1mr")? + of("D1mw")?, of("DLmr")? + of("DLmw")?])
}

#[cfg(test)]
mod tests {
    use super::sums;

    #[test]
    fn reads_and_writes_that_miss_are_added() {
        let events = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n";
        let profile = format!("{events}fn=(1) f\n3 9\ntotals: 100 40 20 1 7 3 1 5\n");
        assert_eq!(sums(&profile), Some([100.0, 10.0, 5.0]));
        assert_eq!(sums("events: Ir\ntotals: 100\n"), None);
    }
}
