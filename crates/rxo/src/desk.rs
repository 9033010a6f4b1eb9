//! Desk: lets any thread ask a question of a thread that works in turns (passes of its loop), which answers
//! between two turns.
//!
//! This module is separate from the questions, because workers and hosts answer in the same way. Contract: the
//! working thread never blocks here and, while no question is waiting, reads one flag per turn. A question that
//! is not answered in time is withdrawn, so that it has no effect later. Only one thread asks at a time; other
//! threads that ask block until that thread has received its answer.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// A desk: other threads put a question `Q` on it, and the thread that works in turns answers. Clones refer
/// to the same desk.
pub struct Desk<Q> {
    shared: Arc<Shared<Q>>,
}

struct Shared<Q> {
    /// The lock that a thread holds from its question until it has received the answer. The lock lets only one
    /// thread ask at a time.
    asks: Mutex<()>,
    is_asked: AtomicBool,
    question: Mutex<Option<Q>>,
}

/// The sending end of the channel for one answer. A question contains its reply, so that the working thread can
/// answer.
#[derive(Debug)]
pub struct Reply<A>(SyncSender<A>);

impl<A> Reply<A> {
    /// Creates the channel for one answer. Returns its two ends.
    pub(crate) fn new() -> (Self, Receiver<A>) {
        // With a capacity of one, sending the answer never blocks.
        let (reply, answer) = sync_channel(1);
        (Self(reply), answer)
    }

    /// Sends the answer. Never blocks.
    pub fn give(self, answer: A) {
        // The thread that asked may have given up.
        _ = self.0.try_send(answer);
    }
}

impl<Q> Desk<Q> {
    /// Creates a desk without a question.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            asks: Mutex::new(()),
            is_asked: AtomicBool::new(false),
            question: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Asks the question that `question` builds with a reply, calls `wake`, and waits at most `timeout` until
    /// the working thread has begun to answer. If the thread has not begun by then, withdraws the question and
    /// returns `None`.
    pub fn ask<A>(
        &self,
        question: impl FnOnce(Reply<A>) -> Q,
        wake: impl FnOnce(),
        timeout: Duration,
    ) -> Option<A> {
        let _turn = lock(&self.shared.asks);
        let answer = self.leave(question);
        wake();
        self.await_answer(&answer, timeout)
    }

    /// Puts the question that `question` builds on all `desks` and calls `wake`, so that all working threads
    /// answer at the same time. Waits for each answer at most `timeout`. Returns the answers in the order of
    /// the desks. The answer is `None` for a thread that has not begun to answer in time, as for [`Desk::ask`].
    pub fn ask_all<A>(
        desks: &[Self],
        question: impl Fn(Reply<A>) -> Q,
        wake: impl FnOnce(),
        timeout: Duration,
    ) -> Vec<Option<A>> {
        // Always in the same order, so that two threads that ask do not wait for each other.
        let _turns: Vec<_> = desks.iter().map(|desk| lock(&desk.shared.asks)).collect();
        let left: Vec<_> = desks.iter().map(|desk| desk.leave(&question)).collect();
        wake();
        let mut timeout = timeout;
        let answers = desks.iter().zip(left).map(|(desk, answer)| {
            let answer = desk.await_answer(&answer, timeout);
            if answer.is_none() {
                // The other threads have had the same time to answer.
                timeout = Duration::ZERO;
            }
            answer
        });
        answers.collect()
    }

    /// Puts a question on the desk, and returns the channel on which its answer will arrive.
    fn leave<A>(&self, question: impl FnOnce(Reply<A>) -> Q) -> Receiver<A> {
        let (reply, answer) = Reply::new();
        *lock(&self.shared.question) = Some(question(reply));
        self.shared.is_asked.store(true, Ordering::Release);
        answer
    }

    /// Puts a question on the desk without waiting. Use this only if no other thread puts questions on the
    /// desk. Returns the question if the working thread has not taken the previous question yet.
    pub(crate) fn post(&self, question: Q) -> Option<Q> {
        match self.shared.question.try_lock() {
            Ok(mut place) if place.is_none() => {
                *place = Some(question);
                self.shared.is_asked.store(true, Ordering::Release);
                None
            }
            _ => Some(question),
        }
    }

