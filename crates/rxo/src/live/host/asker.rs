//! Asking a host while it runs: counters, connections, its policy.

use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::{FrameSink, FrameSource};
use rxo_host::{ConnectionPage, FastSwitches, Handle, Host, HostCounters, HostError};

use crate::desk::{Desk, Reply};

/// Asks a running host. Its answers come between two turns.
#[derive(Clone, Debug)]
pub struct HostAsker {
    desk: Desk<Question>,
    handle: Handle,
}

/// What a host is asked.
#[derive(Debug)]
pub(super) enum Question {
    Counters(Reply<HostCounters>),
    Connections { from: u32, most: usize, reply: Reply<ConnectionPage> },
    Policy(Reply<Policy>),
    SetPolicy(Policy, Reply<Result<(), HostError>>),
}

impl Question {
    /// Answers from `host`, between two turns.
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
    /// Asks at `desk`, where the host of `handle` answers.
    pub(super) const fn new(desk: Desk<Question>, handle: Handle) -> Self {
        Self { desk, handle }
    }

    /// Its counters; `None` if it has ended, as in the functions below.
    #[must_use]
    pub fn counters(&self) -> Option<HostCounters> {
        self.ask(Question::Counters)
    }

    /// A page of its connections: see [`Host::connections`].
    #[must_use]
    pub fn connections(&self, from: u32, most: usize) -> Option<ConnectionPage> {
        self.ask(|reply| Question::Connections { from, most, reply })
    }

    /// The switches of its fast path. They switch at once, also without this.
    #[must_use]
    pub fn fast_path(&self) -> FastSwitches {
        self.handle.fast_path()
    }

    /// The policy of its engine.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        self.ask(Question::Policy)
    }

    /// Changes the policy of its engine: see [`Host::set_policy`].
    #[must_use]
    pub fn set_policy(&self, policy: Policy) -> Option<Result<(), HostError>> {
        self.ask(|reply| Question::SetPolicy(policy, reply))
    }

    fn ask<A>(&self, question: impl FnOnce(Reply<A>) -> Question) -> Option<A> {
        self.desk.ask(question, || self.handle.wake(), LONGEST_ANSWER)
    }
}

/// A worker turns at least ten times a second.
const LONGEST_ANSWER: Duration = Duration::from_secs(1);
