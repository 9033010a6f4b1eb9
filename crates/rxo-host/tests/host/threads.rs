//! Hosts, applications and blocking calls, each on their own threads.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as SystemInstant};

use rxo_device::DeviceError;
use rxo_frame::Instant;
use rxo_host::{Handle, HostCounters, Waiter};

use crate::world::{MemoryHost, config, hosts, options, pattern, server};

/// A waiter on real time that polls its memory link every 100 µs, because the link has no descriptor.
pub(crate) struct Polling {
    started_at: SystemInstant,
}

impl Polling {
    pub(crate) fn start() -> Self {
        Self { started_at: SystemInstant::now() }
    }
}

impl<I> Waiter<I> for Polling {
    fn now(&mut self) -> Instant {
        Instant::from_nanos(self.started_at.elapsed().as_nanos() as u64)
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }

    fn wait(
        &mut self,
        _source: Option<&I>,
        alarm: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        let nanos = timeout.min(Duration::from_micros(100)).as_nanos() as i64;
        let timeout = rustix::time::Timespec { tv_sec: 0, tv_nsec: nanos };
        let alarm = alarm.as_fd();
        let mut fds = [rustix::event::PollFd::new(&alarm, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&timeout)).unwrap();
        Ok(())
    }
}

pub(crate) struct Running {
    pub(crate) handles: [Handle; 2],
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<HostCounters>>,
}

impl Running {
    pub(crate) fn start() -> Self {
        let (client, server, ..) = hosts(options(), [config("10.0.0.1/24"), config("10.0.0.2/24")]);
        let handles = [client.handle(), server.handle()];
        let stop = Arc::new(AtomicBool::new(false));
        let threads = [client, server].map(|host| spawn(host, Arc::clone(&stop))).into();
        Self { handles, stop, threads }
    }

    pub(crate) fn stop(self) -> Vec<HostCounters> {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn spawn(mut host: MemoryHost, stop: Arc<AtomicBool>) -> JoinHandle<HostCounters> {
    thread::spawn(move || {
        host.run(&mut Polling::start(), &stop, |_, _| {}).unwrap();
        host.counters()
    })
}

#[test]
fn blocking_calls_carry_a_stream_both_ways() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 4).unwrap();
    let data = pattern(4_000_000);
    let echoed = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = vec![0; 20_000];
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => return,
                    read => stream.write_all(&buffer[..read]).unwrap(),
                }
            }
        });
        let stream = client.connect(server()).unwrap();
        let writer = stream.try_clone().unwrap();
        let data = &data;
        scope.spawn(move || {
            (&writer).write_all(data).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut echoed = Vec::new();
        (&stream).read_to_end(&mut echoed).unwrap();
        echoed
    });
    assert!(echoed == data);
    running.stop();
}

#[test]
fn a_read_timeout_passes() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 4).unwrap();
    let mut stream = client.connect(server()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let error = stream.read(&mut [0; 10]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    drop(listener);
    running.stop();
}

#[test]
fn a_host_that_stops_wakes_who_waits() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 4).unwrap();
    let mut stream = client.connect(server()).unwrap();
    let waiting = thread::spawn(move || stream.read(&mut [0; 10]).unwrap_err().kind());
    let first = listener.accept().unwrap();
    let accepting = thread::spawn(move || {
        let kind = listener.accept().unwrap_err().kind();
        drop(first);
        kind
    });
    thread::sleep(Duration::from_millis(5));
    running.stop();
    let kind = waiting.join().unwrap();
    assert!(matches!(kind, ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset), "{kind}");
    assert_eq!(accepting.join().unwrap(), ErrorKind::NotConnected);
    let late = client.connect(server()).unwrap_err();
    assert_eq!(late.kind(), ErrorKind::NotConnected);
}
