//! IPv6 extension headers (RFC 8200 section 4), one by one.

use super::Fault;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
pub(super) const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
/// Type of the Home Address option (RFC 6275 section 6.3).
const HOME_ADDRESS: u8 = 0xc9;
const MOST: usize = 9;

/// Returns the offset and the protocol of the transport or fragment header. The IP header begins at
/// `network`; the packet ends at `end` according to it.
pub(super) fn walk(bytes: &[u8], network: usize, end: usize) -> Result<(usize, u8), Fault> {
    let mut protocol = bytes[network + 6];
    let mut at = network + 40;
    for _ in 0..MOST {
        let is_last = !matches!(protocol, HOP_BY_HOP | ROUTING | AUTHENTICATION | DESTINATION);
        if protocol == FRAGMENT && at + 2 > bytes.len() {
            return Err(Fault::Malformed);
        }
        if is_last && end > bytes.len() {
            return Err(Fault::Truncated);
        }
        if is_last {
            // A header that begins beyond the end means an invalid length.
            return if at <= end { Ok((at, protocol)) } else { Err(Fault::Malformed) };
        }
        let units = usize::from(*bytes.get(at + 1).ok_or(Fault::Malformed)?);
        let length = if protocol == AUTHENTICATION { (units + 2) * 4 } else { (units + 1) * 8 };
        protocol = bytes[at];
        at += length;
    }
    Err(Fault::Malformed)
}

/// Returns `true` if a header changes the addresses that the receiver's transport sees, or authenticates a
/// single packet. `first` is the type of the first header, `headers` is all of them.
pub(super) fn are_odd(first: u8, headers: &[u8]) -> bool {
    let mut kind = first;
    let mut rest = headers;
    while let [next, units, ..] = rest {
        let length = (usize::from(*units) + 1) * 8;
        match kind {
            HOP_BY_HOP => {}
            DESTINATION if rest.len() >= length && !has_home_address(&rest[2..length]) => {}
            _ => return true,
        }
        kind = *next;
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Returns `true` if a list of options contains a home address, or is invalid.
fn has_home_address(options: &[u8]) -> bool {
    let mut at = 0;
    while at < options.len() {
        if options[at] == 0 {
            at += 1;
            continue;
        }
        if options[at] == HOME_ADDRESS || at + 1 == options.len() {
            return true;
        }
        at += 2 + usize::from(options[at + 1]);
    }
    at > options.len()
}
