//! Tasks that lend data and read in place: polled by hand on virtual time, in a runtime on virtual time, and
//! in a runtime with hosts on threads.

use std::future::Future;
use std::io::{ErrorKind, IoSlice, Write};
use std::net::Shutdown;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use rxo_frame::SharedBytes;
use rxo_host::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::threads::Running;
use crate::world::{World, drain, pattern, server};

/// A waker that counts its calls.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn all(pieces: &[IoSlice<'_>]) -> usize {
    pieces.iter().map(|piece| piece.len()).sum()
}

/// Lends `text` until everything is written, then shuts down writing.
async fn lend(stream: TcpStream, mut text: SharedBytes) {
    while !text.is_empty() {
        assert!(stream.write_shared_async(&mut text).await.unwrap() > 0);
    }
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Reads in place until the peer closes.
async fn read_all(stream: TcpStream) -> Vec<u8> {
    let mut text = Vec::new();
    let take = |text: &mut Vec<u8>, pieces: &[IoSlice<'_>]| {
        pieces.iter().for_each(|piece| text.extend_from_slice(piece));
        all(pieces)
    };
    while stream.read_in_place_async(|pieces| take(&mut text, pieces)).await.unwrap() > 0 {}
    text
}

#[test]
fn a_task_that_lends_is_woken_when_there_is_room() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let data = pattern(20_000_000);
    let mut text = SharedBytes::from(data.clone());
    let mut waits = 0;
    let mut got = Vec::new();
    while !text.is_empty() {
        let left = text.len();
        match stream.poll_write_shared(&mut context, &mut text) {
            Poll::Ready(written) => assert_eq!(written.unwrap(), left - text.len()),
            Poll::Pending => {
                assert_eq!(text.len(), left, "nothing was taken");
                let before = woken.times();
                while woken.times() == before {
                    got.extend(drain(&accepted).unwrap().0);
                    world.pass(Duration::from_millis(1));
                }
                waits += 1;
            }
        }
    }
    stream.shutdown(Shutdown::Write).unwrap();
    while got.len() < data.len() {
        world.pass(Duration::from_millis(1));
        got.extend(drain(&accepted).unwrap().0);
    }
    assert!(got == data);
    assert!(waits > 1, "there was always room");
}

#[test]
fn a_task_that_reads_in_place_is_woken_by_text_and_by_the_end() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, accepted) = world.connected(&listener);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let never = |_: &[IoSlice<'_>]| panic!("there is nothing");
    assert!(accepted.poll_read_in_place(&mut context, never).is_pending());
    stream.write_all(b"in place").unwrap();
    world.settle();
    assert_eq!(woken.times(), 1);
    let seen = accepted.poll_read_in_place(&mut context, all);
    assert_eq!(seen.map(Result::unwrap), Poll::Ready(8));

    assert!(accepted.poll_read_in_place(&mut context, never).is_pending());
    stream.shutdown(Shutdown::Write).unwrap();
    world.settle();
    assert_eq!(woken.times(), 2);
    let end = accepted.poll_read_in_place(&mut context, never);
    assert_eq!(end.map(Result::unwrap), Poll::Ready(0));
}

#[test]
fn a_cancelled_call_has_taken_nothing() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (mut stream, accepted) = world.connected(&listener);
    let mut context = Context::from_waker(Waker::noop());
    {
        let reading = pin!(accepted.read_in_place_async(|_| panic!("nobody waits any more")));
        assert!(reading.poll(&mut context).is_pending());
    }
    stream.write_all(b"all of it").unwrap();
    world.settle();
    assert_eq!(drain(&accepted).unwrap().0, b"all of it");

    while stream.poll_write_shared(&mut context, &mut vec![0; 8 << 20].into()).is_ready() {}
    let mut text = SharedBytes::from(vec![1; 5_000]);
    {
        let lending = pin!(stream.write_both_async(b"head", &mut text));
        assert!(lending.poll(&mut context).is_pending());
    }
    assert_eq!(text.len(), 5_000);
}

/// The hosts run in a task as well, so that every run takes the same steps.
#[test]
fn two_tasks_and_two_hosts_share_a_thread() {
    let mut world = World::new();
    let listener = world.listen(1);
    let (stream, accepted) = world.connected(&listener);
    let data = pattern(10_000_000);
    let text = SharedBytes::from(data.clone());
    let got = runtime().block_on(async move {
        let lending = tokio::spawn(lend(stream, text));
        let reading = tokio::spawn(read_all(accepted));
        while !reading.is_finished() {
            world.pass(Duration::from_millis(1));
            tokio::task::yield_now().await;
        }
        lending.await.unwrap();
        reading.await.unwrap()
    });
    assert!(got == data);
}

#[test]
fn tasks_wait_for_hosts_on_other_threads() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 4).unwrap();
    let data = pattern(4_000_000);
    let text = SharedBytes::from(data.clone());
    let got = runtime().block_on(async move {
        let reading = tokio::spawn(async move {
            let (accepted, _) = listener.accept_async().await.unwrap();
            read_all(accepted).await
        });
        let stream = client.connect_async(server()).await.unwrap();
        let mut rest = text;
        let written = stream.write_both_async(b"head", &mut rest).await.unwrap();
        assert_eq!(4 + 4_000_000, written + rest.len());
        lend(stream, rest).await;
        reading.await.unwrap()
    });
    assert_eq!(&got[..4], b"head");
    assert!(got[4..] == data);
    running.stop();
}

#[test]
fn a_host_that_stops_wakes_tasks_that_lend_or_read_in_place() {
    let running = Running::start();
    let [client, at_server] = running.handles.clone();
    let listener = at_server.listen(server(), 4).unwrap();
    runtime().block_on(async move {
        let stream = client.connect_async(server()).await.unwrap();
        let (accepted, _) = listener.accept_async().await.unwrap();
        let reading = stream.clone();
        let reading = tokio::spawn(async move { reading.read_in_place_async(all).await });
        let lending = tokio::spawn(async move {
            let mut text = SharedBytes::from(vec![0; 64 << 20]);
            while stream.write_shared_async(&mut text).await.is_ok() {}
            text.len()
        });
        tokio::task::yield_now().await;
        running.stop();
        let kind = reading.await.unwrap().unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset));
        assert!(lending.await.unwrap() > 0, "everything found room");
        drop(accepted);
    });
}
