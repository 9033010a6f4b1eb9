//! `cargo xtask rfc`: lists each requirement of the RFCs that the endpoint follows, with the tests that name
//! it.
//!
//! `requirements/` has the requirements as data in our own words, one file for each RFC; `requirement.rs`
//! reads them. `sources.rs` finds the tests and `reference.rs` the requirements in their documentation;
//! `verdict.rs` compares both (pure, so that tests can use made-up lists); `report.rs` prints. Without this
//! comparison the list would soon be outdated.

mod reference;
mod report;
mod requirement;
mod sources;
mod verdict;

use anyhow::{Result, bail};

use self::verdict::Verdict;
use crate::UsageError;
use crate::workspace::Workspace;

/// Prints the tests of each requirement, and the requirements that are not implemented.
///
/// # Errors
/// An argument is unknown, or [`check`] fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let print = match arguments {
        [] => report::table,
        [only] if only == "--json" => report::json,
        [only] if only == "--summary" => report::summary,
        [other, ..] => {
            bail!(UsageError(format!("unknown option {other:?}; `rfc` takes --json or --summary")))
        }
    };
    check(print)
}

/// Checks the requirements and prints one line, for `cargo xtask test`.
///
/// # Errors
/// A requirement is marked as done but has no test, or a test names an unknown requirement; each case is
/// printed as one line.
pub(crate) fn check_all() -> Result<()> {
    check(report::summary)
}

fn check(print: fn(&Verdict) -> String) -> Result<()> {
    let verdict = judge()?;
    print!("{}", print(&verdict));
    refuse(&verdict)
}

fn judge() -> Result<Verdict> {
    let requirements = requirement::all()?;
    let tests = sources::tests(&Workspace::load()?)?;
    Ok(Verdict::new(requirements, &tests))
}

fn refuse(verdict: &Verdict) -> Result<()> {
    if verdict.violations.is_empty() {
        return Ok(());
    }
    for violation in &verdict.violations {
        eprintln!("rfc: {violation}");
    }
    bail!("{} violations of lab/xtask/src/rfc/requirements", verdict.violations.len())
}
