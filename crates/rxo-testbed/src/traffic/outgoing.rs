//! Linux peers for a host with another TCP stack: connections that only send, and exchanges of single bytes.
//! The caller provides the receiving host.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::STALL_TIMEOUT;
use super::bulk::{BulkConfig, deal};
use super::connect;
use super::pattern::Pattern;
use super::ping_pong::{self, PingPongConfig, PingPongReport};
use super::sender::{SendingEnd, send_all};
use crate::error::{Context, LabError, Result};
use crate::namespace::Namespace;
use crate::worker::Worker;

/// Connections that send as fast as they can until they are stopped. Each connection sends the [`Pattern`] of
/// its port.
#[derive(Debug)]
pub struct Outgoing {
    senders: Vec<Worker<Vec<SendingEnd>>>,
    stop: Arc<AtomicBool>,
}

/// The result of connections that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingReport {
    /// One element for each connection, in no particular order: the client's port, and the number of bytes
    /// sent.
    pub connections: Vec<(u16, u64)>,
    /// The number of segments that the senders' kernel retransmitted.
    pub retransmitted_segments: u64,
}

impl Outgoing {
    /// Opens connections one after the other from `from` to `to`, and starts sending. Options for
    /// receivers have no effect.
    ///
    /// # Errors
    /// If the configuration is invalid, or a connection cannot be established.
    pub fn start(from: &Namespace, to: SocketAddr, config: &BulkConfig) -> Result<Self> {
        config.check()?;
        let open = || (0..config.connections).map(|_| connect::connect(to)).collect();
        let sockets: Vec<TcpStream> = from.run(|| -> Result<Vec<TcpStream>> { open() })??;
        let ends = sockets.into_iter().map(|socket| sending_end(socket, config));
        let ends: Vec<SendingEnd> = ends.collect::<Result<_>>()?;
        let stop = Arc::new(AtomicBool::new(false));
        let start = |share| {
            let stop = Arc::clone(&stop);
            Worker::start("lab-send", config.sender_core, move || send_all(share, &stop))
        };
        let senders = deal(ends, config.threads_per_side).map(start).collect::<Result<_>>()?;
        Ok(Self { senders, stop })
    }

    /// Returns the ids of the sending threads, for [`CpuMeter::threads`](crate::CpuMeter::threads).
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        self.senders.iter().map(Worker::thread_id).collect()
    }

    /// Ends every stream, and returns the number of bytes that each connection has sent. Data in flight still
    /// arrives.
    ///
    /// # Errors
    /// If a connection broke or stalled.
    pub fn stop(self) -> Result<OutgoingReport> {
        self.stop.store(true, Ordering::Relaxed);
        let mut report = OutgoingReport::default();
        for sender in self.senders {
            for end in sender.finish()? {
                let port = port(&end.socket)?;
                report.connections.push((port, end.sent_bytes));
                report.retransmitted_segments += crate::sys::retransmitted_segments(&end.socket)
                    .context(|| "cannot read what a connection sent again".into())?;
            }
        }
        Ok(report)
    }
}

/// Exchanges single bytes between `from` and the responder at `to`, over one connection.
///
/// # Errors
/// If the connection cannot be established, breaks, or stalls.
pub fn exchange(
    from: &Namespace,
    to: SocketAddr,
    config: PingPongConfig,
) -> Result<PingPongReport> {
    let client = from.run(|| connect::connect(to))??;
    client
        .set_nodelay(true)
        .and_then(|()| client.set_read_timeout(Some(STALL_TIMEOUT)))
        .context(|| "cannot configure a socket".into())?;
    let work = move || ping_pong::ask(client, config.duration);
    Worker::start("lab-ask", config.client_core, work)?.finish()
}

fn sending_end(socket: TcpStream, config: &BulkConfig) -> Result<SendingEnd> {
    connect::configure_sender(&socket, config)?;
    socket.set_nonblocking(true).context(|| "cannot make a socket non-blocking".into())?;
    let pattern = Pattern::of_port(port(&socket)?);
    let (sent_bytes, limit_bytes, wrong_byte_at) = (0, config.bytes_per_connection, None);
    let write_bytes = config.write_bytes;
    Ok(SendingEnd { socket, pattern, sent_bytes, limit_bytes, write_bytes, wrong_byte_at })
}

fn port(socket: &TcpStream) -> Result<u16> {
    socket.local_addr().as_ref().map(SocketAddr::port).map_err(|error| {
        LabError::Transfer(format!("a connection was lost before it began: {error}"))
    })
}
