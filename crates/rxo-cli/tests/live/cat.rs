//! `rxo cat` with plain Linux sockets at the other end.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rxo_testbed::Lab;

use crate::Test;
use crate::endpoint::{
    self, AT_HOST, AT_PEER, HOST, connect, ends_incomplete, pattern, read_all, serve,
};
use crate::process::{run, signal, spawn};

pub(crate) const TESTS: &[Test] = &[
    ("cat_pipes_both_ways_and_closes_half", connects),
    ("cat_waits_for_a_peer", listens),
    ("cat_stands_on_a_tap_and_a_tun_over_ipv4_and_ipv6", on_each_device),
    ("cat_says_why_it_cannot_connect", is_refused),
    ("cat_says_when_the_peer_did_not_get_all", is_cut_off),
    ("cat_waits_for_a_peer_that_pauses", waits_for_a_pause),
    ("interrupted_before_the_peer_had_all_cat_says_so", is_interrupted),
];

/// One direction of a connection may be closed while the other continues, in either order.
fn connects() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 1, |stream| {
        let all = read_all(&stream);
        // The other direction is still open.
        (&stream).write_all(&pattern(1_500_000)).unwrap();
        all
    });
    let mut cat = spawn(lab.host(), &format!("cat {HOST} {AT_PEER} --fast-path on"));
    cat.stdin.take().unwrap().write_all(&pattern(3_000_000)).unwrap();
    let output = cat.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("rxo: fast path (pure-ack): "), "{said}");
    assert!(output.stdout == pattern(1_500_000), "{} bytes came", output.stdout.len());
    let sent = server.join().unwrap().remove(0);
    assert!(sent == pattern(3_000_000), "{} bytes arrived", sent.len());
}

fn listens() {
    let lab = Lab::through().unwrap();
    let mut cat = spawn(lab.host(), &format!("cat {HOST} --listen 7000"));
    let stream = connect(lab.peer(), AT_HOST);
    (&stream).write_all(&pattern(100_000)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // The peer has closed its direction; later input still arrives.
    let mut input = cat.stdin.take().unwrap();
    input.write_all(b"the last word").unwrap();
    drop(input);
    assert_eq!(read_all(&stream), b"the last word");
    let output = cat.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == pattern(100_000));
}

fn on_each_device() {
    endpoint::on_each_device("cat", |cat, namespace, listening| {
        let stream = connect(namespace, listening);
        (&stream).write_all(&pattern(300_000)).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let output = cat.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{listening}: {said}");
        assert!(output.stdout == pattern(300_000), "{listening}: {} bytes", output.stdout.len());
        assert_eq!(read_all(&stream), b"");
    });
}

fn is_refused() {
    let lab = Lab::through().unwrap();
    let output = run(lab.host(), &format!("cat {HOST} {AT_PEER}"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains(AT_PEER) && said.contains("refused"), "{said}");
}

/// A peer shuts down its direction, reads a little, and closes, while rxo only waits for the ACK of its sent
/// data.
fn is_cut_off() {
    for ends_first in [true, false] {
        let lab = Lab::through().unwrap();
        let server = serve(&lab, 1, move |mut stream| {
            if ends_first {
                stream.shutdown(Shutdown::Write).unwrap();
            }
            stream.read_exact(&mut [0; 13_033]).unwrap();
            // By now all of standard input is in the connection's buffer.
            thread::sleep(Duration::from_millis(300));
        });
        let mut cat = spawn(lab.host(), &format!("cat {HOST} {AT_PEER}"));
        // After the connection is gone, the input is not read to its end.
        _ = cat.stdin.take().unwrap().write_all(&pattern(3_000_000));
        let said = ends_incomplete(&cat.wait_with_output().unwrap());
        server.join().unwrap();
        assert!(said.contains("the peer d"), "{said}");
    }
}

fn waits_for_a_pause() {
    let lab = Lab::through().unwrap();
    let server = serve(&lab, 1, |stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        thread::sleep(Duration::from_secs(12));
        read_all(&stream)
    });
    let mut cat = spawn(lab.host(), &format!("cat {HOST} {AT_PEER}"));
    cat.stdin.take().unwrap().write_all(&pattern(3_000_000)).unwrap();
    let output = cat.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let all = server.join().unwrap().remove(0);
    assert!(all == pattern(3_000_000), "{} bytes arrived", all.len());
}

fn is_interrupted() {
    let lab = Lab::through().unwrap();
    let (stop, stopped) = mpsc::channel::<()>();
    let listener =
        lab.peer().run(|| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7000)).unwrap()).unwrap();
    let (connect, connected) = mpsc::channel();
    let server = thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        stream.shutdown(Shutdown::Write).unwrap();
        connect.send(()).unwrap();
        // The peer neither reads nor closes.
        _ = stopped.recv();
    });
    let mut cat = spawn(lab.host(), &format!("cat {HOST} {AT_PEER}"));
    let mut input = cat.stdin.take().unwrap();
    let writer = thread::spawn(move || input.write_all(&pattern(3_000_000)));
    connected.recv().unwrap();
    thread::sleep(Duration::from_millis(300));
    signal("INT", cat.id());
    let said = ends_incomplete(&cat.wait_with_output().unwrap());
    assert!(said.contains("interrupted before"), "{said}");
    drop(stop);
    server.join().unwrap();
    // The pipe's reader is gone.
    _ = writer.join().unwrap();
}
