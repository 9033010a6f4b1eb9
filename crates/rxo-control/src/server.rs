//! The loop over the clients of a socket, on a thread of its own.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::conversation::{Conversation, Line};
use crate::{Answer, MOST_CLIENTS, MOST_REQUEST_BYTES};

/// Answers the clients of a socket until it is dropped, which waits for the request that is being answered.
#[derive(Debug)]
pub struct Server {
    /// Closed to end the thread.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the thread. `listener` must not wait. `answer` gets each line of a client, without its end; while it
    /// works, the other clients wait, and nothing else does.
    ///
    /// # Errors
    /// If the system gives no thread or no descriptors.
    pub fn start(
        listener: UnixListener,
        answer: impl FnMut(&[u8]) -> Answer + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = UnixStream::pair()?;
        let clients = Clients { listener, ended, clients: Vec::new(), answer, rests_until: None };
        let thread = thread::Builder::new().name("rxo-ctl".to_owned());
        let thread = thread.spawn(move || clients.serve())?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It has panicked, which printed the reason.
            _ = thread.join();
        }
    }
}

struct Clients<A> {
    listener: UnixListener,
    ended: UnixStream,
    clients: Vec<Client>,
    answer: A,
    /// Until then nobody is accepted, for want of descriptors.
    rests_until: Option<Instant>,
}

struct Client {
    stream: UnixStream,
    talk: Conversation,
}

/// Whether a client may stay.
#[derive(PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

impl<A: FnMut(&[u8]) -> Answer> Clients<A> {
    fn serve(mut self) {
        while let Ok(ready) = self.wait() {
            let [is_ended, may_accept, ready @ ..] = &*ready else { return };
            if *is_ended {
                return;
            }
            self.turn(ready);
            if *may_accept {
                self.accept();
            }
        }
    }

    /// Waits until something can be done. Returns for each descriptor whether it is ready: the end, the listener,
    /// and the clients.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let now = Instant::now();
        let accepts = self.rests_until.is_none_or(|until| now >= until);
        let mut fds = vec![
            PollFd::new(&self.ended, PollFlags::IN),
            PollFd::new(&self.listener, if accepts { PollFlags::IN } else { PollFlags::empty() }),
        ];
        fds.extend(self.clients.iter().map(|client| PollFd::new(&client.stream, client.wanted())));
        let dues = self.clients.iter().map(|client| client.talk.due());
        let due = dues.chain(self.rests_until.filter(|_| !accepts)).min();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(now)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    fn turn(&mut self, ready: &[bool]) {
        let mut ready = ready.iter();
        let answer = &mut self.answer;
        self.clients.retain_mut(|client| {
            let is_ready = ready.next().is_some_and(|is_ready| *is_ready);
            let fate = if is_ready { client.turn(answer) } else { Ok(Fate::Stays) };
            // A client that is gone is no failure.
            fate.is_ok_and(|fate| fate == Fate::Stays) && !client.talk.is_over(Instant::now())
        });
    }

    /// Takes in who waits, as far as there is room.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It stays there. To ask again at once would only cost time.
                Err(_) => {
                    self.rests_until = Some(Instant::now() + REST);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        if self.clients.len() < MOST_CLIENTS {
            let talk = Conversation::new(Instant::now());
            self.clients.push(Client { stream, talk });
            return;
        }
        let error = format!("{MOST_CLIENTS} clients are there; end one, or ask again later");
        let answer = Answer { request: String::new(), result: Err(error) };
        // A new socket has room for a line. If not, it is closed all the same.
        _ = (&stream).write(format!("{}\n", answer.line()).as_bytes());
    }
}

impl Client {
    fn wanted(&self) -> PollFlags {
        if self.talk.is_to_send() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Reads, answers at most one request, and writes.
    ///
    /// # Errors
    /// If the client is gone.
    fn turn(&mut self, answer: &mut impl FnMut(&[u8]) -> Answer) -> io::Result<Fate> {
        let mut bytes = [0; MOST_REQUEST_BYTES];
        let room = self.talk.room();
        if room > 0 {
            match (&self.stream).read(&mut bytes[..room]) {
                Ok(read) => self.talk.on_read(&bytes[..read]),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.write()?;
        let answer = match self.talk.next_line() {
            None => return Ok(Fate::Stays),
            Some(Line::Whole(line)) => answer(&line),
            Some(Line::TooLong) => {
                let error =
                    format!("a line may have {MOST_REQUEST_BYTES} bytes; send a shorter one");
                Answer { request: String::new(), result: Err(error) }
            }
        };
        self.talk.answer(answer.line(), Instant::now());
        self.write()
    }

    fn write(&mut self) -> io::Result<Fate> {
        while !self.talk.to_write().is_empty() {
            match (&self.stream).write(self.talk.to_write()) {
                Ok(0) => return Ok(Fate::Goes),
                Ok(written) => self.talk.on_written(written, Instant::now()),
                Err(error) if is_later(&error) => return Ok(Fate::Stays),
                Err(error) => return Err(error),
            }
        }
        Ok(Fate::Stays)
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn timespec(time: Duration) -> Timespec {
    // Rounded up, so that the time has come when the wait ends.
    let time = time + Duration::from_millis(1);
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// The time between two tries to accept when descriptors are short.
const REST: Duration = Duration::from_millis(100);
