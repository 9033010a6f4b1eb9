//! Tests of front ends that connect, disconnect and connect again; some cannot be accepted.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::{Stage, TIMEOUT, region, start};
use crate::vhost_user::features::{PROTOCOL_FEATURES, VERSION_1};
use crate::vhost_user::{Channel, Request, RingNumber, SharedRegion};

#[test]
fn bytes_that_are_no_messages_end_the_connection() {
    let mut stage = Stage::new("bytes");
    for bytes in [&[0xff; 12][..], &[0; 12], &[1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0, 0]] {
        let mut front = UnixStream::connect(stage.folder.join("s")).unwrap();
        front.write_all(bytes).unwrap();
        let said = stage.turn();
        assert!(said.last().unwrap().contains("closed the connection"), "{said:?}");
    }
    // A front end that disconnects before its guest has started causes no notice.
    drop(stage.connect());
    assert!(stage.turn().is_empty());
}

#[test]
fn there_is_one_front_end_at_a_time() {
    let mut stage = Stage::new("one");
    let mut first = stage.connect();
    first.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    stage.turn();
    let mut second = stage.connect();
    assert!(stage.turn().last().unwrap().contains("refused a second front end"));
    assert!(second.receive().is_err());
    let reply = first.receive().unwrap().unwrap();
    assert!(reply.header.is_reply);
}

#[test]
fn each_front_end_that_goes_is_counted() {
    let mut stage = Stage::new("gone");
    for gone in 0..3 {
        let mut front = stage.connect();
        front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
        stage.turn();
        assert_eq!(stage.device.source.peers_gone(), gone);
        drop(front);
        stage.turn();
        assert_eq!(stage.device.source.peers_gone(), gone + 1);
    }
}

/// A front end that ended before it was accepted must not keep out the next one.
#[test]
fn a_front_end_that_has_gone_makes_way() {
    let mut stage = Stage::new("dead");
    for _ in 0..3 {
        drop(stage.connect());
        let mut second = stage.connect();
        second.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
        stage.turn();
        assert!(second.receive().unwrap().unwrap().header.is_reply);
        drop(second);
    }
}

/// A front end that cannot be accepted stays in the queue: the device reports that once, sleeps, and accepts
/// it later. The test runs in a process of its own, because it uses up all descriptors.
#[test]
fn without_descriptors_a_front_end_waits() {
    const IS_CHILD: &str = "RXO_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(IS_CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "vhost::tests::front_ends::without_descriptors_a_front_end_waits"]);
        let ended = child.env(IS_CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && said.contains("1 passed"), "{ended:?}");
        return;
    }
    let mut stage = Stage::new("descriptors");
    let mut front = stage.connect();
    front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    limit_descriptors(64);
    let mut files = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        files.push(file);
    }
    let said = stage.turn();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("cannot accept a front end: ") && said[0].contains("ulimit -n"));
    let mut list = crate::wait::WaitList::new();
    list.add(Some(&stage.device.source), crate::wait::Interest::Readable);
    assert!(list.wait(Some(std::time::Duration::ZERO)).unwrap().is_none(), "it can sleep");
    assert!(stage.turn().is_empty(), "said once");
    drop(files);
    stage.turn();
    assert!(front.receive().unwrap().unwrap().header.is_reply);
    // A different obstacle is reported as well.
    drop(front);
    let (blocking, _peer) = socket_that_blocks_its_closing();
    let mut said = give_files(&mut stage, vec![blocking]);
    for _ in 0..2 {
        let files = (0..8).map(|_| std::fs::File::open("/dev/null").unwrap().into());
        said.extend(give_files(&mut stage, files.collect()));
    }
    let refusals = said.iter().filter(|line| line.contains("cannot accept a front end: files of"));
    assert_eq!(refusals.count(), 1, "{said:?}");
}

/// Connects a front end that sends these files, which the device refuses, and disconnects. Returns the
/// device's notices.
fn give_files(stage: &mut Stage, files: Vec<OwnedFd>) -> Vec<String> {
    let mut front = stage.connect();
    let shared = files.into_iter().map(|file| SharedRegion { region: region(), file });
    front.request(&Request::SetMemTable(shared.collect()), false).unwrap();
    let mut said = stage.turn();
    drop(front);
    said.extend(stage.turn());
    said
}

