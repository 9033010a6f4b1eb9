//! Sweeps, which list the other settings that a study tries in the same pass.
//!
//! * `axis`: one setting and its values, as the user types them: `flows=1..8`,
//!   `poll=time:10us,time:50us`.
//! * [`Grid`]: one or two axes, and a [`Point`] for every combination of their values.
//!
//! This module is separate from the study, because it only lists the points.

mod axis;
mod values;

use thiserror::Error;

pub use axis::SweepAxis;
pub(crate) use values::size_of;

use crate::study::Point;

/// The maximum number of combinations in a sweep.
pub const MAX_POINTS: usize = 64;

/// One or two axes, and every combination of their values. The last axis varies fastest.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The axes: settings with the values to try.
    pub axes: Vec<SweepAxis>,
    /// The combinations of values, as points of a study.
    pub points: Vec<Point>,
}

impl Grid {
    /// Creates the grid of all combinations of `axes`, with all other settings as in `chosen`.
    ///
    /// # Errors
    /// [`SweepError`] if there are too many axes or combinations, or a value is invalid.
    ///
    /// # Examples
    /// ```
    /// use rxo_coalesce::Policy;
    /// use rxo_trace::study::Point;
    /// use rxo_trace::sweep::Grid;
    ///
    /// let chosen = Point { policy: Policy::linux_gro(), poll: "packets:64".parse()? };
    /// let axes = vec!["flows=1..8".parse()?, "poll=time:10us,time:50us".parse()?];
    /// let grid = Grid::new(&chosen, axes)?;
    /// assert_eq!(grid.points.len(), 16);
    /// assert_eq!((grid.points[0].policy.flows, grid.points[15].policy.flows), (1, 8));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(chosen: &Point, axes: Vec<SweepAxis>) -> Result<Self, SweepError> {
        if axes.len() > 2 {
            return Err(SweepError::Axes { count: axes.len() });
        }
        if let [first, second] = axes.as_slice()
            && first.key == second.key
        {
            return Err(SweepError::Twice { key: first.key.clone() });
        }
        let count = axes.iter().map(|axis| axis.values.len()).product();
        if count > MAX_POINTS {
            return Err(SweepError::Points { count });
        }
        let mut points = vec![*chosen];
        for axis in &axes {
            let mut varied = Vec::with_capacity(points.len() * axis.values.len());
            for point in &points {
                for value in &axis.values {
                    varied.push(axis.at(point, value)?);
                }
            }
            points = varied;
        }
        Ok(Self { axes, points })
    }
}

/// The reason why a sweep is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SweepError {
    /// The sweep is not of the form `key=values`.
    #[error("{text}: write key=value,value or key=from..to, such as flows=1..8")]
    Form {
        /// The sweep, as the user typed it.
        text: String,
    },
    /// A value, or a range of values, is invalid for the setting.
    #[error("{key}={value} is invalid: {accepted}")]
    Value {
        /// The name of the setting.
        key: String,
        /// The value or range, as the user typed it.
        value: String,
        /// A description of the accepted values.
        accepted: String,
    },
    /// There are more than two axes.
    #[error("{count} settings at once: at most two make a grid")]
    Axes {
        /// The number of axes.
        count: usize,
    },
    /// Both axes are for the same setting.
    #[error("{key} twice: give all its values in one --sweep, or another setting")]
    Twice {
        /// The name of the setting.
        key: String,
    },
    /// There are more combinations than [`MAX_POINTS`].
    #[error("{count} combinations: at most {MAX_POINTS}; give fewer values")]
    Points {
        /// The number of combinations.
        count: usize,
    },
}

#[cfg(test)]
mod tests {
    use rxo_coalesce::Policy;

    use super::*;

    fn grid(texts: &[&str]) -> Result<Grid, SweepError> {
        let chosen =
            Point { policy: Policy::linux_gro(), poll: "packets:64".parse().expect("a rule") };
        let axes = texts.iter().map(|text| text.parse()).collect::<Result<Vec<_>, _>>()?;
        Grid::new(&chosen, axes)
    }

    #[test]
    fn two_axes_make_a_grid_the_last_varying_fastest() {
        let grid = grid(&["flows=1,2", "poll=packets:4,time:50us,packets:16"]).unwrap();
        let seen: Vec<String> = grid
            .points
            .iter()
            .map(|point| format!("{} {}", point.policy.flows, point.poll))
            .collect();
        let expected = [
            "1 packets:4",
            "1 time:50us",
            "1 packets:16",
            "2 packets:4",
            "2 time:50us",
            "2 packets:16",
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_invalid_value_is_named_with_valid_ones() {
        let rows: [(&[&str], &str); 8] = [
            (&["flows"], "flows: write key=value,value"),
            (&["flows=0,1"], "flows=0 is invalid: a number from 1 to 4096"),
            (&["speed=1"], "speed=1 is invalid: the settings are coalesce"),
            (&["poll=often"], "poll=often is invalid: packets:N (1 to 32768)"),
            (&["flows=1..100"], "100 combinations: at most 64"),
            (&["flows=1,2", "flows=3"], "flows twice"),
            (&["flows=1", "psh=keep", "fin=close"], "3 settings at once: at most two"),
            (&["flows=8..1"], "flows=8..1 is invalid: a range goes up"),
        ];
        for (texts, message) in rows {
            let error = grid(texts).unwrap_err().to_string();
            assert!(error.starts_with(message), "{texts:?}: {error}");
            assert!(!error.contains('\n'));
        }
    }
}
