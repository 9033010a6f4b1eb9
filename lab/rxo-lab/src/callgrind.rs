//! Runs this program under callgrind, and sums the costs in its profile.
//!
//! A cost is a number of instructions or, if caches are simulated, of estimated cycles: one for each
//! instruction, ten more for each first-level miss, and a hundred more for each last-level miss
//! (KCachegrind's formula).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Once;

use anyhow::{Context, Result, bail};
use rxo_console::output;
pub(crate) use rxo_peers::profile::Origin;
use rxo_peers::profile::{self, Cost};

use crate::process;

/// Checks that valgrind is installed. The error is one line and names the remedy.
pub(crate) fn check() -> Result<()> {
    let mut command = Command::new("valgrind");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("valgrind ends with {status}; install it again"),
        Err(error) => bail!(
            "valgrind, which counts instructions, does not start: {error}; install it (apt-get install \
             valgrind)"
        ),
    }
}

/// Returns a command that runs this program under callgrind, counts inside functions whose names contain
/// `counted`, and writes the profile to `profile`. `simulation` holds callgrind's cache options.
pub(crate) fn command(counted: &str, profile: &Path, simulation: &[&str]) -> Result<Command> {
    let mut command = rxo_peers::callgrind(counted, profile);
    command.arg("--quiet").args(simulation).arg(process::program()?);
    Ok(command)
}

/// Reads a profile. Returns the sum of the costs of each category that has any. `category` maps an origin to its
/// category.
///
/// # Errors
/// If nothing was counted.
pub(crate) fn read<K: Ord>(
    profile: &Path,
    category: impl Fn(Origin<'_>) -> K,
) -> Result<BTreeMap<K, f64>> {
    let text = text(profile)?;
    let costs = costs(&text, weight, category);
    if costs.values().sum::<f64>() <= 0.0 {
        bail!("callgrind counted nothing; strip no symbols from rxo-lab");
    }
    if costs.len() > 1 && !has_lines(&text) {
        static SAID: Once = Once::new();
        SAID.call_once(|| output::note(WITHOUT_LINES));
    }
    Ok(costs)
}

/// Runs `work`; callgrind counts only inside this function.
#[inline(never)]
pub(crate) fn counted_phase<T>(work: impl FnOnce() -> T) -> T {
    // Without `black_box` the call could become a tail jump, which callgrind would not see as a call.
    std::hint::black_box(work())
}

/// Name of [`counted_phase`], for callgrind's option.
pub(crate) const COUNTED: &str = "counted_phase";

/// Returns the number of misses of the last simulated cache; 0 if none was simulated.
pub(crate) fn last_misses(profile: &Path) -> Result<f64> {
    Ok(costs(&text(profile)?, last_miss, |_| ()).into_values().sum())
}

/// Returns the rxo crate of the source file `path`, and the path inside that crate; `None` for foreign files.
pub(crate) fn crate_and_file(path: &str) -> Option<(&str, &str)> {
    let in_product = || path.rsplit_once("crates/").map(|(_, inside)| inside);
    let in_laboratory = || path.find("lab/rxo-").map(|at| &path[at + "lab/".len()..]);
    in_product().or_else(in_laboratory)?.split_once('/')
}

/// Returns `true` if the profile names source files of rxo.
fn has_lines(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('f') && line.contains("crates/rxo"))
}

/// Note for a build without line information: its costs can only be separated by function names.
const WITHOUT_LINES: &str = "this build keeps no lines of source, so that most costs have no category of their own; \
                             build it with `--profile lines` in place of `--release`";

fn text(profile: &Path) -> Result<String> {
    std::fs::read_to_string(profile)
        .with_context(|| format!("callgrind left no profile in {}", profile.display()))
}

/// Sums the costs of each category. `weight` returns the cost of one event of a kind.
fn costs<K: Ord>(
    text: &str,
    weight: fn(&str) -> f64,
    category: impl Fn(Origin<'_>) -> K,
) -> BTreeMap<K, f64> {
    let mut costs = BTreeMap::new();
    // The cost of a call is that of the called function, too.
    for Cost { origin, cost, .. } in profile::costs(text, weight).filter(|it| it.callee.is_none()) {
        *costs.entry(category(origin)).or_default() += cost;
    }
    costs
}

/// Returns `true` if `origin` is a function that copies memory.
pub(crate) fn copies(origin: Origin<'_>) -> bool {
    COPIES.iter().any(|name| origin.function.contains(name))
}

/// Returns `of_file` of the file that the code is inlined from; if that is `None`, of the function's file.
pub(crate) fn of_files<C>(origin: Origin<'_>, of_file: impl Fn(&str) -> Option<C>) -> Option<C> {
    of_file(origin.inlined).or_else(|| of_file(origin.home))
}

/// Returns the cost of one event: an instruction is one cycle; misses add estimated cycles.
fn weight(event: &str) -> f64 {
    match event {
        "Ir" => 1.0,
        "I1mr" | "D1mr" | "D1mw" => 10.0,
        "ILmr" | "DLmr" | "DLmw" => 100.0,
        _ => 0.0,
    }
}

/// Returns 1 for a miss of the last cache, otherwise 0.
fn last_miss(event: &str) -> f64 {
    if matches!(event, "ILmr" | "DLmr" | "DLmw") { 1.0 } else { 0.0 }
}

/// Names of functions that copy memory.
const COPIES: [&str; 2] = ["memcpy", "memmove"];

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
version: 1
cmd: rxo-lab menon receiver
events: Ir
summary: 1

ob=(1) rxo
fl=(1) crates/rxo-tcp/src/lib.rs
fn=(1) rxo_tcp::take
10 5
+1 7
fi=(2) crates/rxo-coalesce/src/lib.rs
20 100
fe=(1)
cfi=(3) /rustc/library/core/src/mem.rs
cfn=(2) core::mem::swap
calls=2 3
-1 9000
* 1
fl=(3)
fn=(2)
3 40
fn=(3) __memcpy_avx_unaligned_erms
0 300
fl=(2)
fn=(4) rxo_coalesce::poll
fi=(3)
5 2000

totals: 2453
";

    /// Sums the costs of copies, of TCP, of the engine, and of everything else.
    fn by_crate(text: &str) -> [f64; 4] {
        let crates = ["rxo-tcp/", "rxo-coalesce/"];
        let of_file = |file: &str| crates.iter().position(|name| file.contains(name));
        let part = |origin: Origin<'_>| of_files(origin, of_file).map_or(3, |place| 1 + place);
        let all = costs(text, weight, |origin| if copies(origin) { 0 } else { part(origin) });
        [0, 1, 2, 3].map(|part| all.get(&part).copied().unwrap_or_default())
    }

    #[test]
    fn instructions_are_those_of_the_file_they_come_from() {
        let expected = [300.0, 13.0, 2_100.0, 40.0];
        assert_eq!(by_crate(PROFILE), expected, "inlined library code counts too");
        let total = expected.iter().sum::<f64>();
        assert!(PROFILE.contains(&format!("totals: {total}")));
    }

    #[test]
    fn misses_of_simulated_caches_cost_cycles() {
        let text = "events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n\
                    fl=(1) crates/rxo-tcp/src/lib.rs\nfn=(1) take\n\
                    10 5 2 1 0 1 0 0 1\n+1 7 3\n";
        assert_eq!(by_crate(text), [0.0, 122.0, 0.0, 0.0]);
        assert_eq!(costs(text, last_miss, |_| ())[&()], 1.0, "of the last cache alone");
    }
}
