//! Clients that send arbitrary bytes.

use proptest::prelude::*;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at_once in 1..50_usize) {
        let scratch = Site::new();
        conversed(&bytes, &scratch.www(), at_once);
    }

    #[test]
    fn requests_made_of_odd_parts_are_answered_and_nothing_gets_out(
        requests in prop::collection::vec(odd_request(), 1..8),
        at_once in 1..500_usize,
    ) {
        let scratch = Site::new();
        let text = requests.concat();
        let talk = conversed(text.as_bytes(), &scratch.www(), at_once);
        prop_assert!(!talk.logged.is_empty());
        let told = talk.heard.windows(SECRET.len()).any(|window| window == SECRET);
        prop_assert!(!told, "{text}");
    }
}

/// Requests that are nearly valid.
fn odd_request() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        Just("..".to_owned()),
        Just("%2e%2E".to_owned()),
        Just(".".to_owned()),
        Just("sub".to_owned()),
        Just("up".to_owned()),
        Just("secret".to_owned()),
        Just("outside".to_owned()),
        Just("%2f".to_owned()),
        Just("%00".to_owned()),
        Just("hello.txt".to_owned()),
        "[ -~]{0,6}",
    ];
    let path = prop::collection::vec(part, 0..6).prop_map(|parts| format!("/{}", parts.join("/")));
    let field = prop_oneof![
        Just("Host: x\r\n".to_owned()),
        "Range: bytes=[0-9]{0,3}-[0-9]{0,3}\r\n",
        "If-None-Match: [ -~]{0,9}\r\n",
        "If-Range: [ -~]{0,9}\r\n",
        "[A-Za-z-]{1,9}: [ -~]{0,9}\r\n",
    ];
    let fields = prop::collection::vec(field, 0..4);
    let method = prop_oneof![4 => Just("GET"), 1 => Just("HEAD"), 1 => Just("PUT")];
    (method, path, fields).prop_map(|(method, path, fields)| {
        format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{}\r\n", fields.concat())
    })
}
