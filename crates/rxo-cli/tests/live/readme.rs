//! Runs the shell commands of README.md and docs/ verbatim.
//!
//! Each command either runs in a network with the names and addresses of the documentation, or is listed in
//! [`NOT_HERE`] with a reason. A new or changed command fails the test until it is in one of the two.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{Lab, LabOptions, Namespace};

use crate::Test;
use crate::at_once::at_once;
use crate::isolation::{DATAGRAMS, received};
use crate::process::wait_until;
use crate::report::Scratch;

pub(crate) const TESTS: &[Test] = &[
    ("every_documented_command_is_run_or_says_why_not", every_command),
    ("the_documented_set_up_by_hand_delivers_once", by_hand),
    ("the_documented_take_over_delivers_once", take_over),
    ("the_documented_hosts_reach_their_peers", hosts),
    ("the_documented_file_server_serves", file_server),
    ("the_documented_captures_come_back", captures),
];

pub(crate) const LONG_TESTS: &[Test] = &[("the_documented_source_sends_for_its_time", source)];

const BY_HAND: &str = "sudo ./target/release/rxo run --nic packet:eth1 --host tap:rxo0 --stats 1s";
const TAKE_OVER: &str =
    "sudo ./target/release/rxo run --nic packet:eth1 --host tap:rxo0 --take-over";
const CAT: &str = "rxo cat    --nic tap:rxo0 --ip 10.0.0.2/24 10.0.0.1:7000 < file";
const SINK: &str = "rxo sink   --nic packet:eth1 --ip 192.0.2.7/24 --listen 7000";
const SOURCE: &str = "rxo source --nic packet:eth1 --ip 192.0.2.7/24 --gateway 192.0.2.1 \
                      198.51.100.9:7000 --time 10s";
const SERVE: &str = "sudo ./target/release/rxo serve /srv/files --nic packet:eth1 --ip \
                     192.0.2.20/24 --gateway 192.0.2.1";
const ADDRESSES: [&str; 4] = [
    r#"sudo ip link set rxo0 address "$(cat /sys/class/net/eth1/address)""#,
    "sudo ip address add 192.0.2.10/24 dev rxo0",
    "sudo ip address add 2001:db8::10/64 dev rxo0 nodad",
    "sudo ip link set rxo0 up",
];
const CAPTURES: [&str; 3] = [
    "rxo coalesce in.pcap out.pcapng --policy remember",
    "rxo expand out.pcapng back.pcap",
    "rxo verify in.pcap out.pcapng",
];

