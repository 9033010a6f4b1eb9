//! The server: a loop over the clients of a socket, on its own thread.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::conversation::{Asked, Conversation};
use crate::service::{Lines, Service};
use crate::{Answer, MOST_REQUEST_BYTES, Page};

/// A server that answers the clients of a socket, on its own thread. When the server is dropped, it finishes
/// the answer to the current request and then ends its thread.
#[derive(Debug)]
pub struct Server {
    /// One end of a socket pair; the thread ends when this end is closed. `None` after it was closed.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server for requests that are lines. `listener` must be nonblocking. `answer` is called with
    /// each line, without its line end. While `answer` runs, it blocks the server's other clients, but not the
    /// rest of the process.
    ///
    /// # Errors
    /// If the system cannot create a thread or descriptors.
    pub fn start(
        listener: UnixListener,
        answer: impl FnMut(&[u8]) -> Answer + Send + 'static,
    ) -> io::Result<Self> {
        Self::of("rxo-ctl", Listener::Unix(listener), Lines(answer))
    }

    /// Starts a server for one page over HTTP. `listener` must be nonblocking. The generation of the page
    /// blocks the server's other clients, but not the rest of the process.
    ///
    /// # Errors
    /// The errors of [`Server::start`].
    pub fn of_page(
        listener: Listener,
        page: Page<impl FnMut() -> Result<String, String> + Send + 'static>,
    ) -> io::Result<Self> {
        Self::of("rxo-page", listener, page)
    }

    fn of(
        name: &str,
        listener: Listener,
        service: impl Service + Send + 'static,
    ) -> io::Result<Self> {
        let (end, ended) = UnixStream::pair()?;
        let clients = Clients { listener, ended, clients: Vec::new(), service, paused_until: None };
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || clients.serve())?;
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

/// A listening socket: a unix socket or a TCP socket.
#[derive(Debug)]
pub enum Listener {
    /// The server listens on a unix socket.
    Unix(UnixListener),
    /// The server listens on a TCP socket.
    Tcp(TcpListener),
}

impl Listener {
    /// Accepts the next client, and makes its connection nonblocking.
    fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Box::new(stream)
            }
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A connection to a client, over a unix socket or TCP.
trait Stream: Read + Write + AsFd + Send {}

impl Stream for UnixStream {}
impl Stream for TcpStream {}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, its message was printed already.
            _ = thread.join();
        }
    }
}

struct Clients<S> {
    listener: Listener,
    ended: UnixStream,
    clients: Vec<Client>,
    service: S,
    /// The end of the back-off, during which no client is accepted because the process has no free descriptors;
    /// `None` if clients are accepted.
    paused_until: Option<Instant>,
}

struct Client {
    stream: Box<dyn Stream>,
    talk: Conversation,
}

/// The decision whether a client that was served stays connected.
#[derive(PartialEq, Eq)]
enum ClientState {
    Open,
    Closed,
}

impl<S: Service> Clients<S> {
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

    /// Waits until a descriptor is ready or a deadline has passed. Returns one flag per descriptor, `true` if
    /// it is ready. The first is the descriptor that tells the server to stop, the second the listener; the
    /// clients follow in order.
    fn wait(&self) -> io::Result<Vec<bool>> {
        let now = Instant::now();
        let accepts = self.paused_until.is_none_or(|until| now >= until);
        let mut fds = vec![
            PollFd::new(&self.ended, PollFlags::IN),
            PollFd::new(&self.listener, if accepts { PollFlags::IN } else { PollFlags::empty() }),
        ];
        fds.extend(
            self.clients
                .iter()
                .map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), client.wanted())),
        );
        let dues = self.clients.iter().map(|client| client.talk.due());
        let due = dues.chain(self.paused_until.filter(|_| !accepts)).min();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(now)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
    }

    fn turn(&mut self, ready: &[bool]) {
        let mut ready = ready.iter();
        let service = &mut self.service;
        self.clients.retain_mut(|client| {
            let is_ready = ready.next().is_some_and(|is_ready| *is_ready);
            let state = if is_ready { client.turn(service) } else { Ok(ClientState::Open) };
            // An error means that the client has gone, which is not a failure of the server.
            state.is_ok_and(|state| state == ClientState::Open)
                && !client.talk.has_ended(Instant::now())
        });
    }

    /// Accepts all waiting clients; each client over the limit gets an error.
    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                Ok(stream) => self.admit(stream),
                Err(error) if is_transient(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The client stays in the queue. Retrying at once would only waste CPU time.
                Err(_) => {
                    self.paused_until = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, mut stream: Box<dyn Stream>) {
        if self.clients.len() < S::MOST_CLIENTS {
            let talk = Conversation::new(S::FRAMING, Instant::now());
            self.clients.push(Client { stream, talk });
            return;
        }
        // A new socket has space for a line. If not, the client only sees the connection close.
        _ = stream.write(&self.service.too_many());
    }
}

impl Client {
    fn wanted(&self) -> PollFlags {
        if self.talk.is_to_send() { PollFlags::IN } else { PollFlags::OUT }
    }

    /// Reads from the client, answers at most one request, and writes the answer. Returns whether the client
    /// stays connected.
    ///
    /// # Errors
    /// If the connection is broken.
    fn turn(&mut self, service: &mut impl Service) -> io::Result<ClientState> {
        let mut bytes = [0; MOST_REQUEST_BYTES];
        let room = self.talk.room();
        if room > 0 {
            match self.stream.read(&mut bytes[..room]) {
                Ok(read) => self.talk.on_read(&bytes[..read]),
                Err(error) if is_later(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.write()?;
        let answer = match self.talk.next_request() {
            None => return Ok(ClientState::Open),
            Some(Asked::Whole(request)) => service.answer(&request),
            Some(Asked::TooLong) => service.too_long(),
        };
        self.talk.answer(answer, Instant::now());
        self.write()
    }

    fn write(&mut self) -> io::Result<ClientState> {
        while !self.talk.to_write().is_empty() {
            match self.stream.write(self.talk.to_write()) {
                Ok(0) => return Ok(ClientState::Closed),
                Ok(written) => self.talk.on_written(written, Instant::now()),
                Err(error) if is_later(&error) => return Ok(ClientState::Open),
                Err(error) => return Err(error),
            }
        }
        Ok(ClientState::Open)
    }
}

/// Returns `true` for a transient error of `accept`, after which the next client can be accepted at once: the
/// client closed the connection, or a signal arrived.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn timespec(time: Duration) -> Timespec {
    // Rounded up, so that the deadline has passed when the wait ends.
    let time = time + Duration::from_millis(1);
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// The back-off: the time between two attempts to accept clients while no descriptor is free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
