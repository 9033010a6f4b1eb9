//! The roles of this program when a test starts it as another process.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitCode, Stdio};

use rxo_testbed::traffic::{BulkConfig, BulkTransfer};
use rxo_testbed::{
    KernelGro, Lab, Namespace, Privilege, become_root_in_user_namespace, create_veth,
};

/// The environment variable that names the role.
const ROLE: &str = "RXO_LAB_TEST_ROLE";

/// The interface that connects a lab with the network in which its process was started.
pub(crate) const TIE: &str = "tie0";

pub(crate) fn asked_for() -> Option<String> {
    env::var(ROLE).ok()
}

/// Starts this program as another process in `role`. It ends when its standard input does.
pub(crate) fn process(role: &str) -> Command {
    // By this name, a user who cannot access the file's folder can start it too.
    let mut command = Command::new("/proc/self/exe");
    command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until the process reports that it is ready.
pub(crate) fn await_ready(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{}", complaint(child));
}

pub(crate) fn complaint(child: &mut Child) -> String {
    let mut text = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn play(role: &str) -> ExitCode {
    match role {
        "lab" => lab_in_use(),
        "spin" => spin(),
        "unprivileged" => return unprivileged(),
        other => panic!("no role {other}"),
    }
    ExitCode::SUCCESS
}

/// Runs a lab with traffic, connected to the network of this process, until its standard input ends.
fn lab_in_use() {
    let home = Namespace::current("home").unwrap();
    let lab = Lab::direct(KernelGro::On).unwrap();
    let_orphans_end_soon(&lab);
    create_veth(&home.interface(TIE), &lab.peer().interface(TIE)).unwrap();
    let config = BulkConfig { connections: 4, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config);
    say_ready();
    await_end();
    transfer.unwrap().stop().unwrap();
}

/// A socket without a process keeps its network until its peer answers. If the peer's network goes first,
/// Linux otherwise tries again for 100 s or more.
pub(crate) fn let_orphans_end_soon(lab: &Lab) {
    for namespace in [lab.peer(), lab.host()] {
        namespace.set_sysctl("net.ipv4.tcp_orphan_retries", "1").unwrap();
    }
}

fn spin() {
    std::thread::spawn(|| {
        loop {
            std::hint::spin_loop();
        }
    });
    say_ready();
    await_end();
}

/// Does everything that a user without privileges may do: builds a lab, and runs a checked transfer.
fn unprivileged() -> ExitCode {
    match become_root_in_user_namespace() {
        Ok(privilege) => assert_eq!(privilege, Privilege::UserNamespace),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    let lab = Lab::direct(KernelGro::On).unwrap();
    let bytes_per_connection = Some(1_000_000);
    let config = BulkConfig { connections: 4, bytes_per_connection, ..BulkConfig::default() };
    let transfer = BulkTransfer::start(lab.peer(), lab.host(), lab.host_address(), &config);
    assert!(transfer.unwrap().wait().unwrap().is_intact());
    say_ready();
    ExitCode::SUCCESS
}

fn say_ready() {
    println!("ready");
    io::stdout().flush().unwrap();
}

fn await_end() {
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}
