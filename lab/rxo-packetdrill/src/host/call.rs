//! System calls of an application, as values.

use std::net::SocketAddr;

use rxo_frame::{Duration, Instant};

use super::info::TcpInfo;
use super::{Fd, VirtualHost};
use crate::abi::Errno;

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// socket(2).
    Socket {
        /// AF_INET, AF_INET6.
        domain: i32,
        /// SOCK_STREAM, perhaps with SOCK_NONBLOCK.
        kind: i32,
        /// IPPROTO_TCP or 0.
        protocol: i32,
    },
    /// bind(2).
    Bind(Fd, SocketAddr),
    /// listen(2), with the backlog.
    Listen(Fd, i32),
    /// accept(2).
    Accept(Fd),
    /// connect(2).
    Connect(Fd, SocketAddr),
    /// read(2) and other receiving calls: the maximum number of bytes, and flags.
    Read(Fd, usize, i32),
    /// write(2) and other sending calls: the data, and flags.
    Write(Fd, Vec<u8>, i32),
    /// close(2).
    Close(Fd),
    /// shutdown(2).
    Shutdown(Fd, i32),
    /// getsockopt(2): level and name.
    GetOption(Fd, i32, i32),
    /// setsockopt(2): level, name and value.
    SetOption(Fd, i32, i32, OptionValue),
    /// fcntl(2): command and argument.
    Fcntl(Fd, i32, i32),
    /// ioctl(2): the request. All known requests return a number.
    Ioctl(Fd, u64),
    /// epoll_create(2).
    EpollCreate,
    /// epoll_ctl(2): the epoll descriptor, the operation, a descriptor, the events, and the data to
    /// return with them.
    EpollControl(Fd, i32, Fd, u32, u64),
    /// epoll_wait(2): the epoll descriptor, the maximum number of events, and a timeout in
    /// milliseconds.
    EpollWait(Fd, usize, i32),
    /// poll(2): descriptors with their events, and a timeout in milliseconds.
    Poll(Vec<(Fd, i16)>, i32),
}

/// The value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// A number, as most options have.
    Number(i32),
    /// SO_LINGER: on, and seconds.
    Linger(i32, i32),
    /// TCP_CONGESTION.
    Name(String),
    /// TCP_INFO.
    Info(TcpInfo),
    /// Another C structure.
    Bytes(Vec<u8>),
}

/// The result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The returned value.
    pub value: i64,
    /// The data that was read.
    pub data: Vec<u8>,
    /// The peer of an accepted connection.
    pub peer: Option<SocketAddr>,
    /// The events that poll returns for each descriptor.
    pub ready: Vec<i16>,
    /// The events that epoll returns, with their data.
    pub events: Vec<(u32, u64)>,
    /// Number of unread bytes, if TCP_INQ asks for it.
    pub rest: Option<i32>,
    /// The value that getsockopt or ioctl returns.
    pub option: Option<OptionValue>,
}

impl Answer {
    /// An answer that is only a number.
    #[must_use]
    pub fn of(value: i64) -> Self {
        Self { value, ..Self::default() }
    }

    pub(super) fn info(info: TcpInfo) -> Self {
        Self { option: Some(OptionValue::Info(info)), ..Self::default() }
    }

    pub(super) fn bytes(bytes: Vec<u8>) -> Self {
        Self { option: Some(OptionValue::Bytes(bytes)), ..Self::default() }
    }

    pub(super) fn option(number: i32) -> Self {
        Self { option: Some(OptionValue::Number(number)), ..Self::default() }
    }
}

/// The result of a finished call.
pub type Outcome = Result<Answer, Errno>;

/// The progress of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The call is finished.
    Done(Outcome),
    /// The call blocks.
    Waits(Waiting),
}

/// A blocked call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub(super) call: Call,
    /// Bytes that a write has already sent.
    pub(super) written: usize,
    /// Whether a read with MSG_WAITALL has some bytes already.
    pub(super) has_begun: bool,
    /// When it ends without success.
    pub(super) deadline: Option<Instant>,
}

impl Waiting {
    pub(super) fn new(call: Call) -> Self {
        Self { call, written: 0, has_begun: false, deadline: None }
    }

    /// Starts the timeout at the first attempt. A negative timeout never ends.
    fn begin(&mut self, now: Instant, timeout_ms: i32) {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        if !core::mem::replace(&mut self.has_begun, true) {
            self.deadline = timeout.map(|timeout| now + timeout);
        }
    }

    /// When the call must be resumed at the latest; `None` for never.
    #[must_use]
    pub const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }
}

impl VirtualHost {
    pub(super) fn attempt(&mut self, mut waiting: Waiting) -> Progress {
        match self.outcome(&mut waiting) {
            Some(outcome) => Progress::Done(outcome),
            None => Progress::Waits(waiting),
        }
    }

    /// The outcome of the call now; `None` if it blocks.
    fn outcome(&mut self, waiting: &mut Waiting) -> Option<Outcome> {
        let done = |result: Result<i64, Errno>| Some(result.map(Answer::of));
        match &waiting.call {
            &Call::Socket { domain, kind, protocol } => done(self.make(domain, kind, protocol)),
            &Call::Bind(fd, to) => done(self.bind(fd, to)),
            &Call::Listen(fd, backlog) => done(self.listen(fd, backlog)),
            &Call::Accept(fd) => self.accept(fd),
            &Call::Connect(fd, to) => {
                let has_begun = core::mem::replace(&mut waiting.has_begun, true);
                self.connect(fd, to, has_begun).map(|result| result.map(Answer::of))
            }
            &Call::Read(fd, bytes, flags) => self.read(fd, bytes, flags),
            Call::Write(fd, data, flags) => {
                self.write(*fd, data, *flags, &mut waiting.written).and_then(done)
            }
            &Call::Close(fd) => done(self.close(fd)),
            &Call::Shutdown(fd, how) => done(self.shut_down(fd, how)),
            &Call::GetOption(fd, level, name) => Some(self.get_option(fd, level, name)),
            Call::SetOption(fd, level, name, value) => {
                done(self.set_option(*fd, *level, *name, value))
            }
            &Call::Fcntl(fd, command, argument) => done(self.fcntl(fd, command, argument)),
            &Call::Ioctl(fd, request) => Some(self.ioctl(fd, request)),
            Call::EpollCreate => done(Ok(self.epoll_create())),
            &Call::EpollControl(epoll, operation, fd, events, data) => {
                done(self.epoll_control(epoll, operation, fd, (events, data)))
            }
            &Call::EpollWait(epoll, most, timeout_ms) => {
                waiting.begin(self.now, timeout_ms);
                self.epoll_wait(epoll, most, waiting.deadline)
            }
            Call::Poll(descriptors, timeout_ms) => {
                let timeout_ms = *timeout_ms;
                let descriptors = descriptors.clone();
                waiting.begin(self.now, timeout_ms);
                self.poll(&descriptors, waiting.deadline)
            }
        }
    }
}
