//! Rules of the older `iptables`. Only the programs of `iptables` can list these rules. So this module runs these
//! programs, but only if the kernel has `iptables` tables in use.

use std::fs;
use std::process::Command;

use super::{Mention, ReferenceKind};
use crate::handover::Link;

/// The IP versions of `iptables`: for each, the list of its tables in use, and the programs that list its
/// rules.
const FAMILIES: [(&str, [&str; 2]); 2] = [
    ("ip_tables_names", ["iptables-legacy-save", "iptables-save"]),
    ("ip6_tables_names", ["ip6tables-legacy-save", "ip6tables-save"]),
];

pub(super) fn mentions(link: &Link) -> Vec<Mention> {
    let mut found = Vec::new();
    for (file, programs) in FAMILIES {
        let path = format!("/proc/thread-self/net/{file}");
        let tables = fs::read_to_string(path).unwrap_or_default();
        if tables.trim().is_empty() {
            continue;
        }
        match listing(programs) {
            Some(listing) => found.extend(of_listing(&listing, &link.name)),
            None => found.push(unlisted(tables.split_whitespace(), programs[0])),
        }
    }
    found
}

/// Returns the output of the first of `programs` that exists and succeeds; `None` if none does.
fn listing(programs: [&str; 2]) -> Option<String> {
    let outputs = programs.into_iter().filter_map(|program| Command::new(program).output().ok());
    let output = outputs.into_iter().find(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns a mention of tables that cannot be listed, because their rules may refer to the interface.
fn unlisted<'a>(tables: impl Iterator<Item = &'a str>, program: &str) -> Mention {
    let tables = tables.collect::<Vec<_>>().join(", ");
    Mention {
        place: format!("the tables {tables}, which need `{program}` to be listed"),
        by: ReferenceKind::Name,
    }
}

/// Returns the rules of a listing that name the interface; a name that ends with `+` matches every name that
/// begins with the part before the `+`.
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
    rules
        .map(|rule| Mention { place: format!("`iptables {rule}`"), by: ReferenceKind::Name })
        .collect()
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
