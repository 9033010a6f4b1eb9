//! Asks a thread that works in turns: a question goes in, is answered between two turns, and the answer comes back.
//!
//! Separate from what is asked, because workers and hosts are asked alike. Contract: the working thread never waits
//! here and, as long as nobody asks, reads one flag a turn. A question that is not answered in time is taken back,
//! so that nothing is changed later that nobody waits for. Whoever asks waits for the others who ask.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Where questions `Q` are asked and answered. A clone is another end of the same desk.
pub struct Desk<Q> {
    shared: Arc<Shared<Q>>,
}

struct Shared<Q> {
    /// Held by whoever asks, until the answer is there.
    asks: Mutex<()>,
    is_asked: AtomicBool,
    question: Mutex<Option<Q>>,
}

/// Takes the answer to a question, which has it.
#[derive(Debug)]
pub struct Reply<A>(SyncSender<A>);

impl<A> Reply<A> {
    /// A place for an answer, and where it comes out.
    pub(crate) fn new() -> (Self, Receiver<A>) {
        // Room for one, so that giving it never waits.
        let (reply, answer) = sync_channel(1);
        (Self(reply), answer)
    }

    /// Gives the answer. Never waits.
    pub fn give(self, answer: A) {
        // Whoever asked may be gone.
        _ = self.0.try_send(answer);
    }
}

impl<Q> Desk<Q> {
    /// A desk at which nobody answers yet.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            asks: Mutex::new(()),
            is_asked: AtomicBool::new(false),
            question: Mutex::new(None),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Asks the question that `question` makes with a place for the answer, calls `wake`, and waits at most
    /// `patience` until the working thread has begun to answer. `None` if it has not; then the question is taken
    /// back.
    pub fn ask<A>(
        &self,
        question: impl FnOnce(Reply<A>) -> Q,
        wake: impl FnOnce(),
        patience: Duration,
    ) -> Option<A> {
        let _turn = lock(&self.shared.asks);
        let (reply, answer) = Reply::new();
        *lock(&self.shared.question) = Some(question(reply));
        self.shared.is_asked.store(true, Ordering::Release);
        wake();
        self.await_answer(&answer, patience)
    }

    fn await_answer<A>(&self, answer: &Receiver<A>, patience: Duration) -> Option<A> {
        match answer.recv_timeout(patience) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let taken_back = lock(&self.shared.question).take();
                // If it is not there, it is being answered.
                if taken_back.is_some() { None } else { answer.recv().ok() }
            }
        }
    }

    /// The question that waits, for the working thread. Costs a load if there is none.
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
            // Whoever asks is just there. The flag stays, so the next turn looks again.
            Err(TryLockError::WouldBlock) => return None,
        };
        self.shared.is_asked.store(false, Ordering::Relaxed);
        question.take()
    }
}

/// Whatever panicked left the value whole.
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
                // Zero is not answered.
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
    fn a_question_that_is_dropped_has_no_answer() {
        let desk = Desk::new();
        thread::scope(|scope| {
            scope.spawn(|| answer_one(&desk));
            assert_eq!(desk.ask(|reply| Question::Double(0, reply), || {}, LONG), None);
        });
    }
}
