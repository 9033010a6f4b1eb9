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

/// The parts of a running command that requests use. The command does not offer requests whose part is `None`.
pub(crate) struct Process {
    /// The name of the command, such as `rxo serve`.
    pub(crate) command: &'static str,
    /// The function that reads all counters, as totals since the start.
    pub(crate) counters: Counters,
    /// The engines that coalesce for the command; `None` if the command coalesces nothing.
    pub(crate) engines: Option<Box<dyn Engines>>,
    /// The function that confirms the run; `None` if the command runs without `--confirm`.
    pub(crate) confirmer: Option<Confirmer>,
    /// The function that reads the command's configuration file again; `None` if the command has no such file.
    pub(crate) reload: Option<Reload>,
    /// `true` if the engines can be switched off by the request `coalesce`.
    pub(crate) can_pass: bool,
    /// The reader of the connections of the command's host; `None` if the command runs no host.
    pub(crate) connections: Option<HostAsker>,
    /// `true` if the filter of the fast path has at least one rule, so that turning the filter on has an effect.
    pub(crate) has_rules: bool,
    /// Controls the time between the statistics lines of the command; `None` if the command prints no such lines.
    pub(crate) stats: Option<Box<dyn Stats>>,
}

/// A function that reads a command's configuration file again. The function returns the flags that have
/// changed, as JSON.
pub(crate) type Reload = Box<dyn Fn() -> Result<Value, Refusal> + Send>;

/// The engines of a command. All engines follow the same policy, reduced to the capabilities of each engine's sink.
pub(crate) trait Engines: Send {
    /// Returns the state of each engine.
    ///
    /// # Errors
    /// If the worker does not answer.
    fn states(&self) -> Result<Vec<EngineState>, Refusal>;

    /// Returns the profile `policy` with the defaults that this command applies to it. `is_hold_said` is
    /// `true` if the user has chosen the hold.
    fn profile(&self, policy: Policy, is_hold_said: bool) -> Policy;

    /// Changes the policy of all engines. Returns a message for the user, which states when the change takes
    /// effect.
    ///
    /// # Errors
    /// If an engine cannot follow the policy; then no engine changes.
    fn change(&self, policy: Policy) -> Result<String, Refusal>;

    /// Sets the mode of coalescing: frames go through the engines always, never, or while coalescing pays.
    /// Returns a message for the user, which states when the change takes effect.
    ///
    /// # Errors
    /// If the command's engines cannot be switched off, or the worker does not answer.
    fn coalesce(&self, when: Coalesce) -> Result<String, Refusal>;
}

/// The state of an engine, as requests show it.
#[derive(Clone, Debug)]
pub(crate) struct EngineState {
    /// The receiver of the engine's deliveries: `host`, or the name of a guest.
    pub(crate) of: String,
    /// The policy that the engine follows now.
    pub(crate) policy: Policy,
    /// The policy that the engine will follow once its sink accepts packets again; `None` if no change is pending.
    pub(crate) next: Option<Policy>,
    /// The state of `--coalesce` of this engine; `None` if the engine cannot be switched off.
    pub(crate) coalescing: Option<Coalescing>,
}

/// Access to the interval between the statistics lines that a command prints.
pub(crate) trait Stats: Send {
    /// Returns the interval between two statistics lines; `None` if no lines are printed.
    fn every(&self) -> Option<Duration>;

    /// Changes the interval between two statistics lines; `None` stops these lines.
    ///
    /// # Errors
    /// If the worker does not answer.
    fn change(&self, every: Option<Duration>) -> Result<(), Refusal>;
}

/// Creates the [`Process`] of a command that runs rxo's own host.
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

/// Returns a function that reads the counters of the host that `asker` asks.
pub(crate) fn host_counters(asker: HostAsker) -> Counters {
    Arc::new(move || {
        let workers = asker.readings().ok_or(HAS_ENDED)?;
        Ok(to_value(HostFigures::of_workers(&workers))?)
    })
}

/// The engine of rxo's own host, as requests use it.
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

/// The message for the user that states when a change of the policy takes effect.
pub(crate) const NEXT_TURN: &str = "with the next batch; what was held is delivered first";

const HAS_ENDED: &str = "the host does not answer; it is ending";
