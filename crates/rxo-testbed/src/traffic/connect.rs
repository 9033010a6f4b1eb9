//! Opens connections from one namespace to another.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::bulk::BulkConfig;
use crate::error::{Context, LabError, Result};
use crate::namespace::Namespace;
use crate::sys::{self, Interest};

/// Both ends of a connection. A socket belongs to its namespace, even if a thread outside the namespace uses
/// the socket.
#[derive(Debug)]
pub(crate) struct Ends {
    /// The end that sends the data: the connecting end, or after [`Ends::reverse`] the accepting end.
    pub(crate) sender: TcpStream,
    pub(crate) receiver: TcpStream,
}

impl Ends {
    /// Swaps the two ends, so that the accepting end sends the data.
    pub(crate) const fn reverse(&mut self) {
        std::mem::swap(&mut self.sender, &mut self.receiver);
    }
}

/// Listens on any port of `address` in `namespace`.
pub fn listen(namespace: &Namespace, address: IpAddr) -> Result<TcpListener> {
    namespace
        .run(|| TcpListener::bind((address, 0)))?
        .context(|| format!("cannot listen on {address} in namespace \"{}\"", namespace.label()))
}

/// Opens connections one after the other from the namespaces to the listener. If the number does not divide
/// evenly, the first namespaces get one connection more.
///
/// Waits until each connection is accepted, so that the handshakes of 400 connections do not overflow a small
/// packet ring.
pub(crate) fn open(
    from: &[&Namespace],
    listener: &TcpListener,
    connections: usize,
) -> Result<Vec<Ends>> {
    let target = listener.local_addr().context(|| "the listener is gone".into())?;
    let (hosts, mut ends) = (from.len().max(1), Vec::with_capacity(connections));
    for (index, namespace) in from.iter().enumerate() {
        let share = connections / hosts + usize::from(index < connections % hosts);
        let opened: Result<Vec<Ends>> =
            namespace.run(|| (0..share).map(|_| open_one(target, listener)).collect())?;
        ends.extend(opened?);
    }
    Ok(ends)
}

/// Opens a connection from the calling thread's network namespace.
pub(crate) fn connect(target: SocketAddr) -> Result<TcpStream> {
    TcpStream::connect_timeout(&target, HANDSHAKE_TIMEOUT).map_err(|error| {
        LabError::Transfer(format!("no connection to {target}: {error}; is the path up?"))
    })
}

/// Applies the transfer's options to both sockets.
pub(crate) fn configure(ends: &Ends, config: &BulkConfig) -> Result<()> {
    configure_sender(&ends.sender, config)?;
    set_low_water(&ends.receiver, config.receive_low_water_bytes)?;
    [&ends.sender, &ends.receiver]
        .into_iter()
        .try_for_each(|socket| socket.set_nonblocking(true))
        .context(|| "cannot make a socket non-blocking".into())
}

/// Applies the transfer's options to a sending socket.
pub(crate) fn configure_sender(client: &TcpStream, config: &BulkConfig) -> Result<()> {
    if let Some(bytes) = config.send_buffer() {
        sys::set_buffer_bytes(client, Interest::Write, bytes)
            .context(|| format!("cannot set a send buffer of {bytes} bytes"))?;
    }
    if let Some(name) = &config.congestion_control {
        sys::set_congestion_control(client, name).context(|| {
            format!("cannot use the congestion control {name}; see net.ipv4.tcp_available_congestion_control")
        })?;
    }
    let Some(bytes_per_s) = config.limit_bytes_per_s else { return Ok(()) };
    let share = (bytes_per_s / config.connections as u64).max(1);
    sys::set_max_pacing_rate(client, share)
        .context(|| format!("cannot limit a connection to {share} bytes a second"))
}

/// Sets the number of bytes that must arrive before the socket's reader is woken.
pub fn set_low_water(socket: &TcpStream, bytes: Option<usize>) -> Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    sys::set_receive_low_water(socket, bytes)
        .context(|| format!("cannot set a low-water mark of {bytes} bytes"))
}

/// Sets the size of the receive buffer for the sockets that the listener will accept. The size must be set
/// before the handshake, because the handshake announces the window scale.
pub(crate) fn set_receive_buffer(listener: &TcpListener, bytes: usize) -> Result<()> {
    sys::set_buffer_bytes(listener, Interest::Read, bytes)
        .context(|| format!("cannot set a receive buffer of {bytes} bytes"))
}

fn open_one(target: SocketAddr, listener: &TcpListener) -> Result<Ends> {
    let sender = connect(target)?;
    let (receiver, _) = listener.accept().context(|| format!("cannot accept on {target}"))?;
    Ok(Ends { sender, receiver })
}

/// The timeout of a handshake. This timeout is longer than the retransmission timeouts of two lost segments (1
/// s and 2 s).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
