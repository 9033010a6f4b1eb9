//! The error of a configuration: a number that is out of its range.
//!
//! This module is separate because engines, connections and hosts check their configurations in the same way,
//! but do not depend on each other.

use core::fmt;

/// Error: a numeric field of a configuration is out of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the field in its configuration.
    pub name: &'static str,
    /// The invalid value.
    pub value: u64,
    /// The smallest valid value.
    pub from: u64,
    /// The largest valid value.
    pub to: u64,
}

impl ConfigError {
    /// Checks that every number is in its range. Each number is given with its name, its smallest and its
    /// largest valid value. Never allocates.
    ///
    /// # Errors
    /// Returns the first number that is out of its range.
    ///
    /// # Examples
    /// ```
    /// use rxo_frame::ConfigError;
    ///
    /// let refused = ConfigError::check([("flows", 64, 1, 4_096), ("batch", 0, 1, 256)]).unwrap_err();
    /// assert_eq!(refused.to_string(), "batch is 0; choose 1 to 256");
    /// ```
    pub fn check(
        numbers: impl IntoIterator<Item = (&'static str, u64, u64, u64)>,
    ) -> Result<(), Self> {
        let mut numbers =
            numbers.into_iter().map(|(name, value, from, to)| Self { name, value, from, to });
        numbers.find(|it| !(it.from..=it.to).contains(&it.value)).map_or(Ok(()), Err)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, from, to } = self;
        write!(f, "{name} is {value}; choose {from} to {to}")
    }
}

impl core::error::Error for ConfigError {}
