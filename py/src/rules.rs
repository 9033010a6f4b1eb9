//! Policies, poll rules, sweeps and costs as the user writes them: the same text as in the command's flags.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use rxo_coalesce::Policy;
use rxo_trace::projection::Given;
use rxo_trace::study::{BadPollRule, ChecksumMode, Point, PollRule};
use rxo_trace::sweep::{Grid, SweepAxis};

use crate::errors::usage;

/// Text, or a list of texts, as Python passes it.
#[derive(FromPyObject)]
pub(crate) enum Texts {
    /// A single text.
    One(String),
    /// Several texts.
    Many(Vec<String>),
}

impl Texts {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }
}

/// Returns the profile of this name, as the commands use it, with `settings` applied in their order.
///
/// # Errors
/// If there is no such profile, or a setting is invalid.
pub(crate) fn policy(name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Policy> {
    let profile = Policy::by_name(name).map_err(|error| usage(format!("policy: {error}")))?;
    let mut policy = profile.live();
    for (key, value) in settings.into_iter().flat_map(|settings| settings.iter()) {
        // Python's words for yes and no are others.
        let text = match value.extract::<bool>() {
            Ok(is_set) => if is_set { "yes" } else { "no" }.to_owned(),
            Err(_) => value.str()?.to_string_lossy().into_owned(),
        };
        policy
            .set(&key.str()?.to_string_lossy(), &text)
            .map_err(|error| usage(format!("settings: {error}")))?;
    }
    Ok(policy)
}

/// Returns the first of the poll rules and, if there are several, a sweep over all of them.
///
/// # Errors
/// If there is no poll rule, or one is invalid.
pub(crate) fn polls(texts: Vec<String>) -> PyResult<(PollRule, Option<SweepAxis>)> {
    let Some(first) = texts.first() else {
        return Err(usage(format!("poll: give at least one of {}", BadPollRule::ACCEPTED)));
    };
    let rule = first.parse().map_err(|BadPollRule| {
        usage(format!("poll {first} is invalid: {}", BadPollRule::ACCEPTED))
    })?;
    let axis = SweepAxis { key: "poll".to_owned(), values: texts };
    Ok((rule, (axis.values.len() > 1).then_some(axis)))
}

/// Returns the grid of the poll rules and of `sweep`; `None` if there are no other settings to try.
///
/// # Errors
/// If a sweep is invalid, or there are too many combinations.
pub(crate) fn sweep(
    chosen: &Point,
    polls: Option<SweepAxis>,
    sweep: Vec<String>,
) -> PyResult<Option<Grid>> {
    let mut axes: Vec<SweepAxis> = polls.into_iter().collect();
    for text in sweep {
        axes.push(text.parse().map_err(|error| usage(format!("sweep: {error}")))?);
    }
    if axes.is_empty() {
        return Ok(None);
    }
    Grid::new(chosen, axes).map(Some).map_err(|error| usage(format!("sweep: {error}")))
}

/// Returns the checksum mode of this name.
///
/// # Errors
/// If there is no such checksum mode.
pub(crate) fn checksums(text: &str) -> PyResult<ChecksumMode> {
    text.parse()
        .map_err(|()| usage(format!("checksum {text} is invalid: auto, verify, partial or trust")))
}

/// Returns the costs of receiving that `object` states: the text of the command's `--costs`, the path of a saved
/// calibration, a dictionary, or the costs of another decision.
///
/// # Errors
/// If the costs cannot be read.
pub(crate) fn costs(object: &Bound<'_, PyAny>) -> PyResult<Given> {
    const ORIGIN: &str = "given by the program";
    let given = if let Ok(text) = object.extract::<PathBuf>() {
        Given::read(&text.to_string_lossy(), ORIGIN)
    } else {
        let (json, vars) = (object.py().import("json")?, object.py().import("builtins")?);
        let keywords = [("default", vars.getattr("vars")?)].into_py_dict(object.py())?;
        let text = json.getattr("dumps")?.call((object,), Some(&keywords))?;
        Given::from_json(&text.extract::<String>()?, ORIGIN)
    };
    given.map_err(|error| usage(format!("costs: {error}")))
}
