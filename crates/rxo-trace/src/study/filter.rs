//! The packet filter: a small language of addresses and ports.
//!
//! ```text
//! filter = either { "or" either }
//! either = term { "and" term }
//! term   = [ "not" ] [ "src" | "dst" ] ( [ "host" | "net" ] ADDRESS[/LENGTH] | "port" NUMBER )
//! ```
//!
//! It works like a capture filter: packets that do not match are treated as if they had not been
//! captured. A packet without ports (a fragment) matches no port; a packet that is not IP matches
//! nothing.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use rxo_wire::FlowKey;

/// A parsed filter. It matches if every term of one of its groups does.
///
/// # Examples
/// ```
/// use rxo_trace::study::Filter;
/// use rxo_wire::FlowKey;
///
/// let filter: Filter = "src net 10.0.0.0/8 and not port 22".parse()?;
/// let to = |port: u32| FlowKey::v4(0x0a00_0001, 0x0a00_0002, 40_000 << 16 | port, 0);
/// assert!(filter.matches(Some(&to(443))));
/// assert!(!filter.matches(Some(&to(22))) && !filter.matches(None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    text: String,
    groups: Vec<Vec<Term>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Term {
    is_negated: bool,
    side: Side,
    what: FilterKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Source,
    Destination,
    Either,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilterKind {
    Network { prefix: u128, length: u8, is_v6: bool },
    Port(u16),
}

impl Filter {
    /// Returns `true` if a packet of the flow `key` matches; `None` stands for a packet that is not IP.
    #[must_use]
    pub fn matches(&self, key: Option<&FlowKey>) -> bool {
        key.is_some_and(|key| {
            self.groups.iter().any(|terms| terms.iter().all(|term| term.matches(key)))
        })
    }
}

impl Term {
    fn matches(&self, key: &FlowKey) -> bool {
        let source = || self.what.matches(key.source(), key.source_port());
        let destination = || self.what.matches(key.destination(), key.destination_port());
        let matches = match self.side {
            Side::Source => source(),
            Side::Destination => destination(),
            Side::Either => source() || destination(),
        };
        matches != self.is_negated
    }
}

impl FilterKind {
    fn matches(self, address: IpAddr, port: u16) -> bool {
        match self {
            Self::Port(wanted) => port == wanted,
            Self::Network { prefix, length, is_v6 } => {
                address.is_ipv6() == is_v6 && bits(address) & mask(length, is_v6) == prefix
            }
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Returns a mask of the upper `length` bits of an IPv4 or IPv6 address.
const fn mask(length: u8, is_v6: bool) -> u128 {
    let width = if is_v6 { 128 } else { 32 };
    let below = width - length as u32;
    if below == 128 { 0 } else { u128::MAX << below }
}

/// The error of parsing a filter: the first word that is not understood, and the words that would be accepted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    word: String,
    expected: &'static str,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.word.as_str() {
            "" => write!(f, "ends too early: expected {}", self.expected),
            word => write!(f, "'{word}' is not understood: expected {}", self.expected),
        }
    }
}

impl core::error::Error for FilterError {}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut words = Words { rest: text.split_whitespace().collect(), at: 0 };
        let mut groups = vec![vec![words.term()?]];
        while let Some(word) = words.next() {
            match word {
                "or" => groups.push(vec![words.term()?]),
                "and" => {
                    let term = words.term()?;
                    groups.last_mut().into_iter().for_each(|terms| terms.push(term));
                }
                word => return Err(error(word, "and, or, or the end")),
            }
        }
        Ok(Self { text: words.rest.join(" "), groups })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const TERM: &str = "[not] [src|dst] host ADDRESS, net ADDRESS/LENGTH or port NUMBER, such as \
                    \"dst 10.0.0.1 and port 445\"";
const PORT: &str = "a port from 0 to 65535";

struct Words<'a> {
    rest: Vec<&'a str>,
    at: usize,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.rest.get(self.at).copied();
        self.at += 1;
        word
    }

    /// Removes the next word from the text if it is `word`. Returns `true` if it was.
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    fn term(&mut self) -> Result<Term, FilterError> {
        let is_negated = self.take("not");
        let side = if self.take("src") {
            Side::Source
        } else if self.take("dst") {
            Side::Destination
        } else {
            Side::Either
        };
        Ok(Term { is_negated, side, what: self.parse_kind()? })
    }

    fn parse_kind(&mut self) -> Result<FilterKind, FilterError> {
        if self.take("port") {
            let word = self.next().unwrap_or_default();
            return word.parse().map(FilterKind::Port).map_err(|_| error(word, PORT));
        }
        _ = self.take("host") || self.take("net");
        let word = self.next().unwrap_or_default();
        network(word).ok_or_else(|| error(word, TERM))
    }
}

