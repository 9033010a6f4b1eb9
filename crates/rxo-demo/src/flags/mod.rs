//! Flags of `rxo demo` and `rxo calibrate`.
//!
//! They are in this crate so that an experiment's flags, plan and limits are in one place; `rxo-cli` only names the
//! commands.

mod calibrate;
mod demo;

pub use calibrate::CalibrateFlags;
pub use demo::DemoFlags;

/// Parses a line of words as the flags `F` of one command.
#[cfg(test)]
pub(crate) fn typed<F: clap::Args>(line: &str) -> Result<F, clap::Error> {
    use clap::Parser;

    #[derive(Parser)]
    #[command(no_binary_name = true)]
    struct Typed<F: clap::Args> {
        #[command(flatten)]
        flags: F,
    }
    Typed::try_parse_from(line.split_whitespace()).map(|typed: Typed<F>| typed.flags)
}
