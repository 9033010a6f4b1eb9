//! Tests of sessions: sequences of requests, and requests that must end the connection.

use std::fs::File;

use super::*;
use crate::vhost_user::features::{CSUM, GUEST_CSUM, MQ, VERSION_1};
use crate::vhost_user::{HEADER_BYTES, Header, Region};

fn file() -> OwnedFd {
    File::open("/dev/null").unwrap().into()
}

fn told(session: &mut Session, request: &Request) -> Result<Done, Wrong> {
    let bytes = request.to_bytes(true);
    let header = Header::read(bytes.first_chunk().unwrap()).unwrap();
    let descriptors = request.files().iter().map(|fd| fd.try_clone_to_owned().unwrap()).collect();
    session.take(Message { header, payload: bytes[HEADER_BYTES..].to_vec(), descriptors })
}

fn region(guest_address: u64, bytes: u64) -> SharedRegion<OwnedFd> {
    let user_address = guest_address + (1 << 40);
    let region = Region { guest_address, bytes, user_address, file_offset: 0 };
    SharedRegion { region, file: file() }
}

const fn of(ring: u32, number: u32) -> RingNumber {
    RingNumber { ring, number }
}

const fn at(ring: u32) -> RingAddresses {
    RingAddresses { ring, flags: 0, descriptors: 0, device: 0, driver: 0, log: 0 }
}

fn kicked(ring: u32) -> Request {
    Request::SetRingKick(RingDescriptor { ring, file: Some(file()) })
}

fn log() -> LogArea<OwnedFd> {
    LogArea { bytes: 8, file_offset: 4, file: file() }
}

fn record() -> Request {
    let shape = InflightShape { rings: 4, ring_size: 8 };
    Request::SetInflight(InflightArea { shape, bytes: 640, file_offset: 0, file: file() })
}

const AGREED: u64 = VERSION_1 | PROTOCOL_FEATURES | CSUM | GUEST_CSUM;

fn agreed() -> Session {
    let mut session = Session::new(4);
    told(&mut session, &Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL)).unwrap();
    session
}

/// A ring is usable in whatever order it is set up: QEMU, for example, enables rings before it sets features.
#[test]
fn a_ring_is_usable_in_whatever_order_it_is_told() {
    let steps = || {
        vec![
            Request::SetRingEnable(of(1, 1)),
            Request::SetFeatures(AGREED),
            Request::SetMemTable(vec![region(0, 1 << 20)]),
            Request::SetRingSize(of(1, 256)),
            Request::SetRingBase(of(1, 7)),
            Request::SetRingAddresses(at(1)),
            kicked(1),
            Request::SetRingCall(RingDescriptor { ring: 1, file: Some(file()) }),
        ]
    };
    for first in 0..steps().len() {
        let mut order = steps();
        order.rotate_left(first);
        let mut session = agreed();
        for step in &order {
            told(&mut session, step).unwrap();
        }
        let ring = session.usable(1).unwrap();
        assert_eq!((ring.size, ring.base, ring.kick().is_some()), (256, 7, true));
        assert!(session.usable(0).is_none());
    }
}

#[test]
fn without_protocol_features_rings_need_not_be_enabled() {
    let mut session = Session::new(2);
    let steps = [
        Request::SetFeatures(VERSION_1),
        Request::SetRingSize(of(0, 8)),
        Request::SetRingAddresses(at(0)),
        kicked(0),
    ];
    steps.iter().for_each(|step| _ = told(&mut session, step).unwrap());
    assert!(session.usable(0).is_some());
    let done = told(&mut session, &Request::SetOwner).unwrap();
    assert_eq!(done.reply, None, "a reply that was not agreed on would be taken for the next");
}

#[test]
fn a_ring_that_is_asked_for_its_base_stops_and_goes_on_there() {
    let mut session = agreed();
    let steps = [
        Request::SetFeatures(AGREED),
        Request::SetRingEnable(of(0, 1)),
        Request::SetRingSize(of(0, 8)),
        Request::SetRingAddresses(at(0)),
        kicked(0),
    ];
    steps.iter().for_each(|step| _ = told(&mut session, step).unwrap());
    assert!(session.usable(0).is_some());
    session.set_base(0, 3);
    let done = told(&mut session, &Request::GetRingBase(0)).unwrap();
    let base = [0_u32, 3].map(u32::to_ne_bytes).concat();
    assert_eq!(done.reply.unwrap().value().to_ne_bytes()[..], base);
    assert!(session.usable(0).is_none());
    steps[2..].iter().for_each(|step| _ = told(&mut session, step).unwrap());
    assert_eq!(session.usable(0).unwrap().base, 3);
}

