//! Loop of a worker, or of the workers of several guests: a turn, due reports, an answer, a wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rxo_coalesce::Policy;
use rxo_device::DeviceError;
use rxo_frame::Instant;

use super::next::{Next, Turn, next};
use super::reading::{Due, Times};
use super::{
    Awake, Coalesce, Misfit, Moment, PolicyInForce, Question, Readings, Waiter, WorkerConfig,
};
use crate::desk::Desk;

/// The work of the loop: implemented by a worker, and by the hub of several guests. The parameters are those of
/// [`Worker`](super::Worker).
pub(super) trait Looped<NI, NO, HI, HO> {
    fn config(&self) -> &WorkerConfig;

    fn times(&mut self) -> &mut Times;

    /// Processes a batch in each direction whose source may have frames. If one direction fails, the other
    /// directions are still served.
    fn take_turn<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        waiter: &mut W,
        awake: Awake,
    ) -> Result<Turn, DeviceError>;

    /// Returns the time at which a turn is due even if nothing arrives; `None` if no turn is due.
    fn deadline(&self) -> Option<Instant>;

    /// Waits for the next event: frames in a source, or free space in a sink.
    fn wait<W: Waiter<NI, NO, HI, HO>>(
        &self,
        waiter: &mut W,
        timeout: Duration,
    ) -> Result<Awake, DeviceError>;

    /// Decides whether coalescing pays, and switches it. `cpu` is the processor time so far.
    fn judge(&mut self, now: Instant, cpu: Duration);

    /// Delivers the frames that are queued for the hosts, at the end of the run.
    fn empty_queues<W: Waiter<NI, NO, HI, HO>>(
        &mut self,
        _waiter: &mut W,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Sends all frames that the engines hold and the sinks keep.
    fn flush(&mut self, now: Instant) -> Result<(), DeviceError>;

    /// Compares the counters of all stages. Called between two turns.
    fn check_balance(&mut self);

    /// Answers a question: at once, or, if each guest has a thread of its own, some turns later, once the
    /// guests have answered.
    fn answer(&mut self, question: Question);
}

/// Answers every question at once: implemented by a worker, and by guests that share one thread.
pub(super) trait Answers {
    fn readings(&mut self) -> Readings;

    /// Returns the policy of each engine.
    fn policies(&self) -> Vec<PolicyInForce>;

    /// Changes the policy of all engines, or of none.
    fn change_policy(&mut self, policy: Policy) -> Result<Moment, Misfit>;

    /// Sets the mode of coalescing, unless `when` is `None`. Returns the moment at which the change takes effect.
    fn coalesce(&mut self, when: Option<Coalesce>) -> Moment;

    /// Changes the time between two reports.
    fn report_every(&mut self, time: Option<Duration>) -> Result<(), Misfit>;
}

/// Maximum number of turns after a stop. In these turns, the worker forwards the frames that the devices still hold.
/// The number is enough for a full ring, and limited so that a busy link cannot keep the worker from stopping.
const LAST_ROUNDS: usize = 64;

/// Runs `it` (a worker, or the hub of several guests) until `stop` is set or a device fails. Calls `report`
/// when a report or a check for notices is due, and passes the reason.
///
/// # Errors
/// The first failure of a device, after all held packets were sent.
pub(super) fn run<NI, NO, HI, HO, L: Looped<NI, NO, HI, HO>, W: Waiter<NI, NO, HI, HO>>(
    it: &mut L,
    waiter: &mut W,
    stop: &AtomicBool,
    report: impl FnMut(&mut L, Due),
) -> Result<(), DeviceError> {
    let (now, cpu) = (waiter.now(), waiter.cpu_time());
    *it.times() = Times::started(now, cpu, it.config());
    let ended = work(it, waiter, stop, report);
    let emptied = it.empty_queues(waiter);
    let now = waiter.now();
    let flushed = it.flush(now);
    it.times().set(now, waiter.cpu_time());
    it.check_balance();
    ended.and(emptied).and(flushed)
}

fn work<NI, NO, HI, HO, L: Looped<NI, NO, HI, HO>, W: Waiter<NI, NO, HI, HO>>(
    it: &mut L,
    waiter: &mut W,
    stop: &AtomicBool,
    mut report: impl FnMut(&mut L, Due),
) -> Result<(), DeviceError> {
    let mut awake = Awake::ALL;
    while !stop.load(Ordering::Relaxed) {
        it.config().count_turn();
        let turn = it.take_turn(waiter, awake)?;
        if let Some(due) = it.times().take_due(turn.now) {
            it.times().set(turn.now, waiter.cpu_time());
            let cpu = it.times().cpu();
            it.judge(turn.now, cpu);
            report(it, due);
        }
        if let Some(question) = it.config().desk.as_ref().and_then(Desk::take) {
            it.times().set(turn.now, waiter.cpu_time());
            it.answer(question);
        }
        let due = [it.times().due_at(), it.deadline()];
        awake = match next(it.config(), turn, due.into_iter().flatten().min()) {
            Next::Again => Awake::ALL,
            Next::Pause(time) => {
                waiter.pause(time);
                Awake::ALL
            }
            Next::Wait(timeout) => it.wait(waiter, timeout)?,
        };
    }
    for _ in 0..LAST_ROUNDS {
        let turn = it.take_turn(waiter, Awake::ALL)?;
        if turn.from_nic + turn.from_host == 0 {
            break;
        }
    }
    Ok(())
}

pub(super) fn answer(it: &mut impl Answers, question: Question) {
    match question {
        Question::Counters(reply) => reply.give(it.readings()),
        Question::Policies(reply) => reply.give(it.policies()),
        Question::ChangePolicy(policy, reply) => reply.give(it.change_policy(policy)),
        Question::Coalesce(when, reply) => reply.give(it.coalesce(when)),
        Question::ReportEvery(time, reply) => reply.give(it.report_every(time)),
    }
}
