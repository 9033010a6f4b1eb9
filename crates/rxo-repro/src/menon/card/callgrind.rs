//! Runs a program under callgrind, and reads its profile.
//!
//! A profile is text: lines that name the function, its file, and the file that instructions were inlined
//! from, and under them the costs of source lines. A name is defined once, as `(number) name`, and later is its
//! number. The line after a `calls=` line has the cost of the called function, which also stands there.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::category::Category;

/// Counts inside functions whose names contain this.
const COUNTED: &str = "*counted_phase*";

/// Fails in one line, with the remedy, if valgrind is not there.
pub(super) fn check() -> Result<()> {
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

/// A command that runs `program` and leaves its profile in `profile`.
pub(super) fn command(program: &Path, profile: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--quiet", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", profile.display()))
        .arg(program);
    command
}

/// Instructions in each of [`Category::ALL`].
pub(super) type Counts = [f64; Category::ALL.len()];

/// Reads a profile.
///
/// # Errors
/// If nothing was counted.
pub(super) fn read(profile: &Path) -> Result<Counts> {
    let text = std::fs::read_to_string(profile)
        .with_context(|| format!("callgrind left no profile in {}", profile.display()))?;
    let counts = counts(&text);
    if counts.iter().sum::<f64>() <= 0.0 {
        bail!("callgrind counted nothing; strip no symbols from rxo");
    }
    Ok(counts)
}

fn counts(text: &str) -> Counts {
    let mut reader = Reader::default();
    text.lines().for_each(|line| reader.read(line));
    reader.counts
}

#[derive(Default)]
struct Reader<'t> {
    files: HashMap<&'t str, &'t str>,
    functions: HashMap<&'t str, &'t str>,
    function: &'t str,
    /// The file of the function, and the one that the next instructions were inlined from.
    home: &'t str,
    inlined: &'t str,
    /// Whether the next cost is that of a called function.
    is_call: bool,
    counts: Counts,
}

impl<'t> Reader<'t> {
    fn read(&mut self, line: &'t str) {
        match line.split_once('=') {
            Some(("fl", name)) => {
                self.home = resolved(&mut self.files, name);
                self.inlined = self.home;
            }
            Some(("fi" | "fe", name)) => self.inlined = resolved(&mut self.files, name),
            Some(("fn", name)) => self.function = resolved(&mut self.functions, name),
            Some(("cfi" | "cfl", name)) => _ = resolved(&mut self.files, name),
            Some(("cfn", name)) => _ = resolved(&mut self.functions, name),
            Some(("calls", _)) => self.is_call = true,
            Some(_) => {}
            None => self.cost(line),
        }
    }

    fn cost(&mut self, line: &str) {
        let Some(cost) = line.split_once(' ').and_then(|(at, cost)| {
            at.starts_with(|first: char| "+-*".contains(first) || first.is_ascii_digit())
                .then(|| cost.trim().parse::<f64>().ok())
                .flatten()
        }) else {
            return;
        };
        if !std::mem::take(&mut self.is_call) {
            self.counts[self.category() as usize] += cost;
        }
    }

    fn category(&self) -> Category {
        if COPIES.iter().any(|name| self.function.contains(name)) {
            return Category::PerByte;
        }
        let inlined = Category::of_file(self.inlined);
        inlined.or_else(|| Category::of_file(self.home)).unwrap_or(Category::Misc)
    }
}

/// The name that `text` defines or refers to.
fn resolved<'t>(names: &mut HashMap<&'t str, &'t str>, text: &'t str) -> &'t str {
    match text.split_once(' ') {
        Some((number, name)) if number.starts_with('(') => {
            names.insert(number, name);
            name
        }
        _ => names.get(text).copied().unwrap_or(text),
    }
}

/// Functions that copy.
const COPIES: [&str; 2] = ["memcpy", "memmove"];

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
version: 1
cmd: rxo repro menon receiver
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

    #[test]
    fn instructions_are_those_of_the_file_they_come_from() {
        let counts = counts(PROFILE);
        let of = |category: Category| counts[category as usize];
        assert!((of(Category::Protocol) - 13.0).abs() < 1e-9, "{counts:?}");
        assert!((of(Category::Aggr) - 2_100.0).abs() < 1e-9, "inlined library code counts too");
        assert!((of(Category::Misc) - 40.0).abs() < 1e-9);
        assert!((of(Category::PerByte) - 300.0).abs() < 1e-9);
        assert!((counts.iter().sum::<f64>() - 2_453.0).abs() < 1e-9, "{counts:?}");
    }
}