#[test]
fn a_reset_stops_every_ring() {
    for reset in [Request::ResetOwner, Request::ResetDevice, Request::SetStatus(0)] {
        let mut session = agreed();
        let steps = [
            Request::SetFeatures(AGREED),
            Request::SetRingEnable(of(0, 1)),
            Request::SetRingSize(of(0, 8)),
            Request::SetRingAddresses(at(0)),
            kicked(0),
        ];
        steps.iter().for_each(|step| _ = told(&mut session, step).unwrap());
        assert!(session.usable(0).is_some());
        assert_eq!(told(&mut session, &reset).unwrap().change, Change::Rings);
        assert!(session.usable(0).is_none(), "{reset:?}");
    }
}

/// A power cycle: the driver negotiates again, over the same connection and in the same memory.
#[test]
fn a_reset_of_the_device_forgets_features_and_status_and_keeps_the_connection() {
    let mut session = agreed();
    let steps = [
        Request::SetFeatures(AGREED),
        Request::SetMemTable(vec![region(0, 1 << 20)]),
        Request::SetStatus(15),
        Request::ResetDevice,
    ];
    steps.iter().for_each(|step| _ = told(&mut session, step).unwrap());
    assert_eq!(session.features(), 0);
    let status = told(&mut session, &Request::GetStatus).unwrap().reply.unwrap();
    assert_eq!((status.value(), session.regions().len()), (0, 1));
    told(&mut session, &Request::SetFeatures(AGREED)).unwrap();
    assert_eq!(session.features(), AGREED);
}

/// The log is used only while its feature is set. When QEMU begins to migrate, it sets the log first and the
/// feature afterwards; at the end it takes the feature back.
#[test]
fn the_log_is_used_while_its_feature_is_set() {
    let mut session = agreed();
    let done = told(&mut session, &Request::SetLogBase(log())).unwrap();
    assert_eq!((done.change, done.reply.unwrap().value()), (Change::Log, 0));
    assert!(session.log().is_none() && session.log_area().is_some());
    told(&mut session, &Request::SetFeatures(AGREED | LOG_ALL)).unwrap();
    assert_eq!(session.log().unwrap().bytes, 8);
    told(&mut session, &Request::SetFeatures(AGREED)).unwrap();
    assert!(session.log().is_none());
    assert_eq!(told(&mut session, &Request::SetLogFd(file())).unwrap().change, Change::LogCall);
    assert!(session.log_call().is_some());
}

/// A reset drops the record of chains in flight: the rings of the next driver are others, and none of its
/// chains is in flight.
#[test]
fn a_reset_forgets_chains_in_flight() {
    for reset in [Request::ResetOwner, Request::ResetDevice, Request::SetStatus(0)] {
        let mut session = agreed();
        assert_eq!(told(&mut session, &record()).unwrap().change, Change::Inflight);
        assert!(session.inflight().is_some());
        told(&mut session, &reset).unwrap();
        assert!(session.inflight().is_none(), "{reset:?}");
    }
}

/// The reply to a request for a file for chains in flight is the file alone. A number as well would be taken
/// for the reply to the next request.
#[test]
fn a_file_for_chains_in_flight_is_asked_for_and_not_acknowledged() {
    let shape = InflightShape { rings: 4, ring_size: 256 };
    let done = told(&mut agreed(), &Request::GetInflight(shape)).unwrap();
    assert_eq!(done, Done { change: Change::InflightFile(shape), reply: None });
    let mut without = Session::new(4);
    without.offer_no_inflight();
    let protocol = told(&mut without, &Request::GetProtocolFeatures).unwrap().reply.unwrap();
    assert_eq!(protocol.value(), DEVICE_OFFERS_PROTOCOL & !PROTOCOL_INFLIGHT_SHMFD);
}

#[test]
fn an_announcement_is_passed_on() {
    let address = [2, 0, 0, 0, 0, 7];
    let done = told(&mut agreed(), &Request::SendRarp(address)).unwrap();
    assert_eq!(done.change, Change::Announcement(address));
}

#[test]
fn a_request_for_a_ring_changes_no_other() {
    let mut session = agreed();
    let requests = [
        Request::SetRingEnable(of(1, 1)),
        Request::SetRingSize(of(1, 8)),
        Request::SetRingAddresses(at(1)),
        Request::SetRingBase(of(1, 3)),
        kicked(1),
        Request::SetRingCall(RingDescriptor { ring: 1, file: None }),
        Request::GetRingBase(1),
    ];
    for request in &requests {
        assert_eq!(told(&mut session, request).unwrap().change, Change::Ring(1), "{request:?}");
    }
}

