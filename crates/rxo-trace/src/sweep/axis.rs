//! An axis of a sweep: a setting and the values to try.

use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{SweepError, values};
use crate::study::{BadPollRule, Point};

/// The name of the poll rule in sweeps.
pub(crate) const POLL: &str = "poll";

/// A setting of a sweep and the values to try, in the given order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SweepAxis {
    /// The name of the setting: a field of the policy, or `poll`.
    pub key: String,
    /// The values of the setting, as the user would type them.
    pub values: Vec<String>,
}

impl SweepAxis {
    /// Returns `point` with `value` as the value of this setting.
    ///
    /// # Errors
    /// If there is no such setting, or the value is invalid.
    pub fn at(&self, point: &Point, value: &str) -> Result<Point, SweepError> {
        let mut point = *point;
        let error = |accepted: &str| SweepError::Value {
            key: self.key.clone(),
            value: value.to_owned(),
            accepted: accepted.to_owned(),
        };
        if self.key == POLL {
            point.poll = value.parse().map_err(|_| error(BadPollRule::ACCEPTED))?;
        } else {
            point.policy.set(&self.key, value).map_err(|refused| error(refused.accepted))?;
        }
        Ok(point)
    }
}

impl FromStr for SweepAxis {
    type Err = SweepError;

    /// Parses `key=v1,v2,…`. Each value may be a range from `a` to `b`: `a..b` in steps of 1, `a..b+S` in steps
    /// of S, `a..b*F` with each value F times the previous one. Text around the number applies to both ends
    /// (`packets:4..64*2`, `10us..80us*2`).
    fn from_str(text: &str) -> Result<Self, SweepError> {
        let (key, list) = text
            .split_once('=')
            .filter(|(key, list)| !key.is_empty() && !list.is_empty())
            .ok_or_else(|| SweepError::Form { text: text.to_owned() })?;
        let mut values = Vec::new();
        for item in list.split(',') {
            values.extend(values::expand(item).map_err(|accepted| SweepError::Value {
                key: key.to_owned(),
                value: item.to_owned(),
                accepted: accepted.to_owned(),
            })?);
        }
        Ok(Self { key: key.to_owned(), values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_order_in_which_they_were_typed() {
        let axis: SweepAxis = "max_segments=64,2..4,16".parse().unwrap();
        assert_eq!(
            (axis.key.as_str(), axis.values.join(" ")),
            ("max_segments", "64 2 3 4 16".into())
        );
    }

    #[test]
    fn words_are_values_too() {
        let axis: SweepAxis = "psh=keep,close".parse().unwrap();
        assert_eq!(axis.values, ["keep", "close"]);
    }
}
