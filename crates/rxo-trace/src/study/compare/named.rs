//! The policies of a comparison: policies and rules with a name.

use core::fmt;
use std::path::Path;

use rxo_coalesce::rules::{Juggler, RuleEngine, Rules};
use rxo_coalesce::{Config, Engine, Policy, UnknownPolicy};
use rxo_frame::{ConfigError, LinkKind};
use thiserror::Error;

use super::file;
use crate::study::replay::Receive;
use crate::study::{Point, PollRule};

/// A function that creates the engine of rules with a configuration. The policy in the configuration is not
/// used.
type MakeEngine = Box<dyn Fn(Config) -> Result<Box<dyn Receive>, ConfigError>>;

/// A policy with a name: either a set of settings, or rules that are written in code.
pub struct NamedPolicy {
    name: String,
    /// The policy. For rules, the policy only provides the settings that the table lists.
    policy: Policy,
    /// The function that creates the engine of rules; `None` for a policy.
    rules: Option<MakeEngine>,
}

impl fmt::Debug for NamedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, policy, rules } = self;
        let rules = &rules.is_some();
        f.debug_struct("NamedPolicy")
            .field("name", name)
            .field("policy", policy)
            .field("rules", rules)
            .finish()
    }
}

/// The reason why a policy is invalid. The message names the policy and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PolicyError(pub(super) String);

/// The reason why a name is refused for which [`is_in_one_line`] is `false`, behind the name.
pub(super) const NOT_IN_ONE_LINE: &str =
    "has a line break or another control character; leave it out";

/// Returns `true` if `name` stays within its cell of a table.
pub(super) fn is_in_one_line(name: &str) -> bool {
    !name.chars().any(char::is_control)
}

/// The name that selects every built-in policy.
const ALL: &str = "all";
/// The name of the rules of Juggler.
pub(super) const JUGGLER: &str = "juggler";

impl NamedPolicy {
    /// Creates a policy that the fast engine runs.
    #[must_use]
    pub fn of_policy(name: &str, policy: Policy) -> Self {
        Self { name: name.to_owned(), policy, rules: None }
    }

    /// Creates a policy that the generic tier runs. `make` creates the rules for one engine, and is called for
    /// each interface.
    #[must_use]
    pub fn of_rules<R: Rules + 'static>(name: &str, make: impl Fn() -> R + 'static) -> Self {
        let policy = *make().policy();
        let rules: MakeEngine = Box::new(move |config| {
            RuleEngine::new(make(), config).map(|engine| Box::new(engine) as Box<dyn Receive>)
        });
        Self { name: name.to_owned(), policy, rules: Some(rules) }
    }

    /// Returns every built-in policy and Juggler.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let policies = Policy::all().into_iter();
        let mut all: Vec<Self> =
            policies.map(|policy| Self::of_policy(policy.name, policy.live())).collect();
        all.push(Self::of_rules(JUGGLER, Juggler::new));
        all
    }

    /// Returns the policies that `names` lists, separated by commas: `all`, the name of a policy, or the path
    /// of a TOML file that ends in `.toml`. Reads the files.
    ///
    /// # Errors
    /// [`PolicyError`] if a name is unknown, or a file is unreadable or invalid.
    pub fn list(names: &str) -> Result<Vec<Self>, PolicyError> {
        let mut policies = Vec::new();
        for name in names.split(',').map(str::trim) {
            if name == ALL {
                policies.extend(Self::all());
            } else if name.ends_with(".toml") {
                policies.push(Self::from_file(Path::new(name))?);
            } else {
                policies.push(Self::named(name)?);
            }
        }
        Ok(policies)
    }

    fn named(name: &str) -> Result<Self, PolicyError> {
        if name == JUGGLER {
            return Ok(Self::of_rules(JUGGLER, Juggler::new));
        }
        let policy = Policy::by_name(name).map_err(|error: UnknownPolicy| {
            PolicyError(format!("{error}, {JUGGLER}, {ALL} or a file that ends in .toml"))
        })?;
        Ok(Self::of_policy(name, policy.live()))
    }

    /// Reads the TOML file at `path`.
    ///
    /// # Errors
    /// [`PolicyError`] names the file and, if its content is invalid, line and column.
    pub fn from_file(path: &Path) -> Result<Self, PolicyError> {
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| PolicyError(format!("{name}: {error}; give a TOML file")))?;
        file::parse(&text, path).map_err(|fault| PolicyError(format!("{name}:{fault}")))
    }

    /// Returns the name of the policy.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the policy. For rules, returns the policy that provides the settings in tables.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Creates an engine for packets whose first header is `link`, polled by the rule `poll`.
    pub(super) fn engine(
        &self,
        poll: PollRule,
        link: LinkKind,
        trust_checksums: bool,
        seed: u64,
    ) -> Result<Box<dyn Receive>, ConfigError> {
        let point = Point { policy: self.policy, poll }.on_host();
        let config = point.config(link, trust_checksums, seed);
        match &self.rules {
            Some(make) => make(config),
            None => Ok(Box::new(Engine::new(config)?)),
        }
    }
}
