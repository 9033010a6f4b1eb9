//! A case: a stack, the way in which it takes frames from the card, and the place where the application runs.

use rxo_demo::wrap::count;
use serde::Serialize;

use crate::card::Expansion;
use crate::menon::receive::stack::Stack;

/// One receiving host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) stack: Stack,
    pub(super) connections: usize,
    /// The most frames that one poll takes.
    pub(super) poll_frames: usize,
    pub(super) application: Application,
    pub(super) traffic: Traffic,
    pub(super) expansion: Expansion,
}

/// What comes from the senders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Traffic {
    /// As much as Linux senders can send.
    Bulk,
    /// More than the receiver takes, from a generator.
    Saturation,
    /// One byte, and the next when that has come back.
    Requests,
}

/// Where connections are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Application {
    /// On the worker's thread, after each turn: the paper's one processor.
    Worker,
    /// On a thread for each connection: the paper's two processors.
    Threads,
}

impl Case {
    /// One connection, read on the worker's thread. The host expands its templates, as the paper's driver does.
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

    /// One connection, read by a thread of its own.
    pub(super) const fn two_processors(stack: Stack) -> Self {
        Self { application: Application::Threads, ..Self::one_processor(stack) }
    }

    /// Original as a kernel of 2006 took frames: one by one.
    pub(super) const SINGLE: Self = Self { poll_frames: 1, ..Self::one_processor(Stack::ORIGINAL) };

    /// This receiver behind the generator, which sends more than it takes.
    pub(super) const fn saturated(self) -> Self {
        Self { traffic: Traffic::Saturation, ..self }
    }

    /// This receiver with a card that expands its templates.
    pub(super) const fn expanded_by_card(self) -> Self {
        Self { expansion: Expansion::Card, ..self }
    }

    /// The receiver in the same place that neither aggregates nor offloads.
    pub(super) const fn original(self) -> Self {
        Self { stack: Stack::ORIGINAL, expansion: Expansion::Host, ..self }
    }

    /// Requests of one byte, answered on the worker's thread.
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

    /// The stack, and who expands its templates if that is not the host.
    pub(super) fn stack_name(self) -> String {
        let expansion = match self.expansion {
            Expansion::Host => "",
            Expansion::Card => ", expanded by the card",
        };
        format!("{}{expansion}", self.stack.name())
    }
}

impl Application {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Worker => "the worker",
            Self::Threads => "a thread",
        }
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Worker => "",
            Self::Threads => " by a thread",
        }
    }
}

/// As the host's default.
const POLL_FRAMES: usize = 256;
