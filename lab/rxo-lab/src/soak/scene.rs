//! The networks and processes of a soak.
//!
//! ```text
//!  host [eth1: the TAP] - rxo run - [eth1-nic] ===veth=== [eth0] peer [srv0] ===veth=== [srv1] - rxo serve
//!                                                          forwards
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rxo_control::{Request, Session};
use rxo_peers::Folder;
use rxo_testbed::{Lab, LabOptions, Namespace, Offload, create_veth};
use serde_json::Value;

use super::counts::{Counts, Ends};
use super::load::{Carried, Traffic, beside_churn};
use super::resources::{self, Sample};
use crate::downloads::Load;
use crate::files;
use crate::process::{self, Process};

/// All networks and processes. Dropping this ends the processes and removes the networks.
pub(super) struct Scene {
    // Fields are dropped in this order: rxo ends first.
    run: Asked,
    serve: Asked,
    /// Names and ids of rxo's processes.
    processes: Vec<(&'static str, u32)>,
    lab: Lab,
    /// Namespace of the server, with the far end of the peer's second wire.
    _server: Namespace,
    /// Both ends of a connection that stays open for the whole soak.
    lasting: [TcpStream; 2],
    /// Counts before the first round.
    base: Option<Counts>,
    /// Number of rounds begun. Each round sets another hold time.
    rounds: usize,
    _folder: Folder,
}

/// A process of rxo with its control session.
struct Asked {
    process: Process,
    session: Session,
    /// Number of requests that the worker did not answer in time.
    late: u64,
}

impl Asked {
    fn start(
        network: &Namespace,
        name: &'static str,
        arguments: &str,
        socket: &Path,
    ) -> Result<Self> {
        let mut command = Command::new(process::program()?);
        command.arg("rxo").args(arguments.split(' ')).arg("--json").arg("--control").arg(socket);
        let mut process = network.run(|| Process::spawn(name, &mut command))??;
        let _configuration: Value = process.line()?;
        // The server prints a line for each request, so its output must be drained.
        process.ignore_output()?;
        Ok(Self { process, session: Session::open(socket)?, late: 0 })
    }

    /// Sends a request. On a loaded machine rxo may report a late worker, so the request is repeated until
    /// the timeout.
    fn ask(&mut self, name: &str, value: Option<&str>) -> Result<Value> {
        let value = value.map(str::to_owned);
        let request = Request { name: name.to_owned(), value, with: Default::default() };
        let begun = Instant::now();
        loop {
            match self.session.ask(&request)?.result {
                Ok(answer) => return Ok(answer),
                Err(why) if begun.elapsed() > TIMEOUT => bail!("rxo refuses {name}: {why}"),
                Err(_) => self.late += 1,
            }
        }
    }
}

impl Scene {
    /// Makes the networks and starts the processes.
    pub(super) fn start() -> Result<Self> {
        let folder = Folder::new("soak")?;
        let served = folder.file("files");
        std::fs::create_dir(&served).context("the directory of the files")?;
        files::make(&served, FILES, FILE_BYTES)?;
        let lab = Lab::with_addressed_nic(LabOptions::default())?;
        let server = attach_server(&lab)?;
        // Opened before rxo starts, and used again after it has ended.
        let lasting = connect(&lab)?;
        let serve = format!(
            "serve {} --nic packet:{SERVER_END} --ip {SERVER}/24 --gateway {ROUTER} --port {PORT} \
             --clients 64 --per-peer 64",
            served.display()
        );
        let serve = Asked::start(&server, "rxo serve", &serve, &folder.file("serve.sock"))?;
        let run = format!("run --nic packet:{} --host tap:rxo0 --take-over --stats 0s", Lab::NIC);
        let run = Asked::start(lab.host(), "rxo run", &run, &folder.file("run.sock"))?;
        let mut processes = resources::of_run(run.process.id())?.to_vec();
        processes.push(("serve", serve.process.id()));
        Ok(Self {
            run,
            serve,
            processes,
            lab,
            _server: server,
            lasting,
            base: None,
            rounds: 0,
            _folder: folder,
        })
    }

    /// Runs traffic for `time`.
    pub(super) fn carry(&mut self, time: Duration) -> Result<Carried> {
        let (mut carried, mut short) = (Carried::default(), Carried::default());
        self.rounds += 1;
        let lab = &self.lab;
        let (run, serve, rounds) = (&mut self.run, &mut self.serve, self.rounds);
        let load = Load { clients: CLIENTS, files: FILES, file_bytes: FILE_BYTES, core: None };
        let traffic = Traffic::start(lab, (SERVER, PORT).into(), load)?;
        let flows = beside_churn(lab, &mut short, || {
            let begun = Instant::now();
            run.ask("hold", Some(HOLDS[rounds % HOLDS.len()]))?;
            while begun.elapsed() < time {
                for asked in [&mut *run, &mut *serve] {
                    asked.ask("counters", None)?;
                    asked.ask("policies", None)?;
                    carried.questions += 2;
                }
                traffic.check()?;
                thread::sleep(QUESTIONS.min(time));
            }
            traffic.stop(&mut carried)
        })?;
        carried += short;
        carried.late_answers = run.late + serve.late;
        (run.late, serve.late) = (0, 0);
        exchange(&mut self.lasting)?;
        self.counts()?;
        let [to_host, to_peer] = flows;
        (carried.to_host, carried.to_peer) = (to_host.finish()?, to_peer.finish()?);
        Ok(carried)
    }

