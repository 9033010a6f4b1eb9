//! Target `vhost`: any messages of a vhost-user front end, for the device side's state machine.
//!
//! A byte before each message gives its number of descriptors.

use std::fs::File;
use std::os::fd::OwnedFd;

use rxo_driver::vhost_user::features::{DEVICE_OFFERS, LOG_ALL};
use rxo_driver::vhost_user::{
    Assembler, HEADER_BYTES, Header, InflightShape, LogArea, Reply, Session,
};

/// Number of the device's rings.
const RINGS: usize = 4;

/// Largest number of descriptors of a message, plus one: more than is allowed.
const MOST_DESCRIPTORS: u8 = 10;

/// Feeds `data` as a stream of messages, and checks the session's state after each.
///
/// # Panics
/// If a property does not hold.
pub fn run(data: &[u8]) {
    crate::operations::count(messages(data));
}

/// Runs the messages. Returns their number.
fn messages(data: &[u8]) -> u64 {
    let mut count = 0;
    let mut session = Session::new(RINGS);
    let mut assembler = Assembler::default();
    let mut rest = data;
    while let Some((&descriptors, bytes)) = rest.split_first() {
        rest = bytes;
        let mut files = (0..descriptors % MOST_DESCRIPTORS).map(|_| file()).collect::<Vec<_>>();
        let message = loop {
            let Ok(wanted) = assembler.wanted() else { return count };
            assert!(wanted > 0);
            let (now, later) = rest.split_at(wanted.min(rest.len()));
            rest = later;
            match assembler.push(now, files.drain(..)) {
                Ok(Some(message)) => break message,
                Ok(None) if now.is_empty() => return count,
                Ok(None) => {}
                Err(_) => return count,
            }
        };
        count += 1;
        let request = message.header.request;
        let Ok(done) = session.take(message) else { return count };
        if let Some(reply) = done.reply {
            check_reply(request, reply);
        }
        check(&session);
    }
    count
}

fn check_reply(request: u32, reply: Reply) {
    let bytes = reply.to_bytes();
    let (header, payload) = bytes.split_first_chunk::<HEADER_BYTES>().expect("a header");
    let header = Header::read(header).expect("a valid header");
    assert_eq!(Reply::read(request, header, payload), Ok(reply));
}

fn check(session: &Session) {
    assert_eq!(session.features() & !DEVICE_OFFERS, 0);
    let regions = session.regions();
    for (n, shared) in regions.iter().enumerate() {
        let region = shared.region;
        assert!(region.bytes > 0);
        for start in [region.guest_address, region.user_address, region.file_offset] {
            assert!(start.checked_add(region.bytes).is_some(), "{region:?}");
        }
        // Naive definition of an overlap: one region begins inside the other.
        let is_inside = |at: u64, start: u64, bytes: u64| at >= start && at - start < bytes;
        for other in regions[..n].iter().map(|shared| shared.region) {
            let pairs = [
                (region.guest_address, other.guest_address),
                (region.user_address, other.user_address),
            ];
            for (a, b) in pairs {
                assert!(!is_inside(a, b, other.bytes) && !is_inside(b, a, region.bytes));
            }
        }
    }
    for ring in (0..RINGS).filter_map(|n| session.usable(n)) {
        assert!(ring.size > 0 && ring.addresses.is_some());
    }
    assert!(session.usable(RINGS).is_none());
    check_areas(session);
}

/// Checks what would be mapped beside the memory, and where it would be accessed.
fn check_areas(session: &Session) {
    if let Some(log) = session.log() {
        assert!((1..=LogArea::<OwnedFd>::MOST_BYTES).contains(&log.bytes));
        assert!(
            log.file_offset.checked_add(log.bytes).is_some() && session.features() & LOG_ALL != 0
        );
    }
    if let Some(area) = session.inflight() {
        assert!((1..=InflightShape::MOST_BYTES).contains(&area.bytes));
        assert!(area.file_offset.checked_add(area.bytes).is_some());
        assert!(usize::from(area.shape.rings) <= RINGS && area.shape.ring_size > 0);
    }
}

fn file() -> OwnedFd {
    File::open("/dev/null").expect("every system has it").into()
}
