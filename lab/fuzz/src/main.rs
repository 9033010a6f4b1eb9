//! libFuzzer's entry to every target: `RXO_FUZZ_TARGET` names the one that runs.
//!
//! The choice is a variable because the arguments belong to libFuzzer. A missing or unknown name ends the
//! process with exit code 2 and one line that lists the names.
#![no_main]

use std::process;
use std::sync::LazyLock;

/// The function of the chosen target, resolved before the first input.
static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var_os("RXO_FUZZ_TARGET").unwrap_or_default();
    rxo_fuzz::target(&name.to_string_lossy()).unwrap_or_else(|error| {
        eprintln!("rxo-fuzz: RXO_FUZZ_TARGET: {error}");
        process::exit(2)
    })
});

libfuzzer_sys::fuzz_target!(init: LazyLock::force(&RUN), |data: &[u8]| RUN(data));
