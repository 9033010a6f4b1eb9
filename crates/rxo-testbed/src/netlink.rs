//! Sends changes of a network to the kernel, one request and its answer at a time.
//!
//! The message types are those of the `netlink-packet-*` crates. `rtnetlink`, which is built on
//! them, would add an asynchronous runtime to a program that sends a dozen requests in a row.

use std::io;
use std::sync::{Mutex, PoisonError};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

/// A netlink socket. It acts on the namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Mutex<Socket>,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket: Mutex::new(socket) })
    }

    /// Requests a change and waits until it is done. `flags` are added to request and ack.
    pub(crate) fn change(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.exchange(request, flags).map(|_| ())
    }

    /// Requests one object. Returns the messages before the acknowledgement.
    pub(crate) fn ask(&self, request: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.exchange(request, 0)
    }

    /// Sends one request and reads up to its acknowledgement, which ends the answer.
    fn exchange(
        &self,
        request: RouteNetlinkMessage,
        flags: u16,
    ) -> io::Result<Vec<RouteNetlinkMessage>> {
        // A panic elsewhere cannot have left half a request, because a request is sent as a whole.
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        socket.send(&bytes, 0)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = socket.recv_from_full()?;
            if read_answers(&datagram, &mut answers)? {
                return Ok(answers);
            }
        }
    }
}

/// Appends the messages of a datagram to `answers`. Returns true when the request is done.
fn read_answers(datagram: &[u8], answers: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        // Messages are padded to four bytes; the last one need not be.
        let length = (message.header.length as usize).next_multiple_of(4).min(rest.len());
        rest = rest.get(length..).unwrap_or_default();
        match message.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
            NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::InnerMessage(inner) => answers.push(inner),
            _ => {}
        }
    }
    Ok(false)
}
