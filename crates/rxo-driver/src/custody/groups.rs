//! Multicast groups: joins, for the TAP, the groups that programs have joined on the nic.
//!
//! A program joins a group on an interface. During a takeover the host receives the group's frames through the
//! TAP, on which no program has joined, and would drop them. So the keeper joins the group on the TAP as well.
//! This does not help programs that accept a group's frames only by the interface on which they joined
//! (`IP_MULTICAST_ALL` off).

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use crate::sys;

/// The multicast groups that are joined for a TAP, each with the socket that is its member.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<(IpAddr, OwnedFd)>);

impl Groups {
    /// Joins on the interface `to` each group that is joined on the interface `from`, and leaves the groups
    /// that are no longer joined there. A group that the system refuses is tried again by the next call.
    pub(super) fn follow(&mut self, from: u32, to: u32) {
        let wanted = joined(from);
        self.0.retain(|(group, _)| wanted.contains(group));
        for group in wanted {
            if !self.0.iter().any(|(known, _)| *known == group)
                && let Some(member) = join(group, to)
            {
                self.0.push((group, member));
            }
        }
    }
}

fn join(group: IpAddr, index: u32) -> Option<OwnedFd> {
    match group {
        IpAddr::V4(group) => {
            let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
            let request = libc::ip_mreqn {
                imr_multiaddr: libc::in_addr { s_addr: u32::from_ne_bytes(group.octets()) },
                imr_address: libc::in_addr { s_addr: 0 },
                imr_ifindex: index.cast_signed(),
            };
            let (level, name) = (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP);
            sys::set_option(socket.as_fd(), level, name, &request).ok()?;
            Some(socket)
        }
        IpAddr::V6(group) => {
            let socket = sys::socket(libc::AF_INET6, libc::SOCK_DGRAM, 0).ok()?;
            let address = libc::in6_addr { s6_addr: group.octets() };
            let request = libc::ipv6_mreq { ipv6mr_multiaddr: address, ipv6mr_interface: index };
            let (level, name) = (libc::IPPROTO_IPV6, libc::IPV6_ADD_MEMBERSHIP);
            sys::set_option(socket.as_fd(), level, name, &request).ok()?;
            Some(socket)
        }
    }
}

/// Returns the multicast groups that are joined on the interface with this index, without those that every
/// interface joins.
fn joined(index: u32) -> BTreeSet<IpAddr> {
    let read =
        |name| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let groups = ipv4(&read("igmp"), index).into_iter().map(IpAddr::V4);
    groups.chain(ipv6(&read("igmp6"), index).into_iter().map(IpAddr::V6)).collect()
}

/// Returns the groups of an interface from the contents of `/proc/net/igmp`. In that file, an unindented line for
/// each interface begins with the index. An indented line for each group begins with the address, a hexadecimal
/// number in host byte order.
fn ipv4(table: &str, index: u32) -> Vec<Ipv4Addr> {
    let mut is_it = false;
    let mut groups = Vec::new();
    for line in table.lines().skip(1) {
        let first = line.split_whitespace().next().unwrap_or_default();
        if !line.starts_with(char::is_whitespace) {
            is_it = first.parse() == Ok(index);
        } else if let Some(number) = u32::from_str_radix(first, 16).ok().filter(|_| is_it) {
            groups.push(Ipv4Addr::from(number.to_ne_bytes()));
        }
    }
    groups.retain(|group| *group != ALL_HOSTS);
    groups
}

/// Returns the groups of an interface from the contents of `/proc/net/igmp6`, in which each line has the index
/// and the name of an interface, and a group.
fn ipv6(table: &str, index: u32) -> Vec<Ipv6Addr> {
    let groups = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let is_it = words.next()?.parse() == Ok(index);
        let number = u128::from_str_radix(words.nth(1)?, 16).ok().filter(|_| is_it)?;
        Some(Ipv6Addr::from(number))
    });
    // A solicited-node group is joined with its address, and every interface joins all-nodes.
    let is_of_every = |group: &Ipv6Addr| {
        let [first, .., before_last, _] = group.segments();
        let is_all_nodes = group.segments()[1..7] == [0; 6] && group.segments()[7] == 1;
        is_all_nodes || (first == 0xff02 && before_last >> 8 == 0xff)
    };
    groups.filter(|group| !is_of_every(group)).collect()
}

const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_one_interface_are_read() {
        let table = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
                     1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
                     3\teth1      :     2      V3\n\t\t\t\tFB0000E0     1 0:00000000\t\t0\n\
                     \t\t\t\t010000E0     1 0:00000000\t\t0\n";
        let expected = Ipv4Addr::from(u32::from_str_radix("FB0000E0", 16).unwrap().to_ne_bytes());
        assert_eq!(ipv4(table, 3), [expected]);
        assert_eq!(ipv4(table, 1), [Ipv4Addr::LOCALHOST; 0]);
        let table = "1    lo              ff020000000000000000000000000001     1 0000000C 0\n\
                     3    eth1            ff0200000000000000000000000000fb     1 00000004 0\n\
                     3    eth1            ff0200000000000000000001ff000002     1 00000004 0\n\
                     3    eth1            ff010000000000000000000000000001     1 00000008 0\n";
        assert_eq!(ipv6(table, 3), ["ff02::fb".parse::<Ipv6Addr>().unwrap()]);
        assert_eq!(ipv6("nonsense\n3 x\n", 3), [Ipv6Addr::LOCALHOST; 0]);
    }
}
