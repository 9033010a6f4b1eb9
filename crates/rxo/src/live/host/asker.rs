//! Asker: reads counters, connections and the policy of a host while it runs.

use std::sync::Arc;
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{FrameSink, FrameSource};
use rxo_host::{ConnectionPage, FastModules, Handle, Host, HostCounters, HostError};

use super::HostReading;
use crate::desk::{Desk, Reply};

/// Sends questions to a running host, which answers between two turns of its loop.
#[derive(Clone, Debug)]
pub struct HostAsker {
    desks: Arc<[Desk<Question>]>,
    handle: Handle,
}

/// A question to a host.
#[derive(Debug)]
pub(super) enum Question {
    Counters(Reply<HostReading>),
    Connections { from: u32, most: usize, reply: Reply<ConnectionPage> },
    Policy(Reply<Policy>),
    SetPolicy(Policy, Reply<Result<(), HostError>>),
}

impl Question {
    /// Answers the question from the state of `host`, between two turns of its loop.
    pub(super) fn answer<I, O>(self, host: &mut Host<I, O>)
    where
        I: FrameSource,
        I::Buffer: Default + Send + Sync + 'static,
        O: FrameSink,
    {
        match self {
            Self::Counters(reply) => reply.give(HostReading::of(host)),
            Self::Connections { from, most, reply } => reply.give(host.connections(from, most)),
            Self::Policy(reply) => reply.give(host.policy()),
            Self::SetPolicy(policy, reply) => reply.give(host.set_policy(policy)),
        }
    }
}

impl HostAsker {
    /// Creates an asker for the host of `handle`, whose workers answer at `desks`, one desk for each worker.
    pub(super) const fn new(desks: Arc<[Desk<Question>]>, handle: Handle) -> Self {
        Self { desks, handle }
    }

    /// Returns the host's counters, the sum of all workers; `None` if the host has ended.
    #[must_use]
    pub fn counters(&self) -> Option<HostCounters> {
        self.readings().map(|workers| HostReading::sum(&workers))
    }

    /// Returns the counters of each worker, in the order of their numbers; `None` if the host has ended.
    #[must_use]
    pub fn readings(&self) -> Option<Vec<HostReading>> {
        self.ask_all(Question::Counters)
    }

    /// Returns a page of the host's connections, worker by worker; `None` if the host has ended. See
    /// [`Host::connections`]; a slot's number contains the number of its worker.
    #[must_use]
    pub fn connections(&self, from: u32, most: usize) -> Option<ConnectionPage> {
        let last = (self.desks.len() as u32).saturating_sub(1);
        let (worker, slot) = match (from >> SLOT_BITS, from & MOST_SLOT) {
            (worker, slot) if worker <= last => (worker, slot),
            // A slot beyond all workers counts as beyond the slots of the last worker.
            _ => (last, MOST_SLOT),
        };
        let desk = self.desks.get(worker as usize)?;
        let question = |reply| Question::Connections { from: slot, most, reply };
        let mut page = desk.ask(question, || self.handle.wake(), LONGEST_ANSWER)?;
        let next_worker = (worker < last).then(|| (worker + 1) << SLOT_BITS);
        page.next = page.next.map(|slot| worker << SLOT_BITS | slot).or(next_worker);
        Some(page)
    }

    /// Returns the modules of the host's fast path that are on.
    pub fn fast_path(&self) -> FastModules {
        self.handle.fast_path()
    }

    /// Turns the `modules` of the host's fast path on, and all other modules off.
    pub fn set_fast_path(&self, modules: FastModules) {
        self.handle.set_fast_path(modules);
    }

    /// Returns the policy of the host's engine; `None` if the host has ended.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.ask_all(Question::Policy)?.first().copied()
    }

    /// Changes the policy of the host's engine; `None` if the host has ended. See [`Host::set_policy`].
    #[must_use]
    pub fn set_policy(&self, policy: Policy) -> Option<Result<(), HostError>> {
        let answers = self.ask_all(|reply| Question::SetPolicy(policy, reply))?;
        Some(answers.into_iter().collect())
    }

    fn ask_all<A>(&self, question: impl Fn(Reply<A>) -> Question) -> Option<Vec<A>> {
        let answers = Desk::ask_all(&self.desks, question, || self.handle.wake(), LONGEST_ANSWER);
        answers.into_iter().collect()
    }
}

/// Maximum wait for an answer; a host runs at least ten turns of its loop per second.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);
/// The number of bits of a slot's index within its worker; the higher bits are the worker's number. A host has
/// at most 2^20 connections, and 256 workers.
const SLOT_BITS: u32 = 24;
const MOST_SLOT: u32 = (1 << SLOT_BITS) - 1;
