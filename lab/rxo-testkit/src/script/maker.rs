//! Shared by the generators of scripts: turns random bytes into events, and events into frames of flows.
//!
//! Eight bytes configure the engine; every six bytes after them are one event.

use rxo_frame::{Frame, Instant};

use super::generate::load_step;
use super::{Script, Setup, Step};

pub(super) const SETUP_BYTES: usize = 8;
const EVENT_BYTES: usize = 6;
/// Most events in a script, because the work of the checks grows with the square.
const MOST_EVENTS: usize = 400;
const MOST_FRAMES: usize = 600;

/// An event, not yet decoded.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) kind: u8,
    pub(super) flow: u8,
    pub(super) change: u8,
    pub(super) count: u8,
    pub(super) value: u8,
    pub(super) time: u8,
}

/// A script, its flows, and the time of the next frame.
pub(super) struct Maker<F> {
    pub(super) flows: Vec<F>,
    pub(super) now: Instant,
    pub(super) script: Script,
}

impl<F> Maker<F> {
    /// Makes the script that `bytes` encode; too few bytes give an empty one. The engine has memory for all
    /// its frames, so a lack of memory never ends an aggregate.
    pub(super) fn script(
        bytes: &[u8],
        begin: impl FnOnce([u8; SETUP_BYTES]) -> (Setup, Vec<F>),
        mut event: impl FnMut(&mut Self, Event),
    ) -> Script {
        let mut head = [0; SETUP_BYTES];
        let taken = bytes.len().min(SETUP_BYTES);
        head[..taken].copy_from_slice(&bytes[..taken]);
        let (setup, flows) = begin(head);
        let source = bytes.to_vec();
        let script = Script { setup, steps: Vec::new(), all_frames: Vec::new(), source };
        let mut maker = Self { flows, now: Instant::ZERO, script };
        let (events, _) = bytes[taken..].as_chunks::<EVENT_BYTES>();
        for [kind, flow, change, count, value, time] in events.iter().copied().take(MOST_EVENTS) {
            if maker.script.all_frames.len() < MOST_FRAMES {
                event(&mut maker, Event { kind, flow, change, count, value, time });
            }
        }
        maker.script.setup.batch_frames = maker.script.all_frames.len().max(1);
        maker.script
    }

    pub(super) fn step(&mut self, step: Step) {
        self.script.steps.push(step);
    }

    /// Ends a poll, with a chosen load.
    pub(super) fn poll(&mut self, event: Event) {
        self.script.steps.extend(load_step(&self.script.setup, event.value));
        self.step(Step::Poll);
    }

    /// Adds a frame that arrives now.
    pub(super) fn add(&mut self, mut frame: Frame<Vec<u8>>) {
        frame.arrived_at = self.now;
        self.script.steps.push(Step::Frame(self.script.all_frames.len()));
        self.script.all_frames.push(frame);
    }

    pub(super) fn flow(&mut self, event: Event) -> &mut F {
        let index = usize::from(event.flow) % self.flows.len();
        &mut self.flows[index]
    }

    /// Repeats the frame `back` frames before the next one, if there is one.
    pub(super) fn repeat(&mut self, back: usize) {
        let frames = &self.script.all_frames;
        if let Some(frame) = frames.len().checked_sub(back).and_then(|index| frames.get(index)) {
            let frame = frame.clone();
            self.add(frame);
        }
    }

    /// Swaps the last two frames, as a path with two routes does.
    pub(super) fn swap(&mut self) {
        if let [.., one, other] = &mut self.script.all_frames[..] {
            std::mem::swap(one, other);
            std::mem::swap(&mut one.arrived_at, &mut other.arrived_at);
        }
    }
}