/// Commands that do not run here: how they begin, and the reason.
const NOT_HERE: &[(&str, &str)] = &[
    ("cargo run --release -- demo", "builds the project; tests/live/demo.rs runs the demo"),
    ("cargo xtask test", "runs this"),
    (
        "cargo test --profile ci -p rxo-cli --test live_guest_vhost -- migrated",
        "boots guests; it is a test by itself",
    ),
    (
        "sudo ./target/release/rxo run --nic packet:eth1 --host vhost:/run/vm.sock",
        "needs a guest; tests/live/guests.rs runs it with one",
    ),
    (
        "sudo ./target/release/rxo guest --nic packet:eth1 --vhost web=/run/web.sock",
        "needs guests; tests/live/switch.rs runs it with four",
    ),
    (
        "sudo ./target/release/rxo card --wire packet:eth1 --guest vhost:/run/card.sock",
        "needs a host; tests/live/card.rs runs it with one",
    ),
    (
        "sudo ./target/release/rxo sink --nic virtio:/run/card.sock",
        "needs a card; tests/live/card.rs runs it with one",
    ),
    (
        "sudo ./target/release/rxo run --nic packet:eth1 --host tap:rxo0 --control /run/rxo.sock",
        "runs until it is stopped; tests/live/control runs it and asks it",
    ),
    (
        "sudo ./target/release/rxo run --nic packet:eth1 --host tap:rxo0 --metrics 127.0.0.1:9464",
        "runs until it is stopped; tests/live/metrics.rs runs and reads it",
    ),
    ("curl http://127.0.0.1:9464/metrics", "reads the one before; tests/live/metrics.rs does it"),
    (
        "sudo ./target/release/rxo run --nic packet:eth1 --host tap:rxo0 --take-over --control \
         /run/rxo.sock --confirm 60s",
        "runs until it is stopped; tests/live/hostlife/confirm.rs runs it with a shorter time",
    ),
    (
        "sudo ./target/release/rxo doctor --nic eth1",
        "its exit code is the machine's; tests/live/doctor.rs runs it",
    ),
    (
        "sudo ./target/release/rxo ctl /run/rxo.sock confirm",
        "confirms the one before; tests/live/hostlife/confirm.rs does it",
    ),
    (
        "sudo ./target/release/rxo ctl /run/rxo.sock",
        "asks the one before; tests/live/control does it",
    ),
    (
        "rxo serve /srv --nic packet:eth1 --ip 10.0.0.2/24 --fast-path pure-ack,syn-flood,accounting",
        "runs until it is stopped; tests/live/control runs a source with a fast path",
    ),
    ("sudo ./target/release/rxo cast send", "needs receivers; tests/live/cast runs it with three"),
    ("sudo ./target/release/rxo cast receive", "needs a sender; tests/live/cast runs it with one"),
    ("sudo ./target/release/rxo cast join", "needs a sender; tests/live/cast runs it with one"),
    ("sudo ip address add 10.0.0.6/24 dev cast0", "is of cast join; tests/live/cast does it"),
    ("nc 10.0.0.1 7000 > image.img", "needs a cast; tests/live/cast receives with a plain socket"),
    ("rxo-lab guests", "boots guests; tests/live_guest of rxo-lab runs it"),
    ("rxo sink --nic virtio:/run/vm.sock", "needs a device; tests/live/guests.rs runs it with one"),
    ("rxo demo --reverse", "half a minute each; tests/live/sending.rs runs them with fewer rounds"),
    ("rxo calibrate", "half a minute; tests/live/calibrate.rs runs it with less"),
    (
        "rxo analyze a.pcapng",
        "needs the costs of rxo calibrate; tests/report.rs runs it with others",
    ),
    ("rxo compare traces/ --policies", "captures of a reader; tests/compare runs it on its own"),
    ("rxo-lab juggler", "tests/command.rs of rxo-lab runs it"),
    ("rxo-lab cast", "a minute; the step lab of cargo xtask test --ci runs it"),
    ("rxo-lab check", "results of hours; tests/command.rs of rxo-lab runs it on small ones"),
    ("rxo-lab policies", "the step lab of cargo xtask test --ci runs it"),
    (
        "target/lines/rxo-lab all",
        "hours; the step lab of cargo xtask test --ci runs the counted half",
    ),
    ("cargo build --profile lines", "a build with lines, and minutes; run by hand"),
    ("cargo xtask report", "the step report of cargo xtask test --ci runs it"),
    (
        "cargo test --profile ci -p rxo-cli --test live_command -- --include-ignored",
        "measures for minutes; run by hand",
    ),
    ("podman ", "no container program here; run by hand"),
    ("apt-get install build-essential", "changes the system; cargo xtask installs what tests need"),
    ("ethtool -K IF gro off", "an interface of a reader"),
    ("tcpdump -i IF", "an interface of a reader"),
    ("rxo-lab rsc", "minutes; tests/live of rxo-lab runs it with --quick"),
    ("rxo-lab gallatin", "minutes; tests/live of rxo-lab runs it small"),
    ("rxo-lab menon", "minutes; tests/live of rxo-lab runs it small"),
    ("rxo-lab paro", "minutes; tests/live of rxo-lab runs it with --quick"),
    ("cargo build --release -p rxo-tunnel", "builds the tunnel; its tests/live_wg runs it"),
    (
        "sudo WG_QUICK_USERSPACE_IMPLEMENTATION=rxo-tunnel wg-quick up wg0",
        "needs a peer; tests/live_wg of the tunnel runs it with one",
    ),
    ("sudo wg show wg0", "asks the one before; tests/live_wg of the tunnel does it"),
    ("sudo wg-quick down wg0", "ends the one before; tests/live_wg of the tunnel does it"),
    ("sudo wg setconf wg0", "is of the tunnel; its tests/live_wg set and sync"),
    ("sudo ip address add 10.8.0.1/24 dev wg0", "is of the tunnel; its tests/live_wg do it"),
    ("wg genkey > a.key", "is of the tunnel; its tests make keys"),
    ("sudo rxo-tunnel wg0", "needs a peer; tests/live_wg and live_tunnel of the tunnel run it"),
    ("    --listen-port 51820", "is the rest of the command before"),
    ("cargo xtask bench live-tcp", "minutes; run by hand"),
    ("cargo xtask bench tunnel", "minutes; run by hand"),
    (
        "cargo run --release -p rxo --example live_loops",
        "a release build; tests/embedding of rxo runs its loops",
    ),
    ("python3 -m venv", "makes a folder; the step python of cargo xtask test makes its own"),
    ("pip install", "needs the registry of Python; the step python of cargo xtask test does it"),
    ("rxo analyze --live", "tests/live/watching watches interfaces of private networks"),
    ("cargo xtask dist --wheels", "takes minutes; the step dist of cargo xtask test does it"),
    ("rxo analyze --part", "tests/analyze cuts captures and saves their parts"),
    ("rxo analyze p1.rxo p2.rxo p3.rxo", "tests/analyze merges parts"),
    ("cargo xtask capi --prefix", "the step c of cargo xtask test installs it elsewhere"),
    ("cc example.c $(pkg-config", "the step c of cargo xtask test compiles it"),
    ("cargo build --release -p rxo-capi", "a release build; run by hand"),
    ("cc -O2 -Icapi/include", "is of the build before; run by hand"),
    ("valgrind --tool=callgrind", "is of the build before; run by hand"),
    ("cargo run --profile ci -p rxo-packetdrill", "scripts of others, which are not here"),
    ("RXO_BURSTS=1000000", "an hour; the short command runs 5,000, --all 200,000"),
    ("rxo-lab smo", "minutes; tests/live of rxo-lab runs it with --quick"),
    ("rxo-lab xen", "minutes, and a guest; tests/live_guest of rxo-lab runs it with --quick"),
    (
        "cargo test --release -p rxo-cli --test live_command",
        "a release build, and minutes; --all of cargo xtask test runs these tests",
    ),
    ("sudo install -d -m 2770 -g kvm /run/vms", "needs the group of libvirt; tried by hand"),
    ("sudo sh -c 'umask 007; exec rxo run", "needs libvirt; tried by hand with a guest of it"),
];

