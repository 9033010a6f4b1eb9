//! An echo server with tokio tasks on rxo's own TCP: two hosts and a link in memory.
//!
//! The client writes until nothing more fits, and only then begins to read. Until then the server's tasks
//! wait without blocking a thread. A program of your own must enable the feature `tokio` of `rxo` or
//! `rxo-host`.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as SystemInstant};

use rxo::device::{DeviceError, MemoryLink, MemoryOptions, MemorySink, MemorySource};
use rxo::frame::{Instant, LinkKind};
use rxo::host::{Handle, Host, HostConfig, TcpListener, Waiter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let Echoed { text, written_before_reading } = run(&vec![7; DATA_BYTES])?;
    println!("{written_before_reading} bytes were under way when the client began to read");
    println!("{} bytes came back", text.len());
    Ok(())
}

/// The number of bytes that the client sends, more than all buffers on the path can take.
const DATA_BYTES: usize = 32 << 20;

/// The data that the client received, and the number of bytes that it had written before it began to read.
struct Echoed {
    text: Vec<u8>,
    written_before_reading: usize,
}

fn run(data: &[u8]) -> Outcome<Echoed> {
    let hosts = Hosts::start()?;
    let [client, server] = hosts.handles.clone();
    let listener = server.listen(ADDRESS, 16)?;
    let data = data.to_vec();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async {
        let serving = tokio::spawn(serve(listener));
        let echoed = visit(client, data).await;
        serving.abort();
        echoed
    })
}

/// Echoes the data of each client until the host stops.
async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (mut stream, _peer) = listener.accept_async().await?;
        tokio::spawn(async move {
            let mut answer = stream.clone();
            tokio::io::copy(&mut stream, &mut answer).await?;
            answer.shutdown(Shutdown::Write)
        });
    }
}

async fn visit(client: Handle, data: Vec<u8>) -> Outcome<Echoed> {
    let mut stream = client.connect_async(ADDRESS).await?;
    let (mut writer, written) = (stream.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&written);
    let writing = tokio::spawn(async move {
        for chunk in data.chunks(16 << 10) {
            writer.write_all(chunk).await?;
            count.fetch_add(chunk.len(), Ordering::Relaxed);
        }
        writer.shutdown(Shutdown::Write)
    });
    let written_before_reading = until_stuck(&written).await;
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await?;
    writing.await??;
    Ok(Echoed { text, written_before_reading })
}

/// Waits until the number of written bytes no longer grows. Returns that number.
async fn until_stuck(written: &AtomicUsize) -> usize {
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = written.load(Ordering::Relaxed);
        if now > 0 && now == before {
            return now;
        }
        before = now;
    }
}

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 7);

/// Two hosts, each on its own thread. Dropping the value stops both.
struct Hosts {
    handles: [Handle; 2],
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hosts {
    fn start() -> Outcome<Self> {
        let options = MemoryOptions { link: LinkKind::RawIp, ..MemoryOptions::default() };
        let (there, back) = (MemoryLink::new(options), MemoryLink::new(options));
        let host = |address: &str, from: &MemoryLink, to: &MemoryLink| -> Outcome<_> {
            let config = HostConfig::new(vec![address.parse()?], [1, 2]);
            Ok(Host::new(from.source(), to.sink(), config)?)
        };
        let hosts = [host("10.0.0.1/24", &back, &there)?, host("10.0.0.2/24", &there, &back)?];
        let handles = [hosts[0].handle(), hosts[1].handle()];
        let stop = Arc::new(AtomicBool::new(false));
        let threads = hosts.map(|host| turn_until(Arc::clone(&stop), host)).into();
        Ok(Self { handles, stop, threads })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn turn_until(stop: Arc<AtomicBool>, mut host: Host<MemorySource, MemorySink>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut waiter = Sleeping { started_at: SystemInstant::now() };
        if let Err(error) = host.run(&mut waiter, &stop, |_, _| {}) {
            eprintln!("{error}");
        }
    })
}

/// A waiter on real time that sleeps for short times, because a link in memory has no descriptor to wait for.
struct Sleeping {
    started_at: SystemInstant,
}

impl<I> Waiter<I> for Sleeping {
    fn now(&mut self) -> Instant {
        Instant::from_nanos(self.started_at.elapsed().as_nanos() as u64)
    }

    fn pause(&mut self, time: Duration) {
        thread::sleep(time);
    }

    fn wait(
        &mut self,
        _source: Option<&I>,
        _alarm: BorrowedFd<'_>,
        timeout: Duration,
    ) -> Result<(), DeviceError> {
        thread::sleep(timeout.min(Duration::from_micros(100)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_comes_back_though_the_client_pauses() {
        let data: Vec<u8> = (0..DATA_BYTES as u32).map(|at| ((at * 31) >> 5) as u8).collect();
        let Echoed { text, written_before_reading } = run(&data).unwrap();
        assert!(text == data);
        assert!(written_before_reading < data.len(), "nobody had to wait");
    }

    #[test]
    fn a_host_that_stops_wakes_the_tasks_that_wait() {
        let hosts = Hosts::start().unwrap();
        let [client, server] = hosts.handles.clone();
        let listener = server.listen(ADDRESS, 16).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async move {
            let mut stream = client.connect_async(ADDRESS).await.unwrap();
            let (accepted, _) = listener.accept_async().await.unwrap();
            let reading = tokio::spawn(async move { stream.read(&mut [0; 10]).await });
            let accepting = tokio::spawn(async move { listener.accept_async().await.map(|_| ()) });
            tokio::task::yield_now().await;
            drop(hosts);
            assert!(reading.await.unwrap().is_err());
            assert_eq!(accepting.await.unwrap().unwrap_err().kind(), io::ErrorKind::NotConnected);
            drop(accepted);
        });
    }
}
