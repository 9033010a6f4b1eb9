//! The flag of every command that has a log.

use clap::{Args, ValueEnum};
use rxo_console::log::Form;

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct LogFlags {
    /// Form of the lines on standard error, each with time, level and nic.
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) log: LogFlag,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFlag {
    /// Plain text; under systemd with the level that the journal reads.
    #[default]
    Text,
    /// JSON, one object for each line.
    Json,
}

impl From<LogFlag> for Form {
    fn from(flag: LogFlag) -> Self {
        match flag {
            LogFlag::Text => Self::Text,
            LogFlag::Json => Self::Json,
        }
    }
}
