//! Isolation: prevents the kernel's own stack from receiving the frames of an interface.
//!
//! A host accepts a packet for one of its addresses on any interface (the weak host model of RFC 1122, section
//! 3.3.4.2). If the frames of an interface also reach the host through a TAP, the host would receive each frame
//! twice. An nftables chain at the interface's ingress prevents that: it drops all frames, or only those for
//! certain addresses. Packet sockets receive a frame before the chain drops it. Sent frames do not pass the
//! chain.
//!
//! Contract: the kernel removes table and chain once the last process that has the [`Isolation`] ends, for
//! whatever reason, because the socket owns the table (Linux 5.12 and later).

mod rule;

use std::io;
use std::net::{IpAddr, UdpSocket};

use rxo_device::DeviceError;
use rxo_netlink::{Netlink, Request};

use crate::fault;
use crate::interface::Interface;

/// An nftables table that drops all frames that arrive on the interfaces of the run. Dropping the value
/// removes the table.
#[derive(Debug)]
pub struct Isolation {
    netlink: Netlink,
    table: String,
    /// `true` if the kernel removes the table by itself once no process holds this socket any more.
    is_owned: bool,
}

impl Isolation {
    /// Creates the table for the interface with this index. The table drops no frames until
    /// [`close`](Self::close) is called.
    ///
    /// A process that is forked later shares the table; the table exists until both processes have ended.
    ///
    /// # Errors
    /// If the kernel has no nftables, privilege is missing, or another program owns the table.
    pub(crate) fn new(index: u32) -> Result<Self, DeviceError> {
        Self::named(index, format!("rxo-{index}"))
    }

    fn named(index: u32, table: String) -> Result<Self, DeviceError> {
        let netlink = Netlink::netfilter().map_err(|error| refused(index, error))?;
        let is_owned = match make_table(&netlink, &table, TABLE_OWNER) {
            Ok(()) => true,
            // Before Linux 5.12 the flag for owned tables is unknown.
            Err(error) if is_unknown_flag(&error) => {
                make_table(&netlink, &table, 0).map_err(|error| refused(index, error))?;
                false
            }
            Err(error) => return Err(refused(index, error)),
        };
        Ok(Self { netlink, table, is_owned })
    }

    /// Drops frames on `interface` that are for one of `addresses`, after packet sockets have received them.
    /// Without this table the kernel would process each such frame and find no receiver, which costs as much as
    /// receiving the frame.
    ///
    /// Returns `None` if the system refuses, if an address is the system's own, or if there are too many
    /// addresses. Also returns `None` before Linux 5.12, because the table of a killed process would remain.
    #[must_use]
    pub fn of_addresses(interface: &str, addresses: &[IpAddr]) -> Option<Self> {
        let index = Interface::find(interface).ok()?.index().ok()?.unsigned_abs();
        let first = addresses.first()?.to_string().replace(':', "_");
        if addresses.len() > MOST_ADDRESSES || addresses.iter().any(is_system_address) {
            return None;
        }
        let isolation = Self::named(index, format!("rxo-{index}-{first}")).ok()?;
        let drops: Vec<Request> =
            addresses.iter().map(|to| rule::drop(&isolation.table, CHAIN, *to)).collect();
        let is_closed =
            isolation.is_owned && isolation.filter((CHAIN, interface), ACCEPT, &drops).is_ok();
        is_closed.then_some(isolation)
    }

    /// Drops all frames that arrive on `interface` from now on, after packet sockets have received them. Since
    /// Linux 6.16 the kernel accepts a name that no interface has yet, and drops frames as soon as an interface
    /// gets that name.
    ///
    /// # Errors
    /// If there is no such interface, or the kernel cannot filter at an interface's ingress.
    pub(crate) fn close(&self, interface: &str) -> Result<(), DeviceError> {
        self.forget(interface);
        self.filter((interface, interface), DROP, &[])
    }

