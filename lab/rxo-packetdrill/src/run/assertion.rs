//! Code of a script: `%{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%`.
//!
//! packetdrill passes code to Python, with the fields of TCP_INFO as variables. This runner supports
//! assertions that compare fields with numbers, one-sided or between two bounds, which is nearly all code in
//! scripts. The text after a comma is ignored; anything else is refused.

use std::str::FromStr;

use super::{Runner, Wrong};
use crate::machine::TcpInfo;

impl Runner {
    /// Checks every assertion of `code` on the connection that was connected or accepted last.
    pub(super) fn code(&mut self, code: &str) -> Result<(), Wrong> {
        let info = self.info()?;
        let whole = code.replace("\\\n", " ");
        for statement in whole.split(['\n', ';']).map(str::trim).filter(|text| !says_nothing(text))
        {
            let assertion: Assertion = statement.parse()?;
            assertion.check(&info)?;
        }
        Ok(())
    }

    fn info(&mut self) -> Result<TcpInfo, Wrong> {
        let info = self.under_test.and_then(|fd| self.machine.info(fd).ok());
        info.ok_or_else(|| Wrong::new("a connection to look at", "none"))
    }
}

/// Returns `true` if `statement` is empty, a comment, or assigns a name the number that it has anyway.
fn says_nothing(statement: &str) -> bool {
    let is_known = |(name, value): (&str, &str)| {
        let number = constant(name.trim()).map(Operand::Number);
        number.is_some() && operand(value.trim()) == number
    };
    statement.is_empty()
        || statement.starts_with('#')
        || statement.split_once(" = ").is_some_and(is_known)
}

/// A chain of comparisons such as `5000 <= tcpi_rtt <= 20000`: each operand is compared with the next.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Assertion {
    first: Operand,
    rest: Vec<(Comparison, Operand)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    Field(String),
    Number(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Less,
    More,
}

impl FromStr for Assertion {
    type Err = Wrong;

    fn from_str(statement: &str) -> Result<Self, Wrong> {
        let refused = || Wrong::new("assert FIELD == NUMBER, or <=, <, !=, >, >=", statement);
        let text = statement.strip_prefix("assert ").ok_or_else(refused)?;
        let text = text.split(',').next().unwrap_or(text);
        let mut words = text.split_whitespace();
        let first = words.next().and_then(operand).ok_or_else(refused)?;
        let mut rest = Vec::new();
        while let Some(word) = words.next() {
            let comparison = comparison(word).ok_or_else(refused)?;
            rest.push((comparison, words.next().and_then(operand).ok_or_else(refused)?));
        }
        if rest.is_empty() {
            return Err(refused());
        }
        Ok(Self { first, rest })
    }
}

impl Assertion {
    fn check(&self, info: &TcpInfo) -> Result<(), Wrong> {
        let mut left = self.first.value(info)?;
        let mut before = &self.first;
        for (comparison, operand) in &self.rest {
            let right = operand.value(info)?;
            if !comparison.holds(left, right) {
                let expected = format!("{before} {comparison:?} {operand}");
                return Err(Wrong::new(expected, format!("{left} and {right}")));
            }
            (left, before) = (right, operand);
        }
        Ok(())
    }
}

impl Operand {
    fn value(&self, info: &TcpInfo) -> Result<u64, Wrong> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Field(name) => name
                .strip_prefix("tcpi_")
                .and_then(|field| info.get(field))
                .or_else(|| constant(name))
                .ok_or_else(|| Wrong::new("a field of TCP_INFO that the host has", name)),
        }
    }
}

impl std::fmt::Display for Operand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field(name) => f.write_str(name),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl Comparison {
    fn holds(self, left: u64, right: u64) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::AtMost => left <= right,
            Self::AtLeast => left >= right,
            Self::Less => left < right,
            Self::More => left > right,
        }
    }
}

fn comparison(word: &str) -> Option<Comparison> {
    Some(match word {
        "==" => Comparison::Equal,
        "!=" => Comparison::Unequal,
        "<=" => Comparison::AtMost,
        ">=" => Comparison::AtLeast,
        "<" => Comparison::Less,
        ">" => Comparison::More,
        _ => return None,
    })
}

fn operand(word: &str) -> Option<Operand> {
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        let hexadecimal = word.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        return hexadecimal.unwrap_or_else(|| word.parse()).ok().map(Operand::Number);
    }
    let is_name = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| Operand::Field(word.to_owned()))
}

/// Returns the value of a named constant of packetdrill; `None` if the name is unknown.
fn constant(name: &str) -> Option<u64> {
    let at = CONSTANTS.iter().find(|(known, _)| *known == name);
    at.map(|(_, value)| *value)
}

const CONSTANTS: &[(&str, u64)] = &[
    ("TCP_ESTABLISHED", 1),
    ("TCP_SYN_SENT", 2),
    ("TCP_SYN_RECV", 3),
    ("TCP_FIN_WAIT1", 4),
    ("TCP_FIN_WAIT2", 5),
    ("TCP_TIME_WAIT", 6),
    ("TCP_CLOSE", 7),
    ("TCP_CLOSE_WAIT", 8),
    ("TCP_LAST_ACK", 9),
    ("TCP_LISTEN", 10),
    ("TCP_CLOSING", 11),
    ("TCP_CA_Open", 0),
    ("TCP_CA_Disorder", 1),
    ("TCP_CA_CWR", 2),
    ("TCP_CA_Recovery", 3),
    ("TCP_CA_Loss", 4),
    ("TCP_INFINITE_SSTHRESH", 0x7fff_ffff),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_are_read_or_refused() {
        let between: Assertion = "assert 5 <= tcpi_rtt < 9, 'rtt=%d' % tcpi_rtt".parse().unwrap();
        let field = Operand::Field("tcpi_rtt".to_owned());
        let rest = [(Comparison::AtMost, field), (Comparison::Less, Operand::Number(9))];
        assert_eq!(between, Assertion { first: Operand::Number(5), rest: rest.to_vec() });
        for refused in ["import os", "assert tcpi_rtt", "assert tcpi_rtt / 2 == 1", "cwnd = 1"] {
            assert!(refused.parse::<Assertion>().is_err(), "{refused}");
        }
    }

    #[test]
    fn only_names_that_have_a_number_may_be_given_it() {
        for nothing in ["", "# why", "TCP_INFINITE_SSTHRESH = 0x7fffffff"] {
            assert!(says_nothing(nothing), "{nothing}");
        }
        for something in ["TCP_INFINITE_SSTHRESH = 5", "x = 5", "assert tcpi_rtt == 1"] {
            assert!(!says_nothing(something), "{something}");
        }
    }
}
