//! Sink for datagrams: sends the content of an outbox.

use std::io;
use std::net;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rxo_device::Descriptors;

use super::Outbox;
use super::outbox::Message;
use super::sys::{self, MOST_MESSAGES};

/// Sends datagrams. Created by [`UdpSocket::sink`](super::UdpSocket::sink).
#[derive(Debug)]
pub struct UdpSink {
    socket: Arc<net::UdpSocket>,
    /// `true` if the socket uses IPv6; IPv4 addresses are then written as mapped addresses.
    is_ipv6: bool,
    sends_trains: bool,
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
    /// Number of trains that the system refused although it has the option; at most 1, because no trains
    /// follow.
    pub refused_trains: u64,
    /// Number of single datagrams that the system refused, for example because of no route, their length, or
    /// a filter.
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
    /// Send datagrams one by one from now on, because the system refuses trains.
    NoTrains,
    /// Drop this message and continue with the next.
    Drop,
}

impl UdpSink {
    pub(super) const fn new(
        socket: Arc<net::UdpSocket>,
        is_ipv6: bool,
        sends_trains: bool,
    ) -> Self {
        let counters = UdpSinkCounters {
            datagrams: 0,
            messages: 0,
            bytes: 0,
            calls: 0,
            refused_trains: 0,
            dropped: 0,
            last_refusal: 0,
        };
        Self { socket, is_ipv6, sends_trains, counters }
    }

    /// Returns `true` if the sink sends trains: the kernel supports them, the options permit them, and none
    /// was refused.
    #[must_use]
    pub const fn sends_trains(&self) -> bool {
        self.sends_trains
    }

    /// Sends the content of `outbox` until the system's queue is full. Returns `true` if everything was sent;
    /// otherwise wait until the socket is writable. Messages that the system refuses are dropped and counted.
    pub fn send(&mut self, outbox: &mut Outbox) -> bool {
        let (socket, is_ipv6) = (Arc::clone(&self.socket), self.is_ipv6);
        self.send_by(outbox, |messages| sys::send(socket.as_fd(), is_ipv6, messages))
    }

    fn send_by(
        &mut self,
        outbox: &mut Outbox,
        mut call: impl FnMut(&[Message<'_>]) -> io::Result<usize>,
    ) -> bool {
        while !outbox.is_empty() {
            let mut waiting = outbox.messages(self.sends_trains);
            let Some(first) = waiting.next() else { break };
            let mut messages = [first; MOST_MESSAGES];
            let mut count = 1;
            for (place, message) in messages[1..].iter_mut().zip(waiting) {
                *place = message;
                count += 1;
            }
            let bytes = match call(&messages[..count]) {
                Ok(sent) => self.sent(&messages[..sent.min(count)]),
                Err(error) => match self.refused(&first, &error) {
                    SendErrorAction::Wait => return false,
                    SendErrorAction::Again | SendErrorAction::NoTrains => 0,
                    SendErrorAction::Drop => first.bytes.len(),
                },
            };
            outbox.advance(bytes);
        }
        true
    }

    fn sent(&mut self, messages: &[Message<'_>]) -> usize {
        let bytes = messages.iter().map(|message| message.bytes.len()).sum();
        self.counters.calls += 1;
        self.counters.messages += messages.len() as u64;
        self.counters.bytes += bytes as u64;
        self.counters.datagrams += messages.iter().map(|m| m.datagrams() as u64).sum::<u64>();
        bytes
    }

    fn refused(&mut self, first: &Message<'_>, error: &io::Error) -> SendErrorAction {
        let answer = answer(error.raw_os_error().unwrap_or(0), first.datagrams() > 1);
        match answer {
            SendErrorAction::Wait | SendErrorAction::Again => return answer,
            SendErrorAction::NoTrains => {
                self.sends_trains = false;
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

const fn answer(code: i32, is_train: bool) -> SendErrorAction {
    match code {
        libc::EAGAIN => SendErrorAction::Wait,
        libc::EINTR => SendErrorAction::Again,
        // No checksum offload; a datagram longer than the route's MTU; no such option.
        libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP | libc::ENOPROTOOPT
            if is_train =>
        {
            SendErrorAction::NoTrains
        }
        _ => SendErrorAction::Drop,
    }
}

impl AsFd for UdpSink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
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
        UdpSink::new(Arc::new(socket), false, true)
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
            taken.extend(messages.iter().map(|message| message.bytes[0]));
            Ok(messages.len())
        });
        assert!(done);
        (taken, sink)
    }

    #[test]
    fn a_refused_train_is_sent_one_by_one_and_is_the_last() {
        for code in [libc::EIO, libc::EINVAL, libc::EOPNOTSUPP] {
            let (taken, sink) = by_a_system_that_refuses_trains(code);
            assert_eq!(taken, [0, 1, 2, 3, 4]);
            assert!(!sink.sends_trains());
            let UdpSinkCounters { refused_trains, last_refusal, dropped, datagrams, .. } =
                sink.counters();
            assert_eq!((refused_trains, last_refusal, dropped, datagrams), (1, code, 0, 5));
        }
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
