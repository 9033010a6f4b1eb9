//! Networks with the program or another one in them, and `wg`, `ip` and `nft` run there.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{getpid, set_child_subreaper};
use rxo_testbed::{Namespace, create_veth, until};

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rxo-tunnel");

/// The port of every program.
pub(crate) const PORT: u16 = 51_820;

/// A private network in which a program runs.
pub(crate) struct Node {
    pub(crate) net: Namespace,
    pub(crate) interface: String,
    pub(crate) public_key: String,
    private_key: String,
    program: Option<Child>,
}

/// Prepares the process, which must have one thread: privilege, an empty `/run`, and the processes in the
/// background as its children, so that their end is seen.
pub(crate) fn prepare() {
    rxo_testbed::become_root_in_user_namespace().unwrap();
    rxo_testbed::use_own_run_folder().unwrap();
    set_child_subreaper(Some(getpid())).unwrap();
}

/// Returns a name for an interface that no other test uses, nor one of another process.
pub(crate) fn unused_name() -> String {
    static USED: AtomicU32 = AtomicU32::new(0);
    format!("w{}x{}", std::process::id(), USED.fetch_add(1, Ordering::Relaxed))
}

/// Runs a program with words that are separated by blanks, and `input`. Returns its output, or what it says in its
/// failure.
pub(crate) fn try_run(net: &Namespace, words: &str, input: &str) -> Result<String, String> {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = net.run(|| command.spawn()).unwrap().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

/// Runs a program that must succeed.
pub(crate) fn run(net: &Namespace, words: &str) -> String {
    try_run(net, words, "").unwrap_or_else(|said| panic!("{words}: {said}"))
}

impl Node {
    /// Makes a network, and starts the program there with a new private key, a port, and `flags`.
    pub(crate) fn start(label: &str, flags: &[&str]) -> Self {
        Self::start_program(label, PROGRAM, &[&["-f"], flags].concat())
    }

    /// Makes a network, and starts the program in this file there with all its `flags`, as [`start`](Self::start) does.
    pub(crate) fn start_program(label: &str, file: &str, flags: &[&str]) -> Self {
        let (net, interface) = (Namespace::new(label).unwrap(), unused_name());
        let mut command = Command::new(file);
        command.args(flags).arg(&interface).env("LOG_LEVEL", "error").stdout(Stdio::null());
        let program = net.run(|| command.spawn()).unwrap().unwrap();
        let is_served = || Ok(try_run(&net, &format!("wg show {interface}"), "").is_ok());
        until(is_served).unwrap().unwrap_or_else(|_| panic!("{file} does not start"));
        let private_key = run(&net, "wg genkey").trim().to_owned();
        let public_key = try_run(&net, "wg pubkey", &private_key).unwrap().trim().to_owned();
        let node = Self { net, interface, public_key, private_key, program: Some(program) };
        let words = format!("wg set {} private-key /dev/stdin listen-port {PORT}", node.interface);
        try_run(&node.net, &words, &node.private_key).unwrap();
        node
    }

    /// Runs `wg` with `words`, in which `%i` is the interface, as no key contains it.
    pub(crate) fn wg(&self, words: &str) -> String {
        run(&self.net, &format!("wg {}", words.replace("%i", &self.interface)))
    }

    /// Adds `peer` with these settings.
    pub(crate) fn add_peer(&self, peer: &Self, settings: &str) {
        self.wg(&format!("set %i peer {} {settings}", peer.public_key));
    }

    /// Gives the interface addresses and the MTU of WireGuard, and brings it up.
    pub(crate) fn address(&self, addresses: [IpAddr; 2]) {
        let interface = self.net.interface(&self.interface);
        interface.set_mtu(1_420).unwrap();
        for address in addresses {
            let bits = if address.is_ipv4() { 24 } else { 64 };
            interface.add_address(address, bits).unwrap();
        }
        interface.up().unwrap();
    }

    /// Returns the endpoints of the peers as `wg` shows them.
    pub(crate) fn endpoint_of(&self, peer: &Self) -> String {
        let all = self.wg("show %i endpoints");
        let line = all.lines().find(|line| line.starts_with(&peer.public_key));
        line.and_then(|line| line.split('\t').nth(1)).unwrap_or("none").to_owned()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let Some(mut program) = self.program.take() else { return };
        // It has ended already if the test deleted its interface.
        _ = program.kill();
        _ = program.wait();
    }
}

/// Addresses inside the tunnel of host `n`.
pub(crate) fn inside(n: u8) -> [IpAddr; 2] {
    [IpAddr::from([10, 99, 0, n]), IpAddr::from([0xfd99, 0, 0, 0, 0, 0, 0, n.into()])]
}

/// Connects two networks with wires named `wire` at the far side and `wire` with its number here. The near side has
/// 10.77.N.1, the far side 10.77.N.2.
pub(crate) fn connect(near: &Namespace, far: &Namespace, n: u8) {
    let name = format!("wire{n}");
    let (here, there) = (near.interface(&name), far.interface("wire"));
    create_veth(&here, &there).unwrap();
    for (wire, host) in [(&here, 1), (&there, 2)] {
        wire.add_address([10, 77, n, host].into(), 24).unwrap();
        wire.up().unwrap();
    }
}

/// Makes a star: the hub knows both spokes, and each spoke knows the hub. The first spoke is behind a network that contains
/// the addresses of the second. Returns when the hub knows where both are.
pub(crate) fn star(hub: Node, spokes: [Node; 2]) -> (Node, [Node; 2]) {
    hub.address(inside(1));
    for (spoke, n) in spokes.iter().zip([2_u8, 3]) {
        connect(&hub.net, &spoke.net, n);
        let allowed = if n == 2 {
            "10.99.0.0/24,fd99::/64".to_owned()
        } else {
            format!("10.99.0.{n}/32,fd99::{n}/128")
        };
        hub.add_peer(spoke, &format!("allowed-ips {allowed}"));
        let endpoint = format!("10.77.{n}.1:{PORT}");
        let keepalive = "persistent-keepalive 1";
        spoke.add_peer(
            &hub,
            &format!("endpoint {endpoint} {keepalive} allowed-ips 10.99.0.0/24,fd99::/64"),
        );
        spoke.address(inside(n));
        // The keepalive has begun a handshake; only then does the hub know where the spoke is.
        until(|| Ok(hub.endpoint_of(spoke) == format!("10.77.{n}.2:{PORT}"))).unwrap().unwrap();
    }
    (hub, spokes)
}