/// A front end may repeatedly send files whose closing blocks. They must not use up the descriptors.
#[test]
fn files_that_cannot_be_closed_use_up_no_descriptors() {
    let mut stage = Stage::new("unclosed");
    let marker = stage.folder.join("marker");
    std::fs::write(&marker, "").unwrap();
    let open = |_| std::fs::File::open(&marker).unwrap().into();
    let is_open = |entry: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_link(entry.unwrap().path()).is_ok_and(|target| target == marker)
    };
    let count =
        || std::fs::read_dir("/proc/self/fd").unwrap().map(is_open).filter(|&is| is).count();
    let (blocking, peer) = socket_that_blocks_its_closing();
    give_files(&mut stage, vec![blocking]);
    for _ in 0..20 {
        give_files(&mut stage, (0..8).map(open).collect());
        assert!(count() < 16, "{} are open", count());
    }
    drop(peer);
    // This front end stays connected: repeated connections would fill the listener's queue and block the
    // test.
    let mut front = stage.connect();
    front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    let begun = std::time::Instant::now();
    while front.receive().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT, "no front end is accepted any more");
        std::thread::sleep(Duration::from_millis(1));
        stage.turn();
    }
}

/// A file of one front end blocks the thread that closes it; the files of another are closed nevertheless.
#[test]
fn files_that_cannot_be_closed_delay_those_of_no_other_guest() {
    let (mut hostile, mut other) = (Stage::new("closes-not"), Stage::new("closes"));
    let (blocking, peer) = socket_that_blocks_its_closing();
    give_files(&mut hostile, vec![blocking]);
    for _ in 0..8 {
        let files = (0..8).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect();
        give_files(&mut other, files);
    }
    // One that is accepted shows that the files before it are closed.
    let mut front = other.connect();
    front.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    let begun = std::time::Instant::now();
    while front.receive().unwrap().is_none() {
        assert!(begun.elapsed() < TIMEOUT, "files of another guest are in the way");
        std::thread::sleep(Duration::from_millis(1));
        other.turn();
    }
    drop(peer);
}

/// Files come with messages that the device never reads: after an invalid message, from a second front end,
/// and from one that still waits when the device is closed. If the device closed them itself, it would wait
/// for an hour.
#[test]
fn unread_files_that_cannot_be_closed_block_nobody() {
    let mut stage = Stage::new("unread");
    let mut peers = Vec::new();
    let mut send_file = |front: &mut Channel| {
        let (file, peer) = socket_that_blocks_its_closing();
        peers.push(peer);
        let shared = SharedRegion { region: region(), file };
        front.request(&Request::SetMemTable(vec![shared]), false).unwrap();
    };
    let mut invalid = stage.connect();
    invalid.request(&Request::<OwnedFd>::GetRingBase(99), false).unwrap();
    send_file(&mut invalid);
    assert!(stage.turn().last().unwrap().contains("there is no ring 99"));
    let mut first = stage.connect();
    first.request(&Request::<OwnedFd>::GetFeatures, false).unwrap();
    stage.turn();
    let mut second = stage.connect();
    send_file(&mut second);
    assert!(stage.turn().last().unwrap().contains("refused a second front end"));
    let mut waiting = stage.connect();
    send_file(&mut waiting);
    drop(stage);
    drop(peers);
}

/// Creates a socket whose closing blocks, because its peer does not read the remaining bytes. Returns it with
/// the peer.
#[allow(unsafe_code, reason = "the standard library does not set the time to linger")]
fn socket_that_blocks_its_closing() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    let linger = libc::linger { l_onoff: 1, l_linger: 3_600 };
    let (fd, length) = (socket.as_raw_fd(), size_of_val(&linger) as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
    // SAFETY: the value is live and of this length.
    let done = unsafe { libc::setsockopt(fd, level, option, (&raw const linger).cast(), length) };
    assert_eq!(done, 0);
    (socket.into(), peer)
}

#[allow(unsafe_code, reason = "the limit is set for a process that runs one test")]
fn limit_descriptors(most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is live; the kernel copies it.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

/// A guest that is switched off and on again uses the same connection.
#[test]
fn a_guest_may_start_again() {
    let mut stage = Stage::new("reboot");
    let mut front = stage.connect();
    let protocol = crate::vhost_user::features::DEVICE_OFFERS_PROTOCOL;
    front.request(&Request::<OwnedFd>::SetProtocolFeatures(protocol), false).unwrap();
    for _ in 0..3 {
        start().iter().for_each(|request| front.request(request, false).unwrap());
        let features = Request::<OwnedFd>::SetFeatures(VERSION_1 | PROTOCOL_FEATURES);
        front.request(&features, false).unwrap();
        for ring in 0..2 {
            let enable = Request::<OwnedFd>::SetRingEnable(RingNumber { ring, number: 1 });
            front.request(&enable, false).unwrap();
        }
        let said = stage.turn();
        assert!(said.iter().all(|line| line.ends_with("a guest has started")), "{said:?}");
        for ring in 0..2 {
            front.request(&Request::<OwnedFd>::GetRingBase(ring), false).unwrap();
        }
        stage.turn();
        for _ in 0..2 {
            assert!(front.receive().unwrap().is_some(), "a base for each ring");
        }
    }
}
