//! Checks neighbour discovery (RFC 4861): a device advertises its own addresses with its own link-layer address.

use std::net::Ipv6Addr;

use super::Guard;
use crate::switch::{DropReason, MacAddress};

impl Guard {
    /// Checks an ICMPv6 message from `source`. A message that is not of neighbour discovery passes.
    ///
    /// # Errors
    /// The reason to drop the message.
    pub(super) fn check_neighbour(
        &self,
        own: Option<MacAddress>,
        source: Ipv6Addr,
        message: &[u8],
        is_fragment: bool,
    ) -> Result<(), DropReason> {
        let kind = *message.first().ok_or(DropReason::Malformed)?;
        let options_at = match kind {
            ROUTER_SOLICITATION => 8,
            ROUTER_ADVERTISEMENT => 16,
            SOLICITATION | ADVERTISEMENT => 24,
            REDIRECT => 40,
            _ => return Ok(()),
        };
        // No receiver may accept these (RFC 6980, section 5); the rest could hide in another fragment.
        if is_fragment {
            return Err(DropReason::ForeignNeighbour);
        }
        let options = message.get(options_at..).ok_or(DropReason::Malformed)?;
        // A probe does not claim an address for its sender, but a host that has the target would give it up
        // (RFC 4862, section 5.4.3).
        let claims = kind == ADVERTISEMENT || kind == SOLICITATION && source.is_unspecified();
        if claims {
            let target: &[u8; 16] =
                message.get(8..).and_then(<[u8]>::first_chunk).ok_or(DropReason::Malformed)?;
            if !self.may_have(own, Ipv6Addr::from(*target).into()) {
                return Err(DropReason::ForeignNeighbour);
            }
        }
        // A redirect names the link-layer address of another station, which only routers may do.
        let of_sender = if kind == ADVERTISEMENT { TARGET_ADDRESS } else { SOURCE_ADDRESS };
        own.map_or(Ok(()), |own| check_options(options, of_sender, own))
    }
}

/// Checks that each option of type `of_sender` contains the address `own`.
fn check_options(mut options: &[u8], of_sender: u8, own: MacAddress) -> Result<(), DropReason> {
    while let [kind, units, ..] = options {
        let bytes = usize::from(*units) * 8;
        let option = options.get(..bytes).filter(|option| !option.is_empty());
        let address = option.ok_or(DropReason::Malformed)?.get(2..8);
        if *kind == of_sender && address != Some(&own.0[..]) {
            return Err(DropReason::ForeignNeighbour);
        }
        options = &options[bytes..];
    }
    if options.is_empty() { Ok(()) } else { Err(DropReason::Malformed) }
}

const ROUTER_SOLICITATION: u8 = 133;
const ROUTER_ADVERTISEMENT: u8 = 134;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
/// The option "source link-layer address" (RFC 4861, section 4.6.1).
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
