//! Settings, as `wg` sets and shows them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use rxo_testbed::until;

use crate::background::socket_of;
use crate::common::assert_tcp_is_intact;
use crate::node::{Node, inside, run, try_run};
use crate::peers::star;

const PEER: &str = "nRF5CpO+PyEFjSl3cvXTGcpA83YhKmFxMLtbbCR9tW8=";
const OTHER: &str = "fB2F4UQVDrC+kTlWqHrWrWI5nG7b7sNDaYz3F3jHD0s=";

pub(crate) fn what_is_set_is_shown() {
    let node = Node::start("alone", &[]);
    let mode = fs::metadata(socket_of(&node.interface)).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert!(node.wg("show interfaces").split_whitespace().any(|it| it == node.interface));
    assert_eq!(node.wg("show %i public-key").trim(), node.public_key);
    assert_eq!(node.wg("show %i listen-port").trim(), "51820");
    let shared = run(&node.net, "wg genpsk");
    let words = format!(
        "wg set {} listen-port 51999 fwmark 0x42 peer {PEER} preshared-key /dev/stdin \
         endpoint 192.0.2.1:7 persistent-keepalive 25 allowed-ips fd00::/8,10.0.0.0/8",
        node.interface
    );
    try_run(&node.net, &words, &shared).unwrap();
    let dump = node.wg("show %i dump");
    let lines: Vec<Vec<&str>> = dump.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0][1..], [node.public_key.as_str(), "51999", "0x42"]);
    // Bytes may have been sent, because the keepalive has begun a handshake.
    assert_eq!(
        lines[1][..6],
        [PEER, shared.trim(), "192.0.2.1:7", "fd00::/8,10.0.0.0/8", "0", "0"]
    );
    assert_eq!((lines[1][7], lines.len()), ("25", 2));
    node.wg(&format!("set %i fwmark off peer {PEER} remove peer {OTHER} allowed-ips 10.0.0.0/8"));
    let dump = node.wg("show %i dump");
    let rest = "(none)\t(none)\t10.0.0.0/8\t0\t0\t0\toff";
    assert!(dump.ends_with(&format!("\t51999\toff\n{OTHER}\t{rest}\n")), "{dump}");
    // An interface is not its own peer.
    node.wg(&format!("set %i peer {} allowed-ips 10.1.0.0/16", node.public_key));
    assert_eq!(node.wg("show %i peers").trim(), OTHER);
}

pub(crate) fn sync_changes_only_what_differs() {
    let (hub, spokes) = star();
    assert_tcp_is_intact(&spokes[0].net, &hub.net, inside(1)[0]);
    let kept = |node: &Node| node.wg("show %i latest-handshakes");
    let (before, config) = (kept(&hub), hub.wg("showconf %i"));
    let is_time = |line: &str| line.split('\t').nth(1).unwrap().len() == 10;
    assert!(before.lines().all(is_time), "seconds since 1970: {before}");
    let peers_and_ips = hub.wg("show %i allowed-ips");
    let path = std::env::temp_dir().join(format!("rxo-wg-sync-{}", std::process::id()));
    let sync = |config: &str| {
        fs::write(&path, config).unwrap();
        hub.wg(&format!("syncconf %i {}", path.display()));
    };
    sync(&config);
    assert_eq!((kept(&hub), hub.wg("show %i allowed-ips")), (before.clone(), peers_and_ips));
    sync(&config.replace("ListenPort = 51820", "ListenPort = 51821"));
    assert_eq!((hub.wg("show %i listen-port").trim(), kept(&hub)), ("51821", before));
    // The session goes on at the new port, and the spoke follows.
    assert_tcp_is_intact(&hub.net, &spokes[0].net, inside(2)[0]);
    assert_eq!(spokes[0].endpoint_of(&hub), "10.77.2.1:51821");
    let own = config.split("[Peer]").next().unwrap();
    sync(own);
    assert_eq!(hub.wg("show %i peers"), "");
    fs::remove_file(&path).unwrap();
}

pub(crate) fn a_port_in_use_is_refused() {
    let node = Node::start("alone", &[]);
    let taken = node.net.run(|| std::net::UdpSocket::bind("[::]:7777")).unwrap().unwrap();
    let words = format!("wg set {} listen-port 7777", node.interface);
    let said = try_run(&node.net, &words, "").unwrap_err();
    assert!(said.contains("Address already in use"), "{said}");
    assert_eq!(node.wg("show %i listen-port").trim(), "51820");
    drop(taken);
    // A process that another test starts may hold a copy of the socket until it runs its program.
    until(|| Ok(try_run(&node.net, &words, "").is_ok())).unwrap().unwrap();
    assert_eq!(node.wg("show %i listen-port").trim(), "7777");
}

pub(crate) fn silent_clients_delay_nobody() {
    let (hub, spokes) = star();
    let path = socket_of(&hub.interface);
    let silent: Vec<UnixStream> = (0..10)
        .map(|n| {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream
                .write_all(if n % 2 == 0 { b"set=1\nlisten_port=1" } else { b"get=1\n" })
                .unwrap();
            stream
        })
        .collect();
    assert_tcp_is_intact(&spokes[0].net, &hub.net, inside(1)[1]);
    assert_eq!(hub.wg("show %i listen-port").trim(), "51820");
    drop(silent);
    assert_eq!(hub.wg("show %i listen-port").trim(), "51820");
}
