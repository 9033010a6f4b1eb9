//! Compares both servers with a Linux guest on the same machine as client, so that both copy each byte once:
//! nginx on Linux's stack, with the guest behind a TAP, and `rxo serve --nic vhost:`, which writes into the
//! guest's memory.
//!
//! The guest is emulated, so its speed and its processor time have no meaning. The measure is the processor
//! time of the server and of QEMU without the thread of the guest's processor.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rxo_demo::stats::Quartiles;
use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::{Lab, Namespace};
use serde::Serialize;

use super::servers::{Site, rxo_serve};
use super::{ROUNDS, ServeArgs};
use crate::guests::GUEST_PROCESSOR;
use crate::process::{Process, processor_time, wait_until, with_children};
use crate::rounds::Rows;

/// File sizes in bytes, with the number of requests in a span. An emulated guest takes some tens of
/// milliseconds to connect.
const FILES: [(usize, usize); 3] = [(64 << 10, 40), (1 << 20, 16), (8 << 20, 4)];
const TIMEOUT: Duration = Duration::from_secs(120);
const TAP: &str = "guest0";
const PREFIX_BITS: u8 = 24;

/// Results for one file with both servers: medians of megabytes per second of processor time.
#[derive(Debug, Serialize)]
struct Row {
    bytes: usize,
    nginx: f64,
    rxo: f64,
    /// Ratio of rxo's rate to nginx's.
    ratio: f64,
}

/// A server with its client, a guest.
struct Served {
    name: &'static str,
    guest: Guest,
    server: Process,
    _namespace: Namespace,
}

/// Measures both servers, and prints the report.
///
/// # Errors
/// If a guest or a server does not start, or a byte is wrong.
pub(super) fn run(args: &ServeArgs, image: &GuestImage, rxo: &Path, site: &Site) -> Result<()> {
    let mut served = [
        Served::nginx(image, site).context("nginx")?,
        Served::rxo(image, rxo, site).context("rxo")?,
    ];
    let (run, mut rows) = (args.rounds.begin(ROUNDS), Vec::new());
    for (bytes, times) in FILES {
        eprintln!("serve: {bytes} bytes, to a guest");
        for one in &mut served {
            one.compare(image, site, bytes)?;
        }
        let name = |one: &Served| one.name.to_owned();
        let rates = run.measure(&mut served, name, |one| one.measure(bytes, times))?;
        let [nginx, rxo] = [0, 1].map(|server| Quartiles::of(rates[server].clone()).median);
        rows.push(Row { bytes, nginx, rxo, ratio: rxo / nginx });
    }
    run.print(&Rows { rows })
}

impl Served {
    fn nginx(image: &GuestImage, site: &Site) -> Result<Self> {
        let namespace = Namespace::new("nginx")?;
        let guest = boot(image, &namespace, GuestNet::Tap(TAP.to_owned()))?;
        let tap = namespace.interface(TAP);
        tap.add_address(Lab::PEER_ADDRESSES.0.into(), PREFIX_BITS)?;
        tap.up()?;
        let server = Process::start(&namespace, site.nginx()?)?;
        Ok(Self { name: "nginx", guest, server, _namespace: namespace })
    }

    fn rxo(image: &GuestImage, rxo: &Path, site: &Site) -> Result<Self> {
        let namespace = Namespace::new("rxo")?;
        let socket = site.path("guest.sock");
        let address = format!("{}/{PREFIX_BITS}", Lab::PEER_ADDRESSES.0);
        let nic = format!("vhost:{}", socket.display());
        let server = Process::start(&namespace, rxo_serve(rxo, site, &nic, &address))?;
        wait_until("the socket is there", || socket.exists())?;
        let guest = boot(image, &namespace, GuestNet::Vhost(socket))?;
        Ok(Self { name: "rxo", guest, server, _namespace: namespace })
    }

    /// Makes the guest fetch and hash a file, and compares the hash.
    fn compare(&mut self, image: &GuestImage, site: &Site, bytes: usize) -> Result<()> {
        let said = self.guest.run(&format!("{} | sha256sum", fetch(bytes, "-")), TIMEOUT)?;
        let wanted = image.hash(&fs::read(site.www().join(bytes.to_string()))?)?;
        ensure!(said.starts_with(&wanted), "of {bytes} bytes the guest has the hash {said:?}");
        Ok(())
    }

    /// Makes the guest fetch a file `times` times. Returns megabytes per second of processor time.
    fn measure(&mut self, bytes: usize, times: usize) -> Result<f64> {
        self.server.check()?;
        let before = self.used();
        let one = fetch(bytes, "/dev/null");
        let all = format!("for i in $(seq {times}); do {one} || echo failed; done");
        let said = self.guest.run(&all, TIMEOUT)?;
        ensure!(!said.contains("failed"), "the guest could not fetch {bytes} bytes");
        let used = self.used().saturating_sub(before);
        Ok((bytes * times) as f64 / 1e6 / used.as_secs_f64())
    }

    fn used(&self) -> Duration {
        let server = with_children(self.server.id()).into_iter();
        server.map(|process| processor_time(process, None)).sum::<Duration>()
            + processor_time(self.guest.process_id(), Some(GUEST_PROCESSOR))
    }
}

fn boot(image: &GuestImage, namespace: &Namespace, net: GuestNet) -> Result<Guest> {
    let address = (Lab::HOST_ADDRESSES.0, PREFIX_BITS);
    let options = GuestOptions { net, address, number: 2, processor: Processor::Emulated };
    Ok(namespace.run(|| Guest::boot(image, &options))??)
}

/// Returns the guest's command that fetches the file of `bytes` bytes.
fn fetch(bytes: usize, to: &str) -> String {
    format!("wget -q -O {to} http://{}/{bytes}", Lab::PEER_ADDRESSES.0)
}
