//! A case: a stack, its source of frames, and the thread that runs the application.

use serde::Serialize;

use crate::card::Expansion;
use crate::flags::Chosen;
use crate::menon::once;
use crate::menon::stack::{PAPERS_LIMIT, Stack};

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
            // The host's default.
            poll_frames: 256,
            application: Application::Worker,
            traffic: Traffic::Bulk,
            expansion: Expansion::Host,
        }
    }
}

/// Returns the cases of the chosen parts. A quick run leaves out those that take minutes, unless they are named.
pub(super) fn cases(parts: &Chosen<'_>, quick: bool) -> Vec<Case> {
    let is_long = |part| parts.has(part) && (parts.is_named(part) || !quick);
    let one = Case::one_processor;
    let two = |stack| Case { application: Application::Threads, ..one(stack) };
    let saturated = |case| Case { traffic: Traffic::Saturation, ..case };
    let by_card = |case| Case { expansion: Expansion::Card, ..case };
    // Original with polls of one frame, like a kernel of 2006.
    let single = Case { poll_frames: 1, ..one(Stack::ORIGINAL) };
    let stacks = |place: &dyn Fn(Stack) -> Case| {
        let all = Stack::ALL.map(place);
        all.into_iter().chain([by_card(all[2])]).collect::<Vec<_>>()
    };
    let mut cases = Vec::new();
    if parts.has("profile") {
        cases.push(single);
        cases.extend(stacks(&one));
    }
    if is_long("threads") {
        cases.extend(stacks(&two));
    }
    if is_long("saturation") {
        cases.extend(stacks(&one).into_iter().chain(stacks(&two)).map(saturated));
    }
    if parts.has("limit") {
        let limits: &[u16] = if quick { &[1, PAPERS_LIMIT] } else { &AGGREGATION_LIMITS };
        cases.push(one(Stack::ORIGINAL));
        cases.extend(limits.iter().map(|&limit| one(Stack::limited(limit))));
    }
    let both = [Stack::ORIGINAL, Stack::OPTIMIZED].map(one);
    if is_long("connections") {
        let of = |connections| both.map(|case| Case { connections, ..case });
        cases.extend([1, 5, 25, 100, 400].into_iter().flat_map(of));
    }
    if parts.has("exchange") {
        cases.extend(both.map(|case| Case { traffic: Traffic::Requests, ..case }));
    }
    once(cases)
}

const AGGREGATION_LIMITS: [u16; 10] = [1, 2, 3, 4, 5, 7, 10, PAPERS_LIMIT, 30, 35];
