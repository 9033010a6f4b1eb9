//! Rules, chains and flow tables of nftables, as the kernel lists them.

use std::io::{self, ErrorKind};

use rxo_netlink::{Netlink, Request, attribute, attributes};

use super::{Mention, ReferenceKind};
use crate::handover::Link;
use crate::isolation;

/// Lists the rules, chains and flow tables that refer to `link`. Empty if the kernel has no nftables.
pub(super) fn mentions(link: &Link) -> io::Result<Vec<Mention>> {
    let netlink = match Netlink::netfilter() {
        Err(error) if error.raw_os_error() == Some(libc::EPROTONOSUPPORT) => return Ok(Vec::new()),
        other => other?,
    };
    let dump = |kind| match netlink.dump(&Request::new((NFTABLES << 8) | kind, &[0; HEADER_BYTES]))
    {
        // Without the kernel module there are no rules.
        // Without the privilege a run cannot take an interface over either.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPERM)
            ) =>
        {
            Ok(Vec::new())
        }
        other => other,
    };
    let mut found = Vec::new();
    for object in dump(GET_RULE)? {
        found.extend(of_rule(&netlink, &object, link)?);
    }
    let is_by_name = isolation::binds_by_name(&netlink);
    let by = if is_by_name { ReferenceKind::Name } else { ReferenceKind::Ingress };
    let chains = dump(GET_CHAIN)?;
    found.extend(
        chains.iter().filter_map(|chain| of_hook(chain, link, (CHAIN_NAME, CHAIN_HOOK), by)),
    );
    let tables = dump(GET_FLOW_TABLE)?;
    let names = (FLOW_TABLE_NAME, FLOW_TABLE_HOOK);
    found.extend(tables.iter().filter_map(|table| of_hook(table, link, names, by)));
    Ok(found)
}

/// A value or a set that a rule compares with an interface.
#[derive(Debug, PartialEq, Eq)]
enum Compared {
    /// A value that is contained in the rule itself.
    Value(ReferenceKind, Vec<u8>),
    /// The name of a set whose elements are compared.
    Set(ReferenceKind, String),
}

fn of_rule(netlink: &Netlink, object: &[u8], link: &Link) -> io::Result<Option<Mention>> {
    let Some((header, rest)) = object.split_at_checked(HEADER_BYTES) else { return Ok(None) };
    let [table, chain] = [1, 2].map(|kind| text(attribute(rest, kind).unwrap_or_default()));
    let handle =
        attribute(rest, 3).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    let place = || format!("rule {handle} of `{} {table} {chain}`", family(header[0]));
    for compared in compared(attribute(rest, 4).unwrap_or_default()) {
        let by = match compared {
            Compared::Value(by, value) => is_about(by, &value, link).then_some(by),
            Compared::Set(by, set) => {
                let elements = elements(netlink, header, &table, &set)?;
                elements.iter().any(|key| is_in(by, key, link)).then_some(by)
            }
        };
        if let Some(by) = by {
            return Ok(Some(Mention { place: place(), by }));
        }
    }
    Ok(None)
}

/// Returns the values and sets that the expressions of a rule compare with an interface. The register of a
/// comparison contains the value that was loaded last.
fn compared(expressions: &[u8]) -> Vec<Compared> {
    let mut loaded: Vec<(u32, ReferenceKind)> = Vec::new();
    let mut immediate: Vec<u8> = Vec::new();
    let mut found = Vec::new();
    for (_, expression) in attributes(expressions) {
        let name = text(attribute(expression, 1).unwrap_or_default());
        let data = attribute(expression, 2).unwrap_or_default();
        let number = |kind| be32(attribute(data, kind)?);
        match name.as_str() {
            "meta" => {
                let Some(register) = number(1) else { continue };
                loaded.retain(|(other, _)| *other != register);
                loaded.extend(number(2).and_then(key).map(|by| (register, by)));
            }
            "cmp" => {
                let by = loaded.iter().find(|(register, _)| Some(*register) == number(1));
                let value = attribute(attribute(data, 3).unwrap_or_default(), 1);
                found.extend(
                    by.zip(value).map(|((_, by), value)| Compared::Value(*by, value.to_vec())),
                );
            }
            "lookup" => {
                // A lookup in a set of several fields uses several registers.
                let set = text(attribute(data, 1).unwrap_or_default());
                found.extend(loaded.iter().map(|(_, by)| Compared::Set(*by, set.clone())));
            }
            "immediate" => {
                let value = attribute(attribute(data, 2).unwrap_or_default(), 1);
                immediate = value.unwrap_or_default().to_vec();
            }
            "fwd" | "dup" => found.push(Compared::Value(ReferenceKind::Number, immediate.clone())),
            _ => {}
        }
    }
    found
}

/// Returns the property that a key of `meta` loads: index or name of an interface; `None` for other keys.
const fn key(key: u32) -> Option<ReferenceKind> {
    match key {
        4 | 5 => Some(ReferenceKind::Number),
        6 | 7 => Some(ReferenceKind::Name),
        _ => None,
    }
}

/// Returns `true` if a value in a rule refers to the interface. A name with `*` is compared only up to the
/// `*`.
fn is_about(by: ReferenceKind, value: &[u8], link: &Link) -> bool {
    match by {
        ReferenceKind::Name => [link.name.as_bytes(), &[0; 16]].concat().starts_with(value),
        _ => value == link.index.to_ne_bytes(),
    }
}

/// Returns `true` if a set's key refers to the interface. The key may have several fields, each padded to 4
/// bytes.
fn is_in(by: ReferenceKind, key: &[u8], link: &Link) -> bool {
    match by {
        ReferenceKind::Name => {
            let name = [link.name.as_bytes(), &[0]].concat();
            (0..key.len()).step_by(4).any(|at| key[at..].starts_with(&name))
        }
        _ => key.chunks(4).any(|field| field == link.index.to_ne_bytes()),
    }
}

