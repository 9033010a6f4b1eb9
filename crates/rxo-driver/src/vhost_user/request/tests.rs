//! Tests of requests: each is converted to bytes and back, and each kind of invalid message is refused.

use std::fs::File;

use super::*;
use crate::vhost_user::{Assembler, HEADER_BYTES, Header, InflightArea, LogArea, Region};

fn region(n: u64) -> Region {
    Region { guest_address: n << 20, bytes: 1 << 20, user_address: n << 30, file_offset: n << 12 }
}

fn file() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn shared(n: u64) -> SharedRegion<OwnedFd> {
    SharedRegion { region: region(n), file: file() }
}

const SHAPE: InflightShape = InflightShape { rings: 2, ring_size: 256 };

fn every_request() -> Vec<Request> {
    let of = RingNumber { ring: 3, number: 256 };
    let with = |file| RingDescriptor { ring: 5, file };
    let addresses =
        RingAddresses { ring: 1, flags: 0, descriptors: 1, device: 2, driver: 3, log: 4 };
    vec![
        Request::GetFeatures,
        Request::SetFeatures(u64::MAX),
        Request::SetOwner,
        Request::ResetOwner,
        Request::SetMemTable(vec![]),
        Request::SetMemTable((0..8).map(shared).collect()),
        Request::SetLogBase(LogArea { bytes: 1 << 30, file_offset: 5, file: file() }),
        Request::SetLogFd(file()),
        Request::SetRingSize(of),
        Request::SetRingAddresses(addresses),
        Request::SetRingBase(of),
        Request::GetRingBase(7),
        Request::SetRingKick(with(Some(file()))),
        Request::SetRingCall(with(None)),
        Request::SetRingError(with(Some(file()))),
        Request::GetProtocolFeatures,
        Request::SetProtocolFeatures(9),
        Request::GetQueueNumber,
        Request::SetRingEnable(of),
        Request::SendRarp([1, 2, 3, 4, 5, 6]),
        Request::SetMtu(9_000),
        Request::GetInflight(SHAPE),
        Request::SetInflight(InflightArea { shape: SHAPE, bytes: 1, file_offset: 7, file: file() }),
        Request::ResetDevice,
        Request::GetMaxMemSlots,
        Request::AddMemRegion(shared(1)),
        Request::RemoveMemRegion(region(1)),
        Request::SetStatus(15),
        Request::GetStatus,
    ]
}

fn message(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Message {
    let header = Header::read(bytes.first_chunk().unwrap()).unwrap();
    Message { header, payload: bytes[HEADER_BYTES..].to_vec(), descriptors }
}

/// Formats a request without the numbers of its descriptors, which differ after each copy.
fn shown(request: &Request) -> String {
    let text = format!("{request:?}");
    text.split("OwnedFd").map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect()
}

#[test]
fn every_request_survives_the_way_through_bytes() {
    for request in every_request() {
        let bytes = request.to_bytes(true);
        let files = request.files();
        let files = files.iter().map(|fd| fd.try_clone_to_owned().unwrap());
        let mut assembler = Assembler::default();
        let (header, payload) = bytes.split_at(HEADER_BYTES);
        let first = assembler.push(header, files).unwrap();
        let message = first.or_else(|| assembler.push(payload, []).unwrap()).unwrap();
        assert!(message.header.needs_reply);
        let read = Request::read(message).unwrap();
        assert_eq!(shown(&read), shown(&request));
        assert_eq!(read.files().len(), request.files().len());
    }
}

#[test]
fn a_byte_more_or_less_is_refused() {
    for request in every_request() {
        let bytes = request.to_bytes(false);
        let files = || request.files().iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
        let longer = message(&[&bytes[..], &[0]].concat(), files());
        assert_eq!(Request::read(longer).unwrap_err(), Wrong::Size, "{request:?}");
        if bytes.len() > HEADER_BYTES {
            let shorter = message(&bytes[..bytes.len() - 1], files());
            assert_eq!(Request::read(shorter).unwrap_err(), Wrong::Size, "{request:?}");
        }
    }
}

#[test]
fn a_descriptor_more_or_less_is_refused() {
    for request in every_request() {
        let bytes = request.to_bytes(false);
        let count = request.files().len();
        let with = |count: usize| message(&bytes, (0..count).map(|_| file()).collect());
        if count > 0 {
            assert_eq!(Request::read(with(count - 1)).unwrap_err(), Wrong::Descriptors);
        }
        // `RemoveMemRegion` may have the file of the region.
        let more = count + 1 + usize::from(matches!(request, Request::RemoveMemRegion(_)));
        assert_eq!(Request::read(with(more)).unwrap_err(), Wrong::Descriptors, "{request:?}");
    }
}

#[test]
fn impossible_regions_are_refused() {
    let beyond = Region { guest_address: u64::MAX, ..region(1) };
    for wrong in [Region { bytes: 0, ..region(1) }, beyond] {
        let bytes = Request::<OwnedFd>::RemoveMemRegion(wrong).to_bytes(false);
        assert_eq!(Request::read(message(&bytes, vec![])).unwrap_err(), Wrong::Region(wrong));
    }
    let nine = Request::SetMemTable((0..9).map(shared).collect());
    let message = message(&nine.to_bytes(false), (0..8).map(|_| file()).collect());
    assert_eq!(Request::read(message).unwrap_err(), Wrong::TooManyRegions(8));
}

/// Areas with impossible lengths are refused: a log or a record with a wrong length would be mapped.
#[test]
fn impossible_areas_are_refused() {
    let (log, record) = (LogArea::<OwnedFd>::MOST_BYTES, InflightShape::MOST_BYTES);
    let rows = [(0, 0), (log + 1, 0), (1, u64::MAX), (log, u64::MAX - log + 1), (u64::MAX, 1)];
    for (bytes, file_offset) in rows {
        let log = Request::SetLogBase(LogArea { bytes, file_offset, file: file() });
        let message = message(&log.to_bytes(false), vec![file()]);
        let wrong = Wrong::Area { bytes, offset: file_offset };
        assert_eq!(Request::read(message).unwrap_err(), wrong);
    }
    let inflight = |bytes, ring_size| {
        let shape = InflightShape { rings: 2, ring_size };
        let area = InflightArea { shape, bytes, file_offset: 0, file: file() };
        let message = message(&Request::SetInflight(area).to_bytes(false), vec![file()]);
        Request::read(message).map(|_| ())
    };
    assert_eq!(inflight(record, 32_768), Ok(()));
    assert_eq!(inflight(record + 1, 1), Err(Wrong::Area { bytes: record + 1, offset: 0 }));
    assert_eq!(inflight(1, 0), Err(Wrong::RingSize(0)));
    assert_eq!(inflight(1, 32_769), Err(Wrong::RingSize(32_769)));
}

#[test]
fn unknown_requests_and_replies_are_refused() {
    let header = Header { request: 99, is_reply: false, needs_reply: false, payload_bytes: 0 };
    let unknown = message(&header.to_bytes(), vec![]);
    assert_eq!(Request::read(unknown).unwrap_err(), Wrong::Request(99));
    let reply = message(&Header { request: 1, is_reply: true, ..header }.to_bytes(), vec![]);
    assert_eq!(Request::read(reply).unwrap_err(), Wrong::Direction);
}
