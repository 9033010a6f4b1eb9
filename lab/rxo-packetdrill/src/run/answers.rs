//! Compares results of calls other than numbers (options, events, control messages) with the script.

use super::Wrong;
use crate::machine::{Answer, OptionValue};
use crate::script::{Call, Value};

/// Compares an option with the script.
pub(super) fn check_option(expected: Option<&Value>, answer: &Answer) -> Result<(), Wrong> {
    let single = match expected {
        Some(Value::List(list)) if list.len() == 1 => list.first(),
        other => other,
    };
    let agrees = match (single, &answer.option) {
        (Some(Value::Number(expected)), Some(OptionValue::Number(got))) => {
            *expected == i64::from(*got)
        }
        (Some(Value::Text(expected)), Some(OptionValue::Name(got))) => expected == got,
        (Some(Value::Any) | None, _) => true,
        _ => false,
    };
    if agrees {
        return Ok(());
    }
    Err(Wrong::new(format!("{single:?}"), format!("{:?}", answer.option)))
}

/// Returns the number of bytes in `{msg_iov(2)=[{..., 40}, {..., 20}], …}`.
pub(super) fn scattered(message: Option<&Value>) -> Result<usize, Wrong> {
    let pieces = match message {
        Some(Value::Fields(fields)) => fields.iter().find(|(name, _)| name == "msg_iov"),
        _ => None,
    };
    let bytes = |piece: &Value| match piece {
        Value::List(parts) => match parts.as_slice() {
            [_, Value::Number(bytes)] => usize::try_from(*bytes).ok(),
            _ => None,
        },
        _ => None,
    };
    let sum = match pieces {
        Some((_, Value::List(pieces))) => pieces.iter().map(bytes).sum::<Option<usize>>(),
        _ => None,
    };
    let sum = sum.filter(|bytes| *bytes <= MOST_BYTES);
    sum.ok_or_else(|| Wrong::new("msg_iov with at most 16 MiB", format!("{message:?}")))
}

/// Compares the result of TCP_INQ with `msg_control`, if the script gives it.
pub(super) fn check_rest(message: Option<&Value>, answer: &Answer) -> Result<(), Wrong> {
    let Some(Value::Fields(fields)) = message else { return Ok(()) };
    let expected = match fields.iter().find(|(name, _)| name == "msg_control") {
        Some((_, Value::List(list))) => list.first().map(|entry| field(entry, "cmsg_data")),
        _ => return Ok(()),
    };
    let (expected, got) = (expected.transpose()?, answer.rest.map(i64::from));
    if expected == got {
        return Ok(());
    }
    Err(Wrong::new(format!("{expected:?} bytes left"), format!("{got:?}")))
}

/// Compares poll's results with each `revents`.
pub(super) fn check_ready(call: &Call, answer: &Answer) -> Result<(), Wrong> {
    let Some(Value::List(list)) = call.arguments.first() else { return Ok(()) };
    for (entry, ready) in list.iter().zip(&answer.ready) {
        let expected = field(entry, "revents")?;
        if expected != i64::from(*ready) {
            let shown = |events: i64| format!("revents {events:#x}");
            return Err(Wrong::new(shown(expected), shown((*ready).into())));
        }
    }
    Ok(())
}

/// Returns the number in the field `name` of `value`.
pub(super) fn field(value: &Value, name: &str) -> Result<i64, Wrong> {
    if let Value::Fields(fields) = value
        && let Some((_, Value::Number(number))) = fields.iter().find(|(known, _)| known == name)
    {
        return Ok(*number);
    }
    Err(Wrong::new(format!("a number for {name}"), format!("{value:?}")))
}

/// Most bytes of a write, so that a mistake in a script does not exhaust the machine's memory.
pub(super) const MOST_BYTES: usize = 16 << 20;
