//! Writes the HTML page of a hand-made report, for inspection:
//! `cargo run -p rxo-trace --example page -- FILE [grid|line|live|hostile|empty]`.

use std::path::Path;

#[path = "../tests/fixture/mod.rs"]
mod fixture;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".to_owned());
    let report = match arguments.next().as_deref() {
        Some("line") => fixture::one_axis(),
        Some("live") => fixture::live(),
        Some("hostile") => fixture::hostile(),
        Some("empty") => rxo_trace::report::Report::default(),
        _ => fixture::report(),
    };
    rxo_trace::html::write(&report, Path::new(&path))
}
