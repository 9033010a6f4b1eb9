//! The modules of the fast path, and the switches that turn them on and off.
//!
//! Separate because application threads use the switches while the worker runs: the worker reads them once
//! per batch. Chan and Cheriton 2013 have one such switch in *sysfs*.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thiserror::Error;

/// A set of modules of the fast path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastModules(u8);

impl FastModules {
    /// No module: the fast path is off.
    pub const OFF: Self = Self(0);
    /// Consumes pure ACKs (Chan and Cheriton 2013, section 3.2).
    pub const PURE_ACK: Self = Self(1);
    /// Counts half-open connections by the prefix of their source.
    pub const SYN_FLOOD: Self = Self(2);
    /// Counts frames and bytes by flow or prefix.
    pub const ACCOUNTING: Self = Self(4);
    /// Drops frames by address and port, before everything else.
    pub const FILTER: Self = Self(8);
    /// The set for `--fast-path on`: pure ACKs.
    pub const ON: Self = Self::PURE_ACK;

    /// All modules, with the names that users type.
    pub const NAMES: [(Self, &str); 4] = [
        (Self::PURE_ACK, "pure-ack"),
        (Self::SYN_FLOOD, "syn-flood"),
        (Self::ACCOUNTING, "accounting"),
        (Self::FILTER, "filter"),
    ];

    /// The union of this set and `modules`.
    #[must_use]
    pub const fn with(self, modules: Self) -> Self {
        Self(self.0 | modules.0)
    }

    /// This set without `modules`.
    #[must_use]
    pub const fn without(self, modules: Self) -> Self {
        Self(self.0 & !modules.0)
    }

    /// Returns `true` if any of `modules` is in this set.
    #[inline]
    #[must_use]
    pub const fn has(self, modules: Self) -> bool {
        self.0 & modules.0 != 0
    }

    /// Returns `true` if the set is empty.
    #[inline]
    #[must_use]
    pub const fn is_off(self) -> bool {
        self.0 == 0
    }
}

/// Prints the syntax of `--fast-path`: `off`, or the names of modules separated by commas.
impl fmt::Display for FastModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().filter(|(module, _)| self.has(*module));
        let names: Vec<_> = named.map(|(_, name)| *name).collect();
        if names.is_empty() { f.write_str("off") } else { f.write_str(&names.join(",")) }
    }
}

/// The name of an unknown module.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}: no module of the fast path; choose pure-ack, syn-flood, accounting or filter")]
pub struct UnknownModule(pub String);

impl FromStr for FastModules {
    type Err = UnknownModule;

    fn from_str(text: &str) -> Result<Self, UnknownModule> {
        if let "on" | "off" = text {
            return Ok(if text == "on" { Self::ON } else { Self::OFF });
        }
        text.split(',').try_fold(Self::OFF, |set, name| {
            let found = Self::NAMES.iter().find(|(_, known)| *known == name);
            let (module, _) = found.ok_or_else(|| UnknownModule(name.to_owned()))?;
            Ok(set.with(*module))
        })
    }
}

/// The switches of a running host's fast path, usable from any thread. A clone controls the same host.
///
/// A change takes effect with the next batch of each worker. ACKs that wait in a ring are still processed.
#[derive(Clone, Debug)]
pub struct FastSwitches {
    pub(crate) workers: Vec<Switch>,
}

impl FastSwitches {
    /// The modules that are on. If the host has several shards, those of the first shard.
    #[must_use]
    pub fn modules(&self) -> FastModules {
        self.workers.first().map_or(FastModules::OFF, Switch::modules)
    }

    /// Turns `modules` on or off in all shards.
    pub fn set(&self, modules: FastModules, is_on: bool) {
        for Switch(bits) in &self.workers {
            match is_on {
                true => bits.fetch_or(modules.0, Ordering::Relaxed),
                false => bits.fetch_and(!modules.0, Ordering::Relaxed),
            };
        }
    }
}

/// The switch of one worker. A clone controls the same worker.
#[derive(Clone, Debug)]
pub(crate) struct Switch(Arc<AtomicU8>);

impl Switch {
    pub(crate) fn new(modules: FastModules) -> Self {
        Self(Arc::new(AtomicU8::new(modules.0)))
    }

    #[inline]
    pub(crate) fn modules(&self) -> FastModules {
        FastModules(self.0.load(Ordering::Relaxed))
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
        assert_eq!("on".parse(), Ok(FastModules::ON));
        assert_eq!("acks".parse::<FastModules>(), Err(UnknownModule("acks".to_owned())));
    }

    #[test]
    fn a_switch_is_seen_by_every_shard() {
        let workers = vec![Switch::new(FastModules::OFF), Switch::new(FastModules::OFF)];
        let switches = FastSwitches { workers: workers.clone() };
        switches.set(FastModules::PURE_ACK.with(FastModules::FILTER), true);
        switches.clone().set(FastModules::PURE_ACK, false);
        assert!(workers.iter().all(|shard| shard.modules() == FastModules::FILTER));
        assert!(switches.modules().has(FastModules::FILTER));
        assert!(!switches.modules().has(FastModules::PURE_ACK));
    }
}
