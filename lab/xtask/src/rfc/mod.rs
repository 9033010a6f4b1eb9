//! `cargo xtask rfc`: each requirement of the RFCs that the endpoint follows, and the tests that name it.
//!
//! `requirements/` is the list as data, a file an RFC, in our own words; `requirement.rs` reads it.
//! `sources.rs` finds the tests and `reference.rs` what their documentation names; `verdict.rs` holds
//! one against the other, pure, so that made-up lists can be tried; `report.rs` prints. A list that
//! nobody compares with the tests says after a month what was once meant.

mod reference;
mod report;
mod requirement;
mod sources;
mod verdict;

use anyhow::{Result, bail};

use self::verdict::Verdict;
use crate::UsageError;
use crate::workspace::Workspace;

/// Prints which tests hold which requirement, and what is not done.
///
/// # Errors
/// An unknown argument, or what [`check`] refuses.
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

/// The same in one line, for `cargo xtask test`.
///
/// # Errors
/// A requirement that is said to be done and has no test, or a test that names what does not exist;
/// each has been printed as one line.
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
