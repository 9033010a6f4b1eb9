//! Bulk transfers: sending threads, receiving threads that check every byte, and totals.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::STALL_TIMEOUT;
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

/// The parameters of a bulk transfer. [`BulkConfig::default`] is one connection that sends until it is
/// stopped.
#[derive(Clone, Debug)]
pub struct BulkConfig {
    /// The number of connections, 1 to 400, distributed over the threads.
    pub connections: usize,
    /// The number of sending threads. The number of receiving threads is equal.
    pub threads_per_side: usize,
    /// The number of bytes after which each connection ends; `None` sends until the transfer is stopped.
    pub bytes_per_connection: Option<u64>,
    /// The number of bytes that the application writes at once, 1 byte to 128 KiB.
    pub write_bytes: usize,
    /// `true` if the accepting side sends, as in a download.
    pub is_download: bool,
    /// `true` if each write waits until the previous one is acknowledged. Each write is then one GSO frame,
    /// whose last segment carries PSH. If `false`, the kernel joins waiting data, and sets PSH on the segment
    /// after which no more data waits.
    pub one_write_at_a_time: bool,
    /// The fixed size of the send buffer in bytes; `None` lets the kernel choose.
    pub send_buffer_bytes: Option<usize>,
    /// The fixed size of the receive buffer in bytes; `None` lets the kernel choose.
    pub receive_buffer_bytes: Option<usize>,
    /// The number of bytes that must have arrived before a receiver is woken; with `None`, any number of bytes
    /// wakes the receiver. With a value, Linux acknowledges every second full segment while the receiver waits
    /// (RFC 9293). With `None`, Linux delays most ACKs until the receiver reads, and then sends one ACK for all
    /// data that was read.
    pub receive_low_water_bytes: Option<usize>,
    /// The rate limit of all connections together in bytes per second, shared equally and enforced by the senders'
    /// kernel; `None` for no limit.
    pub limit_bytes_per_s: Option<u64>,
    /// The name of the senders' congestion control; `None` for the machine's default.
    pub congestion_control: Option<String>,
    /// The core of the sending threads; `None` lets the scheduler choose.
    pub sender_core: Option<usize>,
    /// The core of the receiving threads; `None` lets the scheduler choose.
    pub receiver_core: Option<usize>,
    /// The position, in the stream of the first connection, at which a wrong byte is sent, to test that the
    /// check finds it; `None` sends no wrong byte.
    pub wrong_byte_at: Option<u64>,
}

impl Default for BulkConfig {
    fn default() -> Self {
        Self {
            connections: 1,
            threads_per_side: 1,
            bytes_per_connection: None,
            write_bytes: Pattern::LONGEST,
            is_download: false,
            one_write_at_a_time: false,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            receive_low_water_bytes: None,
            limit_bytes_per_s: None,
            // The machine's default may pace (BBR), and pacing would then be measured. Most senders
            // use CUBIC, and root in a namespace may always choose it.
            congestion_control: Some("cubic".into()),
            sender_core: None,
            receiver_core: None,
            wrong_byte_at: None,
        }
    }
}

/// A running bulk transfer. Dropping the value stops the transfer, and the threads end by themselves.
#[derive(Debug)]
pub struct BulkTransfer {
    senders: Vec<Worker<Vec<SendingEnd>>>,
    receivers: Vec<Worker<Vec<ReceivingEnd>>>,
    received_bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    started: Instant,
    ends_by_itself: bool,
    /// Clones of the sending sockets, for queries to the kernel.
    sockets: Vec<TcpStream>,
}

impl BulkTransfer {
    /// Opens the connections from namespace `from` to `address` in namespace `to`, and starts
    /// sending.
    ///
    /// # Errors
    /// If the configuration is invalid, or a connection cannot be established.
    pub fn start(
        from: &Namespace,
        to: &Namespace,
        address: IpAddr,
        config: &BulkConfig,
    ) -> Result<Self> {
        Self::start_from_all(&[from], to, address, config)
    }

    /// Opens connections from several namespaces, equally many from each, to `address` in namespace `to`, and
    /// starts sending. If the number does not divide evenly, the first namespaces get one connection more.
    ///
    /// # Errors
    /// The errors of [`BulkTransfer::start`].
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
        let mut ends = connect::open(from, &listener, config.connections)?;
        if config.is_download {
            ends.iter_mut().for_each(Ends::reverse);
        }
        ends.iter().try_for_each(|ends| connect::configure(ends, config))?;
        let sockets: std::io::Result<_> = ends.iter().map(|ends| ends.sender.try_clone()).collect();
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

    /// Returns the number of payload bytes received and checked so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Returns the sum of all congestion windows, and the bytes delivered so far.
    ///
    /// # Errors
    /// If the kernel refuses the query.
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