/// Returns all commands of the documentation, without their comments.
fn documented() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("README.md")];
    markdown_below(&root.join("docs"), &mut files);
    files.iter().flat_map(|file| commands(&fs::read_to_string(file).unwrap())).collect()
}

fn markdown_below(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            markdown_below(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// Returns the lines of the blocks that are marked as `sh`.
fn commands(text: &str) -> Vec<String> {
    let mut in_shell = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            in_shell = language == "sh";
        } else if in_shell {
            found.push(line.split(" # ").next().unwrap().trim_end().to_owned());
        }
    }
    found.retain(|line| !line.is_empty());
    found
}

fn every_command() {
    let documented = documented();
    let runs: BTreeSet<&str> = [BY_HAND, TAKE_OVER, CAT, SINK, SOURCE, SERVE]
        .into_iter()
        .chain(ADDRESSES)
        .chain(CAPTURES)
        .collect();
    let is_excused = |line: &str| NOT_HERE.iter().any(|(begin, _)| line.starts_with(begin));
    let unknown: Vec<_> = documented
        .iter()
        .filter(|line| !runs.contains(line.as_str()) && !is_excused(line))
        .collect();
    assert!(unknown.is_empty(), "neither run nor excused: {unknown:#?}");
    for line in &runs {
        assert!(documented.iter().any(|one| one == line), "not documented any more: {line}");
    }
    for (begin, _) in NOT_HERE {
        let is_there = documented.iter().any(|line| line.starts_with(begin));
        assert!(is_there, "not documented any more: {begin}");
    }
}

/// A directory like a checkout, in which the commands run, and the network of the documentation.
struct Desk {
    lab: Lab,
    scratch: Scratch,
}