    /// Undoes [`close`](Self::close) for the interface name `interface`, for example after a rename. It is no
    /// error if `close` was not called for this name.
    pub(crate) fn forget(&self, interface: &str) {
        // Fails if there is no chain, and then nothing must be removed.
        _ = batch(&self.netlink, &[&self.chain(DELETE_CHAIN, interface)]);
    }

    /// Creates the chain with `rules`. `policy` is the chain's policy: the verdict for frames that match no rule.
    fn filter(
        &self,
        (chain, interface): (&str, &str),
        policy: u32,
        rules: &[Request],
    ) -> Result<(), DeviceError> {
        let hook: [(u16, &[u8]); 3] = [
            (HOOK_NUMBER, &INGRESS.to_be_bytes()),
            (HOOK_PRIORITY, &FIRST.to_be_bytes()),
            (HOOK_DEVICE, &[interface.as_bytes(), &[0]].concat()),
        ];
        let chain = self
            .chain(NEW_CHAIN, chain)
            .flags(libc::NLM_F_CREATE)
            .nest(CHAIN_HOOK, &hook)
            .attribute(CHAIN_POLICY, &policy.to_be_bytes())
            .string(CHAIN_TYPE, "filter");
        let all: Vec<&Request> = std::iter::once(&chain).chain(rules).collect();
        batch(&self.netlink, &all).map_err(|error| {
            fault::system(format!("cannot keep the kernel off {interface}; {MODULE}"), error)
        })
    }

    /// Stops dropping frames for good, by removing the table.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn open(&self) -> Result<(), DeviceError> {
        match remove_table(&self.netlink, &self.table) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(fault::system(format!("cannot remove the table {}", self.table), error))
            }
            _ => Ok(()),
        }
    }

    fn chain(&self, kind: u16, name: &str) -> Request {
        let request = request(kind);
        request.string(CHAIN_TABLE, &self.table).string(CHAIN_NAME, name)
    }
}

impl Drop for Isolation {
    fn drop(&mut self) {
        if !self.is_owned {
            // A failure is not reported; `nft list ruleset` shows what is left.
            _ = remove_table(&self.netlink, &self.table);
        }
    }
}

/// Creates the table `table` with these flags. Replaces a leftover table of this name, which can exist only
/// if tables are not owned.
fn make_table(netlink: &Netlink, table: &str, flags: u32) -> io::Result<()> {
    let make = request(NEW_TABLE)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_EXCL)
        .string(TABLE_NAME, table)
        .attribute(TABLE_FLAGS, &flags.to_be_bytes());
    match batch(netlink, &[&make]) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove_table(netlink, table)?;
            batch(netlink, &[&make])
        }
        other => other,
    }
}

/// Returns `true` if the kernel binds a chain to a name, and so to any interface that gets the name (Linux
/// 6.16 and later). Changes nothing.
pub(crate) fn binds_by_name(netlink: &Netlink) -> bool {
    check(netlink, "rxo-nowhere").is_ok()
}

/// Checks whether the kernel can isolate `interface`. Changes nothing.
///
/// # Errors
/// If the kernel has no nftables, or cannot filter at an interface's ingress, or privilege is missing.
pub(crate) fn try_on(interface: &str) -> io::Result<()> {
    check(&Netlink::netfilter()?, interface)
}

