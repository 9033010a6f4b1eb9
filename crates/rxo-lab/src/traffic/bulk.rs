//! Bulk transfers: some threads that send, some that receive and check, and their totals.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::connect::{self, Ends};
use super::pattern::Pattern;
use super::receiver::{ReceivingEnd, receive_all};
use super::report::{BulkReport, Window};
use super::sender::{SendingEnd, send_all};
use super::stop_and_wait::send_one_at_a_time;
use super::window_point::WindowPoint;
use crate::cpu::CpuMeter;
use crate::error::{Context, LabError, Result, usage};
use crate::namespace::Namespace;
use crate::worker::Worker;

/// What a bulk transfer is to do. [`BulkConfig::default`] is one connection until stopped.
#[derive(Clone, Debug)]
pub struct BulkConfig {
    /// How many connections, 1 to 400, shared out among the threads.
    pub connections: usize,
    /// Threads that send, and as many that receive.
    pub threads_per_side: usize,
    /// Where each connection ends by itself; `None` sends until stopped.
    pub bytes_per_connection: Option<u64>,
    /// What the application writes at once, 1 byte to 128 KiB.
    pub write_bytes: usize,
    /// Whether the next write waits until the one before has been acknowledged. Each then leaves
    /// by itself as one large send, whose last segment carries PSH. Otherwise what waits to be
    /// sent is joined by the kernel, and PSH stands where it stops.
    pub one_write_at_a_time: bool,
    /// A fixed send buffer; `None` leaves it to the kernel.
    pub send_buffer_bytes: Option<usize>,
    /// A fixed receive buffer; `None` leaves it to the kernel.
    pub receive_buffer_bytes: Option<usize>,
    /// What must have come before a receiver is woken; `None` is any byte. With some, Linux
    /// acknowledges every second full segment while it comes (RFC 9293): otherwise it leaves most
    /// ACKs to the reader, who then sends one for all that it has read.
    pub receive_low_water_bytes: Option<usize>,
    /// A limit for all connections together, shared equally and kept by the senders' kernel.
    pub limit_bytes_per_s: Option<u64>,
    /// The senders' congestion control; `None` takes the machine's.
    pub congestion_control: Option<String>,
    /// The core of the sending threads; `None` leaves them to the scheduler.
    pub sender_core: Option<usize>,
    /// The core of the receiving threads; `None` leaves them to the scheduler.
    pub receiver_core: Option<usize>,
    /// Sends this byte of the first connection wrong, to show that the check finds it.
    pub wrong_byte_at: Option<u64>,
}

impl Default for BulkConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            threads_per_side: 1,
            bytes_per_connection: None,
            write_bytes: Pattern::LONGEST,
            one_write_at_a_time: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            receive_low_water_bytes: None,
            limit_bytes_per_s: None,
            // The machine's own choice may pace (BBR), which measures the pacing. CUBIC is what
            // most senders use; a socket of a namespace's root may have it whatever is allowed.
            congestion_control: Some("cubic".into()),
            sender_core: None,
            receiver_core: None,
            wrong_byte_at: None,
        }
    }
}

/// A running transfer. Dropping it stops it and leaves its threads to end by themselves.
#[derive(Debug)]
pub struct BulkTransfer {
    senders: Vec<Worker<Vec<SendingEnd>>>,
    receivers: Vec<Worker<Vec<ReceivingEnd>>>,
    received_bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    started: Instant,
    ends_by_itself: bool,
    /// Other handles on the sending sockets, to ask the kernel about them.
    sockets: Vec<TcpStream>,
}

impl BulkTransfer {
    /// Opens the connections from `from` to `address` in `to`, and starts sending.
    ///
    /// # Errors
    /// When the configuration cannot be, or a connection does not come about.
    pub fn start(
        from: &Namespace,
        to: &Namespace,
        address: IpAddr,
        config: &BulkConfig,
    ) -> Result<Self> {
        Self::start_from_all(&[from], to, address, config)
    }

