//! Asker: reads counters, connections and the policy of a host while it runs.

use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{FrameSink, FrameSource};
use rxo_host::{ConnectionPage, FastModules, Handle, Host, HostCounters, HostError};

use crate::desk::{Desk, Reply};

/// Sends questions to a running host, which answers between two turns.
#[derive(Clone, Debug)]
pub struct HostAsker {
    desk: Desk<Question>,
    handle: Handle,
}

/// A question to a host.
#[derive(Debug)]
pub(super) enum Question {
    Counters(Reply<HostCounters>),
    Connections { from: u32, most: usize, reply: Reply<ConnectionPage> },
    Policy(Reply<Policy>),
    SetPolicy(Policy, Reply<Result<(), HostError>>),
}

impl Question {
    /// Answers the question from the state of `host`, between two turns.
    pub(super) fn answer<I, O>(self, host: &mut Host<I, O>)
    where
        I: FrameSource,
        I::Buffer: Default + Send + Sync + 'static,
        O: FrameSink,
    {
        match self {
            Self::Counters(reply) => reply.give(host.counters()),
            Self::Connections { from, most, reply } => reply.give(host.connections(from, most)),
            Self::Policy(reply) => reply.give(host.policy()),
            Self::SetPolicy(policy, reply) => reply.give(host.set_policy(policy)),
        }
    }
}

impl HostAsker {
    /// Creates an asker for the host of `handle`, which answers at `desk`.
    pub(super) const fn new(desk: Desk<Question>, handle: Handle) -> Self {
        Self { desk, handle }
    }

    /// Returns the host's counters; `None` if it has ended.
    #[must_use]
    pub fn counters(&self) -> Option<HostCounters> {
        self.ask(Question::Counters)
    }

    /// Returns a page of the host's connections; `None` if it has ended. See [`Host::connections`].
    #[must_use]
    pub fn connections(&self, from: u32, most: usize) -> Option<ConnectionPage> {
        self.ask(|reply| Question::Connections { from, most, reply })
    }

    /// The modules of its fast path that are on.
    pub fn fast_path(&self) -> FastModules {
        self.handle.fast_path()
    }

    /// Turns these modules of its fast path on and all others off.
    pub fn set_fast_path(&self, modules: FastModules) {
        self.handle.set_fast_path(modules);
    }

    /// The policy of its engine.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.ask(Question::Policy)
    }

    /// Changes the policy of the host's engine; `None` if the host has ended. See [`Host::set_policy`].
    #[must_use]
    pub fn set_policy(&self, policy: Policy) -> Option<Result<(), HostError>> {
        self.ask(|reply| Question::SetPolicy(policy, reply))
    }

    fn ask<A>(&self, question: impl FnOnce(Reply<A>) -> Question) -> Option<A> {
        self.desk.ask(question, || self.handle.wake(), LONGEST_ANSWER)
    }
}

/// The longest wait for an answer; a host makes at least ten turns per second.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);
