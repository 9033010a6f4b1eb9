//! UDP through a tunnel: one flow of equal datagrams, as fast as the tunnel accepts them.
//!
//! The sender learns of arrivals, like the sender of a QUIC connection, and limits the datagrams in flight to
//! a window. Both ends are in this process, so this knowledge needs no packets. Lost datagrams are not sent
//! again.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use rxo_driver::udp::{Outbox, UdpOptions, UdpSink, UdpSocket, UdpSource};
use rxo_driver::wait;
use rxo_testbed::{CpuMeter, Namespace};

/// Payload of a datagram: the size that QUIC uses on an unknown path.
const DATAGRAM_BYTES: usize = 1_200;
/// Most datagrams in flight.
const WINDOW: u64 = 512;
/// Datagrams that the sender writes in one call.
const TRAIN: u64 = 32;
/// Time without arrivals after which datagrams in flight count as lost.
const LOST_AFTER: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_micros(50);

/// A running flow. Dropping this ends it.
pub(super) struct Flow {
    received: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<rxo_testbed::Result<Result<()>>>>,
}

/// Data received in a period, and the processor time for it.
pub(super) struct Taken {
    pub(super) bytes: f64,
    pub(super) seconds: f64,
    pub(super) cpu: rxo_testbed::CpuUse,
}

impl Flow {
    pub(super) fn start(from: &Namespace, to: &Namespace, address: IpAddr) -> Result<Self> {
        let bind = || UdpSocket::bind(SocketAddr::from(([0, 0, 0, 0], 0)), UdpOptions::default());
        let (sender, receiver) = (from.run(bind)??, to.run(bind)??);
        let to_address = SocketAddr::new(address, receiver.local_addr().port());
        let (received, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let mut flow = Self { received, stop, threads: Vec::new() };
        let (source, sink) = (receiver.source(), sender.sink());
        let (received, stop) = (Arc::clone(&flow.received), Arc::clone(&flow.stop));
        flow.threads.push(to.spawn("udp-receive", move || receive(source, &received, &stop))?);
        let (received, stop) = (Arc::clone(&flow.received), Arc::clone(&flow.stop));
        let work = move || send(sink, to_address, &received, &stop);
        flow.threads.push(from.spawn("udp-send", work)?);
        Ok(flow)
    }

    /// Measures the flow for `duration`.
    pub(super) fn measure(&self, duration: Duration, meter: &CpuMeter) -> Result<Taken> {
        let read = || self.received.load(Ordering::Relaxed);
        let (cpu, datagrams, begin) = (meter.read()?, read(), Instant::now());
        thread::sleep(duration);
        let (cpu, datagrams) = (meter.read()?.since(&cpu), read() - datagrams);
        let bytes = (datagrams * DATAGRAM_BYTES as u64) as f64;
        Ok(Taken { bytes, seconds: begin.elapsed().as_secs_f64(), cpu })
    }

    /// Ends the flow.
    pub(super) fn stop(mut self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| anyhow!("a thread of the UDP flow panicked"))???;
        }
        Ok(())
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn receive(mut source: UdpSource, received: &AtomicU64, stop: &AtomicBool) -> Result<()> {
    while !stop.load(Ordering::Relaxed) {
        wait::wait_readable(&[source.as_fd()], Some(LOST_AFTER))?;
        source.receive(|train| {
            let datagrams = train.datagrams().len() as u64;
            received.fetch_add(datagrams, Ordering::Relaxed);
        })?;
    }
    Ok(())
}

fn send(mut sink: UdpSink, to: SocketAddr, received: &AtomicU64, stop: &AtomicBool) -> Result<()> {
    let mut outbox = Outbox::new(TRAIN as usize * DATAGRAM_BYTES);
    let (mut sent, mut lost, mut last) = (0_u64, 0_u64, (0, Instant::now()));
    while !stop.load(Ordering::Relaxed) {
        let arrived = received.load(Ordering::Relaxed);
        if arrived != last.0 {
            last = (arrived, Instant::now());
        }
        if sent.saturating_sub(arrived + lost) + TRAIN > WINDOW {
            if last.1.elapsed() > LOST_AFTER {
                lost = sent - arrived;
                last.1 = Instant::now();
            }
            thread::sleep(PAUSE);
            continue;
        }
        while let Some(room) = outbox.room(DATAGRAM_BYTES) {
            room[..8].copy_from_slice(&sent.to_be_bytes());
            outbox.push(DATAGRAM_BYTES, to);
            sent += 1;
        }
        while !sink.send(&mut outbox) && !stop.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
    }
    Ok(())
}
