//! Rules that name the nic: blocked ports stay blocked, open ports stay open, and NAT continues.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use rxo_testbed::Lab;

use super::{BOTH, becomes, end, lab, start, state};
use crate::Test;
use crate::at_once::at_once;
use crate::process::run;
use crate::setup::SetUp;
use crate::takeover::{shell, sorted};

pub(crate) const TESTS: &[Test] = &[
    ("hostlife_rules_by_name_go_on_to_match", rules_by_name),
    ("hostlife_a_policy_of_drop_does_not_cut_a_session", a_session_lives),
    ("hostlife_rules_that_would_not_match_are_listed_and_refused", refused),
    ("hostlife_rules_by_name_are_refused_where_the_name_cannot_move", no_name),
    ("hostlife_rules_by_number_that_were_made_meanwhile_are_named", made_meanwhile),
    ("hostlife_a_dry_run_lists_the_rules_that_name_the_nic", a_dry_run),
];

/// A typical firewall, with rules on the nic's name.
const BY_NAME: &str = "
table ip filter {
    chain input {
        type filter hook input priority 0
        policy drop
        iifname lo accept
        ct state established accept
        iifname \"eth1\" tcp dport 7001 accept
        iifname { \"eth1\", \"eth2\" } tcp dport 7003 accept
        iifname eth* tcp dport 7004 accept
    }
    chain output {
        type filter hook output priority 0
        oifname \"eth1\" tcp dport 7005 drop
    }
    chain nat {
        type nat hook postrouting priority 100
        oifname \"eth1\" ip saddr 10.99.0.1 masquerade
    }
}
table netdev early {
    chain ingress {
        type filter hook ingress device \"eth1\" priority 0
        tcp dport 7004 drop
    }
}
";

pub(crate) fn nft(lab: &Lab, rules: &str) {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped());
    let mut child =
        lab.host().run(|| command.spawn()).unwrap().expect("nft, of the package nftables");
    child.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success(), "{rules}");
}

/// A host with this firewall, and listeners on both sides.
struct Walled {
    lab: Lab,
    listeners: Vec<TcpListener>,
}

impl Walled {
    fn new() -> Self {
        let lab = lab();
        shell(&lab, &["ip address add 10.99.0.1/32 dev lo", "ip rule add iif eth1 lookup 77"]);
        nft(&lab, BY_NAME);
        let listen =
            |port: u16| lab.host().run(|| TcpListener::bind(("0.0.0.0", port)).unwrap()).unwrap();
        let mut listeners: Vec<_> = (7001..=7004).map(listen).collect();
        let at_peer =
            |port: u16| lab.peer().run(|| TcpListener::bind(("0.0.0.0", port)).unwrap()).unwrap();
        listeners.extend([at_peer(7005), at_peer(7006)]);
        Self { lab, listeners }
    }

    /// Returns `true` if the peer can connect to this port of the host.
    fn is_open(&self, port: u16) -> bool {
        let to = SocketAddr::from((Lab::HOST_ADDRESSES.0, port));
        self.lab.peer().run(|| connects(to)).unwrap()
    }

    /// Returns the source address that the peer sees on a connection from the host's inner address.
    fn seen_as(&self) -> IpAddr {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let open = || {
            let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            bind(&socket, &SocketAddr::from((Ipv4Addr::new(10, 99, 0, 1), 0))).unwrap();
            connect(&socket, &SocketAddr::from((Lab::PEER_ADDRESSES.0, 7006))).map(|()| socket)
        };
        let _socket = self.lab.host().run(open).unwrap().expect("NAT has ended");
        self.listeners[5].accept().unwrap().1.ip()
    }

    fn check(&self, what: &str) {
        for port in [7001, 7003] {
            assert!(self.is_open(port), "{what}: port {port} is closed");
        }
        for port in [7002, 7004] {
            assert!(!self.is_open(port), "{what}: port {port} is open");
        }
        let out = SocketAddr::from((Lab::PEER_ADDRESSES.0, 7005));
        assert!(!self.lab.host().run(|| connects(out)).unwrap(), "{what}: it may go out");
        assert_eq!(self.seen_as(), IpAddr::from(Lab::HOST_ADDRESSES.0), "{what}");
        assert!(!sorted(&self.lab, "ip rule").contains("detached"), "{what}");
    }
}

/// Returns `true` if a connection opens. To an open port that may take long; the short limit is for dropped
/// packets.
fn connects(to: SocketAddr) -> bool {
    let is_meant_open = [7001, 7003].contains(&to.port());
    let patience = if is_meant_open { Duration::from_secs(60) } else { Duration::from_millis(700) };
    TcpStream::connect_timeout(&to, patience).is_ok()
}

fn rules_by_name() {
    at_once(BOTH, |takes_part| {
        let host = Walled::new();
        let before = state(&host.lab);
        host.check("before");
        let rxo = start(&host.lab, takes_part);
        host.check("while it runs");
        end(rxo);
        host.check("afterwards");
        becomes(&host.lab, &before, &format!("with rxo: {takes_part}"));
    });
}

