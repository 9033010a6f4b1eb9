//! The thread of one guest, as the hub sees it.
//!
//! This module is separate from [`threads`](super::threads), which manages the threads of all guests. Contract:
//! the hub sends questions and changes, and never waits. Changes for which a thread has no space are stored and
//! sent later; a thread that hangs is never joined.

use std::collections::VecDeque;
use std::io;
use std::iter::from_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::SyncSender;
use std::thread::{self, JoinHandle};

use rxo_device::{DeviceError, FrameSink, FrameSource, SinkCapabilities};

use super::GuestWorker;
use super::gather::Place;
use super::lane::PortBuffer;
use super::port::{PortSink, PortSource, PortState};
use super::threads::Threads;
use super::wake_up::WakeUp;
use crate::desk::{Desk, Reply};
use crate::worker::{PolicyInForce, Question, Readings, Waiter};

/// Maximum number of changes that are stored for a silent guest, to be sent later.
const MOST_PENDING: usize = 8;

/// The state that a guest's thread shares with the hub and the other guests.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) hub: Arc<WakeUp>,
    pub(super) stop: Arc<AtomicBool>,
    /// The sending end of the channel for notices of the guests' devices.
    pub(super) notice_sender: SyncSender<String>,
}

/// A guest that has a thread of its own, as the hub sees it. `T` is the guest's worker.
pub(super) struct OnThread<T> {
    thread: Option<JoinHandle<(T, Result<(), DeviceError>)>>,
    /// The guest's worker, once its thread has ended; `None` before.
    pub(super) ended: Option<T>,
    desk: Desk<Question>,
    pub(super) state: Arc<PortState>,
    /// The last counters that the guest's worker reported.
    pub(super) last: Readings,
    pub(super) policy: PolicyInForce,
    /// The capabilities of the guest's device as a sink.
    pub(super) takes: SinkCapabilities,
    /// The changes that could not be sent because the desk of the guest's worker was full. They are sent later.
    pending: VecDeque<Question>,
}

impl<T> OnThread<T> {
    /// Sends a question to the guest's worker. If earlier questions wait, or the desk is full, drops the
    /// question and counts the guest as silent.
    pub(super) fn ask<A>(&mut self, question: impl FnOnce(Reply<A>) -> Question) -> Place<A> {
        let (reply, answer) = Reply::new();
        if self.pending.is_empty() && self.desk.post(question(reply)).is_none() {
            self.state.wake_up.ring();
            Place::Awaited(answer)
        } else {
            Place::Silent
        }
    }

    /// Sends a change to the guest's worker; a silent worker gets the change once it runs again.
    pub(super) fn change<A>(&mut self, question: impl Fn(Reply<A>) -> Question) -> Place<A> {
        let place = self.ask(&question);
        if matches!(place, Place::Silent) {
            if self.pending.len() == MOST_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(question(Reply::new().0));
        }
        place
    }

    /// Sends the oldest stored change to the guest's worker, if the desk of the worker is free.
    pub(super) fn send_pending(&mut self) {
        if let Some(question) = self.pending.pop_front()
            && let Some(question) = self.desk.post(question)
        {
            self.pending.push_front(question);
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Takes the worker back from its thread, if the thread has ended.
    ///
    /// # Errors
    /// The failure of the guest's device, returned once.
    pub(super) fn join(&mut self) -> Result<(), DeviceError> {
        let Some(thread) = self.thread.take_if(|thread| thread.is_finished()) else {
            return Ok(());
        };
        match thread.join() {
            Ok((worker, result)) => {
                self.ended = Some(worker);
                result
            }
            // A panic is a fault of rxo, as on any other thread.
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl<B: PortBuffer, HI, HO> OnThread<GuestWorker<B, HI, HO>>
where
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
{
    /// Starts a thread with this name for a guest's worker. Calls nothing of the guest's device, because an
    /// earlier thread may hang in such a call.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn start<GW>(
        mut worker: GuestWorker<B, HI, HO>,
        (name, state): (String, Arc<PortState>),
        threads: &Threads<GW, HO>,
        common: Common,
    ) -> io::Result<Self>
    where
        GW: Waiter<PortSource<B>, PortSink, HI, HO> + 'static,
    {
        let desk = Desk::new();
        worker.config.desk = Some(desk.clone());
        let (last, policy) = (Readings::default(), worker.policy());
        let takes = worker.to_host.outlet.sink.capabilities();
        let (waiter, notice, gone) = (threads.waiter, threads.notice, Arc::clone(&state));
        let work = move || {
            let result = worker.run(&mut waiter(), &common.stop, |report| {
                gone.note_gone(report.peers_gone);
                let sinks = report.host_sinks.into_iter();
                let lines = sinks.flat_map(|sink| from_fn(move || notice(sink)));
                // A line for which there is no space is one of very many.
                lines.for_each(|line| _ = common.notice_sender.try_send(line));
            });
            common.hub.ring();
            (worker, result)
        };
        let thread = Some(thread::Builder::new().name(name).spawn(work)?);
        let (ended, pending) = (None, VecDeque::new());
        Ok(Self { thread, ended, desk, state, last, policy, takes, pending })
    }
}