    /// The same from several namespaces, which get as many connections each; when they do not
    /// divide, the first get one more.
    ///
    /// # Errors
    /// As [`BulkTransfer::start`].
    pub fn start_from_all(
        from: &[&Namespace],
        to: &Namespace,
        address: IpAddr,
        config: &BulkConfig,
    ) -> Result<Self> {
        config.check()?;
        let listener = connect::listen(to, address)?;
        if let Some(bytes) = config.receive_buffer_bytes {
            connect::set_receive_buffer(&listener, bytes)?;
        }
        let ends = connect::open(from, &listener, config.connections)?;
        ends.iter().try_for_each(|ends| connect::configure(ends, config))?;
        let sockets: std::io::Result<_> = ends.iter().map(|ends| ends.client.try_clone()).collect();
        let sockets = sockets.context(|| "cannot have a second handle on a socket".into())?;
        let (sending, receiving) = split(ends, config)?;
        let (received_bytes, stop) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let receivers = deal(receiving, config.threads_per_side)
            .map(|share| {
                let total = Arc::clone(&received_bytes);
                let work = move || receive_all(share, &total);
                Worker::start("lab-receive", config.receiver_core, work)
            })
            .collect::<Result<_>>()?;
        let started = Instant::now();
        let (senders, ends_by_itself) = (Vec::new(), config.bytes_per_connection.is_some());
        let mut transfer =
            Self { senders, receivers, received_bytes, stop, started, ends_by_itself, sockets };
        for share in deal(sending, config.threads_per_side) {
            let stop = Arc::clone(&transfer.stop);
            let send = if config.one_write_at_a_time { send_one_at_a_time } else { send_all };
            let work = move || send(share, &stop);
            transfer.senders.push(Worker::start("lab-send", config.sender_core, work)?);
        }
        Ok(transfer)
    }

    /// Payload bytes received and checked so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// The congestion windows of all connections together, and what they delivered, now.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn window(&self) -> Result<WindowPoint> {
        let at = self.started.elapsed();
        let mut point = WindowPoint { at, cwnd_bytes: 0, delivered_bytes: 0 };
        for socket in &self.sockets {
            let info = crate::sys::sender_info(socket)
                .context(|| "cannot ask a connection for its window".into())?;
            point.cwnd_bytes += u64::from(info.cwnd_segments) * u64::from(info.mss_bytes);
            point.delivered_bytes += info.acknowledged_bytes;
        }
        Ok(point)
    }

    /// The sending threads, for [`CpuMeter::threads`].
    #[must_use]
    pub fn sender_threads(&self) -> Vec<u32> {
        self.senders.iter().map(Worker::thread_id).collect()
    }

    /// The receiving threads, for [`CpuMeter::threads`].
    #[must_use]
    pub fn receiver_threads(&self) -> Vec<u32> {
        self.receivers.iter().map(Worker::thread_id).collect()
    }

    /// Lets it run for `duration` and says what was received and what it cost.
    ///
    /// # Errors
    /// When a thread of the meter has ended.
    pub fn measure(&self, duration: Duration, meter: &CpuMeter) -> Result<Window> {
        let (cpu, bytes, begin) = (meter.read()?, self.received_bytes(), Instant::now());
        thread::sleep(duration);
        let (end_cpu, end_bytes) = (meter.read()?, self.received_bytes());
        Ok(Window {
            duration: begin.elapsed(),
            received_bytes: end_bytes - bytes,
            cpu: end_cpu.since(&cpu),
        })
    }

    /// Stops sending, lets what is under way arrive, and gives the totals.
    ///
    /// # Errors
    /// When a connection broke or stood still.
    pub fn stop(self) -> Result<BulkReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }

    /// Waits until every connection is at its end, and gives the totals.
    ///
    /// # Errors
    /// When the transfer has no end (`bytes_per_connection`), or a connection broke or stood
    /// still.
    pub fn wait(self) -> Result<BulkReport> {
        if !self.ends_by_itself {
            return Err(usage("a transfer without bytes_per_connection never ends: stop it"));
        }
        self.join()
    }

    fn join(mut self) -> Result<BulkReport> {
        let senders = self.senders.drain(..).map(Worker::finish).collect::<Result<Vec<_>>>();
        let receivers = self.receivers.drain(..).map(Worker::finish).collect::<Result<Vec<_>>>();
        let duration = self.started.elapsed();
        let senders: Vec<SendingEnd> = senders?.into_iter().flatten().collect();
        let receivers: Vec<ReceivingEnd> = receivers?.into_iter().flatten().collect();
        let retransmitted = senders.iter().map(|end| {
            crate::sys::retransmitted_segments(&end.socket)
                .context(|| "cannot read what a connection sent again".into())
        });
        Ok(BulkReport {
            connections: senders.len(),
            retransmitted_segments: retransmitted.sum::<Result<u64>>()?,
            sent_bytes: senders.iter().map(|end| end.sent_bytes).sum(),
            received_bytes: receivers.iter().map(|end| end.received_bytes).sum(),
            duration,
            mismatch: receivers.iter().find_map(|end| end.mismatch),
        })
    }
}

