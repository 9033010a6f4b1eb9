//! An IP address of an interface, with its lifetimes, scope, label and flags.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use rxo_netlink::{Request, u32_at};

use super::item::{Item, with_index};
use super::link::Link;

/// An IP address of an interface, as the kernel listed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address(pub(super) Item);

/// The length of `ifaddrmsg` in bytes: family, prefix length, flags, scope, and interface index.
pub(super) const HEADER_BYTES: usize = 8;
const INDEX_AT: usize = 4;

impl Address {
    pub(super) fn read(shown: &[u8]) -> Option<Self> {
        Item::read(shown, HEADER_BYTES).map(Self)
    }

    /// Returns the index of the interface that has the address; `None` if the item is too short.
    pub(super) fn index(&self) -> Option<u32> {
        u32_at(&self.0.header, INDEX_AT)
    }

    /// Returns `true` for an IPv6 link-local address, as every interface with IPv6 has one.
    pub(super) fn is_link_local(&self) -> bool {
        matches!(self.ip(), Some(IpAddr::V6(v6)) if v6.is_unicast_link_local())
    }

    /// Returns `true` if duplicate address detection failed: another host uses the address.
    pub(super) fn is_duplicate(&self) -> bool {
        self.flags() & libc::IFA_F_DADFAILED != 0
    }

    /// Builds the request that adds the address to `to`. `from` is the interface that had the address, and
    /// `elapsed` the time since it was listed, which reduces its lifetimes. Duplicate address detection is
    /// skipped, because this host has the address already. `None` if the address's lifetime is over.
    pub(super) fn add(&self, from: &Link, to: &Link, elapsed: Duration) -> Option<Request> {
        let item = &self.0;
        let mut header = with_index(&item.header, INDEX_AT, to.index);
        header[2] = 0;
        let mut request =
            Request::new(libc::RTM_NEWADDR, &header).flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        for (kind, value) in item.attributes() {
            request = match kind {
                libc::IFA_ADDRESS | libc::IFA_LOCAL | libc::IFA_BROADCAST | RT_PRIORITY | PROTO => {
                    request.attribute(kind, value)
                }
                libc::IFA_LABEL => request.string(kind, &label(value, &from.name, &to.name)),
                libc::IFA_CACHEINFO => request.attribute(kind, &lifetimes(value, elapsed)?),
                _ => request,
            };
        }
        Some(request.attribute(FLAGS, &self.flags_to_set().to_ne_bytes()))
    }

    /// Builds the request that removes the address from the interface with this index.
    pub(super) fn remove(&self, index: u32) -> Request {
        let header = with_index(&self.0.header, INDEX_AT, index);
        let item = Item { header, rest: self.0.rest.clone() };
        item.naming(libc::RTM_DELADDR, &[libc::IFA_ADDRESS, libc::IFA_LOCAL])
    }

    pub(super) fn ip(&self) -> Option<IpAddr> {
        // For IPv4, `IFA_ADDRESS` is the address of the peer of a point-to-point link.
        self.0.ip(libc::IFA_LOCAL).or_else(|| self.0.ip(libc::IFA_ADDRESS))
    }

    fn flags(&self) -> u32 {
        self.0.number(FLAGS).unwrap_or_else(|| u32::from(self.0.header[2]))
    }

    fn flags_to_set(&self) -> u32 {
        let flags = self.flags();
        let is_known_free = self.0.is_ipv6() && flags & libc::IFA_F_TENTATIVE == 0;
        flags & SETTABLE | if is_known_free { libc::IFA_F_NODAD } else { 0 }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ip() {
            Some(ip) => write!(f, "{ip}/{}", self.0.header[1]),
            None => f.write_str("an address of an unknown kind"),
        }
    }
}

/// Renames an address label for an interface with another name: `eth1:0` on `eth1` becomes `rxo0:0` on `rxo0`.
fn label(value: &[u8], from: &str, to: &str) -> String {
    let text = String::from_utf8_lossy(value);
    let text = text.trim_end_matches('\0');
    let Some(suffix) = text.strip_prefix(from) else { return text.to_owned() };
    if !suffix.is_empty() && !suffix.starts_with(':') {
        return text.to_owned();
    }
    let label = format!("{to}{suffix}");
    if label.len() <= LONGEST_LABEL_BYTES { label } else { to.to_owned() }
}

/// Returns the preferred and the valid lifetime in `value`, in seconds, reduced by `elapsed`; `None` if the
/// valid lifetime is over.
fn lifetimes(value: &[u8], elapsed: Duration) -> Option<Vec<u8>> {
    let left = |at| {
        let seconds = u32_at(value, at)?;
        let elapsed = u32::try_from(elapsed.as_secs()).unwrap_or(u32::MAX);
        Some(if seconds == FOR_EVER { FOR_EVER } else { seconds.saturating_sub(elapsed) })
    };
    let (preferred, valid) = (left(0)?, left(4)?);
    (valid > 0).then(|| [preferred, valid, 0, 0].map(u32::to_ne_bytes).concat())
}

const FOR_EVER: u32 = u32::MAX;
const LONGEST_LABEL_BYTES: usize = 15;
/// The address flags that a request may set; the kernel derives the others.
const SETTABLE: u32 = libc::IFA_F_NODAD
    | libc::IFA_F_HOMEADDRESS
    | libc::IFA_F_MANAGETEMPADDR
    | libc::IFA_F_NOPREFIXROUTE
    | libc::IFA_F_MCAUTOJOIN;
// linux/if_addr.h.
const FLAGS: u16 = 8;
const RT_PRIORITY: u16 = 9;
const PROTO: u16 = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_follows_the_name_of_its_interface() {
        let rows = [
            ("eth1\0", "rxo0"),
            ("eth1:0\0", "rxo0:0"),
            ("eth1:a_long_one\0", "rxo0:a_long_one"),
            ("eth10\0", "eth10"),
            ("office\0", "office"),
        ];
        for (before, after) in rows {
            assert_eq!(label(before.as_bytes(), "eth1", "rxo0"), after);
        }
        assert_eq!(label(b"eth1:a_long_one\0", "eth1", "rxo-long0"), "rxo-long0");
    }

    #[test]
    fn a_lifetime_goes_on_while_rxo_runs() {
        let cache = |preferred: u32, valid: u32| [preferred, valid, 7, 7].map(u32::to_ne_bytes);
        let after = |preferred, valid, seconds| {
            lifetimes(&cache(preferred, valid).concat(), Duration::from_secs(seconds))
        };
        let bytes = |preferred: u32, valid: u32| {
            Some([preferred, valid, 0, 0].map(u32::to_ne_bytes).concat())
        };
        assert_eq!(after(FOR_EVER, FOR_EVER, 1_000), bytes(FOR_EVER, FOR_EVER));
        assert_eq!(after(100, 500, 99), bytes(1, 401));
        assert_eq!(after(100, 500, 200), bytes(0, 300));
        assert_eq!(after(100, 500, 500), None);
        assert_eq!(lifetimes(&[1, 2, 3], Duration::ZERO), None);
    }
}