/// Sends the kernel a batch with a table and a chain at the ingress of `interface`. The kernel validates the
/// batch, but does not apply it, because the batch has no end message.
fn check(netlink: &Netlink, interface: &str) -> io::Result<()> {
    let table = "rxo-probe";
    let make =
        request(NEW_TABLE).flags(libc::NLM_F_CREATE | libc::NLM_F_ACK).string(TABLE_NAME, table);
    let hook: [(u16, &[u8]); 3] = [
        (HOOK_NUMBER, &INGRESS.to_be_bytes()),
        (HOOK_PRIORITY, &FIRST.to_be_bytes()),
        (HOOK_DEVICE, &[interface.as_bytes(), &[0]].concat()),
    ];
    let chain = request(NEW_CHAIN)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_ACK)
        .string(CHAIN_TABLE, table)
        .string(CHAIN_NAME, CHAIN)
        .nest(CHAIN_HOOK, &hook)
        .string(CHAIN_TYPE, "filter");
    let begin = Request::new(BATCH_BEGIN, &[0, 0, 0, NFTABLES as u8]);
    netlink.change_together(&[&begin, &make, &chain])
}

fn remove_table(netlink: &Netlink, table: &str) -> io::Result<()> {
    batch(netlink, &[&request(DELETE_TABLE).string(TABLE_NAME, table)])
}

/// Builds a request to nftables. Its header has the family and, for a batch, the subsystem.
fn request(kind: u16) -> Request {
    Request::new((NFTABLES << 8) | kind, &[NETDEV, 0, 0, 0])
}

fn batch(netlink: &Netlink, changes: &[&Request]) -> io::Result<()> {
    let [begin, end] =
        [BATCH_BEGIN, BATCH_END].map(|kind| Request::new(kind, &[0, 0, 0, NFTABLES as u8]));
    let acknowledged: Vec<Request> =
        changes.iter().map(|change| (*change).clone().flags(libc::NLM_F_ACK)).collect();
    let all: Vec<&Request> =
        std::iter::once(&begin).chain(&acknowledged).chain(std::iter::once(&end)).collect();
    netlink.change_together(&all)
}

/// Returns `true` if `address` is one of the system's own: dropping frames for it would cut the system off.
fn is_system_address(address: &IpAddr) -> bool {
    UdpSocket::bind((*address, 0)).is_ok()
}

fn is_unknown_flag(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

fn refused(index: u32, error: io::Error) -> DeviceError {
    let name = Interface::name_of(index).unwrap_or_else(|| format!("interface {index}"));
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "needs CAP_NET_ADMIN; run as root or `setcap cap_net_raw,cap_net_admin+ep rxo`"
        }
        io::ErrorKind::ResourceBusy | io::ErrorKind::AlreadyExists => {
            "another program has its table; end that program"
        }
        _ => "load the module nf_tables",
    };
    fault::system(format!("cannot keep the kernel off {name}; {remedy}"), error)
}

// linux/netfilter/nfnetlink.h and nf_tables.h.
const NFTABLES: u16 = 10;
const NETDEV: u8 = 5;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const DELETE_CHAIN: u16 = 5;
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
const TABLE_OWNER: u32 = 2;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const CHAIN_TYPE: u16 = 7;
const HOOK_NUMBER: u16 = 1;
const HOOK_PRIORITY: u16 = 2;
const HOOK_DEVICE: u16 = 3;
const INGRESS: u32 = 0;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
const CHAIN: &str = "ingress";
/// The priority of the table's chain: the second lowest priority value. So the chain is the first at the ingress,
/// and no other chain counts or forwards the frames that it drops.
const FIRST: i32 = i32::MIN + 1;
/// The remedy for a kernel that cannot filter at an interface's ingress, as a phrase for the user.
pub(crate) const MODULE: &str =
    "load the module nf_tables of a kernel with CONFIG_NF_TABLES_NETDEV";
/// Maximum number of addresses in one chain: the kernel compares a frame with one rule per address.
const MOST_ADDRESSES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_interface_and_what_is_missing() {
        let because = |code| refused(1, io::Error::from_raw_os_error(code)).to_string();
        let said = because(libc::EPERM);
        assert!(said.starts_with("cannot keep the kernel off lo; needs CAP_NET_ADMIN;"), "{said}");
        assert!(because(libc::EBUSY).contains("another program"));
        assert!(because(libc::EAFNOSUPPORT).contains("load the module nf_tables"));
    }
}