fn network(word: &str) -> Option<FilterKind> {
    let (address, length) = word.split_once('/').map_or((word, None), |(a, l)| (a, Some(l)));
    let address: IpAddr = address.parse().ok()?;
    // Flow keys contain IPv4-mapped addresses as IPv4 addresses.
    let is_v6 = address.to_canonical().is_ipv6();
    let address = address.to_canonical();
    let longest = if is_v6 { 128 } else { 32 };
    let length = match length {
        None => longest,
        Some(text) => text.parse().ok().filter(|length| *length <= longest)?,
    };
    Some(FilterKind::Network { prefix: bits(address) & mask(length, is_v6), length, is_v6 })
}

fn error(word: &str, expected: &'static str) -> FilterError {
    FilterError { word: word.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(source: [u8; 4], source_port: u16, destination: [u8; 4], port: u16) -> FlowKey {
        let ports = u32::from(source_port) << 16 | u32::from(port);
        FlowKey::v4(u32::from_be_bytes(source), u32::from_be_bytes(destination), ports, 0)
    }

    fn matches(filter: &str, key: &FlowKey) -> bool {
        filter.parse::<Filter>().unwrap().matches(Some(key))
    }

    #[test]
    fn terms_look_at_their_side() {
        let key = v4([10, 0, 0, 1], 445, [10, 0, 1, 2], 50_000);
        let rows = [
            ("10.0.0.1", true),
            ("host 10.0.1.2", true),
            ("src 10.0.0.1", true),
            ("src host 10.0.1.2", false),
            ("dst 10.0.1.2 and port 445", true),
            ("dst port 445", false),
            ("src port 445", true),
            ("net 10.0.0.0/24", true),
            ("dst net 10.0.0.0/24", false),
            ("10.0.0.0/8", true),
            ("0.0.0.0/0", true),
            ("::/0", false),
            ("not port 80", true),
            ("not src 10.0.0.1", false),
            ("port 80 or port 445 and dst 10.0.1.2", true),
            ("port 445 and port 80 or port 81", false),
        ];
        for (filter, expected) in rows {
            assert_eq!(matches(filter, &key), expected, "{filter}");
        }
    }

    #[test]
    fn ipv6_has_its_own_networks() {
        let mut addresses = [0; 32];
        addresses[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        addresses[31] = 1;
        let key = FlowKey::v6(&addresses, 443, 0);
        let rows =
            [("2001:db8::/32", true), ("src 2001:db8::", true), ("dst ::1", true), ("::2", false)];
        for (filter, expected) in rows {
            assert_eq!(matches(filter, &key), expected, "{filter}");
        }
    }

    #[test]
    fn what_is_not_ip_matches_nothing() {
        assert!(!"not port 80".parse::<Filter>().unwrap().matches(None));
    }

    #[test]
    fn an_error_names_the_word_and_what_could_stand_there() {
        let rows = [
            ("", "ends too early: expected [not] [src|dst] host"),
            ("port", "ends too early: expected a port"),
            ("port 70000", "'70000' is not understood: expected a port from 0"),
            ("host example.org", "'example.org' is not understood: expected [not]"),
            ("10.0.0.0/33", "'10.0.0.0/33' is not understood"),
            ("10.0.0.1 port 80", "'port' is not understood: expected and, or, or the end"),
            ("10.0.0.1 and", "ends too early"),
        ];
        for (filter, message) in rows {
            let error = filter.parse::<Filter>().unwrap_err().to_string();
            assert!(error.starts_with(message), "{filter}: {error}");
            assert!(!error.contains('\n'));
        }
    }

    #[test]
    fn it_is_shown_as_it_was_typed() {
        assert_eq!(
            "dst  10.0.0.1 and port 445".parse::<Filter>().unwrap().to_string(),
            "dst 10.0.0.1 and port 445"
        );
    }
}
