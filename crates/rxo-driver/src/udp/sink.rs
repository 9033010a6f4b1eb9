//! Sink for datagrams: sends the content of an outbox.

use std::io;
use std::net;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;

use rxo_device::{Descriptors, DeviceError};

use super::message::{Datagram, Message};
use super::sys::{self, MOST_MESSAGES, Names};
use super::trains::Trains;
use super::{Outbox, UdpOptions, UdpSocket};

/// Sends datagrams. Created by [`UdpSocket::sink`](super::UdpSocket::sink).
#[derive(Debug)]
pub struct UdpSink {
    socket: Arc<net::UdpSocket>,
    names: Names,
    trains: Trains,
    counters: UdpSinkCounters,
}

/// Counters of a sink, since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSinkCounters {
    /// Number of datagrams that the system accepted.
    pub datagrams: u64,
    /// Number of messages that contained these datagrams; equal to the number of datagrams if there are no
    /// trains.
    pub messages: u64,
    /// Number of bytes in these datagrams.
    pub bytes: u64,
    /// Number of system calls that sent at least one message.
    pub calls: u64,
    /// Number of trains that the system refused although it has the option. Their datagrams were sent one by one.
    pub refused_trains: u64,
    /// Number of datagrams, sent individually, that the system refused: for example there was no route, the
    /// datagram was too long, or a filter rejected it.
    pub dropped: u64,
    /// The error number of the last refused train or datagram; 0 if there was none.
    pub last_refusal: i32,
}

/// The reaction to an error of the system for the first message of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendErrorAction {
    /// The system's queue is full; wait until the socket is writable.
    Wait,
    /// Repeat the same system call.
    Again,
    /// Send all datagrams one by one from now on, because the system refuses trains.
    NoTrains,
    /// Send the datagrams of this train, and others of at least `from_bytes` bytes on its route, one by one. Trains on other
    /// routes continue.
    Singly { from_bytes: usize },
    /// Drop this message and continue with the next.
    Drop,
}

/// The numbers of bytes and datagrams that a call has sent or dropped.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    bytes: usize,
    datagrams: usize,
}

impl Done {
    fn of(messages: &[Message<'_>]) -> Self {
        let bytes = messages.iter().map(|message| message.bytes).sum();
        Self { bytes, datagrams: messages.iter().map(Message::datagrams).sum() }
    }
}

impl UdpSink {
    pub(super) const fn new(socket: Arc<net::UdpSocket>, names: Names, sends_trains: bool) -> Self {
        let counters = UdpSinkCounters {
            datagrams: 0,
            messages: 0,
            bytes: 0,
            calls: 0,
            refused_trains: 0,
            dropped: 0,
            last_refusal: 0,
        };
        Self { socket, names, trains: Trains::new(sends_trains), counters }
    }

    /// Creates a sink for a UDP socket that the caller has bound and continues to use, with the default options.
    /// Receiving from the socket stays as it is, except that both buffers of the kernel are enlarged.
    ///
    /// # Errors
    /// Returns the errors of [`UdpSocket::from_borrowed`].
    pub fn from_borrowed(socket: BorrowedFd<'_>) -> Result<Self, DeviceError> {
        let options = UdpOptions { receive_trains: false, ..UdpOptions::default() };
        UdpSocket::from_borrowed(socket, options).map(|socket| socket.sink())
    }

    /// Returns `true` if the sink sends trains: the kernel supports them, the options permit them, and the system
    /// has not refused trains for a reason that applies to all destinations.
    #[must_use]
    pub const fn sends_trains(&self) -> bool {
        self.trains.are_sent()
    }

    /// Sends the content of `outbox` until the system's queue is full. Returns `true` if everything was sent;
    /// otherwise wait until the socket is writable. Messages that the system refuses are dropped and counted.
    pub fn send(&mut self, outbox: &mut Outbox) -> bool {
        let (socket, names) = (Arc::clone(&self.socket), self.names);
        self.send_by(outbox, |messages| sys::send(socket.as_fd(), names, messages))
    }

