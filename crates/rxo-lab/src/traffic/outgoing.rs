//! Linux peers of a host that is not Linux: connections that only send, and single bytes there and
//! back. What receives them is the caller's, on whatever stack.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::PATIENCE;
use super::bulk::{BulkConfig, deal};
use super::connect;
use super::pattern::Pattern;
use super::ping_pong::{self, PingPongConfig, PingPongReport};
use super::sender::{SendingEnd, send_all};
use crate::error::{Context, LabError, Result};
use crate::namespace::Namespace;
use crate::worker::Worker;

/// Connections that send the [`Pattern`] of their port as fast as they can, until stopped.
#[derive(Debug)]
pub struct Outgoing {
    senders: Vec<Worker<Vec<SendingEnd>>>,
    stop: Arc<AtomicBool>,
}

/// What finished connections have sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutgoingReport {
    /// The port and the bytes of each connection, in no order.
    pub connections: Vec<(u16, u64)>,
    /// Segments that their kernel sent more than once.
    pub retransmitted_segments: u64,
}

impl Outgoing {
    /// Opens the connections one after the other from `from` to `to`, and starts sending. Of the
    /// configuration, what concerns receivers is without effect.
    ///
    /// # Errors
    /// When the configuration cannot be, or a connection does not come about.
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

    /// The sending threads, for [`CpuMeter::threads`](crate::CpuMeter::threads).
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        self.senders.iter().map(Worker::thread_id).collect()
    }

    /// Ends every stream where it is, and says where that was. What is under way still arrives.
    ///
    /// # Errors
    /// When a connection broke or stood still.
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

/// Exchanges single bytes between `from` and whoever answers at `to`, over one connection.
///
/// # Errors
/// When the connection does not come about, breaks, or stands still.
pub fn exchange(
    from: &Namespace,
    to: SocketAddr,
    config: PingPongConfig,
) -> Result<PingPongReport> {
    let client = from.run(|| connect::connect(to))??;
    client
        .set_nodelay(true)
        .and_then(|()| client.set_read_timeout(Some(PATIENCE)))
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
