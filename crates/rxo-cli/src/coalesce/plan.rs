//! The plan of `rxo coalesce`, from its flags.

use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use anyhow::Result;
use rxo_trace::rewrite::Settings;

use crate::captures::Input;
use crate::flags::CoalesceFlags;
use crate::{defaults, rules};

/// The work of `rxo coalesce`: the capture to coalesce, the file to write, and the settings.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) input: Input,
    pub(super) output: PathBuf,
    pub(super) settings: Settings,
    pub(super) json: bool,
}

impl Plan {
    /// Makes the plan from the flags.
    ///
    /// # Errors
    /// If a value is invalid; the message describes valid values.
    pub(super) fn from_flags(flags: &CoalesceFlags) -> Result<Self> {
        let point = rules::point(&flags.replay, defaults::WRITTEN_POLL)?;
        let checksums = rules::checksums(&flags.replay.checksum)?;
        let seed = RandomState::new().hash_one(0);
        Ok(Self {
            input: Input::new(&flags.input),
            output: flags.output.clone(),
            settings: Settings { point, checksums, seed },
            json: flags.json,
        })
    }
}
