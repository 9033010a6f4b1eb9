//! Threads that wait for the disk, so that the loop over all clients need not wait.
//!
//! Data that the kernel has in memory is found and read at once, without these threads. The threads start when
//! first needed, and end when the pool is dropped. A client has at most one job at a time. Replies wait in a
//! short queue, and threads wait for space in this queue, so the memory of replies is bounded.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use super::{DiskWait, Opened, Root, lock};
use crate::lookup::{Found, Lookup, Problem};
use crate::names::Names;

/// A task in the file system that may have to wait for the disk.
#[derive(Debug)]
pub(crate) enum FileTask {
    Find(Lookup),
    List,
    Page(u64),
}

/// A task in the file system for one client, with the client's open files.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) token: u64,
    pub(crate) opened: Opened,
    pub(crate) task: FileTask,
}

/// The result of a task in the file system ([`FileTask`]), returned by the thread that ran it.
#[derive(Debug)]
pub(crate) enum Reply {
    Found(Result<Found, Problem>),
    Listed(Result<Arc<Names>, Problem>),
    /// A page of a file, and its index.
    Page(io::Result<Vec<u8>>, u64),
}

/// A finished job: the client's token, its open files, and the result.
pub(crate) type Done = (u64, Opened, Reply);

/// The pool of threads that find and read files for the clients, with its queues of jobs and replies.
pub(crate) struct Readers {
    root: Arc<Root>,
    most: usize,
    threads: usize,
    /// The number of jobs whose reply was not taken yet, including jobs of clients that have left.
    under_way: usize,
    most_under_way: usize,
    jobs: Sender<Job>,
    to_do: Arc<Mutex<Receiver<Job>>>,
    done: SyncSender<Done>,
    replies: Receiver<Done>,
    /// Replies to jobs that the method `send` has run itself, because no thread could be started.
    done_here: VecDeque<Done>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Readers {
    /// Creates a pool of at most `most` threads, which accepts at most `most_under_way` unfinished jobs. The
    /// threads call `wake` after each job. If no thread can be started, jobs are run by `send`.
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

    /// Passes a job to a thread. Returns the job as an error if too many jobs are unfinished. This happens if
    /// the disk does not answer and clients that gave up have sent new requests.
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
            // Cannot fail: `self` owns both ends.
            let _sent = self.jobs.send(job);
        }
        Ok(())
    }

    /// Returns `true` if a finished job was run by `send`, which does not call `wake`.
    pub(crate) fn has_own_replies(&self) -> bool {
        !self.done_here.is_empty()
    }

    /// Returns the next finished job; `None` if no job has finished.
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
                // The lock is held while this thread waits for a job; the other threads wait for the lock.
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
    let Job { token, mut opened, task } = job;
    let reply = match task {
        FileTask::Find(lookup) => {
            let found = opened.find(root, &lookup, DiskWait::Waits);
            Reply::Found(found.unwrap_or(Err(Problem::Busy)))
        }
        FileTask::List => Reply::Listed(opened.names(root)),
        FileTask::Page(index) => {
            let read = opened.read_page(index, Vec::new(), DiskWait::Waits);
            Reply::Page(read.unwrap_or(Err(io::ErrorKind::WouldBlock.into())), index)
        }
    };
    (token, opened, reply)
}

/// Maximum number of replies that wait to be taken, each with at most one page.
const MOST_REPLIES: usize = 16;