impl Drop for BulkTransfer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl BulkConfig {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=MOST_CONNECTIONS).contains(&self.connections) {
            let asked = self.connections;
            return Err(usage(format!("{asked} connections: choose 1 to {MOST_CONNECTIONS}")));
        }
        if self.threads_per_side == 0 {
            return Err(usage("0 threads per side: choose at least 1"));
        }
        let (asked, most) = (self.write_bytes, Pattern::LONGEST);
        if !(1..=most).contains(&asked) {
            return Err(usage(format!("writes of {asked} bytes: choose 1 to {most}")));
        }
        Ok(())
    }

    /// The send buffer to fix: what is written one at a time must be taken at once, or a part of
    /// it leaves with a PSH of its own.
    pub(crate) fn send_buffer(&self) -> Option<usize> {
        let whole = self.one_write_at_a_time.then_some(2 * self.write_bytes + 64 * 1024);
        self.send_buffer_bytes.or(whole)
    }
}

/// Gives each end its pattern. The client's port names the connection at both ends.
fn split(ends: Vec<Ends>, config: &BulkConfig) -> Result<(Vec<SendingEnd>, Vec<ReceivingEnd>)> {
    let mut sides = (Vec::new(), Vec::new());
    for (index, ends) in ends.into_iter().enumerate() {
        let port = ends.client.local_addr().as_ref().map(SocketAddr::port).map_err(|error| {
            LabError::Transfer(format!("a connection was lost before it began: {error}"))
        })?;
        let pattern = Pattern::of_port(port);
        sides.0.push(SendingEnd {
            socket: ends.client,
            pattern,
            sent_bytes: 0,
            limit_bytes: config.bytes_per_connection,
            write_bytes: config.write_bytes,
            wrong_byte_at: config.wrong_byte_at.filter(|_| index == 0),
        });
        let (received_bytes, mismatch) = (0, None);
        let socket = ends.server;
        sides.1.push(ReceivingEnd { socket, port, pattern, received_bytes, mismatch });
    }
    Ok(sides)
}

/// Shares `all` out in turn; no share is empty.
pub(super) fn deal<T>(all: Vec<T>, shares: usize) -> impl Iterator<Item = Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..shares.min(all.len())).map(|_| Vec::new()).collect();
    let count = dealt.len();
    for (index, item) in all.into_iter().enumerate() {
        dealt[index % count].push(item);
    }
    dealt.into_iter()
}

/// Beyond this a two-core machine measures its scheduler.
const MOST_CONNECTIONS: usize = 400;
