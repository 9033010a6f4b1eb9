//! The recipe of a study: the settings that all parts must share, as strings.

use rxo_coalesce::Policy;
use serde::{Deserialize, Serialize};

use super::super::point::Point;
use super::super::{ChecksumMode, Settings};
use super::points_of;
use crate::sweep::{Grid, SweepAxis};

/// The shared settings of a study, as the user would type them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recipe {
    policy: String,
    settings: Vec<(String, String)>,
    poll: String,
    sweep: Option<Vec<SweepAxis>>,
    advise: bool,
    checksums: String,
    filter: Option<String>,
    dedup: bool,
}

impl Recipe {
    /// Creates the recipe of a study with the settings `settings`.
    pub(in super::super) fn of(settings: &Settings) -> Self {
        let Point { policy, poll } = settings.chosen;
        Self {
            policy: policy.name.to_owned(),
            settings: policy.settings().map(|(name, value)| (name.to_owned(), value)).collect(),
            poll: poll.to_string(),
            sweep: settings.sweep.as_ref().map(|grid| grid.axes.clone()),
            advise: settings.advise,
            checksums: settings.checksums.to_string(),
            filter: settings.filter.clone(),
            dedup: settings.dedup,
        }
    }

    /// Returns the settings that the recipe describes; `None` if this version does not know one of these settings.
    pub(in super::super) fn read(&self) -> Option<Settings> {
        let mut policy = Policy::by_name(&self.policy).ok()?;
        for (name, value) in &self.settings {
            policy.set(name, value).ok()?;
        }
        let chosen = Point { policy, poll: self.poll.parse().ok()? };
        let sweep = self.sweep.clone().map(|axes| Grid::new(&chosen, axes)).transpose().ok()?;
        let settings = Settings {
            sweep,
            advise: self.advise,
            checksums: self.checksums.parse::<ChecksumMode>().ok()?,
            filter: self.filter.clone(),
            dedup: self.dedup,
            ..Settings::new(chosen)
        };
        (Self::of(&settings) == *self).then_some(settings)
    }

    /// Returns all points of the settings. The result is empty if this version does not know the settings. This
    /// does not happen for a part that was read from bytes, because reading such a part fails.
    pub(super) fn points(&self) -> Vec<Point> {
        self.read().map(|settings| points_of(&settings).all).unwrap_or_default()
    }
}
