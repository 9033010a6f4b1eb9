//! The filter: rules that drop or pass packets by address and port.
//!
//! ```text
//! rule = ( "drop" | "pass" ) [ "from" end ] [ "to" end ]
//! end  = ADDRESS[/LENGTH] [ "port" NUMBER ] | "port" NUMBER
//! ```
//!
//! The first rule that matches decides; what matches none passes. A packet without ports (a fragment) matches no
//! rule with a port.

use std::net::IpAddr;
use std::str::{FromStr, SplitWhitespace};

use rxo_wire::FlowKey;
use thiserror::Error;

use crate::link::IpCidr;

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
pub struct FilterRule {
    drops: bool,
    from: End,
    to: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct End {
    network: Option<IpCidr>,
    port: Option<u16>,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{rule:?} is no rule: {what}; write one like `drop from 10.0.0.0/8 port 53 to 192.0.2.1`")]
pub struct RuleError {
    rule: String,
    what: String,
}

/// Whether the first of `rules` that matches drops packets of the flow `key`.
pub(super) fn drops(rules: &[FilterRule], key: &FlowKey) -> bool {
    rules.iter().find(|rule| rule.matches(key)).is_some_and(|rule| rule.drops)
}

impl FilterRule {
    fn matches(&self, key: &FlowKey) -> bool {
        self.from.matches(key.source(), key.source_port())
            && self.to.matches(key.destination(), key.destination_port())
    }
}

impl End {
    fn matches(&self, address: IpAddr, port: u16) -> bool {
        self.network.is_none_or(|network| network.contains(address))
            && self.port.is_none_or(|wanted| wanted == port)
    }

    /// Reads what follows `from` or `to`. Returns the word after it.
    fn read<'a>(words: &mut SplitWhitespace<'a>) -> Result<(Self, Option<&'a str>), String> {
        let mut end = Self::default();
        let mut word = words.next();
        if let Some(text) = word.filter(|word| *word != "port") {
            end.network = Some(network(text)?);
            word = words.next();
        }
        if word == Some("port") {
            let number = words.next().unwrap_or_default();
            end.port = Some(number.parse().map_err(|_| format!("{number:?} is no port"))?);
            word = words.next();
        }
        match end == Self::default() {
            true => Err("an address or a port is missing".to_owned()),
            false => Ok((end, word)),
        }
    }
}

fn network(text: &str) -> Result<IpCidr, String> {
    let read = match text.parse::<IpAddr>() {
        Ok(address) => IpCidr::new(address, if address.is_ipv4() { 32 } else { 128 }),
        Err(_) => text.parse(),
    };
    read.map_err(|error| error.to_string())
}

impl FromStr for FilterRule {
    type Err = RuleError;

    fn from_str(rule: &str) -> Result<Self, RuleError> {
        read(rule).map_err(|what| RuleError { rule: rule.to_owned(), what })
    }
}

fn read(rule: &str) -> Result<FilterRule, String> {
    let mut words = rule.split_whitespace();
    let drops = match words.next() {
        Some("drop") => true,
        Some("pass") => false,
        _ => return Err("it begins with neither drop nor pass".to_owned()),
    };
    let (mut from, mut to, mut word) = (End::default(), End::default(), words.next());
    if word == Some("from") {
        (from, word) = End::read(&mut words)?;
    }
    if word == Some("to") {
        (to, word) = End::read(&mut words)?;
    }
    match word {
        None => Ok(FilterRule { drops, from, to }),
        Some(word) => Err(format!("{word:?} is not expected there")),
    }
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
