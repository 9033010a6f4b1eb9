//! Remote: the parts of a run that answer requests (counters, engines, the interval between statistics lines),
//! and the turn counter by which the keeper checks that the worker still runs.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rxo::figures::{Figures, Readings};
use rxo::worker::{Coalesce, Crew, Moment, PolicyInForce};
use rxo_coalesce::Policy;
use rxo_driver::Heartbeat;
use rxo_driver::custody::Confirmer;
use serde_json::{Value, to_value};

use super::plan::{Plan, for_guests};
use crate::control::{EngineState, Engines, NEXT_TURN, Process, Refusal, Stats};
use crate::defaults;

/// The access of other threads to a run: to its workers, and to the settings that have changed since the
/// start. A nic that comes back gets new workers, which follow these settings. Clones share the same state.
#[derive(Clone, Debug)]
pub(super) struct Remote {
    crew: Crew,
    heartbeat: Heartbeat,
    guests: Arc<[String]>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// The counters of the workers that have ended.
    before: Readings,
    policy: Policy,
    coalesce: Coalesce,
    stats: Option<Duration>,
}

impl Remote {
    /// Creates the remote of a run of `plan` with `workers` workers, whose turns `heartbeat` counts.
    pub(super) fn new(plan: &Plan, workers: u32, heartbeat: Heartbeat) -> Self {
        let (policy, stats) = (plan.policy, plan.stats);
        let (before, coalesce) = (Readings::default(), plan.coalesce);
        let state = State { before, policy, coalesce, stats };
        let guests = plan.guests.iter().map(|guest| guest.name.clone()).collect();
        let crew = Crew::new(workers as usize);
        Self { crew, heartbeat, guests, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns the crew of the run, through which questions reach all workers.
    pub(super) const fn crew(&self) -> &Crew {
        &self.crew
    }

    /// Returns the counter that grows with the workers' turns.
    pub(super) const fn turns(&self) -> &'static AtomicU64 {
        self.heartbeat.turns()
    }

    /// Returns the current policy.
    pub(super) fn policy(&self) -> Policy {
        self.state().policy
    }

    /// Returns the requested setting of `--coalesce`.
    pub(super) fn coalesce(&self) -> Coalesce {
        self.state().coalesce
    }

    /// Returns the current time between two statistics lines; `None` if no such lines are printed.
    pub(super) fn stats(&self) -> Option<Duration> {
        self.state().stats
    }

    /// Adds the counters of a worker that has ended.
    pub(super) fn part_ended(&self, part: &Readings) {
        let mut state = self.state();
        state.before = state.before.plus(part);
    }

    /// Creates the process description with which the run of `plan` answers `rxo ctl`. With `--confirm`,
    /// `confirmer` receives the confirmation.
    pub(super) fn process(&self, plan: &Plan, confirmer: Option<Confirmer>) -> Process {
        let counting = self.clone();
        let command = match (plan.card, plan.guests.is_empty()) {
            (Some(_), _) => "rxo card",
            (None, true) => "rxo run",
            (None, false) => "rxo guest",
        };
        let coalesces = plan.card.is_none();
        Process {
            command,
            counters: Arc::new(move || counting.counters()),
            engines: coalesces.then(|| Box::new(self.clone()) as Box<dyn Engines>),
            confirmer,
            reload: None,
            can_pass: coalesces,
            connections: None,
            has_rules: false,
            stats: Some(Box::new(self.clone())),
        }
    }

    fn counters(&self) -> Result<Value, Refusal> {
        let now = answered(self.crew.counters(REQUEST_TIMEOUT))?;
        let totals = self.state().before.plus(&now);
        Ok(to_value(Figures::totals(&totals, &self.guests))?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each field is replaced as a whole, so a panic elsewhere leaves no half change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engines for Remote {
    fn states(&self) -> Result<Vec<EngineState>, Refusal> {
        let policies = answered(self.crew.policies(REQUEST_TIMEOUT))?;
        let workers = (1..=self.crew.len()).filter(|_| self.crew.len() > 1);
        let workers = workers.map(|n| format!("worker {n}"));
        let names = self.guests.iter().cloned().chain(workers).chain(["host".to_owned()]);
        let states = names.zip(policies);
        let state = |(of, it): (_, PolicyInForce)| {
            let PolicyInForce { policy, next, coalescing } = it;
            EngineState { of, policy, next, coalescing: Some(coalescing) }
        };
        Ok(states.map(state).collect())
    }

    fn profile(&self, policy: Policy, is_hold_said: bool) -> Policy {
        let live = defaults::live(policy);
        if self.guests.is_empty() { live } else { for_guests(live, is_hold_said) }
    }

    fn change(&self, policy: Policy) -> Result<String, Refusal> {
        let Some(changed) = self.crew.change_policy(policy, REQUEST_TIMEOUT) else {
            // Either all workers change or none: those that have changed return to the old policy.
            _ = self.crew.change_policy(self.policy(), REQUEST_TIMEOUT);
            return Err(silent());
        };
        let moment = changed?;
        self.state().policy = policy;
        Ok(describe(moment))
    }

    fn coalesce(&self, when: Coalesce) -> Result<String, Refusal> {
        let moment = answered(self.crew.coalesce(Some(when), REQUEST_TIMEOUT))?;
        self.state().coalesce = when;
        Ok(describe(moment))
    }
}

impl Stats for Remote {
    fn every(&self) -> Option<Duration> {
        self.stats()
    }

    fn change(&self, every: Option<Duration>) -> Result<(), Refusal> {
        answered(self.crew.report_every(every, REQUEST_TIMEOUT))??;
        self.state().stats = every;
        Ok(())
    }
}

fn answered<A>(answer: Option<A>) -> Result<A, Refusal> {
    answer.ok_or_else(silent)
}

fn silent() -> Refusal {
    "the worker does not answer; it waits for its nic, or is ending".into()
}

/// Formats the message for the user that states when a change takes effect.
fn describe(moment: Moment) -> String {
    match moment {
        Moment::NextTurn => NEXT_TURN.to_owned(),
        Moment::WhenThereIsRoom(hosts) => {
            format!("{NEXT_TURN}; at {hosts} when the device takes packets again")
        }
    }
}

/// Timeout of a request. A worker makes at least ten turns per second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
