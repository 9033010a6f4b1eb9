//! A sender that counts ACKs: RFC 5681 without byte counting.
//!
//! Linux counts bytes, so it cannot show the effect of stretch ACKs on senders that count ACKs. This sender
//! speaks real TCP over a packet socket to an unmodified Linux receiver, from an address that the namespace's
//! kernel does not have. It records how its window grows.
//!
//! * `window` is the congestion window, `timer` is the retransmission timeout.
//! * `model` is the connection: segments and time in, segments out. No clock, no sockets.
//! * `segment` writes and parses frames; `drive` is the thread with the socket and the clock.

mod drive;
mod model;
mod segment;
#[cfg(test)]
mod tests;
mod timer;
mod window;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::error::{Context, LabError, Result};
use rxo_testbed::traffic::{
    Mismatch, Pattern, ReceivingEnd, WindowPoint, listen, receive_all, set_low_water,
};
use rxo_testbed::{Interface, PacketSocket, Worker};

use drive::{Sent, drive};
use model::{Model, Setup, largest_segment};
use segment::Ends;

pub use model::ModelCounters;

/// The parameters of the sender. [`CountingConfig::default`] sends until stopped.
#[derive(Clone, Copy, Debug)]
pub struct CountingConfig {
    /// The sender's address. It must be on the link, and its namespace must not have it.
    pub address: Ipv4Addr,
    /// The initial window, in segments: at most 3 by RFC 5681, 10 by RFC 6928 as in Linux.
    pub initial_segments: u64,
    /// Length of the stream; `None` sends until stopped.
    pub limit_bytes: Option<u64>,
    /// MTU of the path, in bytes.
    pub mtu: u16,
    /// As [`BulkConfig::receive_low_water_bytes`](rxo_testbed::traffic::BulkConfig::receive_low_water_bytes).
    pub receive_low_water_bytes: Option<usize>,
    /// The core of the sending thread.
    pub sender_core: Option<usize>,
    /// The core of the receiving thread.
    pub receiver_core: Option<usize>,
}

impl Default for CountingConfig {
    fn default() -> Self {
        Self {
            address: Ipv4Addr::new(10, 77, 0, 9),
            initial_segments: 10,
            limit_bytes: None,
            mtu: 1_500,
            receive_low_water_bytes: None,
            sender_core: None,
            receiver_core: None,
        }
    }
}

/// A running transfer from a sender that counts ACKs. Dropping it stops it, and its threads end by
/// themselves.
#[derive(Debug)]
pub struct CountingTransfer {
    sender: Option<Worker<Sent>>,
    receiver: Option<Worker<Vec<ReceivingEnd>>>,
    received_bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

/// The result of a finished transfer.
#[derive(Clone, Debug)]
pub struct CountingReport {
    /// Bytes of the stream that were sent.
    pub sent_bytes: u64,
    /// Bytes that the receiver read and compared with what was sent.
    pub received_bytes: u64,
    /// The first wrong byte.
    pub mismatch: Option<Mismatch>,
    /// Counters of the sender.
    pub counters: ModelCounters,
    /// The growth of the window.
    pub record: Vec<WindowPoint>,
}

impl CountingReport {
    /// Returns true if the stream arrived complete and without a wrong byte.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.mismatch.is_none() && self.sent_bytes == self.received_bytes
    }
}