/// Returns the keys of the elements of a set.
fn elements(netlink: &Netlink, header: &[u8], table: &str, set: &str) -> io::Result<Vec<Vec<u8>>> {
    let request =
        Request::new((NFTABLES << 8) | GET_ELEMENTS, header).string(1, table).string(2, set);
    let lists = match netlink.dump(&request) {
        // The set was deleted after the rules were listed.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut keys = Vec::new();
    for list in &lists {
        let elements =
            list.get(HEADER_BYTES..).and_then(|rest| attribute(rest, 3)).unwrap_or_default();
        for (_, element) in attributes(elements) {
            keys.extend(
                attribute(attribute(element, 1).unwrap_or_default(), 1).map(<[u8]>::to_vec),
            );
        }
    }
    Ok(keys)
}

/// Returns a mention if a chain or a flow table is attached to the interface, otherwise `None`. Chains of rxo
/// itself do not count.
fn of_hook(
    object: &[u8],
    link: &Link,
    (name, hook): (u16, u16),
    by: ReferenceKind,
) -> Option<Mention> {
    let (header, rest) = object.split_at_checked(HEADER_BYTES)?;
    let table = text(attribute(rest, 1)?);
    let hook = attribute(rest, hook)?;
    let one = attribute(hook, 3).into_iter();
    let several = [3, 4].into_iter().filter_map(|kind| attribute(hook, kind));
    let mut devices = one.chain(several.flat_map(attributes).map(|(_, device)| device)).map(text);
    let is_attached = devices.any(|device| device == link.name) && !table.starts_with("rxo-");
    let place = || {
        format!(
            "`{} {table} {}`",
            family(header[0]),
            text(attribute(rest, name).unwrap_or_default())
        )
    };
    is_attached.then(|| Mention { place: place(), by })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

fn be32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

const fn family(number: u8) -> &'static str {
    match number {
        1 => "inet",
        2 => "ip",
        3 => "arp",
        5 => "netdev",
        7 => "bridge",
        10 => "ip6",
        _ => "table",
    }
}

/// The length of `nfgenmsg`, the header of nftables messages, in bytes.
const HEADER_BYTES: usize = 4;
// linux/netfilter/nf_tables.h.
const NFTABLES: u16 = 10;
const GET_CHAIN: u16 = 4;
const GET_RULE: u16 = 7;
const GET_ELEMENTS: u16 = 13;
const GET_FLOW_TABLE: u16 = 23;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const FLOW_TABLE_NAME: u16 = 2;
const FLOW_TABLE_HOOK: u16 = 3;

#[cfg(test)]
mod tests {
    use rxo_netlink::nested;

    use super::*;

    fn expression(name: &str, data: &[(u16, &[u8])]) -> Vec<u8> {
        nested(&[(1, &[name.as_bytes(), &[0]].concat()), (2, &nested(data))])
    }

    fn rule(expressions: &[Vec<u8>]) -> Vec<u8> {
        let elements: Vec<(u16, &[u8])> =
            expressions.iter().map(|one| (1, one.as_slice())).collect();
        nested(&elements)
    }

    fn meta(register: u32, key: u32) -> Vec<u8> {
        expression("meta", &[(1, &register.to_be_bytes()), (2, &key.to_be_bytes())])
    }

    fn cmp(register: u32, value: &[u8]) -> Vec<u8> {
        let data = nested(&[(1, value)]);
        expression("cmp", &[(1, &register.to_be_bytes()), (2, &[0; 4]), (3, &data)])
    }

    #[test]
    fn only_what_was_loaded_of_an_interface_counts() {
        let number = 3_u32.to_ne_bytes();
        let rows = [
            (
                vec![meta(1, 4), cmp(1, &number)],
                vec![Compared::Value(ReferenceKind::Number, number.to_vec())],
            ),
            (
                vec![meta(1, 7), cmp(1, b"eth1")],
                vec![Compared::Value(ReferenceKind::Name, b"eth1".to_vec())],
            ),
            // A packet mark that happens to equal the index.
            (vec![meta(1, 4), meta(1, 3), cmp(1, &number)], vec![]),
            (vec![meta(1, 4), cmp(2, &number)], vec![]),
            (
                vec![meta(1, 4), meta(9, 5), expression("lookup", &[(1, b"set\0")])],
                vec![
                    Compared::Set(ReferenceKind::Number, "set".into()),
                    Compared::Set(ReferenceKind::Number, "set".into()),
                ],
            ),
        ];
        for (expressions, expected) in rows {
            assert_eq!(compared(&rule(&expressions)), expected);
        }
        assert_eq!(compared(&[1, 2, 3]), []);
    }

    #[test]
    fn names_with_a_wildcard_mean_every_interface_that_begins_so() {
        let link = Link { name: "eth1".to_owned(), index: 3, ..Link::read(1).unwrap().unwrap() };
        let rows: [(&[u8], bool); 4] =
            [(b"eth1\0\0\0\0", true), (b"eth", true), (b"eth10\0", false), (b"eth2", false)];
        for (value, is_it) in rows {
            assert_eq!(is_about(ReferenceKind::Name, value, &link), is_it, "{value:?}");
        }
        assert!(is_in(ReferenceKind::Name, b"\0\0\0\x01eth1\0\0\0\0", &link));
        let fields = [1_u32, 3].map(u32::to_ne_bytes).concat();
        assert!(is_in(ReferenceKind::Number, &fields, &link));
        assert!(!is_in(ReferenceKind::Number, &[0, 0, 3, 0, 0, 0, 0, 0], &link));
    }
}