/// The session from which rxo is started survives, although it depends on a rule that names the nic.
fn a_session_lives() {
    let host = Walled::new();
    let to = SocketAddr::from((Lab::HOST_ADDRESSES.0, 7001));
    let mut client = host.lab.peer().run(|| TcpStream::connect(to).unwrap()).unwrap();
    let (mut session, _) = host.listeners[0].accept().unwrap();
    let mut says = |what: &str| {
        client.write_all(b"ls\n").unwrap();
        session.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        session.read_exact(&mut [0; 3]).unwrap_or_else(|error| panic!("{what}: {error}"));
        session.write_all(b"ok").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.read_exact(&mut [0; 2]).unwrap_or_else(|error| panic!("{what}: {error}"));
    };
    // Only new connections are accepted: the rule for established ones is deleted.
    shell(&host.lab, &["nft flush chain ip filter input"]);
    nft(&host.lab, "add rule ip filter input iifname \"eth1\" tcp dport 7001 accept\n");
    says("before");
    let rxo = start(&host.lab, true);
    (0..10).for_each(|_| says("while it runs"));
    end(rxo);
    says("afterwards");
}

fn refused() {
    let rows: [(&str, &[&str], &str); 6] = [
        (
            "add table ip t; add chain ip t c; add rule ip t c iif \"eth1\" accept",
            &[],
            "of `ip t c`",
        ),
        (
            "add table inet t; add chain inet t c; add rule inet t c oif != \"eth1\" accept",
            &[],
            "of `inet t c`",
        ),
        (
            "add table ip t; add chain ip t c; add rule ip t c iif { lo, eth1 } accept",
            &[],
            "of `ip t c`",
        ),
        (
            "add table ip t; add chain ip t c; add rule ip t c iif vmap { eth1 : accept }",
            &[],
            "of `ip t c`",
        ),
        (
            "add table ip t; add chain ip t c; add rule ip t c iif . oif { eth1 . lo } accept",
            &[],
            "of `ip t c`",
        ),
        (
            "",
            &[
                "tc qdisc add dev eth1 ingress",
                "tc filter add dev eth1 parent ffff: protocol ip prio 7 u32 match u32 0 0 flowid 1:1",
            ],
            "`tc filter` 7 (u32) at the ingress of eth1",
        ),
    ];
    at_once(rows, |(rules, commands, place)| {
        let lab = lab();
        nft(&lab, &format!("{}\n", rules.replace("; ", "\n")));
        shell(&lab, commands);
        let before = state(&lab);
        for dry in ["", " --dry-run"] {
            let output = run(lab.host(), &format!("run {}{dry}", SetUp::TakeOver.flags()));
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            assert!(said.contains("--nic packet:eth1") && said.contains(place), "{said}");
        }
        assert_eq!(state(&lab), before);
        // A rule about another interface does not matter.
        shell(&lab, &["nft flush ruleset", "tc qdisc delete dev eth1 ingress 2>/dev/null || true"]);
        nft(&lab, "add table ip t\nadd chain ip t c\nadd rule ip t c iif lo accept\n");
        end(start(&lab, true));
    });
}

/// rxo refuses to run if every name that the nic could get for the time of the run is taken.
fn no_name() {
    let lab = lab();
    let index = lab.host().interface(Lab::NIC).index().unwrap();
    shell(&lab, &[&format!("ip link add eth1-nic type veth peer name nic-{index}")]);
    let before = state(&lab);
    let rxo = start(&lab, true);
    assert!(sorted(&lab, "ip -o address show dev rxo0").contains("10.77.0.2/24"));
    end(rxo);
    becomes(&lab, &before, "without names");
    for rule in ["iifname eth1 accept", "oifname { eth1 } accept", "iifname eth* accept"] {
        nft(
            &lab,
            &format!("flush ruleset\nadd table ip t\nadd chain ip t c\nadd rule ip t c {rule}\n"),
        );
        let output = run(lab.host(), &format!("run {}", SetUp::TakeOver.flags()));
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{rule}: {said}");
        assert!(said.contains("of `ip t c`") && said.contains("Linux 6.2"), "{rule}: {said}");
    }
}

fn made_meanwhile() {
    let lab = lab();
    let rxo = start(&lab, true).unwrap();
    nft(
        &lab,
        "add table ip t\nadd chain ip t c\nadd rule ip t c iif eth1 drop\nadd rule ip t c iifname eth1 drop\n",
    );
    rxo.signal("TERM");
    let (code, _, said) = rxo.end();
    assert_eq!((code, said.lines().count()), (Some(0), 1), "{said}");
    assert!(
        said.contains("match nothing from now on: rule") && said.contains("of `ip t c`"),
        "{said}"
    );
    assert_eq!(said.matches("of `ip t c`").count(), 1, "{said}");
}

fn a_dry_run() {
    let host = Walled::new();
    let before = state(&host.lab);
    let line = format!("run {} --dry-run", SetUp::TakeOver.flags());
    let said = String::from_utf8(run(host.lab.host(), &line).stdout).unwrap();
    for part in
        ["of `ip filter input`", "of `ip filter nat`", "`netdev early ingress`", "`ip rule` 32765"]
    {
        assert!(said.contains(part), "'{part}' is not in {said}");
    }
    assert_eq!(state(&host.lab), before);
}
