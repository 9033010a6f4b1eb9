//! Encodes holdings and settings as lines of a record file, which outlives the process.
//!
//! A line is a keyword and the bytes of a netlink dump, in hexadecimal. Contract: reading restores exactly what
//! was written; an invalid line is skipped without affecting the others.

use rxo_frame::Instant;

use super::address::Address;
use super::holdings::Holdings;
use super::link::Link;
use super::neighbour::Neighbour;
use super::route::Route;
use super::settings::Settings;

impl Holdings {
    /// Encodes the holdings as lines of a record.
    #[must_use]
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let addresses = self.addresses.iter().map(|one| line(ADDRESS, &one.0.shown()));
        let routes = self.routes.iter().map(|one| line(ROUTE, &one.0.shown()));
        let neighbours = self.neighbours.iter().map(|one| line(NEIGHBOUR, &one.0.shown()));
        let read_at = format!("{READ_AT} {}", self.read_at.as_nanos());
        let dependents = self.dependents.iter().map(|one| line(DEPENDENT, &one.0.shown()));
        let origin = format!("{ORIGIN} {} {}", self.link.index, self.link.name);
        let objects = addresses.chain(routes).chain(neighbours).chain(dependents);
        let accepts_advertisements =
            self.accepts_advertisements.then(|| ACCEPTS_ADVERTISEMENTS.to_owned());
        objects.chain([read_at, origin]).chain(accepts_advertisements).collect()
    }

    /// Parses the holdings from the lines of a record. The holdings belong to `link`, or to the interface
    /// that it replaced.
    #[must_use]
    pub(crate) fn from_lines(link: &Link, lines: &str) -> Self {
        let read_at = values(lines, READ_AT).find_map(|value| value.parse().ok());
        let origin = values(lines, ORIGIN).find_map(|value| {
            let (index, name) = value.split_once(' ')?;
            Some(Link { index: index.parse().ok()?, name: name.to_owned(), ..link.clone() })
        });
        Self {
            link: origin.unwrap_or_else(|| link.clone()),
            dependents: objects(lines, DEPENDENT, Route::read),
            addresses: objects(lines, ADDRESS, Address::read),
            routes: objects(lines, ROUTE, Route::read),
            neighbours: objects(lines, NEIGHBOUR, Neighbour::read),
            accepts_advertisements: lines.lines().any(|line| line == ACCEPTS_ADVERTISEMENTS),
            read_at: Instant::from_nanos(read_at.unwrap_or(0)),
        }
    }
}

impl Settings {
    /// Encodes the switches that a run changes as lines of a record.
    #[must_use]
    pub(crate) fn to_lines(&self) -> Vec<String> {
        self.changed().map(|(switch, value)| format!("{switch} {value}")).collect()
    }

    /// Parses the switches from the lines of a record.
    #[must_use]
    pub(crate) fn from_lines(lines: &str) -> Self {
        let switches = Self::CHANGED.iter();
        let found = switches.filter_map(|&switch| Some((switch, values(lines, switch).next()?)));
        Self::with_ipv6(found)
    }
}

fn objects<T>(lines: &str, word: &str, read: impl Fn(&[u8]) -> Option<T>) -> Vec<T> {
    values(lines, word).filter_map(|hex| read(&bytes(hex)?)).collect()
}

fn values<'a>(lines: &'a str, word: &str) -> impl Iterator<Item = &'a str> {
    lines.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '))
}

fn line(word: &str, bytes: &[u8]) -> String {
    let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
    format!("{word} {}", hex.collect::<String>())
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

const ADDRESS: &str = "address";
const ROUTE: &str = "route";
const NEIGHBOUR: &str = "neighbour";
const DEPENDENT: &str = "dependent";
/// Keyword of the line with the interface that had the holdings: its index and name.
const ORIGIN: &str = "origin";
const ACCEPTS_ADVERTISEMENTS: &str = "hears_advertisements";
const READ_AT: &str = "read_at";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let link = Link::read(1).unwrap().unwrap();
        let holdings = Holdings::read(&link).unwrap();
        let lines = holdings.to_lines();
        let again = Holdings::from_lines(&link, &lines.join("\n"));
        assert_eq!(again.to_lines(), lines);
        assert!(again.addresses().eq(holdings.addresses()));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let link = Link::read(1).unwrap().unwrap();
        let lines =
            "address 02\naddress xyz\naddress 123\nroute\nnonsense\nread_at x\nneighbour 00";
        let holdings = Holdings::from_lines(&link, lines);
        assert_eq!(holdings.to_lines(), ["read_at 0", "origin 1 lo"]);
        assert_eq!(bytes("0aFf"), Some(vec![10, 255]));
    }

    #[test]
    fn the_switches_that_change_are_kept() {
        let settings = Settings::from_lines("addr_gen_mode 3\ndisable_ipv6 0\nforwarding 1");
        assert!(settings.has_ipv6());
        assert_eq!(settings.to_lines(), ["addr_gen_mode 3", "disable_ipv6 0"]);
    }
}
