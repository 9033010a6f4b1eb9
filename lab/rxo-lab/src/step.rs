//! The arguments of `rxo-lab step JSON`, by which an experiment starts a process of this program, most of them under
//! valgrind. `steps` runs what they say.

use anyhow::Result;
use serde::Serialize;

/// Returns the arguments for the step `name`, a variant of [`Step`](crate::steps::Step).
pub(crate) fn arguments(name: &str, parameters: &impl Serialize) -> Result<[String; 2]> {
    let step = serde_json::json!({ name: serde_json::to_value(parameters)? });
    Ok(["step".to_owned(), step.to_string()])
}
