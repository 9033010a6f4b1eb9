//! Default routes through the tunnel: the host's own routes and rules stay, whatever ends the program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use rxo_peers::Tunnel;
use rxo_testbed::{Namespace, RouteOrRule, until};

use crate::pair::ours;
use crate::write_key;

/// An address of the far network to which only the default route leads.
const BEYOND: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 7));

/// The peer's outer address, to which the host's default route leads.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Connects to an address beyond the far end while the tunnel's own packets need the host's default route. If
/// they took the tunnel's, nothing would arrive.
pub(crate) fn carries_all() {
    let tunnel = host_with_default_routes();
    let _program = start(tunnel.near());
    let listener = tunnel.far().run(|| TcpListener::bind((BEYOND, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&to, Duration::from_secs(30));
    let stream = tunnel.near().run(connect).unwrap().unwrap();
    let (_, from) = listener.accept().unwrap();
    assert_eq!((from, from.ip()), (stream.local_addr().unwrap(), Tunnel::NEAR[0]));
}

/// Compares all routes and rules of a host that has default routes: while the program runs, after SIGTERM,
/// and after SIGKILL.
pub(crate) fn hosts_routes_stay() {
    let tunnel = host_with_default_routes();
    let host = tunnel.near();
    let before = host.routes_and_rules().unwrap();
    for signal in [Signal::TERM, Signal::KILL] {
        let mut program = start(host);
        let during = host.routes_and_rules().unwrap();
        let lost: Vec<_> = before.iter().filter(|one| !during.contains(one)).collect();
        assert!(lost.is_empty(), "gone while it runs: {lost:?}");
        assert!(during.len() >= before.len() + 6, "a default route and two rules for each version");
        kill_process(Pid::from_child(&program.0), signal).unwrap();
        let end = program.0.wait().unwrap();
        assert!(end.success() || end.signal() == Some(Signal::KILL.as_raw()), "{end}");
        let is_back = until(|| Ok(host.routes_and_rules()? == before)).unwrap();
        let after = host.routes_and_rules().unwrap();
        assert!(is_back.is_ok(), "after {signal:?}: {after:?}, before: {before:?}");
    }
}

/// Returns a tunnel whose near program has ended, so that a test starts it. The near host has default routes.
fn host_with_default_routes() -> Tunnel {
    let tunnel = Tunnel::start(&ours(&[]), &ours(&[])).unwrap();
    let (host, far) = (tunnel.near(), tunnel.far());
    far.interface("lo").up().unwrap();
    [PEER, BEYOND].iter().for_each(|&it| far.interface("lo").add_address(it, 32).unwrap());
    let program = Pid::from_raw(tunnel.processes()[0].cast_signed()).unwrap();
    kill_process(program, Signal::TERM).unwrap();
    let inside = |one: &RouteOrRule| one.iter().any(|(_, value)| *value == [10, 99, 0, 1]);
    until(|| Ok(!host.routes_and_rules()?.iter().any(inside))).unwrap().unwrap();
    let wire = host.interface("wire");
    wire.add_address(OUTSIDE_6.into(), 64).unwrap();
    wire.add_route((Ipv4Addr::UNSPECIFIED.into(), 0), Some(ROUTER.into())).unwrap();
    wire.add_route((Ipv6Addr::UNSPECIFIED.into(), 0), Some(ROUTER_6.into())).unwrap();
    // The kernel routes to its own address only after it has found no duplicate.
    let own = OUTSIDE_6.octets().to_vec();
    let has_own = |all: &[RouteOrRule]| all.iter().flatten().any(|(_, value)| *value == own);
    until(|| Ok(has_own(&host.routes_and_rules()?))).unwrap().unwrap();
    tunnel
}

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const OUTSIDE_6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);
const ROUTER_6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2);

/// The program, which a test that fails does not leave behind.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It has ended already unless the test fails.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts the program on `host`, and waits until it is up.
fn start(host: &Namespace) -> Program {
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let key = format!("rxo-tunnel-key-{}-{number}", std::process::id());
    let key = std::env::temp_dir().join(key);
    write_key(&key, "yI4bSsPYMoCwySaNvFraci2fvR/uG5NgcBXXWhfRJEg=", 0o600);
    let mut command = Command::new(env!("CARGO_BIN_EXE_rxo-tunnel"));
    command.arg("rxo0").arg("--private-key").arg(&key);
    command.args(["--peer", "nRF5CpO+PyEFjSl3cvXTGcpA83YhKmFxMLtbbCR9tW8="]);
    command.args(["--endpoint", "192.0.2.1:51820", "--address", "10.99.0.1/24,fd99::1/64"]);
    command.args(["--allowed-ips", "0.0.0.0/0,::/0,10.99.0.0/24"]).stderr(Stdio::piped());
    let mut program = Program(host.run(|| command.spawn()).unwrap().unwrap());
    let mut said = String::new();
    BufReader::new(program.0.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("is up"), "{said}");
    fs::remove_file(&key).unwrap();
    program
}
