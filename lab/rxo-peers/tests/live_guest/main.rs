//! Tests with guests: Linux with a virtio card, in an emulated machine.
//!
//! They need QEMU, busybox and a kernel. `cargo xtask test --guests` runs them too; a missing requirement is
//! an error that names it.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

mod count;
mod start;
mod tap;

use std::process::ExitCode;

use start::start;

fn main() -> ExitCode {
    start(&[tap::TESTS, count::TESTS].concat())
}
