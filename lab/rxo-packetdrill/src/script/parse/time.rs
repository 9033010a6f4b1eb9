//! Parses times: `*`, `1.5`, `+1.5`, `1~2`, `+1~+2`.

use rxo_frame::Duration;

use super::super::Time;
use super::super::lexer::Kind;
use super::{Parser, ScriptError};

impl Parser {
    pub(super) fn time(&mut self) -> Result<Time, ScriptError> {
        if self.takes('*') {
            return Ok(Time::Any);
        }
        let is_relative = self.takes('+');
        let first = self.duration()?;
        if !self.takes('~') {
            return Ok(if is_relative { Time::After(first) } else { Time::At(first) });
        }
        if is_relative {
            self.sign('+')?;
        }
        let last = self.duration()?;
        if last < first {
            return Err(self.expected_before("a time that is not before the first"));
        }
        Ok(if is_relative { Time::AfterBetween(first, last) } else { Time::Between(first, last) })
    }

    pub(super) fn duration(&mut self) -> Result<Duration, ScriptError> {
        let micros = match self.peek() {
            Some(Kind::Integer(seconds)) => seconds.checked_mul(1_000_000),
            Some(Kind::Millionths(micros)) => Some(*micros),
            _ => None,
        };
        let micros = micros.and_then(|micros| u64::try_from(micros).ok());
        let duration = micros.map(Duration::from_micros).filter(|time| *time <= LONGEST);
        let duration = duration.ok_or_else(|| self.expected("a time in seconds"))?;
        self.at += 1;
        Ok(duration)
    }
}

/// Longest time, a year, so that sums of times cannot overflow the clock.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
