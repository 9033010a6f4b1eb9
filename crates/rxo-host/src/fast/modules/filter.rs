//! The filter: rules that drop or pass packets by address and port.
//!
//! ```text
//! rule = ( "drop" | "pass" ) [ "from" end ] [ "to" end ]
//! end  = ADDRESS[/LENGTH] [ "port" NUMBER ] | "port" NUMBER
//! ```
//!
//! The first matching rule determines if a packet is dropped or passes; a packet without a matching rule
//! passes. A packet without ports (a fragment) does not match a rule with a port.

use std::str::FromStr;

use rxo_wire::FlowKey;

use crate::FastPathError;
use crate::link::{CidrError, IpCidr};

/// One rule of the filter: `drop from 10.0.0.0/8 to port 80`.
///
/// # Examples
/// ```
/// use rxo_host::FilterRule;
///
/// assert!("drop from 10.0.0.0/8 port 53 to 192.0.2.1".parse::<FilterRule>().is_ok());
/// assert!("drop everything".parse::<FilterRule>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRule(bool, [End; 2]);

/// The condition of a rule for the source or the destination: a network and a port. `None` matches any network
/// or port.
type End = (Option<IpCidr>, Option<u16>);

/// Returns `true` if the first of `rules` that matches drops packets of the flow `key`.
pub(super) fn drops(rules: &[FilterRule], key: &FlowKey) -> bool {
    let packet = [(key.source(), key.source_port()), (key.destination(), key.destination_port())];
    let matches = |FilterRule(_, ends): &&FilterRule| {
        ends.iter().zip(packet).all(|((network, wanted), (address, port))| {
            network.is_none_or(|network| network.contains(address))
                && wanted.is_none_or(|wanted| wanted == port)
        })
    };
    rules.iter().find(matches).is_some_and(|FilterRule(drops, _)| *drops)
}

impl FromStr for FilterRule {
    type Err = FastPathError;

    fn from_str(rule: &str) -> Result<Self, FastPathError> {
        read(rule).map_err(|what| FastPathError::NoRule(rule.to_owned(), what))
    }
}

fn read(rule: &str) -> Result<FilterRule, String> {
    let mut words = rule.split_whitespace().peekable();
    let drops = match words.next() {
        Some(verb @ ("drop" | "pass")) => verb == "drop",
        _ => return Err("it begins with neither drop nor pass".to_owned()),
    };
    let mut ends = [End::default(); 2];
    for (end, word) in ends.iter_mut().zip(["from", "to"]) {
        if words.next_if_eq(&word).is_some() {
            let network = words.next_if(|word| *word != "port").map(read_network).transpose()?;
            let port = words.next_if_eq(&"port").map(|_| words.next().unwrap_or_default());
            let read_port = |text: &str| text.parse().map_err(|_| format!("{text:?} is no port"));
            *end = (network, port.map(read_port).transpose()?);
            if *end == End::default() {
                return Err("an address or a port is missing".to_owned());
            }
        }
    }
    let unexpected = |word| Err(format!("{word:?} is not expected there"));
    words.next().map_or(Ok(FilterRule(drops, ends)), unexpected)
}

fn read_network(text: &str) -> Result<IpCidr, String> {
    text.parse::<IpCidr>().or_else(|error| match error {
        CidrError::NoPrefix { address } => Ok(IpCidr::of_host(address)),
        error => Err(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: [u8; 4], destination_port: u32) -> FlowKey {
        let to = u32::from_be_bytes([192, 0, 2, 1]);
        FlowKey::v4(u32::from_be_bytes(source), to, 9_000 << 16 | destination_port, 0)
    }

    fn verdict(rules: &[&str], key: &FlowKey) -> bool {
        let rules: Vec<FilterRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        drops(&rules, key)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = ["pass from 10.1.0.0/16", "drop from 10.0.0.0/8 to port 80"];
        assert!(verdict(&rules, &key([10, 2, 0, 1], 80)));
        assert!(!verdict(&rules, &key([10, 1, 0, 1], 80)), "passed before");
        assert!(!verdict(&rules, &key([10, 2, 0, 1], 81)), "another port");
        assert!(!verdict(&rules, &key([11, 2, 0, 1], 80)), "no rule");
        assert!(verdict(&["drop"], &key([1, 1, 1, 1], 1)));
        assert!(verdict(&["drop to 192.0.2.1 port 7"], &key([1, 1, 1, 1], 7)));
        assert!(!verdict(&["drop from fd00::/8"], &key([1, 1, 1, 1], 7)));
    }

    #[test]
    fn what_is_no_rule_is_named() {
        for (rule, what) in [
            ("", "neither drop nor pass"),
            ("drop from", "is missing"),
            ("drop from port 70000", "is no port"),
            ("drop from 10.0.0.0/33", "33"),
            ("drop to port 1 from port 2", "is not expected"),
        ] {
            let said = rule.parse::<FilterRule>().unwrap_err().to_string();
            assert!(said.contains(what), "{rule}: {said}");
        }
    }
}