    /// Waits until no packet is in flight, and returns the counts. If they do not add up, it returns them
    /// after a timeout.
    pub(super) fn counts(&mut self) -> Result<Counts> {
        let begun = Instant::now();
        let mut before = self.read()?;
        loop {
            thread::sleep(QUIET);
            let now = self.read()?;
            let base = *self.base.as_ref().unwrap_or(&now);
            let adds_up = || now.compare(&base).iter().all(|one| one.holds());
            if now == before && adds_up() || begun.elapsed() > TIMEOUT {
                self.base.get_or_insert(now);
                return Ok(now);
            }
            before = now;
        }
    }

    fn read(&mut self) -> Result<Counts> {
        let (run, serve) = (self.run.ask("counters", None)?, self.serve.ask("counters", None)?);
        let (peer, host) = (self.lab.peer(), self.lab.host());
        let of = |network: &Namespace, name: &str| -> Result<Ends> {
            Ok(network.interface(name).counters()?.into())
        };
        Ok(Counts {
            peer: of(peer, Lab::PEER_INTERFACE)?,
            nic: of(host, PARKED)?,
            tap: of(host, Lab::NIC)?,
            wire: of(peer, ROUTER_END)?,
            run: serde_json::from_value(run)?,
            serve: serde_json::from_value(serve)?,
            host_not_taken: host.stack_counters()?.datagrams_not_taken,
            peer_not_taken: peer.stack_counters()?.datagrams_not_taken,
        })
    }

    /// Samples every process.
    pub(super) fn sample(&self, at_s: f64) -> Result<Vec<Sample>> {
        let of = self.processes.iter();
        of.map(|&(process, number)| resources::sample(process, number, at_s)).collect()
    }

    /// Ends the processes. Checks that the host has its interface back, and that the lasting connection still
    /// works.
    pub(super) fn finish(self) -> Result<()> {
        let Self { run, serve, lab, mut lasting, .. } = self;
        run.process.end()?;
        ensure!(lab.host().interface(Lab::NIC).exists(), "{} is not back at the end", Lab::NIC);
        ensure!(!lab.host().interface(PARKED).exists(), "{PARKED} is still there at the end");
        exchange(&mut lasting).context("after the end of rxo run")?;
        serve.process.end()
    }
}

impl Scene {
    /// Ends the processes after a failure, and returns their standard error.
    pub(super) fn last_words(self) -> String {
        let [run, serve] = [self.run, self.serve].map(|asked| asked.process.last_words());
        format!("rxo run: {run}; rxo serve: {serve}")
    }
}

/// Gives the peer a second wire, to which it forwards, and returns the namespace at its far end. Only rxo has
/// an address there.
fn attach_server(lab: &Lab) -> Result<Namespace> {
    let server = Namespace::new("server")?;
    let (near, far) = (lab.peer().interface(ROUTER_END), server.interface(SERVER_END));
    create_veth(&near, &far)?;
    far.set_arp(false)?;
    // rxo's frames must be segmented before they are counted.
    for offload in [Offload::TransmitSegmentation, Offload::GenericSegmentation] {
        far.set_offload(offload, false)?;
    }
    if server.has_ipv6() {
        server.set_sysctl(&format!("net.ipv6.conf.{SERVER_END}.disable_ipv6"), "1")?;
    }
    far.up()?;
    near.add_address(ROUTER.into(), 24)?;
    near.up()?;
    near.await_wire()?;
    lab.peer().set_sysctl("net.ipv4.ip_forward", "1")?;
    Ok(server)
}

/// Opens a connection from the peer to the host. Returns both ends.
fn connect(lab: &Lab) -> Result<[TcpStream; 2]> {
    let listener = lab.host().run(|| TcpListener::bind((lab.host_address(), 0)))??;
    let at = listener.local_addr()?;
    let client = lab.peer().run(|| TcpStream::connect_timeout(&at, TIMEOUT))??;
    let ends = [client, listener.accept()?.0];
    ends.iter().try_for_each(|end| end.set_read_timeout(Some(TIMEOUT)))?;
    Ok(ends)
}

/// Sends data in both directions, and compares it.
fn exchange(ends: &mut [TcpStream; 2]) -> Result<()> {
    for (from, to) in [(0, 1), (1, 0)] {
        let text = [from as u8 + 1; 5_000];
        let mut read = [0; 5_000];
        ends[from].write_all(&text).context("the lasting connection")?;
        ends[to].read_exact(&mut read).context("the lasting connection")?;
        ensure!(read == text, "the lasting connection has wrong bytes");
    }
    Ok(())
}

/// Name of the nic while the TAP has the nic's name.
const PARKED: &str = "eth1-nic";
const ROUTER_END: &str = "srv0";
const SERVER_END: &str = "srv1";
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const PORT: u16 = 80;
const CLIENTS: usize = 4;
const FILES: u32 = 20;
const FILE_BYTES: u64 = 256 << 10;
/// Hold times to which rxo is set, one per round.
const HOLDS: [&str; 3] = ["end-of-poll", "auto", "100us"];
/// Pause between two control requests in a round.
const QUESTIONS: Duration = Duration::from_millis(500);
/// Time without a changed counter after which no packet is in flight.
const QUIET: Duration = Duration::from_millis(200);
/// Timeout for anything that a busy machine does late.
const TIMEOUT: Duration = Duration::from_secs(30);
