//! Mentions: rules of the host, such as firewall rules, that refer to an interface by its name or index, or that
//! are attached to its ingress.
//!
//! While a TAP has the nic's name, rules by name continue to match. Rules by index do not, and filters attached
//! to the nic itself do not see what the host receives. So a run could open closed ports, and close open ones.
//! Such rules are listed before the run changes anything.
//!
//! Contract: listing changes nothing. Rules that cannot be listed are an error, never "none".

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

/// A rule of the host that refers to an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The rule in the form in which its own program, such as `nft`, lists it.
    pub(crate) place: String,
    pub(crate) by: ReferenceKind,
}

/// The property by which a rule refers to the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReferenceKind {
    /// The rule matches any interface that has the name.
    Name,
    /// The rule matches the interface's index, so it does not depend on the name.
    Number,
    /// The rule processes frames at the ingress of the interface itself.
    Ingress,
}

impl fmt::Display for Mention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

/// Lists the rules that refer to the interface `link`.
///
/// # Errors
/// If the system refuses to list the rules.
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

/// Lists the rules that refer to `link` by its index. Rules of `iptables` never do, so no program is started.
///
/// # Errors
/// If the system refuses to list the rules.
pub(crate) fn by_number(link: &Link) -> std::io::Result<Vec<Mention>> {
    let listed = [nft::mentions(link)?, policy::mentions(link)?, traffic::mentions(link)?];
    Ok(listed.into_iter().flatten().filter(|mention| mention.by == ReferenceKind::Number).collect())
}
