//! Requests as `wg` sends them, requests that are refused, and any bytes.

use proptest::prelude::*;

use super::*;
use crate::uapi::{Status, answer, figures};

const A: &str = "188515093e952f5f22e865cef3012e72f8b5f0b598ac0309d5dacce3b70fcf52";
const B: &str = "b85996fecc9c7f1fc6d2572a76eda11d59bcd20be8e543b15ce4bd85a8e75a33";

fn read(text: &str) -> Result<Request, Refusal> {
    let mut reader = Reader::default();
    reader.push(text.as_bytes());
    let request = reader.take_request().expect("complete");
    assert_eq!(reader.take_request(), None, "{text}");
    request
}

fn set(lines: &str) -> Settings {
    match read(&format!("set=1\n{lines}\n")) {
        Ok(Request::Set(settings)) => settings,
        other => panic!("{other:?}"),
    }
}

fn network(text: &str) -> IpNetwork {
    text.parse::<Network>().unwrap().all
}

#[test]
fn each_key_of_the_interface_is_read() {
    assert_eq!(read("get=1\n\n"), Ok(Request::Get));
    assert_eq!(set(""), Settings::default());
    let text = format!("private_key={A}\nlisten_port=12912\nfwmark=51820\nreplace_peers=true\n");
    let expected = Settings {
        private_key: from_hex(A),
        listen_port: Some(12_912),
        mark: Some(51_820),
        replaces_peers: true,
        peers: Vec::new(),
    };
    assert_eq!(set(&text), expected);
}

#[test]
fn each_key_of_a_peer_is_read_and_a_public_key_begins_the_next() {
    let text = format!(
        "public_key={A}\nupdate_only=true\nprotocol_version=1\npreshared_key={B}\n\
         endpoint=[abcd:23::33]:51820\npersistent_keepalive_interval=25\nreplace_allowed_ips=true\n\
         allowed_ip=192.168.4.4/32\nallowed_ip=+fd00::7/64\nallowed_ip=-10.0.0.0/8\n\
         public_key={B}\nremove=true\n"
    );
    let first = PeerSettings {
        public_key: from_hex(A).unwrap(),
        is_removed: false,
        only_updates: true,
        preshared_key: from_hex(B),
        endpoint: Some("[abcd:23::33]:51820".parse().unwrap()),
        keepalive: Some(25),
        replaces_allowed: true,
        allowed: vec![
            (Change::Add, network("192.168.4.4/32")),
            (Change::Add, network("fd00::/64")),
            (Change::Remove, network("10.0.0.0/8")),
        ],
    };
    let second = PeerSettings {
        public_key: from_hex(B).unwrap(),
        is_removed: true,
        ..PeerSettings::default()
    };
    assert_eq!(set(&text).peers, [first, second]);
}

#[test]
fn what_is_wrong_is_refused_with_its_number() {
    let peer = |line: &str| format!("set=1\npublic_key={A}\n{line}\n\n");
    let rows = [
        ("\n".to_owned(), Refusal::Invalid),
        ("get=2\n\n".to_owned(), Refusal::Invalid),
        ("get=1\nprivate_key=\n\n".to_owned(), Refusal::Invalid),
        ("delete=1\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nno_such_key=1\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nlisten_port\n\n".to_owned(), Refusal::Protocol),
        ("set=1\nlisten_port=65536\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nlisten_port=+5\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nfwmark=0x5\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nprivate_key=00\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nreplace_peers=false\n\n".to_owned(), Refusal::Invalid),
        ("set=1\nallowed_ip=10.0.0.0/8\n\n".to_owned(), Refusal::Invalid),
        (peer("listen_port=1"), Refusal::Invalid),
        (peer("endpoint=example.org:1"), Refusal::Invalid),
        (peer("endpoint=10.0.0.1"), Refusal::Invalid),
        (peer("allowed_ip=10.0.0.0"), Refusal::Invalid),
        (peer("allowed_ip=10.0.0.0/33"), Refusal::Invalid),
        (peer("allowed_ip=10.0.0.0/+8"), Refusal::Invalid),
        (peer("allowed_ip=--10.0.0.0/8"), Refusal::Invalid),
        (peer("protocol_version=2"), Refusal::Invalid),
        (peer("persistent_keepalive_interval=65536"), Refusal::Invalid),
        (peer("remove=yes"), Refusal::Invalid),
        (peer("public_key="), Refusal::Invalid),
    ];
    for (text, refusal) in rows {
        assert_eq!(read(&text), Err(refusal), "{text}");
    }
    assert_eq!(answer("", Err(Refusal::Invalid)), "errno=-22\n\n");
}

#[test]
fn requests_come_in_pieces_and_one_behind_the_other() {
    let text = "get=1\n\nset=1\nlisten_port=7\n\nget=1\n";
    let (mut reader, mut requests) = (Reader::default(), Vec::new());
    for byte in text.bytes() {
        reader.push(&[byte]);
        requests.extend(std::iter::from_fn(|| reader.take_request()));
    }
    let seven = Settings { listen_port: Some(7), ..Settings::default() };
    assert_eq!(requests, [Ok(Request::Get), Ok(Request::Set(seven))]);
}

#[test]
fn an_endless_request_is_refused() {
    let mut reader = Reader::default();
    reader.push(b"set=1\n");
    reader.push(&vec![b'x'; MOST_BYTES]);
    assert_eq!(reader.take_request(), Some(Err(Refusal::TooLong)));
}

/// Settings that are given back by `get` can be set: what `wg showconf` and `wg syncconf` rely on.
#[test]
fn figures_name_what_was_set() {
    let status = Status { private_key: from_hex(A), listen_port: 9, ..Status::default() };
    let lines: String = figures(&status).lines().map(|line| format!("{line}\n")).collect();
    let expected =
        Settings { private_key: from_hex(A), listen_port: Some(9), ..Settings::default() };
    assert_eq!(set(&lines), expected);
}

/// Pieces of real requests, so that random texts get beyond the first line.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "get=1\n",
        "set=1\n",
        "\n",
        "=",
        "true",
        "private_key=",
        "listen_port=",
        "fwmark=",
        "remove=",
        "public_key=",
        "endpoint=",
        "[::1]:5",
        "1.2.3.4:5",
        "allowed_ip=",
        "-",
        "+",
        "10.0.0.0/8\n",
        "::/0",
        "é",
        "replace_peers=true\n",
        "persistent_keepalive_interval=1\n",
        A,
        B,
    ];
    prop_oneof![proptest::sample::select(words.to_vec()).prop_map(str::to_owned), ".{0,4}"]
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut reader = Reader::default();
        reader.push(b"set=1\n");
        reader.push(&bytes);
        reader.push(b"\n\n");
        prop_assert!(reader.take_request().is_some());
    }

    #[test]
    fn any_pieces_give_answers(pieces in proptest::collection::vec(piece(), 0..40)) {
        let text = format!("{}\n\n", pieces.concat());
        let (mut whole, mut slow) = (Reader::default(), Reader::default());
        whole.push(text.as_bytes());
        let at_once: Vec<_> = std::iter::from_fn(|| whole.take_request()).collect();
        let mut in_pieces = Vec::new();
        for byte in text.bytes() {
            slow.push(&[byte]);
            in_pieces.extend(std::iter::from_fn(|| slow.take_request()));
        }
        prop_assert!(!at_once.is_empty());
        prop_assert_eq!(at_once, in_pieces);
    }
}
