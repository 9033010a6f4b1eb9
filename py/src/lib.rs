//! The native part of the Python package `rxo`: the module `rxo._rxo`.
//!
//! The package in `python/rxo` is what users import; it re-exports this module, and adds what is simpler in
//! Python. From the bottom up:
//!
//! * `errors`: the exceptions, whose messages are those of the command `rxo`.
//! * `signals`: handles Ctrl-C while Rust code runs.
//! * `inputs`: captures in the forms in which Python programs give them: paths, bytes, open files.
//! * `rules`: policies, poll rules and sweeps as text.
//! * `table`: a table that any Arrow reader accepts without a copy; `cells`: its values for others.
//! * `packets`: the packets of captures as a stream of Arrow tables.
//! * `study`: the result of `analyze`; `analyze`: the reading.
//! * `rewrite`: coalesces, expands and compares captures.
//! * `engine`: the engine for scripts.
//! * `python_rules`, `rule_engine`: rules that are written in Python, the engine that runs them, and `compare`.
//!
//! # Contract
//! The interpreter lock is released while packets are processed, except in the calls of `rxo.RuleEngine`. Nothing panics on the bytes of a
//! capture. No unsafe code.

mod analyze;
mod cells;
mod engine;
mod errors;
mod inputs;
mod numbers;
mod packets;
mod python_rules;
mod rewrite;
mod rule_engine;
mod rules;
mod signals;
mod study;
mod table;

use pyo3::pymodule;

/// The native part of `rxo`.
#[pymodule]
mod _rxo {
    #[pymodule_export]
    use crate::analyze::analyze;
    #[pymodule_export]
    use crate::engine::{Delivery, Engine};
    #[pymodule_export]
    use crate::packets::Packets;
    #[pymodule_export]
    use crate::python_rules::{FlowView, RunView, SegmentView};
    #[pymodule_export]
    use crate::rewrite::{coalesce, expand, verify};
    #[pymodule_export]
    use crate::rule_engine::{RuleEngine, compare};
    #[pymodule_export]
    use crate::study::Study;
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
