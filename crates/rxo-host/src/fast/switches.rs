//! The modules of the fast path, and their switches.
//!
//! Separate because threads of applications use them while the worker runs: the worker reads all switches once a
//! batch. Chan and Cheriton 2013 have one such switch in *sysfs*.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use thiserror::Error;

/// A module of the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastModule {
    /// Consumes pure ACKs (Chan and Cheriton 2013, section 3.2).
    PureAck,
    /// Counts half-open connections by the prefix of their source.
    SynFlood,
    /// Counts frames and bytes by flow or prefix.
    Accounting,
    /// Drops frames by address and port, before everything else.
    Filter,
}

impl FastModule {
    /// Every module.
    pub const ALL: [Self; 4] = [Self::PureAck, Self::SynFlood, Self::Accounting, Self::Filter];

    /// The name that users type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PureAck => "pure-ack",
            Self::SynFlood => "syn-flood",
            Self::Accounting => "accounting",
            Self::Filter => "filter",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for FastModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no module's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}: no module of the fast path; choose pure-ack, syn-flood, accounting or filter")]
pub struct UnknownModule(pub String);

impl FromStr for FastModule {
    type Err = UnknownModule;

    fn from_str(name: &str) -> Result<Self, UnknownModule> {
        let found = Self::ALL.into_iter().find(|module| module.name() == name);
        found.ok_or_else(|| UnknownModule(name.to_owned()))
    }
}

/// A set of modules.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct FastModules(u8);

impl FastModules {
    /// None: the fast path is off.
    pub const OFF: Self = Self(0);
    /// What `--fast-path on` means: pure ACKs.
    pub const ON: Self = Self::OFF.with(FastModule::PureAck);

    /// This set with `module`.
    #[must_use]
    pub const fn with(self, module: FastModule) -> Self {
        Self(self.0 | module.bit())
    }

    /// This set without `module`.
    #[must_use]
    pub const fn without(self, module: FastModule) -> Self {
        Self(self.0 & !module.bit())
    }

    /// Whether `module` is in it.
    #[inline]
    #[must_use]
    pub const fn has(self, module: FastModule) -> bool {
        self.0 & module.bit() != 0
    }

    /// Whether no module is in it.
    #[inline]
    #[must_use]
    pub const fn is_off(self) -> bool {
        self.0 == 0
    }

    /// Whether a module other than [`FastModule::PureAck`] is in it.
    #[inline]
    pub(crate) const fn has_observers(self) -> bool {
        self.0 & !FastModule::PureAck.bit() != 0
    }

    /// The modules in it.
    pub fn iter(self) -> impl Iterator<Item = FastModule> {
        FastModule::ALL.into_iter().filter(move |module| self.has(*module))
    }
}

impl fmt::Debug for FastModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// As `--fast-path` takes it: `off`, or the names of modules.
impl fmt::Display for FastModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_off() {
            return f.write_str("off");
        }
        let names: Vec<_> = self.iter().map(FastModule::name).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for FastModules {
    type Err = UnknownModule;

    fn from_str(text: &str) -> Result<Self, UnknownModule> {
        match text {
            "on" => Ok(Self::ON),
            "off" => Ok(Self::OFF),
            _ => text.split(',').try_fold(Self::OFF, |set, name| Ok(set.with(name.parse()?))),
        }
    }
}

/// The switches of a running host's fast path, for any thread. A clone switches the same host.
///
/// A change takes effect with the next batch of each worker. Whatever waits in a ring is still processed.
#[derive(Clone, Debug)]
pub struct FastSwitches {
    workers: Vec<Switch>,
}

impl FastSwitches {
    pub(crate) fn new(workers: Vec<Switch>) -> Self {
        Self { workers }
    }

    /// The modules that are on; of a host in shards, those of the first.
    #[must_use]
    pub fn modules(&self) -> FastModules {
        self.workers.first().map_or(FastModules::OFF, Switch::modules)
    }

    /// Whether `module` is on.
    #[must_use]
    pub fn is_on(&self, module: FastModule) -> bool {
        self.modules().has(module)
    }

    /// Turns `module` on or off, in all shards.
    pub fn set(&self, module: FastModule, is_on: bool) {
        for Switch(bits) in &self.workers {
            match is_on {
                true => bits.fetch_or(module.bit(), Ordering::Relaxed),
                false => bits.fetch_and(!module.bit(), Ordering::Relaxed),
            };
        }
    }
}

/// The switch of one worker; a clone is another handle on it.
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
        let shards = [Switch::new(FastModules::OFF), Switch::new(FastModules::OFF)];
        let switches = FastSwitches::new(shards.to_vec());
        switches.set(FastModule::PureAck, true);
        switches.set(FastModule::Filter, true);
        switches.clone().set(FastModule::PureAck, false);
        assert!(
            shards.iter().all(|shard| shard.modules() == FastModules::OFF.with(FastModule::Filter))
        );
        assert!(switches.is_on(FastModule::Filter) && !switches.is_on(FastModule::PureAck));
    }
}
