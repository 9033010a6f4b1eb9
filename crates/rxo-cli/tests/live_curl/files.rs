//! One client: whole files and parts of files, HTTP versions, errors.

use std::fs;

use crate::Test;
use crate::server::{Server, bytes};

pub(crate) const TESTS: &[Test] = &[
    ("a_file_arrives_whole", whole),
    ("a_range_and_a_download_resumed", parts),
    ("two_files_over_one_connection", keep_alive),
    ("head_and_what_is_not_there", head_and_missing),
    ("a_version_that_is_known", known),
    ("nothing_outside_the_directory", outside),
    ("over_ipv6", over_ipv6),
    ("on_a_tap_and_a_tun", on_a_tap_and_a_tun),
    ("a_link_that_goes_down_is_reported", link_down),
    ("told_to_end_it_ends", told_to_end),
];

const URL: &str = "http://10.77.0.2";

fn whole() {
    let content = bytes(20_000_003);
    let mut server = Server::start("whole", &[("big.bin", &content)]);
    let (code, got) = server.curl(&format!("{URL}/big.bin"));
    assert_eq!(code, 0);
    assert!(got == content, "{} bytes of {}, or others", got.len(), content.len());
    let access = server.next_access();
    assert_eq!(
        (access["status"].as_u64(), access["bytes"].as_u64()),
        (Some(200), Some(20_000_003))
    );
    assert_eq!(
        (access["complete"].as_bool(), access["target"].as_str()),
        (Some(true), Some("/big.bin"))
    );
}

fn parts() {
    let content = bytes(3_000_000);
    let server = Server::start("parts", &[("big.bin", &content)]);
    let (code, got) = server.curl(&format!("--range 1000-2999 {URL}/big.bin"));
    assert!(code == 0 && got == content[1_000..3_000], "{code}, {} bytes", got.len());
    let place = server.place("part");
    fs::write(&place, &content[..1_234_567]).unwrap();
    let shown = place.display();
    let status = server.said(&format!(
        "--continue-at - --output {shown} --write-out %{{http_code}} {URL}/big.bin"
    ));
    assert_eq!(status, "206");
    assert!(fs::read(&place).unwrap() == content);
    let behind = server.said(&format!(
        "--range 3000000- --output {shown} --write-out %{{http_code}} {URL}/big.bin"
    ));
    assert_eq!(behind, "416");
}

/// An interface that is down still exists: the server reports it, waits, and serves again.
fn link_down() {
    let server = Server::start("down", &[("a", b"first")]);
    let link = server.lab.host().interface("wire0");
    link.down().unwrap();
    server.wait_for_note(" notice packet:wire0: packet:wire0 is down; waiting");
    link.up().unwrap();
    server.wait_for_note(" notice packet:wire0: packet:wire0 is up again");
    assert_eq!(server.said(&format!("{URL}/a")), "first");
    assert_eq!(server.end(), Some(0));
}

fn keep_alive() {
    let server = Server::start("keep", &[("a", b"first"), ("b", b"second")]);
    let said = server.said(&format!("--write-out :%{{num_connects}}; {URL}/a {URL}/b"));
    assert_eq!(said, "first:1;second:0;");
    let old = server.said(&format!("--http1.0 --write-out :%{{num_connects}}; {URL}/a {URL}/b"));
    assert_eq!(old, "first:1;second:1;");
}

fn head_and_missing() {
    let server = Server::start("head", &[("page.html", b"<p>hello")]);
    let head = server.said(&format!("--head {URL}/page.html"));
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Length: 8\r\n") && head.contains("text/html"), "{head}");
    let status = server.said(&format!("--write-out %{{http_code}} --output /dev/null {URL}/none"));
    assert_eq!(status, "404");
    let posted = server.said(&format!("--data x=1 --write-out :%{{http_code}} {URL}/page.html"));
    assert!(posted.ends_with(":405"), "{posted}");
    let listed = server.said(&format!("{URL}/"));
    assert!(listed.contains("<a href=\"./page.html\">page.html</a>"), "{listed}");
}

fn known() {
    let server = Server::start("known", &[("a", b"first")]);
    let tag = server.place("tag");
    let tag = tag.display();
    assert_eq!(server.said(&format!("--etag-save {tag} {URL}/a")), "first");
    let again = server.said(&format!("--etag-compare {tag} --write-out %{{http_code}} {URL}/a"));
    assert_eq!(again, "304");
    let since = "--time-cond 20200101 --write-out %{http_code}";
    assert_eq!(server.said(&format!("{since} {URL}/a")), "304");
}

fn outside() {
    let server = Server::start("outside", &[("a", b"first")]);
    for path in ["../secret", "%2e%2e/secret", "a/../../secret", "..%2fsecret"] {
        let said = server.said(&format!("--path-as-is --write-out :%{{http_code}} {URL}/{path}"));
        let is_refused = said.ends_with(":400") || said.ends_with(":404");
        assert!(is_refused && !said.contains("the secret"), "{path}: {said}");
    }
}

fn over_ipv6() {
    let server = Server::start("ipv6", &[("a", b"first")]);
    assert!(server.lab.peer().has_ipv6(), "this machine has no IPv6 in private networks");
    assert_eq!(server.said("http://[fd77::2]/a"), "first");
}

fn on_a_tap_and_a_tun() {
    let content = bytes(1_000_003);
    for kind in ["tap", "tun"] {
        let server = Server::start_local(kind, &[("big.bin", &content)]);
        let (code, got) = server.curl(&format!("{URL}/big.bin"));
        assert!(code == 0 && got == content, "{kind}: {code}, {} bytes", got.len());
    }
}

fn told_to_end() {
    let server = Server::start("end", &[("a", b"first")]);
    assert_eq!(server.said(&format!("{URL}/a")), "first");
    assert_eq!(server.end(), Some(0));
}
