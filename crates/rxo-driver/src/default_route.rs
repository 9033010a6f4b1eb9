//! Default route of a tunnel. The route is in a routing table of its own, so that the host's default route stays
//! unchanged.
//!
//! Two rules for each IP version select the table, as with `wg-quick`: first, routes of the main table apply
//! unless they are default routes; then all packets without the tunnel's mark use the tunnel's table. The
//! tunnel's own socket sends with the mark, so its packets leave by the host's default route. The kernel removes
//! the routes together with the interface, but not the rules. A second process removes the rules once this
//! process has ended, for whatever reason.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rxo_device::DeviceError;
use rxo_netlink::{Netlink, Request, attribute, u32_at};

use crate::fault;
use crate::guard::{self, Child, Detached};
use crate::interface::Interface;

/// The table for default routes through a tunnel, with the process that removes its rules.
#[derive(Debug)]
pub struct DefaultRoutes {
    table: u32,
    /// The channel to the process that removes the rules when the channel is closed; `None` once the channel
    /// is closed.
    channel: Option<UnixStream>,
    remover: Option<Child>,
}

/// The number of the first table that is tried, equal to WireGuard's port, as in `wg-quick`.
const FIRST_TABLE: u32 = 51_820;

/// The maximum time that dropping a [`DefaultRoutes`] waits until the rules are removed.
const REMOVING: Duration = Duration::from_secs(5);

impl DefaultRoutes {
    /// Chooses a table that has no routes and no rules, and starts the process that removes the rules. This
    /// process must have only one thread. In the new process, this function returns `None` after it has
    /// removed the rules; the new process must then exit.
    ///
    /// # Errors
    /// If the kernel does not list its rules and routes, or no process can be started.
    pub fn prepare() -> Result<Option<Self>, DeviceError> {
        let table = unused_table()
            .map_err(|error| fault::system("cannot choose a table for the default route", error))?;
        match guard::detach("rxo-routes") {
            Ok(Detached::Here { channel, child }) => {
                Ok(Some(Self { table, channel: Some(channel), remover: Some(child) }))
            }
            Ok(Detached::There { channel, .. }) => {
                guard::await_end(&channel);
                remove_rules(table);
                Ok(None)
            }
            Err(error) => Err(fault::system("cannot start the process that removes rules", error)),
        }
    }

    /// Returns the mark of packets that must not use the table
    /// ([`UdpOptions::mark`](crate::udp::UdpOptions)).
    #[must_use]
    pub const fn mark(&self) -> u32 {
        self.table
    }

    /// Adds a default route through `interface`, which must be up, and the rules that select the route. `any`
    /// is the unspecified address of the IP version, `0.0.0.0` or `::`.
    ///
    /// # Errors
    /// If privilege is missing, the interface is down or no longer exists, or the kernel lacks policy
    /// routing.
    pub fn add(&self, interface: &Interface, any: IpAddr) -> Result<(), DeviceError> {
        interface.add_route_in(self.table, any, 0)?;
        rules(any.is_ipv4(), self.table).iter().try_for_each(|rule| {
            let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
            let added = change(&rule.clone().with_kind(libc::RTM_NEWRULE).flags(flags));
            added.map_err(|error| fault::system("cannot add a rule for the default route", error))
        })
    }
}

impl Drop for DefaultRoutes {
    fn drop(&mut self) {
        self.channel = None;
        if let Some(remover) = self.remover.take() {
            remover.wait_within(REMOVING);
        }
    }
}

/// Returns the name of the first interface with strict reverse path filtering (`rp_filter` 1, RFC 3704, section
/// 2.2); `None` if there is none. With a default route through a tunnel, such an interface drops the packets of
/// the tunnel's peer.
#[must_use]
pub fn strict_interface() -> Option<String> {
    let is_strict = |name: &str| {
        let path = format!("/proc/sys/net/ipv4/conf/{name}/rp_filter");
        fs::read_to_string(path).is_ok_and(|value| value.trim() == "1")
    };
    let names = fs::read_dir("/proc/sys/net/ipv4/conf").into_iter().flatten().flatten();
    let mut names: Vec<_> = names.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.retain(|name| !["default", "lo"].contains(&name.as_str()) && is_strict(name));
    names.sort();
    names.into_iter().next()
}

/// Returns the two rules of one IP version. The kernel tries newer rules first, so the last rule of the result is
/// tried first.
fn rules(is_ipv4: bool, table: u32) -> [Request; 2] {
    let unmarked = rule(is_ipv4, table, INVERT)
        .attribute(FWMARK, &table.to_ne_bytes())
        .attribute(FWMASK, &u32::MAX.to_ne_bytes());
    let main = u32::from(libc::RT_TABLE_MAIN);
    let narrower = rule(is_ipv4, main, 0).attribute(SUPPRESS_PREFIX_LENGTH, &0_u32.to_ne_bytes());
    [unmarked, narrower]
}

/// Returns a request for a rule that looks up `table`. The rule is marked as rxo's, so that removing rxo's rules
/// affects no rule of other programs.
fn rule(is_ipv4: bool, table: u32, flags: u32) -> Request {
    let family = if is_ipv4 { libc::AF_INET } else { libc::AF_INET6 } as u8;
    let header = [&[family, 0, 0, 0, 0, 0, 0, TO_TABLE][..], &flags.to_ne_bytes()].concat();
    Request::new(libc::RTM_DELRULE, &header)
        .attribute(TABLE, &table.to_ne_bytes())
        .attribute(PROTOCOL, &[OURS])
}

/// Removes the rules of both IP versions. A rule that does not exist is not an error.
fn remove_rules(table: u32) {
    for rule in [true, false].iter().flat_map(|&is_ipv4| rules(is_ipv4, table)) {
        _ = change(&rule);
    }
}

fn change(request: &Request) -> io::Result<()> {
    Netlink::route()?.change(request)
}

/// Returns the first table number from [`FIRST_TABLE`] on that no rule and no route uses.
fn unused_table() -> io::Result<u32> {
    let netlink = Netlink::route()?;
    let mut used = Vec::new();
    // `rtmsg` and `fib_rule_hdr` have the same length and the table at the same offset; the attribute with
    // the table has the same number in both.
    for kind in [libc::RTM_GETRULE, libc::RTM_GETROUTE] {
        for one in netlink.dump(&Request::new(kind, &[0; HEADER_BYTES]))? {
            let long = one.get(HEADER_BYTES..).and_then(|rest| attribute(rest, TABLE));
            used.extend(long.and_then(|value| u32_at(value, 0)));
        }
    }
    let free = (FIRST_TABLE..).find(|table| !used.contains(table));
    free.ok_or_else(|| io::Error::other("all tables are in use"))
}

// The constants of linux/fib_rules.h and linux/rtnetlink.h.
const HEADER_BYTES: usize = 12;
const TO_TABLE: u8 = 1;
const INVERT: u32 = 2;
const FWMARK: u16 = 10;
const SUPPRESS_PREFIX_LENGTH: u16 = 14;
const TABLE: u16 = 15;
const FWMASK: u16 = 16;
const PROTOCOL: u16 = 21;
/// The protocol number that marks rxo's rules; no program that iproute2's `rt_protos` lists uses this number.
const OURS: u8 = 114;
