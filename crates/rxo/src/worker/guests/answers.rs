//! Answers questions to all guests, and gathers their reports, for the hub: the loop that runs the nic and
//! the switch.
//!
//! This module is separate from the turns of the hub. Contract: the hub asks its guests and continues to run;
//! [`gather`](super::gather) collects the answers until all have arrived, or some guests have been silent for
//! too long. A silent guest is represented by its last reading.

use rxo_coalesce::Policy;
use rxo_device::{FrameSink, FrameSource};
use rxo_frame::Instant;

use super::further::OnHubThread;
use super::gather::{Asked, Gathering};
use super::lane::PortBuffer;
use super::threads::Threaded;
use crate::desk::Reply;
use crate::worker::fit::carried;
use crate::worker::looped::Looped as _;
use crate::worker::reading::Due;
use crate::worker::{Misfit, Moment, Question, Readings, Report};

impl<NI, NO, HI, HO, F> Threaded<'_, NI, NO, HI, HO, F>
where
    NI: FrameSource<Buffer: PortBuffer> + Send + 'static,
    NO: FrameSink + Send + 'static,
    HI: FrameSource<Buffer: Send> + Send + 'static,
    HO: FrameSink + Send + 'static,
    F: FnMut(Report<'_, NO, HO>),
{
    /// Begins to answer the pending question or, if there is none, to gather the report that is due, unless an
    /// answer is being gathered already. Finishes an answer once it is complete.
    pub(super) fn attend_questions(&mut self, now: Instant) {
        if self.gathering.is_none() {
            if let Some(question) = self.question.take() {
                self.gathering = self.ask(question, now);
            } else if let Some(due) = self.due.take() {
                self.gathering = Some(Gathering::Report(due, self.asked_for_counters(now)));
            }
        }
        if let Some(gathering) = self.gathering.take_if(|it| it.is_complete(now)) {
            self.finish(gathering);
        }
    }

    /// Asks each guest and each further hub for its counters. One that accepts no question counts as silent.
    fn asked_for_counters(&mut self, now: Instant) -> Asked<Readings> {
        let guests = self.guests.iter_mut().map(|guest| guest.ask(Question::Counters));
        Asked::new(guests.chain(self.hubs.iter().map(OnHubThread::ask)).collect(), now)
    }

    /// Asks each guest a question. A guest that accepts no question counts as silent.
    fn asked<A>(&mut self, question: impl Fn(Reply<A>) -> Question, now: Instant) -> Asked<A> {
        Asked::new(self.guests.iter_mut().map(|guest| guest.ask(&question)).collect(), now)
    }

    /// Begins to answer a question. Returns the answers to wait for; `None` if the question is answered
    /// already.
    fn ask(&mut self, question: Question, now: Instant) -> Option<Gathering> {
        match question {
            Question::Counters(reply) => {
                Some(Gathering::Counters(reply, self.asked_for_counters(now)))
            }
            Question::Policies(reply) => {
                Some(Gathering::Policies(reply, self.asked(Question::Policies, now)))
            }
            Question::ChangePolicy(policy, reply) => {
                if let Err(misfit) = self.check(policy) {
                    reply.give(Err(misfit));
                    return None;
                }
                self.config.engine.policy = policy;
                let change = |reply| Question::ChangePolicy(policy, reply);
                let places = self.guests.iter_mut().map(|guest| guest.change(change)).collect();
                Some(Gathering::Change(reply, Asked::new(places, now)))
            }
            Question::Coalesce(when, reply) => {
                let change = |reply| Question::Coalesce(when, reply);
                let places = self.guests.iter_mut().map(|guest| match when {
                    Some(_) => guest.change(change),
                    None => guest.ask(change),
                });
                Some(Gathering::Coalesce(reply, Asked::new(places.collect(), now)))
            }
            Question::ReportEvery(time, reply) => {
                reply.give(self.times.report_every(time));
                None
            }
        }
    }

    /// Checks that each guest's device carries `policy`.
    fn check(&self, policy: Policy) -> Result<(), Misfit> {
        for guest in &self.guests {
            let policy = carried(policy, guest.takes)?;
            rxo_coalesce::Config { policy, ..self.config.engine.clone() }.check()?;
        }
        Ok(())
    }

    fn finish(&mut self, gathering: Gathering) {
        match gathering {
            Gathering::Report(due, asked) => {
                self.note(asked);
                self.report(due);
            }
            Gathering::Counters(reply, asked) => {
                self.note(asked);
                reply.give(self.readings());
            }
            Gathering::Policies(reply, asked) => {
                for (guest, answer) in self.guests.iter_mut().zip(asked.into_answers()) {
                    guest.policy =
                        answer.and_then(|answer| answer.first().copied()).unwrap_or(guest.policy);
                }
                reply.give(self.guests.iter().map(|guest| guest.policy).collect());
            }
            Gathering::Change(reply, asked) => {
                // The capabilities of the devices were checked before. A silent guest changes once it runs
                // again.
                let moments = asked.into_answers().map(|answer| answer.and_then(Result::ok));
                reply.give(Ok(Moment::together(moments.map(or_later))));
            }
            Gathering::Coalesce(reply, asked) => {
                reply.give(Moment::together(asked.into_answers().map(or_later)));
            }
        }
    }

    fn note(&mut self, asked: Asked<Readings>) {
        let guests = self.guests.iter_mut().map(|guest| &mut guest.last);
        let all = guests.chain(self.hubs.iter_mut().map(|hub| &mut hub.last));
        let answer = all.zip(asked.into_answers());
        answer.for_each(|(last, answer)| *last = answer.unwrap_or_else(|| std::mem::take(last)));
    }

    fn report(&mut self, due: Due) {
        self.hub.read_counts(self.times.now());
        self.check_balance();
        let reading = self.readings();
        let lines = self.take_lines();
        (self.observe)(Report {
            reading: &reading,
            is_due: due == Due::Report,
            nic_sink: &mut self.hub.outlet.sink,
            host_sinks: Vec::new(),
            lines,
            peers_gone: self.hub.sides.iter().map(|side| side.state.gone()).sum(),
        });
    }

    /// Returns all counters, with the last reported counters of each guest.
    fn readings(&mut self) -> Readings {
        let mut guests: Vec<_> = self.guests.iter().map(|guest| guest.last.all.clone()).collect();
        let times = (self.times.elapsed(), self.times.cpu());
        self.hub.complete(&mut guests, times.0);
        let first = self.hub.readings(times, self.balance.found());
        let further = self.hubs.iter().map(|hub| hub.last.clone());
        Readings::switched(std::iter::once(first).chain(further).collect(), guests)
    }
}

/// Returns the moment at which a guest changes its policy. A guest that has not answered (`None`) changes its
/// policy once it runs again.
fn or_later(moment: Option<Moment>) -> Moment {
    moment.unwrap_or(Moment::WhenThereIsRoom(1))
}