    /// Returns the ids of the sending threads, for [`CpuMeter::threads`].
    #[must_use]
    pub fn sender_threads(&self) -> Vec<u32> {
        self.senders.iter().map(Worker::thread_id).collect()
    }

    /// Returns the ids of the receiving threads, for [`CpuMeter::threads`].
    #[must_use]
    pub fn receiver_threads(&self) -> Vec<u32> {
        self.receivers.iter().map(Worker::thread_id).collect()
    }

    /// Waits for `duration`. Returns the bytes received in this time, and their cost in processor time.
    ///
    /// # Errors
    /// If a thread of the meter has ended.
    pub fn measure(&self, duration: Duration, meter: &CpuMeter) -> Result<Window> {
        self.measure_at_least(duration, 0, meter)
    }

    /// Waits for `duration`, or longer until `least_bytes` bytes have arrived. Returns the bytes received in
    /// this time, and their cost in processor time. On a busy machine, so little may arrive within `duration`
    /// that a cost per byte would be meaningless.
    ///
    /// # Errors
    /// If a thread of the meter has ended, or if fewer bytes arrive within 10 more seconds.
    pub fn measure_at_least(
        &self,
        duration: Duration,
        least_bytes: u64,
        meter: &CpuMeter,
    ) -> Result<Window> {
        let (cpu, bytes, begin) = (meter.read()?, self.received_bytes(), Instant::now());
        thread::sleep(duration);
        while self.received_bytes() - bytes < least_bytes {
            if begin.elapsed() > duration + STALL_TIMEOUT {
                let (arrived, seconds) = (self.received_bytes() - bytes, begin.elapsed().as_secs());
                return Err(LabError::Transfer(format!(
                    "{arrived} bytes arrived in {seconds} s, too few to measure; run it when less \
                     else runs"
                )));
            }
            thread::sleep(PAUSE);
        }
        let (end_cpu, end_bytes) = (meter.read()?, self.received_bytes());
        Ok(Window {
            duration: begin.elapsed(),
            received_bytes: end_bytes - bytes,
            cpu: end_cpu.since(&cpu),
        })
    }

    /// Stops sending, waits until all data sent has arrived, and returns the totals.
    ///
    /// # Errors
    /// If a connection broke or stalled.
    pub fn stop(self) -> Result<BulkReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.join()
    }

    /// Waits until every connection has ended, and returns the totals.
    ///
    /// # Errors
    /// If the configuration sets no end (`bytes_per_connection`), or a connection broke or stalled.
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

    /// Returns the fixed size of the send buffer in bytes; `None` lets the kernel choose. A write that must be
    /// sent as one GSO frame must fit into the buffer as a whole. Otherwise, a part of the write is sent
    /// separately, with its own PSH.
    pub(crate) fn send_buffer(&self) -> Option<usize> {
        let whole = self.one_write_at_a_time.then_some(2 * self.write_bytes + 64 * 1024);
        self.send_buffer_bytes.or(whole)
    }
}

/// Gives each connection its pattern of bytes, and returns the sending and the receiving ends. The client's
/// port identifies the connection at both ends.
fn split(ends: Vec<Ends>, config: &BulkConfig) -> Result<(Vec<SendingEnd>, Vec<ReceivingEnd>)> {
    let mut sides = (Vec::new(), Vec::new());
    for (index, ends) in ends.into_iter().enumerate() {
        let port = match config.is_download {
            false => ends.sender.local_addr(),
            true => ends.sender.peer_addr(),
        };
        let port = port.as_ref().map(SocketAddr::port).map_err(|error| {
            LabError::Transfer(format!("a connection was lost before it began: {error}"))
        })?;
        let pattern = Pattern::of_port(port);
        sides.0.push(SendingEnd {
            socket: ends.sender,
            pattern,
            sent_bytes: 0,
            limit_bytes: config.bytes_per_connection,
            write_bytes: config.write_bytes,
            wrong_byte_at: config.wrong_byte_at.filter(|_| index == 0),
        });
        let (received_bytes, mismatch) = (0, None);
        let socket = ends.receiver;
        sides.1.push(ReceivingEnd { socket, port, pattern, received_bytes, mismatch });
    }
    Ok(sides)
}

/// Distributes the elements of `all` over at most `shares` parts, in turn; no part is empty.
pub(super) fn deal<T>(all: Vec<T>, shares: usize) -> impl Iterator<Item = Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..shares.min(all.len())).map(|_| Vec::new()).collect();
    let count = dealt.len();
    for (index, item) in all.into_iter().enumerate() {
        dealt[index % count].push(item);
    }
    dealt.into_iter()
}

/// The maximum number of connections. With more, a two-core machine would mainly measure its scheduler.
const MOST_CONNECTIONS: usize = 400;
/// The pause between two checks of the received bytes.
const PAUSE: Duration = Duration::from_millis(1);
