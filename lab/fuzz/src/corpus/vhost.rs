//! Messages of vhost-user front ends: like QEMU's, like DPDK's, and with single faults.

use std::os::fd::OwnedFd;

use rxo_driver::vhost_user::features::{DEVICE_OFFERS, DEVICE_OFFERS_PROTOCOL};
use rxo_driver::vhost_user::{InflightShape, Region, Request, RingAddresses, RingNumber};

/// Returns every conversation.
pub(super) fn conversations() -> Vec<(String, Vec<u8>)> {
    let features: Request = Request::SetFeatures(DEVICE_OFFERS);
    let named: [(&str, Vec<Vec<u8>>); 16] = [
        ("questions", questions()),
        ("memory-table", vec![table(3)]),
        ("memory-slots", vec![protocol(), add(0), add(1), remove(0), remove(0)]),
        ("memory-overlap", vec![protocol(), add(0), add(0)]),
        ("rings", [vec![table(1)], rings()].concat()),
        (
            "enable-first",
            [vec![enable(0), enable(1)], questions(), vec![table(1)], rings()].concat(),
        ),
        ("reset", [questions(), rings(), vec![plain(&Request::ResetDevice)], rings()].concat()),
        ("status", vec![protocol(), plain(&Request::SetStatus(15)), plain(&Request::SetStatus(0))]),
        ("base", [rings(), vec![plain(&Request::GetRingBase(0))]].concat()),
        ("no-such-ring", vec![plain(&Request::GetRingBase(4))]),
        ("features", vec![plain(&Request::SetFeatures(u64::MAX))]),
        ("log", [questions(), rings(), vec![log(64, 8), plain(&features), log(0, 8)]].concat()),
        ("log-lies", vec![protocol(), log(u64::MAX, 8)]),
        ("inflight", [vec![protocol()], inflight(2, 16), rings(), inflight(2, 16)].concat()),
        ("inflight-lies", [vec![protocol()], inflight(5, 16)].concat()),
        ("rarp", vec![protocol(), plain(&Request::SendRarp([2, 0, 0, 0, 0, 1]))]),
    ];
    named.into_iter().map(|(name, messages)| (name.to_owned(), messages.concat())).collect()
}

/// Encodes a request without descriptors that asks for a reply.
fn plain(request: &Request) -> Vec<u8> {
    with(0, request.to_bytes(true))
}

fn with(descriptors: u8, bytes: Vec<u8>) -> Vec<u8> {
    [vec![descriptors], bytes].concat()
}

fn protocol() -> Vec<u8> {
    plain(&Request::SetProtocolFeatures(DEVICE_OFFERS_PROTOCOL))
}

fn questions() -> Vec<Vec<u8>> {
    vec![
        plain(&Request::GetFeatures),
        plain(&Request::GetProtocolFeatures),
        protocol(),
        plain(&Request::SetOwner),
        plain(&Request::GetQueueNumber),
        plain(&Request::GetMaxMemSlots),
        plain(&Request::SetFeatures(DEVICE_OFFERS)),
    ]
}

fn region(n: u64) -> Region {
    Region { guest_address: n << 12, bytes: 1 << 12, user_address: n << 20, file_offset: n << 12 }
}

/// Encodes a table of regions by hand, because a real request owns its descriptors.
fn table(count: u64) -> Vec<u8> {
    let bytes = plain(&Request::RemoveMemRegion(region(0)));
    let mut payload = [(count as u32).to_ne_bytes(), [0; 4]].concat();
    for n in 0..count {
        let Region { guest_address, bytes, user_address, file_offset } = region(n);
        for field in [guest_address, bytes, user_address, file_offset] {
            payload.extend(field.to_ne_bytes());
        }
    }
    message(5, count as u8, &payload, &bytes)
}

fn add(n: u64) -> Vec<u8> {
    let removes = plain(&Request::RemoveMemRegion(region(n)));
    message(37, 1, &removes[13..], &removes)
}

fn log(bytes: u64, offset: u64) -> Vec<u8> {
    let payload = [bytes, offset].map(u64::to_ne_bytes).concat();
    message(6, 1, &payload, &plain(&Request::GetStatus))
}

/// Asks for a file for chains in flight, and sends one.
fn inflight(rings: u16, ring_size: u16) -> Vec<Vec<u8>> {
    let asks = plain(&Request::GetInflight(InflightShape { rings, ring_size }));
    let mut payload = asks[13..].to_vec();
    payload[..8].copy_from_slice(&640_u64.to_ne_bytes());
    vec![asks.clone(), message(32, 1, &payload, &asks)]
}

fn remove(n: u64) -> Vec<u8> {
    plain(&Request::RemoveMemRegion(region(n)))
}

/// Encodes a message with the flags of `like`, but another number, payload and count of descriptors.
fn message(request: u32, descriptors: u8, payload: &[u8], like: &[u8]) -> Vec<u8> {
    let flags = &like[5..9];
    let length = (payload.len() as u32).to_ne_bytes();
    [&[descriptors], &request.to_ne_bytes()[..], flags, &length, payload].concat()
}

fn enable(ring: u32) -> Vec<u8> {
    plain(&Request::SetRingEnable(RingNumber { ring, number: 1 }))
}

fn rings() -> Vec<Vec<u8>> {
    let of_ring = |ring: u32| {
        let of = |number| RingNumber { ring, number };
        let addresses =
            RingAddresses { ring, flags: 0, descriptors: 0, device: 0x800, driver: 0x400, log: 0 };
        let kick: Request<OwnedFd> = Request::SetRingBase(of(0));
        [
            plain(&Request::SetRingSize(of(16))),
            plain(&Request::SetRingBase(of(0))),
            plain(&Request::SetRingAddresses(addresses)),
            message(12, 1, &u64::from(ring).to_ne_bytes(), &plain(&kick)),
            message(13, 0, &(u64::from(ring) | 1 << 8).to_ne_bytes(), &plain(&kick)),
            enable(ring),
        ]
    };
    (0..2).flat_map(of_ring).collect()
}
