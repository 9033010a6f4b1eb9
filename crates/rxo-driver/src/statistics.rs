//! Statistics: the kernel's counters of an interface, read from `/proc/net/dev`.
//!
//! This module is separate because both TAPs and packet sockets read the counters: neither can count all losses
//! itself, because the kernel drops packets before rxo reads them. Netlink is not used, because the kernel answers
//! its requests under the lock of all network configuration (RTNL). Other programs hold this lock for seconds while
//! they remove many interfaces, and the packet path would wait for it. Contract: the counters are totals since the
//! interface was created; reading changes nothing and waits for no other process. A reading takes a microsecond for
//! each interface in the namespace.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt;

use crate::{Interface, sys};

/// The size of one read, in bytes: no more than the page that the kernel fills, so that the kernel generates no
/// line twice.
const READ_BYTES: usize = 4_096;

/// The column of `/proc/net/dev` with the number of packets received.
const RECEIVED: usize = 1;
/// The column of `/proc/net/dev` with the number of packets sent.
const SENT: usize = 9;
/// The column of `/proc/net/dev` with the number of packets that failed to be sent.
const FAILED: usize = 10;
/// The column of `/proc/net/dev` with the number of packets that were dropped before they were sent.
const SENT_DROPS: usize = 11;

/// Reads the counters of one interface. Needs no privilege.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// The file `/proc/net/dev` of the namespace of the thread that opened it.
    file: File,
    /// The socket that looks up the interface's name, opened early because a confined process may create no
    /// sockets.
    control: OwnedFd,
    index: u32,
}

/// Counters of an interface, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Number of packets that arrived at the interface.
    pub(crate) received: u64,
    /// Number of packets from the host that the interface dropped before sending them.
    pub(crate) sent_drops: u64,
    /// Number of packets that the interface has sent, or dropped for any reason.
    pub(crate) departed: u64,
}

impl Statistics {
    /// Opens the counters of the interface with this index, in the namespace of this thread.
    ///
    /// # Errors
    /// If `/proc` does not exist, or the system has no descriptors left.
    pub(crate) fn of(index: i32) -> io::Result<Self> {
        let file = File::open("/proc/thread-self/net/dev")?;
        let control = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        Ok(Self { file, control, index: index.unsigned_abs() })
    }

    /// Reads the counters of the interface; `None` if the interface is gone. Allocates.
    pub(crate) fn read(&self) -> Option<Totals> {
        // The interface may have been renamed since the last call.
        let name = Interface::named(self.control.as_fd(), self.index)?;
        let (mut text, mut length) = (Vec::new(), 0);
        loop {
            text.resize(length + READ_BYTES, 0);
            match self.file.read_at(&mut text[length..], length as u64).ok()? {
                0 => break,
                read => length += read,
            }
        }
        parse(std::str::from_utf8(&text[..length]).ok()?, &name)
    }
}

/// Parses the line of the interface `name`: the name, a colon, and the columns. `None` if there is no such
/// line, or a column is missing.
fn parse(text: &str, name: &str) -> Option<Totals> {
    let of_line = |line: &str| {
        let columns = line.trim_start().strip_prefix(name)?.strip_prefix(':')?;
        let column = |number| columns.split_whitespace().nth(number)?.parse().ok();
        let [sent, failed, sent_drops] = [column(SENT)?, column(FAILED)?, column(SENT_DROPS)?];
        Some(Totals {
            received: column(RECEIVED)?,
            sent_drops,
            departed: sent + failed + sent_drops,
        })
    };
    text.lines().find_map(of_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth1: 123456789 4711    0    7    0     0          0         0     5000      60    0    9    0     0       0          0
eth1-nic: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
";

    #[test]
    fn the_line_of_the_interface_is_found_by_its_whole_name() {
        let of = |name| {
            parse(TEXT, name).map(|totals| (totals.received, totals.sent_drops, totals.departed))
        };
        assert_eq!(of("eth1"), Some((4_711, 9, 69)));
        assert_eq!(of("eth1-nic"), Some((2, 12, 33)));
        assert_eq!(of("lo"), Some((2, 0, 2)));
        assert_eq!((of("eth"), of("face"), of("h1")), (None, None, None));
    }

    #[test]
    fn the_loopback_has_counters_again_and_again() {
        let index = Interface::find("lo").unwrap().index().unwrap();
        let statistics = Statistics::of(index).unwrap();
        let first = statistics.read().unwrap();
        let second = statistics.read().unwrap();
        assert!(second.received >= first.received);
        assert_eq!(Statistics::of(i32::MAX).unwrap().read(), None);
    }
}
