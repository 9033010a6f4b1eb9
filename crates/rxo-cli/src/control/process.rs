//! The parts of a running command to which requests apply.

use std::sync::Arc;
use std::time::Duration;

use rxo::figures::HostFigures;
use rxo::live::host::HostAsker;
use rxo::worker::{Coalesce, Coalescing};
use rxo_coalesce::Policy;
use rxo_control::Refusal;
use rxo_driver::custody::Confirmer;
use serde_json::{Value, to_value};

use crate::hosting::Running;
use crate::metrics::Counters;

/// The parts of a command that requests use. If a part is `None`, its requests are unknown to the command.
pub(crate) struct Process {
    /// The command, such as `rxo serve`.
    pub(crate) command: &'static str,
    /// Reads all counters, since the start.
    pub(crate) counters: Counters,
    /// The command's engines.
    pub(crate) engines: Option<Box<dyn Engines>>,
    /// Confirms the run; `None` if it runs without `--confirm`.
    pub(crate) confirmer: Option<Confirmer>,
    /// Reads the file of its flags again; `None` if it has none.
    pub(crate) reload: Option<Reload>,
    /// `true` if the engines can be switched off.
    pub(crate) can_pass: bool,
    /// The connections of the command's host.
    pub(crate) connections: Option<HostAsker>,
    /// `true` if the filter of the fast path has a rule.
    pub(crate) has_rules: bool,
    /// Controls the time between the lines of figures; `None` without such lines.
    pub(crate) stats: Option<Box<dyn Stats>>,
}

/// Reads the file of a command's flags again, and returns the flags that have changed.
pub(crate) type Reload = Box<dyn Fn() -> Result<Value, Refusal> + Send>;

/// The engines of a command. All follow one policy, as far as their sinks support it.
pub(crate) trait Engines: Send {
    /// Returns the state of each engine.
    ///
    /// # Errors
    /// If the worker does not answer.
    fn states(&self) -> Result<Vec<EngineState>, Refusal>;

    /// Returns a profile with the defaults of this command. `is_hold_said` means that the user has chosen the
    /// hold.
    fn profile(&self, policy: Policy, is_hold_said: bool) -> Policy;

    /// Changes the policy of all engines. Returns the time at which that takes effect.
    ///
    /// # Errors
    /// If an engine cannot follow the policy; then no engine changes.
    fn change(&self, policy: Policy) -> Result<String, Refusal>;

    /// Sets whether frames go through the engines. Returns the time at which that takes effect.
    ///
    /// # Errors
    /// If the command's engines cannot be switched off, or the worker does not answer.
    fn coalesce(&self, when: Coalesce) -> Result<String, Refusal>;
}

/// The state of an engine.
#[derive(Clone, Debug)]
pub(crate) struct EngineState {
    /// The engine's owner: `host`, or a guest's name.
    pub(crate) of: String,
    /// The policy in force.
    pub(crate) policy: Policy,
    /// The policy that follows as soon as possible; `None` if it is already in force.
    pub(crate) next: Option<Policy>,
    /// The state of switching the engine off and on; `None` if it cannot be switched.
    pub(crate) coalescing: Option<Coalescing>,
}

/// The lines of figures of a command.
pub(crate) trait Stats: Send {
    /// Returns the time between two lines; `None` for no lines.
    fn every(&self) -> Option<Duration>;

    /// Changes the time between two lines.
    ///
    /// # Errors
    /// If the worker does not answer.
    fn change(&self, every: Option<Duration>) -> Result<(), Refusal>;
}

/// Makes the process of a command on rxo's own host.
pub(crate) fn host_process(
    command: &'static str,
    host: &Running,
    stats: Option<Box<dyn Stats>>,
) -> Process {
    let asker = host.asker();
    Process {
        command,
        counters: host_counters(asker.clone()),
        engines: Some(Box::new(HostEngine(asker.clone()))),
        confirmer: None,
        reload: None,
        can_pass: false,
        connections: Some(asker),
        has_rules: host.has_rules(),
        stats,
    }
}

/// Returns a function that reads the counters of a host.
pub(crate) fn host_counters(asker: HostAsker) -> Counters {
    Arc::new(move || {
        let counters = asker.counters().ok_or(HAS_ENDED)?;
        Ok(to_value(HostFigures::new(&counters))?)
    })
}

/// The engine of a host.
struct HostEngine(HostAsker);

impl Engines for HostEngine {
    fn states(&self) -> Result<Vec<EngineState>, Refusal> {
        let policy = self.0.policy().ok_or(HAS_ENDED)?;
        Ok(vec![EngineState { of: "host".to_owned(), policy, next: None, coalescing: None }])
    }

    fn profile(&self, policy: Policy, _is_hold_said: bool) -> Policy {
        crate::defaults::live(policy)
    }

    fn change(&self, policy: Policy) -> Result<String, Refusal> {
        self.0.set_policy(policy).ok_or(HAS_ENDED)??;
        Ok(NEXT_TURN.to_owned())
    }

    fn coalesce(&self, _when: Coalesce) -> Result<String, Refusal> {
        Err(Refusal("its host always coalesces; give policy=none".to_owned()))
    }
}

/// The time at which a policy change takes effect.
pub(crate) const NEXT_TURN: &str = "with the next batch; what was held is delivered first";

const HAS_ENDED: &str = "the host does not answer; it is ending";
