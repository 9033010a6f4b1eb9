//! The modules of the fast path, which can be switched on and off while a host runs. In Chan and Cheriton 2013, a file
//! in *sysfs* is such a switch.

use std::fmt;
use std::str::FromStr;

use super::FastPathError;

/// A set of modules of the fast path.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastModules(pub(crate) u8);

impl FastModules {
    /// No module: the fast path is off.
    pub const OFF: Self = Self(0);
    /// The module that consumes pure ACKs (Chan and Cheriton 2013, section 3.2).
    pub const PURE_ACK: Self = Self(1);
    /// The module that counts half-open connections by the prefix of their source.
    pub const SYN_FLOOD: Self = Self(2);
    /// The module that counts frames and bytes by flow or prefix.
    pub const ACCOUNTING: Self = Self(4);
    /// The module that drops frames by address and port, before everything else.
    pub const FILTER: Self = Self(8);

    /// The name that users type for each module, in the order of their bits.
    pub const NAMES: [&str; 4] = ["pure-ack", "syn-flood", "accounting", "filter"];

    /// Returns this set with `modules` added.
    pub const fn with(self, modules: Self) -> Self {
        Self(self.0 | modules.0)
    }

    /// Returns this set without `modules`.
    pub const fn without(self, modules: Self) -> Self {
        Self(self.0 & !modules.0)
    }

    /// Returns `true` if this set has any of `modules`.
    #[must_use]
    pub const fn has(self, modules: Self) -> bool {
        self.0 & modules.0 != 0
    }
}

/// Prints the syntax of `--fast-path`: `off`, or the names of modules separated by commas.
impl fmt::Display for FastModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.into_iter().enumerate().filter(|(at, _)| self.0 >> at & 1 == 1);
        let names: Vec<_> = named.map(|(_, name)| name).collect();
        if names.is_empty() { f.write_str("off") } else { f.write_str(&names.join(",")) }
    }
}

impl FromStr for FastModules {
    type Err = FastPathError;

    fn from_str(text: &str) -> Result<Self, FastPathError> {
        if let "on" | "off" = text {
            return Ok(if text == "on" { Self::PURE_ACK } else { Self::OFF });
        }
        text.split(',').try_fold(Self::OFF, |set, name| {
            let at = Self::NAMES.iter().position(|known| *known == name);
            at.map(|at| Self(set.0 | 1 << at)).ok_or_else(|| FastPathError::NoModule(name.into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_read_as_they_are_written() {
        for text in ["off", "pure-ack", "pure-ack,syn-flood,accounting", "filter"] {
            assert_eq!(text.parse::<FastModules>().unwrap().to_string(), text);
        }
        assert_eq!("on".parse(), Ok(FastModules::PURE_ACK));
        assert_eq!("filter".parse(), Ok(FastModules::FILTER));
        let unknown = FastPathError::NoModule("acks".to_owned());
        assert!(unknown.to_string().ends_with("choose pure-ack, syn-flood, accounting or filter"));
        assert_eq!("filter,acks".parse::<FastModules>(), Err(unknown));
    }
}
