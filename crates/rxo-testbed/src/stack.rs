//! Reads the counters of IP and TCP in a network namespace.

use std::fs;
use std::io;
use std::net::TcpStream;

use crate::error::{Context, Result};
use crate::namespace::Namespace;
use crate::sys;

/// Totals of the network stack of a namespace since it was created, for IPv4 and IPv6 together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackCounters {
    /// The number of packets that reached IP. An aggregate counts as one packet, whether rxo or the kernel
    /// built the aggregate, because the stack processes an aggregate once.
    pub deliveries: u64,
    /// The number of packets that IP sent. A GSO frame counts as one packet.
    pub sends: u64,
    /// The number of segments that TCP retransmitted.
    pub retransmitted_segments: u64,
    /// The number of segments that TCP dropped because of a wrong checksum.
    pub bad_checksums: u64,
    /// The number of ACKs that reported a duplicate segment to this stack's TCP (D-SACK, RFC 2883).
    pub duplicates_told: u64,
    /// The number of packets marked CE that reached IP. A packet that the kernel coalesced counts once for each
    /// of its segments.
    pub ce_marks: u64,
    /// The number of datagrams that found the receive buffer of their IPv4 socket full: the application was too slow.
    pub datagrams_not_taken: u64,
}

/// Returns the number of bytes that the kernel has allocated for the queues of a TCP socket or set aside for them,
/// without the socket itself.
///
/// # Errors
/// If the kernel does not support the query.
pub fn socket_memory_bytes(socket: &TcpStream) -> io::Result<u64> {
    sys::memory_bytes(socket)
}

impl Namespace {
    /// Reads the counters of IP and TCP in this namespace.
    ///
    /// # Errors
    /// If the counters cannot be read.
    pub fn stack_counters(&self) -> Result<StackCounters> {
        // `/proc/net` would show the network of the process, not of the thread.
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let all = || Ok((read("snmp")?, or_empty(read("snmp6"))?, read("netstat")?));
        let (v4, v6, more): (String, String, String) = self
            .run(all)?
            .context(|| format!("cannot read the counters of namespace \"{}\"", self.label()))?;
        Ok(StackCounters {
            deliveries: in_table(&v4, "Ip:", "InReceives") + in_list(&v6, "Ip6InReceives"),
            sends: in_table(&v4, "Ip:", "OutRequests") + in_list(&v6, "Ip6OutRequests"),
            retransmitted_segments: in_table(&v4, "Tcp:", "RetransSegs"),
            bad_checksums: in_table(&v4, "Tcp:", "InCsumErrors"),
            duplicates_told: in_table(&more, "TcpExt:", "TCPDSACKRecv"),
            ce_marks: in_table(&more, "IpExt:", "InCEPkts") + in_list(&v6, "Ip6InCEPkts"),
            datagrams_not_taken: in_table(&v4, "Udp:", "RcvbufErrors"),
        })
    }
}

/// Returns the contents of a file, given the result of reading it; an empty string if the file does not exist,
/// as in a kernel without IPv6.
fn or_empty(text: io::Result<String>) -> io::Result<String> {
    match text {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other,
    }
}

/// Returns a value of `/proc/net/snmp`, in which a line of names is followed by a line of values. 0 if the
/// value is missing.
fn in_table(text: &str, protocol: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with(protocol));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut columns = names.split_whitespace().zip(values.split_whitespace());
    columns
        .find(|(column, _)| *column == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0)
}

/// Returns a value of `/proc/net/snmp6`, in which each line has a name and a value. 0 if the value is
/// missing.
fn in_list(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    lines
        .find(|(key, _)| *key == name)
        .and_then(|(_, value)| value.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name() {
        let v4 = "Ip: Forwarding InReceives\nIp: 1 4711\nTcp: RtoMin RetransSegs\nTcp: 200 3\n";
        assert_eq!(in_table(v4, "Ip:", "InReceives"), 4711);
        assert_eq!(in_table(v4, "Tcp:", "RetransSegs"), 3);
        assert_eq!(in_table(v4, "Udp:", "InErrors"), 0);
        assert_eq!(in_list("Ip6InReceives   \t12\nIp6OutRequests 5\n", "Ip6OutRequests"), 5);
        assert_eq!(in_list("", "Ip6InReceives"), 0);
    }
}