    /// Sends datagrams from the caller's memory, without a copy, until the system's queue is full. Consecutive
    /// datagrams of one size to one address become a train; a shorter datagram ends the train. The datagrams need
    /// not be contiguous in memory, but contiguous datagrams cost the kernel less. Returns the number of
    /// datagrams that were sent or dropped. The sink drops and counts datagrams that the system refuses. If the
    /// returned number is less than the length of `datagrams`, wait until the socket is writable, and send the
    /// rest.
    pub fn send_from(&mut self, datagrams: &[Datagram<'_>]) -> usize {
        let (socket, names) = (Arc::clone(&self.socket), self.names);
        let mut call = |messages: &[Message<'_>]| sys::send(socket.as_fd(), names, messages);
        let mut done = 0;
        while done < datagrams.len() {
            let (mut rest, trains) = (&datagrams[done..], &self.trains);
            let waiting = std::iter::from_fn(|| {
                let first = rest.first()?;
                let message = Message::first_of(rest, trains.permit(first.to, first.bytes.len()))?;
                rest = &rest[message.datagrams()..];
                Some(message)
            });
            let Some((messages, count)) = first_of(waiting) else { break };
            let Some(sent) = self.send_some(&messages[..count], &mut call) else { break };
            done += sent.datagrams;
        }
        done
    }

    fn send_by(
        &mut self,
        outbox: &mut Outbox,
        mut call: impl FnMut(&[Message<'_>]) -> io::Result<usize>,
    ) -> bool {
        while !outbox.is_empty() {
            let trains = &self.trains;
            let waiting = outbox.messages(|to, bytes| trains.permit(to, bytes));
            let Some((messages, count)) = first_of(waiting) else { break };
            match self.send_some(&messages[..count], &mut call) {
                Some(done) => outbox.advance(done.bytes),
                None => return false,
            }
        }
        true
    }

    /// Sends `messages`, at least one, by one call. Returns the numbers of bytes and datagrams that were sent or
    /// dropped, which may be 0; `None` if the system's queue is full.
    fn send_some(
        &mut self,
        messages: &[Message<'_>],
        call: &mut impl FnMut(&[Message<'_>]) -> io::Result<usize>,
    ) -> Option<Done> {
        match call(messages) {
            Ok(sent) => Some(self.sent(&messages[..sent.min(messages.len())])),
            Err(error) => match self.refused(&messages[0], &error) {
                SendErrorAction::Wait => None,
                SendErrorAction::Again
                | SendErrorAction::NoTrains
                | SendErrorAction::Singly { .. } => Some(Done::default()),
                SendErrorAction::Drop => Some(Done::of(&messages[..1])),
            },
        }
    }

    fn sent(&mut self, messages: &[Message<'_>]) -> Done {
        let done = Done::of(messages);
        self.counters.calls += 1;
        self.counters.messages += messages.len() as u64;
        self.counters.bytes += done.bytes as u64;
        self.counters.datagrams += done.datagrams as u64;
        self.trains.count(messages);
        done
    }

    fn refused(&mut self, first: &Message<'_>, error: &io::Error) -> SendErrorAction {
        let answer = answer(error.raw_os_error().unwrap_or(0), first);
        match answer {
            SendErrorAction::Wait | SendErrorAction::Again => return answer,
            SendErrorAction::NoTrains => {
                self.trains.end();
                self.counters.refused_trains += 1;
            }
            SendErrorAction::Singly { from_bytes } => {
                self.trains.end_on_route(first.to.ip(), from_bytes);
                self.counters.refused_trains += 1;
            }
            SendErrorAction::Drop => self.counters.dropped += first.datagrams() as u64,
        }
        self.counters.last_refusal = error.raw_os_error().unwrap_or(0);
        answer
    }

    /// Returns the counters of this sink.
    #[must_use]
    pub const fn counters(&self) -> UdpSinkCounters {
        self.counters
    }
}

/// Returns at most as many messages as one call can send, and their number; `None` if there are none.
fn first_of<'m>(
    mut waiting: impl Iterator<Item = Message<'m>>,
) -> Option<([Message<'m>; MOST_MESSAGES], usize)> {
    let mut messages = [waiting.next()?; MOST_MESSAGES];
    let mut count = 1;
    for (place, message) in messages[1..].iter_mut().zip(waiting) {
        *place = message;
        count += 1;
    }
    Some((messages, count))
}

const fn answer(code: i32, message: &Message<'_>) -> SendErrorAction {
    let is_train = message.datagrams() > 1;
    match code {
        libc::EAGAIN => SendErrorAction::Wait,
        libc::EINTR => SendErrorAction::Again,
        // A datagram longer than the route's MTU.
        libc::EINVAL | libc::EMSGSIZE if is_train => {
            SendErrorAction::Singly { from_bytes: message.datagram_bytes }
        }
        // IPsec, or before Linux 6.11 a device without checksum offload.
        libc::EIO if is_train => SendErrorAction::Singly { from_bytes: 0 },
        // No such option.
        libc::EOPNOTSUPP | libc::ENOPROTOOPT if is_train => SendErrorAction::NoTrains,
        _ => SendErrorAction::Drop,
    }
}

impl AsFd for UdpSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the descriptor as a number, which asynchronous runtimes need.
impl AsRawFd for UdpSink {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Descriptors for UdpSink {
    fn visit_descriptors<'f>(&'f self, visit: &mut dyn FnMut(BorrowedFd<'f>)) {
        visit(self.as_fd());
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn sink() -> UdpSink {
        let socket = net::UdpSocket::bind("127.0.0.1:0").unwrap();
        UdpSink::new(Arc::new(socket), Names { is_ipv6: false, peer: None }, true)
    }

    fn outbox(datagrams: usize) -> Outbox {
        let mut outbox = Outbox::new(1 << 16);
        for n in 0..datagrams {
            outbox.room(100).unwrap().fill(n as u8);
            outbox.push(100, SocketAddr::from(([127, 0, 0, 1], 9)));
        }
        outbox
    }

    fn refusal(code: i32) -> io::Result<usize> {
        Err(io::Error::from_raw_os_error(code))
    }

    /// Sends five datagrams by a system that refuses trains with `code`. Returns the accepted datagrams in
    /// order.
    fn by_a_system_that_refuses_trains(code: i32) -> (Vec<u8>, UdpSink) {
        let (mut sink, mut taken) = (sink(), Vec::new());
        let done = sink.send_by(&mut outbox(5), |messages| {
            if messages[0].datagrams() > 1 {
                return refusal(code);
            }
            taken.extend(messages.iter().filter_map(|message| message.slices().next()?.first()));
            Ok(messages.len())
        });
        assert!(done);
        (taken, sink)
    }

    #[test]
    fn a_refused_train_is_sent_one_by_one() {
        let rows = [
            (libc::EOPNOTSUPP, false),
            // These are the route's, so other destinations keep trains.
            (libc::EIO, true),
            (libc::EINVAL, true),
            (libc::EMSGSIZE, true),
        ];
        for (code, sends_trains) in rows {
            let (taken, sink) = by_a_system_that_refuses_trains(code);
            assert_eq!(taken, [0, 1, 2, 3, 4]);
            assert_eq!(sink.sends_trains(), sends_trains);
            let UdpSinkCounters { refused_trains, last_refusal, dropped, datagrams, .. } =
                sink.counters();
            assert_eq!((refused_trains, last_refusal, dropped, datagrams), (1, code, 0, 5));
        }
    }

    /// Sends trains of two sizes to two peers in turn. The device on the way to the first cannot segment.
    #[test]
    fn a_route_that_cannot_segment_leaves_trains_to_the_others() {
        let (mut sink, mut outbox) = (sink(), Outbox::new(1 << 16));
        let to = |n| SocketAddr::from(([10, 0, 0, n], 9));
        for bytes in [200, 100] {
            for peer in [1, 2] {
                for _ in 0..3 {
                    outbox.room(bytes).unwrap();
                    outbox.push(bytes, to(peer));
                }
            }
        }
        let mut sent = Vec::new();
        let done = sink.send_by(&mut outbox, |messages| {
            if messages[0].to == to(1) && messages[0].datagrams() > 1 {
                return refusal(libc::EIO);
            }
            let is_taken = |it: &&Message<'_>| it.to == to(2) || it.datagrams() == 1;
            let taken = messages.iter().take_while(is_taken);
            sent.extend(taken.map(|it| (it.to, it.datagrams(), it.datagram_bytes)));
            Ok(messages.iter().take_while(is_taken).count())
        });
        let [large, small] = [200, 100]
            .map(|bytes| [[(to(1), 1, bytes); 3].as_slice(), &[(to(2), 3, bytes)]].concat());
        assert!(done && sink.sends_trains());
        assert_eq!(sent, [large, small].concat());
        assert_eq!((sink.counters().refused_trains, sink.counters().dropped), (1, 0));
    }

    #[test]
    fn other_refusals_drop_what_was_refused_and_trains_go_on() {
        let mut sink = sink();
        let done = sink.send_by(&mut outbox(5), |_| refusal(libc::ENETUNREACH));
        assert!(done && sink.sends_trains());
        assert_eq!((sink.counters().dropped, sink.counters().refused_trains), (5, 0));
    }

    #[test]
    fn a_full_system_takes_the_rest_later() {
        let (mut sink, mut outbox) = (sink(), outbox(3));
        assert!(!sink.send_by(&mut outbox, |_| refusal(libc::EAGAIN)));
        assert_eq!(outbox.waiting_bytes(), 300);
        assert!(sink.send_by(&mut outbox, |messages| Ok(messages.len())));
        assert_eq!(sink.counters().datagrams, 3);
    }
}
