//! Path MTUs: destinations that need smaller packets than the link allows (RFC 1191, section 6; RFC 8201,
//! section 5).
//!
//! The table outlives connections: the next connection to a destination starts with the path MTU that an
//! earlier connection found and validated (RFC 5927). An entry expires after ten minutes, when each connection
//! tries larger segments by itself. The table is bounded: a full table evicts the oldest entry.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rxo_frame::{Duration, Instant};
use rxo_tcp::Connection;

/// A table of path MTUs by destination.
#[derive(Debug, Default)]
pub(super) struct Paths {
    known: BTreeMap<IpAddr, KnownPath>,
}

/// The stored path MTU of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownPath {
    /// The largest IP packet that the path carries, in bytes.
    mtu: u32,
    /// The time at which a larger packet may be tried.
    until: Instant,
}

impl Paths {
    /// Stores the path MTU that the connection has found, if any.
    pub(super) fn store<B: AsRef<[u8]>>(&mut self, connection: &Connection<B>, now: Instant) {
        self.learn(connection.pair().destination(), connection.path_mtu(), now);
    }

    /// Records that IP packets of at most `mtu` bytes reach `destination`; `None` if packets of all sizes reach
    /// it.
    fn learn(&mut self, destination: IpAddr, mtu: Option<u32>, now: Instant) {
        let Some(mtu) = mtu else {
            self.known.remove(&destination);
            return;
        };
        if self.known.len() >= MOST_DESTINATIONS && !self.known.contains_key(&destination) {
            let oldest = self.known.iter().min_by_key(|(_, path)| path.until);
            if let Some(oldest) = oldest.map(|(destination, _)| *destination) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(destination, KnownPath { mtu, until: now + AGE });
    }

    /// Sets the path MTU of a new connection to the stored value, if any.
    pub(super) fn apply<B: AsRef<[u8]>>(&self, connection: &mut Connection<B>, now: Instant) {
        if let Some(path) = self.to(connection.pair().destination(), now) {
            connection.know_path(path.mtu, path.until);
        }
    }

    /// Returns the path MTU of `destination`; `None` if it is unknown or has expired.
    fn to(&self, destination: IpAddr, now: Instant) -> Option<KnownPath> {
        self.known.get(&destination).copied().filter(|path| now < path.until)
    }
}

const MOST_DESTINATIONS: usize = 256;
/// The lifetime of an entry in the table (RFC 1191, section 6.3; RFC 8201, section 5.3).
const AGE: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn host(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// RFC 1191, section 6.3: an entry is valid for ten minutes after it was last found.
    #[test]
    fn what_is_known_grows_old() {
        let mut paths = Paths::default();
        let mtu = |paths: &Paths, now| paths.to(host(1), now).map(|path| path.mtu);
        paths.learn(host(1), Some(1_400), at(0));
        assert_eq!((mtu(&paths, at(599)), mtu(&paths, at(600))), (Some(1_400), None));
        assert_eq!(paths.to(host(2), at(0)), None);
        paths.learn(host(1), Some(1_300), at(500));
        assert_eq!((mtu(&paths, at(1_099)), mtu(&paths, at(1_100))), (Some(1_300), None));
        paths.learn(host(1), None, at(900));
        assert_eq!(mtu(&paths, at(900)), None);
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut paths = Paths::default();
        for number in 0..1_000 {
            paths.learn(host(number), Some(1_400), at(number.into()));
            assert!(paths.known.len() <= MOST_DESTINATIONS);
        }
        // Updating an existing entry evicts none.
        paths.learn(host(999), Some(1_300), at(1_000));
        let known = (0..1_000).filter(|number| paths.to(host(*number), at(500)).is_some());
        assert!(known.eq(1_000 - MOST_DESTINATIONS as u32..1_000));
    }
}
