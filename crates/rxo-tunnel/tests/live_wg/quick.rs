//! `wg-quick` with all traffic in the tunnel: the host's routes, rules and filters are afterwards what they were.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rxo_testbed::{Namespace, until};

use crate::background::{Deleted, await_end, process_of, socket_of};
use crate::common::assert_tcp_is_intact;
use crate::node::{Node, PORT, PROGRAM, connect, inside, run, try_run, unused_name};

/// The peer's outer address, to which the host's default route leads.
const PEER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

/// An address behind the peer, to which only the tunnel's default route leads.
const BEYOND: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 7);

pub(crate) fn takes_all_and_gives_it_back() {
    let far = Node::start("far", &[]);
    let host = Namespace::new("host").unwrap();
    if Path::new("/sys/module/wireguard").exists()
        || try_run(&host, "ip link add kernel type wireguard", "").is_ok()
    {
        eprintln!("not run: this kernel has WireGuard, which wg-quick prefers to any program");
        return;
    }
    give_default_routes(&host, &far);
    let (interface, private) = (unused_name(), run(&host, "wg genkey"));
    let public = try_run(&host, "wg pubkey", &private).unwrap();
    far.wg(&format!("set %i peer {} allowed-ips 10.99.0.1/32,fd99::1/128", public.trim()));
    let folder = std::env::temp_dir().join(format!("rxo-wg-quick-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("{interface}.conf"));
    write_config(&path, private.trim(), &far.public_key);
    let before = everything(&host);
    for _ in 0..2 {
        let _deleted = Deleted(&host, &interface);
        wg_quick(&host, "up", &path);
        let process = process_of(&interface);
        assert_ne!(everything(&host), before);
        assert_carries_all(&host, &far);
        wg_quick(&host, "down", &path);
        await_end(process);
        assert!(!Path::new(&socket_of(&interface)).exists());
        until(|| Ok(everything(&host) == before)).unwrap().ok();
        assert_eq!(everything(&host), before);
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Connects the host with the far network, through which all of its routes lead.
fn give_default_routes(host: &Namespace, far: &Node) {
    connect(&far.net, host, 1);
    let lo = far.net.interface("lo");
    [PEER, BEYOND].iter().for_each(|&it| lo.add_address(it.into(), 32).unwrap());
    far.address(inside(2));
    far.net.interface("wire1").add_address(outer_v6(1), 64).unwrap();
    let wire = host.interface("wire");
    wire.add_address(outer_v6(2), 64).unwrap();
    let routers = [IpAddr::from([10, 77, 1, 1]), outer_v6(1)];
    let all = [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()];
    for (all, router) in all.into_iter().zip(routers) {
        wire.add_route((all, 0), Some(router)).unwrap();
    }
    // The kernel routes to its own IPv6 addresses only after it has found no duplicate.
    let own = format!("local {} ", outer_v6(2));
    until(|| Ok(everything(host).contains(&own))).unwrap().unwrap();
}

fn outer_v6(host: u16) -> IpAddr {
    IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, host])
}

fn write_config(path: &Path, private: &str, peer: &str) {
    let text = format!(
        "[Interface]\nPrivateKey = {private}\nAddress = 10.99.0.1/24, fd99::1/64\n\n[Peer]\n\
         PublicKey = {peer}\nEndpoint = {PEER}:{PORT}\nAllowedIPs = 0.0.0.0/0, ::/0\n"
    );
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

fn wg_quick(host: &Namespace, what: &str, config: &Path) {
    let mut command = Command::new("wg-quick");
    command.arg(what).arg(config).env("WG_QUICK_USERSPACE_IMPLEMENTATION", PROGRAM);
    let output = host.run(|| command.output()).unwrap().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Returns all routes, rules and filters of the host as text.
fn everything(host: &Namespace) -> String {
    let commands = [
        "ip -4 route show table all",
        "ip -6 route show table all",
        "ip -4 rule show",
        "ip -6 rule show",
        "nft list ruleset",
    ];
    commands.map(|words| format!("{words}:\n{}", run(host, words))).concat()
}

/// Connects to an address beyond the peer while the tunnel's own packets need the host's default route, and sends
/// both ways.
fn assert_carries_all(host: &Namespace, far: &Node) {
    let listener = far.net.run(|| TcpListener::bind((BEYOND, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(30));
    let stream = host.run(connect).unwrap().unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!((from, from.ip()), (stream.local_addr().unwrap(), inside(1)[0]));
    for (ours, theirs) in inside(1).into_iter().zip(inside(2)) {
        assert_tcp_is_intact(host, &far.net, theirs);
        assert_tcp_is_intact(&far.net, host, ours);
    }
}
