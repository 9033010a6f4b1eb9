//! nftables rule, written as its expressions: load bytes of the frame, compare them, drop the frame.

use std::net::IpAddr;

use rxo_netlink::{Request, nested};

use super::request;

/// Builds the rule that drops untagged frames for `address`. A frame with a VLAN tag belongs to another
/// network and does not match, because its EtherType field contains the type of the tag.
pub(super) fn drop(table: &str, chain: &str, address: IpAddr) -> Request {
    let (ether_type, at, address) = match address {
        IpAddr::V4(it) => (0x0800_u16, 16, it.octets().to_vec()),
        IpAddr::V6(it) => (0x86dd, 24, it.octets().to_vec()),
    };
    let elements = [
        load(LINK_HEADER, 12, 2),
        compare(&ether_type.to_be_bytes()),
        load(NETWORK_HEADER, at, address.len() as u32),
        compare(&address),
        verdict(),
    ];
    let elements = elements.each_ref().map(|it| (LIST_ELEMENT | NESTED, it.as_slice()));
    request(NEW_RULE)
        .flags(libc::NLM_F_CREATE | libc::NLM_F_APPEND)
        .string(RULE_TABLE, table)
        .string(RULE_CHAIN, chain)
        .nest(RULE_EXPRESSIONS, &elements)
}

/// Builds the expression that loads `bytes` bytes of a header, from the offset `at`, into the register.
fn load(header: u32, at: u32, bytes: u32) -> Vec<u8> {
    let numbers = [(1, REGISTER), (2, header), (3, at), (4, bytes)];
    let numbers = numbers.map(|(kind, number)| (kind, number.to_be_bytes()));
    expression(b"payload\0", &numbers.each_ref().map(|(kind, number)| (*kind, number.as_slice())))
}

/// Builds the expression that ends the rule unless the register equals `bytes`.
fn compare(bytes: &[u8]) -> Vec<u8> {
    let data = nested(&[(DATA_VALUE, bytes)]);
    let [register, equal] = [REGISTER, 0].map(u32::to_be_bytes);
    expression(b"cmp\0", &[(1, &register), (2, &equal), (3 | NESTED, &data)])
}

/// Builds the expression that drops the frame.
fn verdict() -> Vec<u8> {
    let code = nested(&[(VERDICT_CODE, &super::DROP.to_be_bytes())]);
    let data = nested(&[(DATA_VERDICT | NESTED, &code)]);
    expression(b"immediate\0", &[(1, &VERDICT_REGISTER.to_be_bytes()), (2 | NESTED, &data)])
}

fn expression(name: &[u8], inside: &[(u16, &[u8])]) -> Vec<u8> {
    nested(&[(EXPRESSION_NAME, name), (EXPRESSION_DATA | NESTED, &nested(inside))])
}

// linux/netfilter/nf_tables.h. The attributes of an expression are numbered from 1, in the order above.
const NEW_RULE: u16 = 6;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_EXPRESSIONS: u16 = 4;
const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const LINK_HEADER: u32 = 0;
const NETWORK_HEADER: u32 = 1;
const VERDICT_REGISTER: u32 = 0;
const REGISTER: u32 = 1;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const NESTED: u16 = libc::NLA_F_NESTED as u16;
