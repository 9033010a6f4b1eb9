//! The IP header: marks, hop limits, options, fragments, identification, extension headers.

use super::{Case, at, both, case, second};
use crate::{Packet, seg};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(both("ip_ecn", |base| second(base, |packet| packet.tos(3)), &[100, 100]));
    cases.extend(both("ip_tos", |base| second(base, |packet| packet.tos(0x10)), &[100, 100]));
    cases.extend(both("ip_ttl", |base| second(base, |packet| packet.ttl(7)), &[100, 100]));
    cases.extend(options_and_fragments());
    cases.extend(extension_headers());
    cases.extend(IDENTIFICATIONS.iter().map(identification));
    cases
}

const TIMESTAMP_OPTION: [u8; 8] = [68, 8, 5, 0, 0, 0, 0, 0];
const DESTINATION_OPTIONS: u8 = 60;

fn options_and_fragments() -> [Case; 3] {
    let base = seg();
    let stamped = at(&base, 100).ip_options(&TIMESTAMP_OPTION);
    let fragment = at(&base, 100).df(false).fragment(0, true);
    let v6 = seg().v6();
    let whole = at(&v6, 200).fragment(0, false);
    [
        case("ip_opt", vec![base.clone(), stamped, at(&base, 200)], &[100, 100, 100]),
        case("ip_frag4", vec![base, fragment], &[100, 100]),
        case("ip_frag6", vec![v6.clone(), at(&v6, 100), whole, at(&v6, 300)], &[200, 100, 100]),
    ]
}

fn extension_headers() -> [Case; 2] {
    let with = |packet: Packet, byte| {
        packet.extension(DESTINATION_OPTIONS, &[1, 4, byte, byte, byte, byte])
    };
    let base = seg().v6();
    let first = with(base.clone(), 0x11);
    let same = with(at(&base, 100), 0x11);
    let different = with(at(&base, 100), 0x22);
    [
        case("ip_v6ext_same", vec![first.clone(), same], &[200]),
        case("ip_v6ext_diff", vec![first, different], &[100, 100]),
    ]
}

/// Name, DF, the identifications, and the expected deliveries in payload bytes.
type Identification = (&'static str, bool, &'static [u16], &'static [usize]);

const IDENTIFICATIONS: [Identification; 6] = [
    ("ip_id_df1_inc", true, &[8, 9], &[200]),
    ("ip_id_df1_fixed", true, &[8, 8], &[200]),
    ("ip_id_df0_inc", false, &[8, 9], &[200]),
    // Kernels differ here; without DF, rxo merges only identifications that count up.
    ("ip_id_df0_fixed", false, &[8, 8], &[100, 100]),
    ("ip_id_df1_inc_fixed", true, &[8, 9, 9], &[200, 100]),
    ("ip_id_df1_fixed_inc", true, &[8, 8, 9], &[200, 100]),
];

fn identification((name, df, ids, arrives): &Identification) -> Case {
    let segment = |(number, id): (u32, &u16)| at(&seg(), number * 100).df(*df).id(*id);
    case(name, (0..).zip(*ids).map(segment).collect(), arrives)
}