#[test]
fn memory_comes_and_goes_by_regions() {
    let mut session = agreed();
    told(&mut session, &Request::SetMemTable(vec![region(0, 10), region(10, 10)])).unwrap();
    told(&mut session, &Request::AddMemRegion(region(20, 10))).unwrap();
    let overlap = region(29, 10);
    let wrong = Wrong::Overlap(overlap.region);
    assert_eq!(told(&mut session, &Request::AddMemRegion(overlap)), Err(wrong));
    let done = told(&mut session, &Request::RemoveMemRegion(region(10, 10).region)).unwrap();
    assert_eq!(done.change, Change::Memory);
    assert_eq!(session.regions().len(), 2);
    let gone = region(10, 10).region;
    let again = told(&mut session, &Request::RemoveMemRegion(gone));
    assert_eq!(again, Err(Wrong::NoSuchRegion(gone)));
}

/// With several pairs of queues, QEMU 7.2 repeats the request for a region for each pair. A region that only
/// overlaps another one is still refused.
#[test]
fn with_several_pairs_a_region_may_be_added_and_removed_again() {
    let mut session = agreed();
    told(&mut session, &Request::SetFeatures(AGREED | MQ)).unwrap();
    let mut changes = |request| told(&mut session, &request).map(|done| done.change);
    assert_eq!(changes(Request::AddMemRegion(region(0, 10))), Ok(Change::Memory));
    assert_eq!(changes(Request::AddMemRegion(region(0, 10))), Ok(Change::None));
    let overlap = region(0, 11);
    let wrong = Wrong::Overlap(overlap.region);
    assert_eq!(changes(Request::AddMemRegion(overlap)), Err(wrong));
    assert_eq!(changes(Request::RemoveMemRegion(region(0, 10).region)), Ok(Change::Memory));
    assert_eq!(changes(Request::RemoveMemRegion(region(0, 10).region)), Ok(Change::None));
    assert!(session.regions().is_empty());
}

#[test]
fn questions_have_answers() {
    let mut session = agreed();
    told(&mut session, &Request::SetStatus(15)).unwrap();
    let rows = [
        (Request::GetFeatures, DEVICE_OFFERS),
        (Request::GetProtocolFeatures, DEVICE_OFFERS_PROTOCOL),
        (Request::GetQueueNumber, 2),
        (Request::GetMaxMemSlots, MOST_REGIONS as u64),
        (Request::GetStatus, 15),
        (Request::SetOwner, 0),
        (Request::SetMtu(9_000), 0),
    ];
    for (request, value) in rows {
        let reply = told(&mut session, &request).unwrap().reply.unwrap();
        assert_eq!(reply.value(), value, "{request:?}");
        let bytes = reply.to_bytes();
        let header = Header::read(bytes.first_chunk().unwrap()).unwrap();
        let read = Reply::read(request.number(), header, &bytes[HEADER_BYTES..]);
        assert_eq!(read, Ok(reply));
    }
    assert_eq!(session.mtu(), Some(9_000));
}

#[test]
fn what_a_device_does_not_offer_is_refused() {
    let mut session = Session::offering(AGREED, 2);
    let reply = told(&mut session, &Request::GetFeatures).unwrap().reply.unwrap();
    assert_eq!(reply.value(), AGREED);
    let more = DEVICE_OFFERS & !AGREED;
    assert_eq!(
        told(&mut session, &Request::SetFeatures(DEVICE_OFFERS)),
        Err(Wrong::Features(more))
    );
    told(&mut session, &Request::SetFeatures(AGREED)).unwrap();
}

#[test]
fn what_is_impossible_is_refused() {
    let rows = [
        (Request::SetFeatures(1 << 57), Wrong::Features(1 << 57)),
        (Request::SetProtocolFeatures(1 << 8), Wrong::Features(1 << 8)),
        (Request::SetRingSize(of(4, 8)), Wrong::NoRing(4)),
        (Request::GetRingBase(4), Wrong::NoRing(4)),
        (kicked(255), Wrong::NoRing(255)),
        (Request::SetRingSize(of(0, 0)), Wrong::RingSize(0)),
        (Request::SetRingSize(of(0, 32_769)), Wrong::RingSize(32_769)),
        (Request::GetInflight(InflightShape { rings: 5, ring_size: 8 }), Wrong::InflightRings(5)),
    ];
    for (request, wrong) in rows {
        assert_eq!(told(&mut agreed(), &request), Err(wrong), "{request:?}");
    }
    let mut split = agreed();
    told(&mut split, &Request::SetFeatures(AGREED)).unwrap();
    let base = told(&mut split, &Request::SetRingBase(of(0, 65_536)));
    assert_eq!(base, Err(Wrong::RingBase(65_536)), "a split ring counts to 65,535");
    let early = told(&mut Session::new(2), &Request::SetStatus(1));
    assert_eq!(early, Err(Wrong::NotAgreed(39)));
    for (request, number) in
        [(Request::SendRarp([0; 6]), 19), (Request::SetLogBase(log()), 6), (record(), 32)]
    {
        let early = told(&mut Session::new(4), &request);
        assert_eq!(early, Err(Wrong::NotAgreed(number)), "{request:?}");
    }
}