impl CountingTransfer {
    /// Opens a connection out of the interface `from` to `address` in the namespace `to`, and
    /// starts sending. Tells `to` the MAC address of the sender.
    ///
    /// # Errors
    /// If the connection cannot be established.
    pub fn start(
        from: &Interface<'_>,
        to: &Interface<'_>,
        address: Ipv4Addr,
        config: CountingConfig,
    ) -> Result<Self> {
        to.add_neighbour(config.address.into(), from.mac()?)?;
        let listener = listen(to.namespace(), IpAddr::V4(address))?;
        let target = listener.local_addr().context(|| "the listener is gone".into())?;
        let ends = Ends {
            local: (from.mac()?, config.address, PORT),
            remote: (to.mac()?, address, target.port()),
        };
        let index = from.index()?;
        let socket = from
            .namespace()
            .run(|| PacketSocket::open(index))?
            .context(|| from.cannot("open a packet socket on"))?;
        let (stop, pattern) = (Arc::new(AtomicBool::new(false)), Pattern::of_port(PORT));
        let model = Model::new(Setup {
            isn: FIRST_SEQUENCE_NUMBER,
            mss: largest_segment(config.mtu),
            initial_segments: config.initial_segments.max(1),
            limit_bytes: config.limit_bytes,
        });
        let told = Arc::clone(&stop);
        let work = move || drive(model, &socket, &ends, pattern, &told);
        let sender = Some(Worker::start("lab-count", config.sender_core, work)?);
        let received_bytes = Arc::new(AtomicU64::new(0));
        // From here on, dropping it stops the sender.
        let mut transfer = Self { sender, receiver: None, received_bytes, stop };
        let socket = accept(&listener, target)?;
        set_low_water(&socket, config.receive_low_water_bytes)?;
        let end = ReceivingEnd { socket, port: PORT, pattern, received_bytes: 0, mismatch: None };
        let total = Arc::clone(&transfer.received_bytes);
        let work = move || receive_all(vec![end], &total);
        transfer.receiver = Some(Worker::start("lab-receive", config.receiver_core, work)?);
        Ok(transfer)
    }

    /// Returns the number of payload bytes received and checked so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// The sending thread, for [`CpuMeter::threads`](rxo_testbed::CpuMeter::threads).
    #[must_use]
    pub fn sender_threads(&self) -> Vec<u32> {
        self.sender.iter().map(Worker::thread_id).collect()
    }

    /// The receiving thread, for [`CpuMeter::threads`](rxo_testbed::CpuMeter::threads).
    #[must_use]
    pub fn receiver_threads(&self) -> Vec<u32> {
        self.receiver.iter().map(Worker::thread_id).collect()
    }

    /// Ends the stream, waits until everything sent has arrived, and returns the result.
    ///
    /// # Errors
    /// If the connection broke or stalled.
    pub fn stop(self) -> Result<CountingReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.wait()
    }

    /// Waits for the end of the stream, which must have one, and returns the result.
    ///
    /// # Errors
    /// If the connection broke or stalled.
    pub fn wait(mut self) -> Result<CountingReport> {
        let ended = || LabError::Transfer("the transfer has ended before".into());
        let sent = self.sender.take().ok_or_else(ended)?.finish()?;
        let received = self.receiver.take().ok_or_else(ended)?.finish()?;
        Ok(CountingReport {
            sent_bytes: sent.bytes,
            received_bytes: received.iter().map(|end| end.received_bytes).sum(),
            mismatch: received.iter().find_map(|end| end.mismatch),
            counters: sent.counters,
            record: sent.record,
        })
    }
}

impl Drop for CountingTransfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Waits for the single connection.
fn accept(listener: &TcpListener, target: SocketAddr) -> Result<TcpStream> {
    let cannot = || format!("cannot accept on {target}");
    listener.set_nonblocking(true).context(cannot)?;
    let begin = Instant::now();
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(true).context(cannot)?;
                return Ok(socket);
            }
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Err(error).context(cannot);
            }
            Err(_) if begin.elapsed() > HANDSHAKE_TIMEOUT => {
                return Err(LabError::Transfer(format!(
                    "no connection to {target} from a sender of our own; is the path up?"
                )));
            }
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Longer than the loss of two handshake segments takes (1 s and 2 s).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Port of the sender's only connection.
const PORT: u16 = 40_000;
/// Shortly before the wrap, so that every longer transfer crosses it.
const FIRST_SEQUENCE_NUMBER: u32 = u32::MAX - 1_000_000;
