//! Crew: the workers of one run, to which questions are put together.
//!
//! This module is separate because the workers share nothing. Each worker answers at its own desk, between two
//! of its turns, and the answers are combined here, on the thread that asks. A run with one worker is a crew of
//! one, whose answers are not changed.

use std::sync::Arc;
#[cfg(feature = "driver")]
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rxo_coalesce::Policy;

#[cfg(feature = "driver")]
use super::WorkerConfig;
use super::{Coalesce, Misfit, Moment, PolicyInForce, Question, Readings};
use crate::desk::{Desk, Reply};

/// The desks of the workers of a run, one for each worker. Other threads use them to put questions to all
/// workers. Clones refer to the same workers.
#[derive(Clone, Debug)]
pub struct Crew {
    desks: Arc<[Desk<Question>]>,
    /// The counter of each worker's turns.
    #[cfg(feature = "driver")]
    turns: &'static [Turns],
}

/// The counter of one worker's turns, alone in its cache lines because each worker writes its own.
#[cfg(feature = "driver")]
#[derive(Debug, Default)]
#[repr(align(128))]
struct Turns(AtomicU64);

impl Crew {
    /// Creates the desks of `workers` workers. The counters of their turns stay allocated until the process
    /// ends, so create one crew for a run.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    ///
    /// use rxo::worker::Crew;
    ///
    /// let crew = Crew::new(2);
    /// assert_eq!(crew.len(), 2);
    /// // No worker is running, so none answers.
    /// assert!(crew.counters(Duration::ZERO).is_none());
    /// ```
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            desks: (0..workers).map(|_| Desk::new()).collect(),
            #[cfg(feature = "driver")]
            turns: (0..workers).map(|_| Turns::default()).collect::<Vec<_>>().leak(),
        }
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.desks.len()
    }

    /// Returns `true` if there is no worker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.desks.is_empty()
    }

    /// Returns the desk for questions to worker `n`, to be set in the configuration of a worker.
    ///
    /// # Panics
    /// If there are `n` workers or fewer.
    #[must_use]
    pub fn desk(&self, n: usize) -> Desk<Question> {
        self.desks[n].clone()
    }

    /// Returns the configurations of all workers: `config`, each with its own desk and counter of turns.
    #[cfg(feature = "driver")]
    pub(crate) fn configs(&self, config: &WorkerConfig) -> Vec<WorkerConfig> {
        let each = self.desks.iter().zip(self.turns);
        let with = |(desk, turns): (&Desk<Question>, &'static Turns)| WorkerConfig {
            desk: Some(desk.clone()),
            turns: Some(&turns.0),
            ..config.clone()
        };
        each.map(with).collect()
    }

    /// Returns the counters of each worker, and their sum. `None` if a worker does not answer within
    /// `timeout`.
    #[must_use]
    pub fn counters(&self, timeout: Duration) -> Option<Readings> {
        self.ask(Question::Counters, timeout).map(Readings::side_by_side)
    }

    /// Returns the policies of all engines, in the order of the workers. `None` as for
    /// [`Crew::counters`].
    #[must_use]
    pub fn policies(&self, timeout: Duration) -> Option<Vec<PolicyInForce>> {
        self.ask(Question::Policies, timeout).map(|all| all.concat())
    }

    /// Changes the policy of all engines; see [`Question::ChangePolicy`]. `None` if a worker does not answer
    /// within `timeout`; the other workers have changed their policy nevertheless.
    pub fn change_policy(
        &self,
        policy: Policy,
        timeout: Duration,
    ) -> Option<Result<Moment, Misfit>> {
        let answers = self.ask(|reply| Question::ChangePolicy(policy, reply), timeout)?;
        let moments: Result<Vec<_>, _> = answers.into_iter().collect();
        Some(moments.map(|moments| Moment::together(moments.into_iter())))
    }

    /// Changes the mode of coalescing of all workers; see [`Question::Coalesce`]. `None` as for
    /// [`Crew::change_policy`].
    pub fn coalesce(&self, when: Option<Coalesce>, timeout: Duration) -> Option<Moment> {
        let moments = self.ask(|reply| Question::Coalesce(when, reply), timeout)?;
        Some(Moment::together(moments.into_iter()))
    }

    /// Changes the interval between two reports of all workers; see [`Question::ReportEvery`]. `None` as for
    /// [`Crew::change_policy`].
    pub fn report_every(
        &self,
        time: Option<Duration>,
        timeout: Duration,
    ) -> Option<Result<(), Misfit>> {
        let answers = self.ask(|reply| Question::ReportEvery(time, reply), timeout)?;
        Some(answers.into_iter().collect())
    }

    fn ask<A>(&self, question: impl Fn(Reply<A>) -> Question, timeout: Duration) -> Option<Vec<A>> {
        Desk::ask_all(&self.desks, question, || {}, timeout).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "driver")]
    use std::sync::atomic::Ordering;
    use std::thread;

    use super::*;
    use crate::worker::Reading;

    const LONG: Duration = Duration::from_secs(60);

    /// Answers one question at each desk of `crew`, each on a thread of its own.
    fn answering(crew: &Crew, answer: impl Fn(usize, Question) + Sync, ask: impl FnOnce()) {
        let answer = &answer;
        thread::scope(|scope| {
            for n in 0..crew.len() {
                let desk = crew.desk(n);
                scope.spawn(move || {
                    loop {
                        match desk.take() {
                            Some(question) => return answer(n, question),
                            None => thread::yield_now(),
                        }
                    }
                });
            }
            ask();
        });
    }

    #[test]
    fn counters_are_those_of_each_worker_and_the_sum() {
        let crew = Crew::new(3);
        let answer = |n: usize, question| {
            let Question::Counters(reply) = question else { panic!("{question:?}") };
            let seconds = Duration::from_secs(10 + n as u64);
            let mut reading = Reading { elapsed: seconds, cpu: seconds, ..Reading::default() };
            (reading.nic_in.frames, reading.unaccounted) = (100 + n as u64, n as u64);
            reply.give(reading.into());
        };
        answering(&crew, answer, || {
            let Readings { all, workers, .. } = crew.counters(LONG).unwrap();
            assert_eq!((all.nic_in.frames, all.unaccounted), (303, 3));
            // They run side by side: the time is that of one, the processor time that of all.
            assert_eq!((all.elapsed.as_secs(), all.cpu.as_secs()), (12, 33));
            let frames: Vec<_> = workers.iter().map(|worker| worker.nic_in.frames).collect();
            assert_eq!(frames, [100, 101, 102]);
        });
    }

    #[test]
    fn a_change_takes_effect_when_it_does_at_the_last_worker() {
        let crew = Crew::new(3);
        let answer = |n: usize, question| {
            let Question::ChangePolicy(_, reply) = question else { panic!("{question:?}") };
            reply.give(Ok([Moment::NextTurn, Moment::WhenThereIsRoom(1)][n % 2]));
        };
        answering(&crew, answer, || {
            let moment = crew.change_policy(Policy::none(), LONG).unwrap();
            assert_eq!(moment, Ok(Moment::WhenThereIsRoom(1)));
        });
        let refused = |_, question| {
            let Question::ReportEvery(time, reply) = question else { panic!("{question:?}") };
            reply.give(Err(Misfit::ReportEvery(time.unwrap())));
        };
        answering(&crew, refused, || {
            let short = Duration::from_nanos(1);
            let answer = crew.report_every(Some(short), LONG).unwrap();
            assert_eq!(answer, Err(Misfit::ReportEvery(short)));
        });
    }

    #[cfg(feature = "driver")]
    #[test]
    fn each_worker_counts_its_own_turns() {
        let crew = Crew::new(2);
        let configs = crew.configs(&WorkerConfig::new(Policy::none()));
        configs[1].count_turn();
        let turns = |n: usize| configs[n].turns.unwrap().load(Ordering::Relaxed);
        assert_eq!((turns(0), turns(1)), (0, 1));
    }
}
