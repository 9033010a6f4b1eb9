//! Rules of `iptables` in its older form. Only its own programs list them, so they are asked, where it is in use.

use std::fs;
use std::io;
use std::process::Command;

use super::{By, Mention};
use crate::handover::Link;

/// The families: the list of tables in use, and the program that lists the rules.
const FAMILIES: [(&str, [&str; 2]); 2] = [
    ("ip_tables_names", ["iptables-legacy-save", "iptables-save"]),
    ("ip6_tables_names", ["ip6tables-legacy-save", "ip6tables-save"]),
];

pub(super) fn mentions(link: &Link) -> io::Result<Vec<Mention>> {
    let mut found = Vec::new();
    for (tables, programs) in FAMILIES {
        let tables =
            fs::read_to_string(format!("/proc/thread-self/net/{tables}")).unwrap_or_default();
        if !tables.trim().is_empty() {
            found.extend(of_listing(&listing(programs)?, &link.name));
        }
    }
    Ok(found)
}

/// The listing by the first of `programs` that is there.
fn listing(programs: [&str; 2]) -> io::Result<String> {
    let output =
        Command::new(programs[0]).output().or_else(|_| Command::new(programs[1]).output())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The rules of a listing that name the interface; `+` at the end of a name stands for anything.
fn of_listing(listing: &str, name: &str) -> Vec<Mention> {
    let is_it = |word: &str| match word.strip_suffix('+') {
        Some(begin) => name.starts_with(begin),
        None => word == name,
    };
    let names = |line: &&str| {
        let words: Vec<_> = line.split_whitespace().collect();
        words.windows(2).any(|pair| ["-i", "-o"].contains(&pair[0]) && is_it(pair[1]))
    };
    let rules = listing.lines().filter(|line| line.starts_with("-A")).filter(names);
    rules.map(|rule| Mention { place: format!("`iptables {rule}`"), by: By::Name }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_name_the_interface_are_found() {
        let listing = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -i eth1 -p tcp -j DROP\n-A INPUT -i eth10 -j DROP\n\
                       -A FORWARD ! -o eth+ -j DROP\n-A OUTPUT -p tcp --dport 1 -j DROP\nCOMMIT\n";
        let places: Vec<_> = of_listing(listing, "eth1").iter().map(ToString::to_string).collect();
        assert_eq!(
            places,
            [
                "`iptables -A INPUT -i eth1 -p tcp -j DROP`",
                "`iptables -A FORWARD ! -o eth+ -j DROP`"
            ]
        );
    }
}