impl Desk {
    fn new(name: &str) -> Self {
        let lab = Lab::with_bare_nic(LabOptions::default()).unwrap();
        let peer = lab.peer().interface(Lab::PEER_INTERFACE);
        for (address, bits) in [("192.0.2.1", 24), ("2001:db8::1", 64), ("198.51.100.9", 32)] {
            peer.add_address(address.parse().unwrap(), bits).unwrap();
        }
        let scratch = Scratch::new(name);
        for directory in ["target/release", "bin"] {
            fs::create_dir_all(scratch.file(directory)).unwrap();
        }
        for place in ["target/release/rxo", "bin/rxo"] {
            symlink(env!("CARGO_BIN_EXE_rxo"), scratch.file(place)).unwrap();
        }
        let sudo = scratch.file("bin/sudo");
        fs::write(&sudo, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        fs::set_permissions(&sudo, fs::Permissions::from_mode(0o755)).unwrap();
        Self { lab, scratch }
    }

    /// Starts a command in the host's network namespace, with a `/sys` of that namespace, as a user has it.
    fn start(&self, command: &str) -> Child {
        const INSIDE: &str = r#"mount -t sysfs none /sys && eval "$1""#;
        let path = format!("{}:{}", self.scratch.file("bin").display(), env!("PATH"));
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", INSIDE, "sh", command]).env("PATH", path);
        shell.current_dir(self.scratch.file(".")).stdin(Stdio::null());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        self.lab.host().run(|| shell.spawn()).unwrap().unwrap()
    }

    /// Starts a long-running command. The child is the command itself, not a shell.
    fn start_long(&self, command: &str) -> Child {
        self.start(&format!("exec {command}"))
    }

    /// Runs a command to its end, which must succeed. Returns both outputs.
    fn run(&self, command: &str) -> String {
        let output = self.start(command).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {said}");
        String::from_utf8(output.stdout).unwrap() + &said
    }

    /// Asserts that the host receives each packet of its peer once, and segments coalesced.
    fn assert_each_once(&self, running: Child, what: &str) {
        let (v4, v6): (IpAddr, IpAddr) =
            ("192.0.2.10".parse().unwrap(), "2001:db8::10".parse().unwrap());
        for to in [v4, v6] {
            let pinged = ping(self.lab.peer(), to);
            assert!(pinged.contains(" 20 received") && !pinged.contains("duplicates"), "{pinged}");
            let once = DATAGRAMS as usize;
            assert_eq!(received(&self.lab, to), (once, once), "{what} {to}");
            let bytes_per_connection = Some(20_000_000);
            let config = BulkConfig { bytes_per_connection, ..BulkConfig::default() };
            let (peer, host) = (self.lab.peer(), self.lab.host());
            let report = BulkTransfer::start(peer, host, to, &config).unwrap().wait().unwrap();
            assert!(report.is_intact(), "{what} {to}");
        }
        let (_, totals) = end(running, "TERM");
        let told = self.lab.peer().stack_counters().unwrap().duplicates_told;
        assert!(told < 40_000_000 / 1_448 / 10, "{what}: {told} duplicates");
        let words: Vec<&str> = totals.split_whitespace().collect();
        let at = words.windows(3).position(|three| three == ["packets", "per", "aggregate"]);
        let packets: f64 = words[at.unwrap_or_else(|| panic!("{totals}")) - 1].parse().unwrap();
        assert!(packets > 2.0, "{what}: {totals}");
    }
}

fn ping(from: &Namespace, to: IpAddr) -> String {
    let mut ping = Command::new("ping");
    ping.args(["-c", "20", "-i", "0.01", "-W", "10", &to.to_string()]);
    let output = from.run(|| ping.output()).unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Ends a process by a signal. Returns its status and the unread rest of its standard output.
fn end(mut child: Child, signal: &str) -> (ExitStatus, String) {
    let kill = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {said}");
    (status, text)
}

/// Waits for the first line of output, which shows that the process is ready.
fn wait_for_first_line(child: &mut Child) {
    let mut line = String::new();
    // One byte at a time, so that the rest of the output stays unread.
    let mut output = BufReader::with_capacity(1, child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert!(!line.is_empty(), "it did not start");
    child.stdout = Some(output.into_inner());
}

const CHECKS: [&str; 3] = ["0", "1", "2"];

fn by_hand() {
    at_once(CHECKS, |check| {
        let desk = Desk::new(&format!("by-hand-{check}"));
        desk.lab.host().set_sysctl("net.ipv4.conf.all.rp_filter", check).unwrap();
        let mut rxo = desk.start_long(BY_HAND);
        wait_for_first_line(&mut rxo);
        ADDRESSES.iter().for_each(|command| drop(desk.run(command)));
        desk.assert_each_once(rxo, check);
    });
}

fn take_over() {
    at_once(CHECKS, |check| {
        let desk = Desk::new(&format!("take-over-{check}"));
        desk.lab.host().set_sysctl("net.ipv4.conf.all.rp_filter", check).unwrap();
        let nic = desk.lab.host().interface(Lab::NIC);
        nic.add_address("192.0.2.10".parse().unwrap(), 24).unwrap();
        nic.add_address("2001:db8::10".parse().unwrap(), 64).unwrap();
        let mut rxo = desk.start_long(TAKE_OVER);
        wait_for_first_line(&mut rxo);
        desk.assert_each_once(rxo, check);
    });
}

fn hosts() {
    let desk = Desk::new("hosts");
    fs::write(desk.scratch.file("file"), "as nc does\n").unwrap();
    let host = desk.lab.host();
    let listener = host.run(|| TcpListener::bind("0.0.0.0:7000").unwrap()).unwrap();
    let cat = desk.start_long(CAT);
    wait_until("the TAP is there", || host.interface("rxo0").exists());
    let remedy = "ip address add 10.0.0.1/24 dev rxo0; ip link set rxo0 up";
    assert!(include_str!("../../../../docs/host.md").contains(remedy));
    desk.run(remedy);
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert_eq!(text, "as nc does\n");
    assert!(cat.wait_with_output().unwrap().status.success());

    let sink = desk.start_long(SINK);
    let mut stream = connect(desk.lab.peer(), "192.0.2.7:7000");
    stream.write_all(&[7; 1_000_000]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    // The sink closes once it has received everything, and ends.
    assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    let output = sink.wait_with_output().unwrap();
    let (totals, said) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
    let (totals, said) = (totals.unwrap(), said.unwrap());
    assert!(output.status.success(), "{said}");
    assert!(totals.contains("1,000,000") || totals.contains("1.0 MB"), "{totals}");
}

fn source() {
    let desk = Desk::new("source");
    let peer = desk.lab.peer();
    let listener = peer.run(|| TcpListener::bind("198.51.100.9:7000").unwrap()).unwrap();
    let source = desk.start_long(SOURCE);
    let read = std::io::copy(&mut listener.accept().unwrap().0, &mut std::io::sink()).unwrap();
    assert!(read > 1_000_000, "{read} bytes in ten seconds");
    assert!(source.wait_with_output().unwrap().status.success());
}

fn connect(from: &Namespace, to: &str) -> TcpStream {
    let stream = RefCell::new(None);
    wait_until(to, || {
        *stream.borrow_mut() = from.run(|| TcpStream::connect(to)).unwrap().ok();
        stream.borrow().is_some()
    });
    stream.into_inner().unwrap()
}

fn file_server() {
    let desk = Desk::new("server");
    // The interface must have no address at all, as the documentation requires.
    desk.lab.host().set_sysctl("net.ipv6.conf.eth1.disable_ipv6", "1").unwrap();
    let files = "mount -t tmpfs none /srv && mkdir /srv/files && echo here > /srv/files/a.txt";
    let mut server = desk.start(&format!("{files} && exec {SERVE}"));
    wait_for_first_line(&mut server);
    let mut stream = connect(desk.lab.peer(), "192.0.2.20:80");
    stream.write_all(b"GET /a.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("here\n"), "{answer}");
    end(server, "TERM");
}

fn captures() {
    let desk = Desk::new("captures");
    let input = desk.scratch.file("in.pcap");
    fs::write(&input, pcap()).unwrap();
    CAPTURES.iter().for_each(|command| drop(desk.run(command)));
    assert_eq!(fs::read(desk.scratch.file("back.pcap")).unwrap(), fs::read(input).unwrap());
}

/// Returns ten segments of one flow in a file like `tcpdump`'s.
fn pcap() -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32.to_le_bytes(), [2, 0, 4, 0], [0; 4], [0; 4]].concat();
    file.extend([65_535_u32, 1].map(u32::to_le_bytes).concat());
    for number in 0..10_u32 {
        let packet = rxo_testkit::seg().seq(1 + 1_000 * number).len(1_000).frame();
        let length = u32::try_from(packet.bytes().len()).unwrap();
        file.extend([1_700_000_000, number, length, length].map(u32::to_le_bytes).concat());
        file.extend_from_slice(packet.bytes());
    }
    file
}