    fn await_answer<A>(&self, answer: &Receiver<A>, timeout: Duration) -> Option<A> {
        match answer.recv_timeout(timeout) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let taken_back = lock(&self.shared.question).take();
                // If the question is no longer there, the working thread is answering it.
                if taken_back.is_some() { None } else { answer.recv().ok() }
            }
        }
    }

    /// Returns the waiting question, for the working thread; `None` if there is none, which costs one load.
    #[inline]
    #[must_use]
    pub fn take(&self) -> Option<Q> {
        if self.shared.is_asked.load(Ordering::Relaxed) { self.take_asked() } else { None }
    }

    #[cold]
    fn take_asked(&self) -> Option<Q> {
        let mut question = match self.shared.question.try_lock() {
            Ok(question) => question,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread is just asking. The flag stays set, so the next turn checks again.
            Err(TryLockError::WouldBlock) => return None,
        };
        self.shared.is_asked.store(false, Ordering::Relaxed);
        question.take()
    }
}

/// Locks `mutex`, even if another thread has panicked while it held the lock: a panic cannot leave the
/// protected value half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<Q> Default for Desk<Q> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Q> Clone for Desk<Q> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<Q> fmt::Debug for Desk<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Desk")
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    enum Question {
        Double(u32, Reply<u32>),
    }

    const LONG: Duration = Duration::from_secs(60);

    fn answer_one(desk: &Desk<Question>) {
        loop {
            match desk.take() {
                // The question zero is dropped without an answer.
                Some(Question::Double(0, _)) => return,
                Some(Question::Double(number, reply)) => return reply.give(2 * number),
                None => thread::yield_now(),
            }
        }
    }

    #[test]
    fn each_who_asks_gets_the_answer_to_the_own_question() {
        let desk = Desk::new();
        thread::scope(|scope| {
            for number in 1..9 {
                let desk = desk.clone();
                scope.spawn(move || {
                    for n in 0..100 {
                        let asked = 1_000 * number + n;
                        let answer = desk.ask(|reply| Question::Double(asked, reply), || {}, LONG);
                        assert_eq!(answer, Some(2 * asked));
                    }
                });
            }
            (0..800).for_each(|_| answer_one(&desk));
        });
        assert!(desk.take().is_none());
    }

    #[test]
    fn a_question_that_nobody_takes_is_taken_back() {
        let desk = Desk::new();
        let answer = desk.ask(|reply| Question::Double(7, reply), || {}, Duration::ZERO);
        assert_eq!(answer, None);
        assert!(desk.take().is_none(), "it would be answered for nobody");
    }

    #[test]
    fn a_question_that_is_posted_waits_for_its_turn() {
        let desk = Desk::new();
        let ((reply, answer), (other, _)) = (Reply::new(), Reply::new());
        assert!(desk.post(Question::Double(3, reply)).is_none());
        let Some(Question::Double(4, other)) = desk.post(Question::Double(4, other)) else {
            panic!("there is one already")
        };
        answer_one(&desk);
        assert_eq!(answer.recv(), Ok(6));
        assert!(desk.post(Question::Double(5, other)).is_none());
    }

    #[test]
    fn a_thread_that_does_not_answer_does_not_keep_the_others_from_it() {
        let desks: [Desk<Question>; 4] = std::array::from_fn(|_| Desk::new());
        thread::scope(|scope| {
            for n in [0, 2, 3] {
                let desk = desks[n].clone();
                scope.spawn(move || answer_one(&desk));
            }
            let answers = loop {
                let question = |reply| Question::Double(4, reply);
                let answers = Desk::ask_all(&desks, question, || {}, Duration::from_millis(500));
                // A thread that starts late finds no question, and is asked again.
                if answers.iter().flatten().count() > 0 {
                    break answers;
                }
            };
            assert_eq!(answers[1], None);
            // Threads that have not answered end now.
            for n in [0, 2, 3].into_iter().filter(|&n| answers[n].is_none()) {
                let answer = desks[n].ask(|reply| Question::Double(4, reply), || {}, LONG);
                assert_eq!(answer, Some(8));
            }
            assert!(answers.into_iter().flatten().all(|answer| answer == 8));
        });
        assert!(desks[1].take().is_none(), "it was taken back");
    }

    #[test]
    fn a_question_that_is_dropped_has_no_answer() {
        let desk = Desk::new();
        thread::scope(|scope| {
            scope.spawn(|| answer_one(&desk));
            assert_eq!(desk.ask(|reply| Question::Double(0, reply), || {}, LONG), None);
        });
    }
}
