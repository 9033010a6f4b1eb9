//! Flags of `rxo demo` and `rxo calibrate`.
//!
//! They live in this crate so that an experiment's flags, plan and limits stand together; `rxo-cli` only
//! names the commands.

mod calibrate;
mod demo;

pub use calibrate::CalibrateFlags;
pub use demo::DemoFlags;

/// Parses the flags of one command from a line of words.
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
