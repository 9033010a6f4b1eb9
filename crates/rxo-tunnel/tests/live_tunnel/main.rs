//! The program at both ends of a tunnel between two networks.
#![allow(clippy::unwrap_used, reason = "tests, which the lint does not see without the harness")]

#[path = "../common/mod.rs"]
mod common;
mod default_route;
#[path = "../common/pair.rs"]
mod pair;

use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use libtest_mimic::Trial;
use rxo_peers::Tunnel;

use crate::common::run;
use crate::pair::{assert_intact_both_ways, ours};

fn main() -> ExitCode {
    let tests: [(&str, fn()); 9] = [
        ("every_byte_arrives_in_both_directions", every_byte_arrives),
        ("every_byte_arrives_without_trains_and_coalescing", without_offloads),
        ("every_byte_arrives_with_a_thread_for_each_direction", || with_threads("2")),
        ("every_byte_arrives_with_three_threads_for_each_direction", || with_threads("6")),
        ("what_the_peer_may_not_send_is_refused", what_is_not_allowed_is_refused),
        ("a_signal_ends_it_cleanly", a_signal_ends_it),
        ("a_default_route_carries_all_but_the_tunnel_itself", default_route::carries_all),
        ("the_hosts_routes_and_rules_stay_whatever_ends_it", default_route::hosts_routes_stay),
        ("what_is_wrong_is_one_line", what_is_wrong_is_one_line),
    ];
    run(tests
        .map(|(name, test)| {
            Trial::test(name, move || {
                test();
                Ok(())
            })
        })
        .into())
}

/// Returns the number before `unit` in a line of figures.
fn figure(said: &str, unit: &str) -> u64 {
    let words: Vec<&str> = said.split([' ', '\n']).collect();
    let units: Vec<&str> = unit.split(' ').collect();
    let at = words.windows(units.len()).position(|found| found == units.as_slice());
    let at = at.unwrap_or_else(|| panic!("no `{unit}` in {said}"));
    words[at - 1].parse().unwrap()
}

/// Writes a key into a new file with these permissions.
pub(crate) fn write_key(path: &Path, key: &str, mode: u32) {
    let mut file = File::create(path).unwrap();
    file.set_permissions(PermissionsExt::from_mode(mode)).unwrap();
    file.write_all(key.as_bytes()).unwrap();
}

fn every_byte_arrives() {
    let mut tunnel = Tunnel::start(&ours(&[]), &ours(&[])).unwrap();
    assert_intact_both_ways(&tunnel);
    for (code, said) in tunnel.stop().unwrap() {
        assert_eq!(code, 0, "{said}");
        // Without offloads each number would equal that of the packets.
        assert!(figure(&said, "frames from the") < figure(&said, "packets,") / 2, "{said}");
        assert!(figure(&said, "messages,") < figure(&said, "datagrams in") / 2, "{said}");
        assert!(figure(&said, "writes to the") < figure(&said, "packets in"), "{said}");
    }
}

fn without_offloads() {
    let alone = ours(&["--no-trains", "--no-coalescing"]);
    let mut tunnel = Tunnel::start(&alone, &alone).unwrap();
    assert_intact_both_ways(&tunnel);
    for (_, said) in tunnel.stop().unwrap() {
        assert_eq!(figure(&said, "messages,"), figure(&said, "datagrams in"), "{said}");
        assert_eq!(figure(&said, "writes to the"), figure(&said, "packets in"), "{said}");
    }
}

fn with_threads(count: &str) {
    let several = ours(&["--threads", count]);
    let mut tunnel = Tunnel::start(&several, &several).unwrap();
    assert_intact_both_ways(&tunnel);
    for (code, said) in tunnel.stop().unwrap() {
        assert_eq!(code, 0, "{said}");
        // No datagram was so late that its counter was refused.
        assert_eq!(figure(&said, "refused,"), 0, "{said}");
    }
}

/// Sends packets with a source address that is not behind the peer.
fn what_is_not_allowed_is_refused() {
    let mut tunnel = Tunnel::start(&ours(&[]), &ours(&[])).unwrap();
    let foreign: IpAddr = "10.98.0.1".parse().unwrap();
    tunnel.near().interface("lo").add_address(foreign, 32).unwrap();
    assert_intact_both_ways(&tunnel);
    let socket = tunnel.near().run(|| UdpSocket::bind((foreign, 0))).unwrap().unwrap();
    for _ in 0..5 {
        socket.send_to(b"from nowhere", (Tunnel::FAR[0], 9)).unwrap();
    }
    // This traffic comes after those packets, so they have arrived before it.
    assert_intact_both_ways(&tunnel);
    let [_, (_, said)] = tunnel.stop().unwrap();
    assert_eq!(figure(&said, "refused,"), 5, "{said}");
}

fn a_signal_ends_it() {
    let mut tunnel = Tunnel::start(&ours(&[]), &ours(&["--figures", "1"])).unwrap();
    let [near, far] = tunnel.stop().unwrap();
    for (code, said) in [near, far] {
        assert_eq!(code, 0, "{said}");
        assert!(said.contains("out: ") && said.contains("in: "), "{said}");
    }
    for network in [tunnel.near(), tunnel.far()] {
        let list = || fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let interfaces = network.run(list).unwrap();
        assert_eq!(interfaces.lines().count(), 4, "loopback and the wire: {interfaces}");
    }
}

fn what_is_wrong_is_one_line() {
    let folder = std::env::temp_dir().join(format!("rxo-tunnel-wrong-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (good, bad) = (folder.join("good"), folder.join("bad"));
    let key = "yI4bSsPYMoCwySaNvFraci2fvR/uG5NgcBXXWhfRJEg=";
    let open = folder.join("open");
    write_key(&good, key, 0o600);
    write_key(&bad, "no key", 0o600);
    write_key(&open, key, 0o644);
    let [good, bad, open] = [good, bad, open].map(|path| path.display().to_string());
    let remedy = format!("{open} has mode 0644, so others can use the key; `chmod 600 {open}`");
    let rows = [
        (vec!["--private-key", &bad, "--peer", key], 1, "holds no key"),
        (vec!["--private-key", "/nowhere", "--peer", key], 1, "cannot read /nowhere"),
        (vec!["--private-key", &open, "--peer", key], 1, &remedy),
        (vec!["--private-key", &good, "--preshared-key", &open, "--peer", key], 1, &remedy),
        (vec!["--private-key", &good, "--peer", "abc"], 2, "44 characters"),
        (vec!["--private-key", &good], 2, "--peer <KEY>"),
        (vec!["--private-key", &good, "--peer", key], 1, "tun:lo"),
    ];
    for (arguments, code, message) in rows {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxo-tunnel"));
        command.arg("lo").args(arguments).args([
            "--address",
            "10.1.0.1/24",
            "--allowed-ips",
            "10.1.0.0/24",
        ]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(message), "{said}");
        assert!(code == 2 || said.lines().count() == 1, "{said}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
