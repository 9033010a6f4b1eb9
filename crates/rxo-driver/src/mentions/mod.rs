//! Mentions: rules of the host that mean an interface, by its name, its number or its place.
//!
//! While a TAP has the nic's name, rules by name go on to match. Those that know the nic by its number do not, and what is
//! attached to the nic itself sees nothing of what the host receives: ports that were closed would be open, and the other
//! way round. So they are found before anything is changed.
//!
//! Contract: looking changes nothing. What cannot be listed is an error, never "none".

mod legacy;
mod nft;
mod policy;
mod sockets;
mod traffic;

use std::fmt;

use rxo_device::DeviceError;

use crate::fault;
use crate::handover::Link;

pub(crate) use sockets::bound_to;

/// A rule that means an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Where the rule is, as its own program lists it.
    pub(crate) place: String,
    pub(crate) by: By,
}

/// How a rule knows the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// It goes on to match whatever has the name.
    Name,
    /// It goes on to match the interface, whatever its name is.
    Number,
    /// It sees what arrives on the interface itself.
    Ingress,
}

impl fmt::Display for Mention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// The rules that mean the interface `link`.
///
/// # Errors
/// If the system refuses to list them.
pub(crate) fn of(link: &Link) -> Result<Vec<Mention>, DeviceError> {
    let mut found = Vec::new();
    let name = &link.name;
    let listed = |what, rules: std::io::Result<Vec<Mention>>| {
        rules.map_err(|error| {
            fault::system(format!("cannot list the {what} that may name {name}"), error)
        })
    };
    found.extend(listed("rules of nftables", nft::mentions(link))?);
    found.extend(legacy::mentions(link));
    found.extend(listed("rules of `ip rule`", policy::mentions(link))?);
    found.extend(listed("filters of `tc`", traffic::mentions(link))?);
    Ok(found)
}

/// The rules that know the interface `link` by its number. Those of `iptables` never do, so no program is started.
///
/// # Errors
/// If the system refuses to list them.
pub(crate) fn by_number(link: &Link) -> std::io::Result<Vec<Mention>> {
    let listed = [nft::mentions(link)?, policy::mentions(link)?, traffic::mentions(link)?];
    Ok(listed.into_iter().flatten().filter(|mention| mention.by == By::Number).collect())
}
