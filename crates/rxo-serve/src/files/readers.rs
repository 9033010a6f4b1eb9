//! Threads that wait for the disk, so that the loop over all clients does not.
//!
//! What the kernel has in its memory is found and read at once, without them. They start when they are first
//! needed, and end with their owner. A client has at most one errand at a time. Replies wait in a short queue,
//! and readers for room in it, so that what they bring is bounded.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::{Opened, Patience, Root, lock};
use crate::lookup::{Found, Lookup, Problem};
use crate::names::Names;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Errand {
    Find(Lookup),
    List,
    Page(u64),
}

/// An errand of one client, with what the client has open.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) token: u64,
    pub(crate) opened: Opened,
    pub(crate) errand: Errand,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Reply {
    Found(Result<Found, Problem>),
    Listed(Result<Arc<Names>, Problem>),
    /// A page and its number.
    Page(io::Result<Vec<u8>>, u64),
}

/// A client's token, what it has open, and what came of its errand.
pub(crate) type Done = (u64, Opened, Reply);

/// The threads.
pub(crate) struct Readers {
    root: Arc<Root>,
    most: usize,
    threads: usize,
    /// Jobs whose reply was not taken yet, those of clients that have gone included.
    under_way: usize,
    most_under_way: usize,
    jobs: Sender<Job>,
    to_do: Arc<Mutex<Receiver<Job>>>,
    done: SyncSender<Done>,
    replies: Receiver<Done>,
    /// What was done without threads.
    done_here: VecDeque<Done>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Readers {
    /// At most `most` threads for `most_under_way` jobs. They call `wake` after each. Without threads each job
    /// is done when it is given.
    pub(crate) fn new(
        root: Arc<Root>,
        most: usize,
        most_under_way: usize,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Self {
        let ((jobs, to_do), (done, replies)) = (channel(), sync_channel(MOST_REPLIES));
        let to_do = Arc::new(Mutex::new(to_do));
        Self {
            root,
            most,
            threads: 0,
            under_way: 0,
            most_under_way,
            jobs,
            to_do,
            done,
            replies,
            done_here: VecDeque::new(),
            wake,
        }
    }

    /// Gives a job to a thread. The job comes back if too many are under way: the disk answers no more, and
    /// clients that did not wait for it have come again.
    pub(crate) fn send(&mut self, job: Job) -> Result<(), Job> {
        if self.under_way >= self.most_under_way {
            return Err(job);
        }
        self.under_way += 1;
        if self.under_way > self.threads && self.threads < self.most && self.start().is_ok() {
            self.threads += 1;
        }
        if self.threads == 0 {
            self.done_here.push_back(run(job, &self.root));
        } else {
            // It cannot fail: both ends are here.
            let _sent = self.jobs.send(job);
        }
        Ok(())
    }

    /// Whether a job is done for which nobody is woken.
    pub(crate) fn has_done_here(&self) -> bool {
        !self.done_here.is_empty()
    }

    /// The next job that is done.
    pub(crate) fn next(&mut self) -> Option<Done> {
        let done = self.done_here.pop_front().or_else(|| self.replies.try_recv().ok())?;
        self.under_way -= 1;
        Some(done)
    }

    fn start(&self) -> io::Result<()> {
        let (root, to_do) = (Arc::clone(&self.root), Arc::clone(&self.to_do));
        let (done, wake) = (self.done.clone(), Arc::clone(&self.wake));
        let work = move || {
            loop {
                // The lock is held while this thread waits for a job; the others wait for the lock.
                let Ok(job) = lock(&to_do).recv() else { return };
                if done.send(run(job, &root)).is_err() {
                    return;
                }
                wake();
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(work).map(|_| ())
    }
}

fn run(job: Job, root: &Root) -> Done {
    let Job { token, mut opened, errand } = job;
    let reply = match errand {
        Errand::Find(lookup) => {
            let found = opened.find(root, &lookup, Patience::Waits);
            Reply::Found(found.unwrap_or(Err(Problem::Busy)))
        }
        Errand::List => Reply::Listed(opened.names(root)),
        Errand::Page(index) => {
            let read = opened.read_page(index, Vec::new(), Patience::Waits);
            Reply::Page(read.unwrap_or(Err(io::ErrorKind::WouldBlock.into())), index)
        }
    };
    (token, opened, reply)
}

/// Replies that wait to be taken: at most as many pages.
const MOST_REPLIES: usize = 16;
