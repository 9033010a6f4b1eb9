//! Target `parse`: any bytes can be read, and what is read lies inside them.

use rxo_wire::{Parsed, Unparsed};

/// Reads `data` as an Ethernet frame and as a raw packet.
///
/// # Panics
/// When an offset leaves the frame or offsets are out of order.
pub fn run(data: &[u8]) {
    check(data, rxo_wire::parse(data));
    check(data, rxo_wire::parse_ip(data));
}

fn check(frame: &[u8], read: Result<Parsed, Unparsed>) {
    let Ok(parsed) = read else { return };
    assert!(parsed.network <= parsed.transport_at, "network behind transport: {parsed:?}");
    assert!(parsed.transport_at <= parsed.payload, "transport behind payload: {parsed:?}");
    assert!(parsed.payload <= parsed.end, "payload behind the end: {parsed:?}");
    assert!(parsed.end as usize <= frame.len(), "the end leaves the frame: {parsed:?}");
    assert!(parsed.vlans.tags().len() <= 2, "more than two tags: {parsed:?}");
}
