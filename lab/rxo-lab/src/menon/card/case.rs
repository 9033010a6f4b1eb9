//! A case: a stack, its source of frames, and the thread that runs the application.

use rxo_demo::wrap::count;
use serde::Serialize;

use crate::card::Expansion;
use crate::menon::receive::stack::Stack;

/// One configuration of the receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) stack: Stack,
    pub(super) connections: usize,
    /// Largest number of frames per poll.
    pub(super) poll_frames: usize,
    pub(super) application: Application,
    pub(super) traffic: Traffic,
    pub(super) expansion: Expansion,
}

/// The traffic from the senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Traffic {
    /// As much as Linux senders can send.
    Bulk,
    /// More than the receiver can process, from a generator.
    Saturation,
    /// One-byte requests, each sent after the previous byte has come back.
    Requests,
}

/// The thread on which connections are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Application {
    /// The worker's thread, after each turn: the paper's one processor.
    Worker,
    /// A thread for each connection: the paper's two processors.
    Threads,
}

impl Case {
    /// Makes a case with one connection that is read on the worker's thread. The host expands templates, as
    /// the paper's driver does.
    pub(super) const fn one_processor(stack: Stack) -> Self {
        Self {
            stack,
            connections: 1,
            poll_frames: POLL_FRAMES,
            application: Application::Worker,
            traffic: Traffic::Bulk,
            expansion: Expansion::Host,
        }
    }

    /// Makes a case with one connection that is read by its own thread.
    pub(super) const fn two_processors(stack: Stack) -> Self {
        Self { application: Application::Threads, ..Self::one_processor(stack) }
    }

    /// Original with polls of one frame, like a kernel of 2006.
    pub(super) const SINGLE: Self = Self { poll_frames: 1, ..Self::one_processor(Stack::ORIGINAL) };

    /// Returns this case with traffic from the generator, which saturates the receiver.
    pub(super) const fn saturated(self) -> Self {
        Self { traffic: Traffic::Saturation, ..self }
    }

    /// Returns this case with a card that expands ACK templates.
    pub(super) const fn expanded_by_card(self) -> Self {
        Self { expansion: Expansion::Card, ..self }
    }

    /// Returns this case with the stack that neither aggregates nor offloads.
    pub(super) const fn original(self) -> Self {
        Self { stack: Stack::ORIGINAL, expansion: Expansion::Host, ..self }
    }

    /// Makes a case with one-byte requests, answered on the worker's thread.
    pub(super) const fn requests(stack: Stack) -> Self {
        Self { traffic: Traffic::Requests, ..Self::one_processor(stack) }
    }

    pub(super) fn name(self) -> String {
        let Self { connections, poll_frames, application, traffic, .. } = self;
        let stack = self.stack_name();
        if traffic == Traffic::Requests {
            return format!("requests, {stack}");
        }
        let connections = count(connections, "connection");
        let polls = if poll_frames == 1 { ", polls of one frame" } else { "" };
        let saturated = if traffic == Traffic::Saturation { ", saturated" } else { "" };
        format!("{connections}{}{saturated}, {stack}{polls}", application.suffix())
    }

    /// Returns the name of the stack, with the expanding part if that is not the host.
    pub(super) fn stack_name(self) -> String {
        let expansion = match self.expansion {
            Expansion::Host => "",
            Expansion::Card => ", expanded by the card",
        };
        format!("{}{expansion}", self.stack.name())
    }
}

impl Application {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Worker => "",
            Self::Threads => " by a thread",
        }
    }
}

/// Frames per poll, the host's default.
const POLL_FRAMES: usize = 256;
