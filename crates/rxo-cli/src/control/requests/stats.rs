//! The request `stats`: shows or changes the interval between two statistics lines.

use std::time::Duration;

use rxo_control::{Entry, Refusal, Request};
use serde_json::{Value, json};

use super::{Process, takes_only};
use crate::numbers::parse_time;

pub(super) const ENTRY: Entry<Process> = Entry {
    name: "stats",
    usage: "stats[=TIME]",
    help: "shows the time between two lines of figures, or changes it; 0s prints no lines",
    applies: |process| process.stats.is_some(),
    answer,
};

fn answer(process: &Process, request: &Request) -> Result<Value, Refusal> {
    takes_only(request, true, &[])?;
    let stats = process.stats.as_deref().ok_or("there are no lines of figures")?;
    let Some(value) = &request.value else { return Ok(shown(stats.every())) };
    let every = match parse_time(value) {
        Some(Duration::ZERO) => None,
        Some(time) if (SHORTEST..=LONGEST).contains(&time) => Some(time),
        _ => {
            let line = format!("stats={value}: give a time from 100ms to 3600s, or 0s for none");
            return Err(Refusal(line));
        }
    };
    stats.change(every)?;
    Ok(shown(every))
}

/// Returns the interval as JSON, in seconds; null if no lines are printed.
fn shown(every: Option<Duration>) -> Value {
    json!({ "stats_s": every.map(|time| time.as_secs_f64()) })
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3_600);
