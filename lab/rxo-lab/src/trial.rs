//! `rxo-lab guests`: checks that `rxo guest` works on this machine.
//!
//! A private network has a Linux peer, `rxo guest` as a separate process, and small Linux guests in virtual
//! machines, emulated if KVM cannot boot them. Every guest receives a file from the peer, and the peer
//! fetches it back; both hashes must match. Nothing outside the private network changes.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use rxo_console::fault::{partial, usage};
use rxo_console::numbers::grouped;
use rxo_console::output;
use rxo_console::table::Table;
use rxo_peers::{Folder, Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::traffic::Pattern;
use rxo_testbed::{Lab, Namespace, become_root_in_user_namespace};
use serde::Serialize;
use serde_json::Value;

use crate::flags::TryFlags;
use crate::guests::{self, at_once};
use crate::process::{self, Process};

/// Most guests. Each is a virtual machine with 128 MiB.
const MOST_GUESTS: usize = 8;
const FILE_BYTES: usize = 8 << 20;
/// Timeout of a transfer. Emulated machines are slow, and all may share one core.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The result of one guest.
#[derive(Debug, Serialize)]
struct Outcome {
    guest: String,
    /// `true` if both hashes match.
    intact: bool,
    bytes: usize,
    /// The guest's figures from `rxo guest`.
    figures: Value,
}

/// Boots guests, transfers a file into each and back, and prints the results.
pub(crate) fn run(flags: &TryFlags, stop: &AtomicBool) -> Result<()> {
    let count = flags.guests;
    if !(1..=MOST_GUESTS).contains(&count) {
        return Err(usage(format!("--guests {count}: give a number from 1 to {MOST_GUESTS}")));
    }
    let image = guests::image()?;
    let processor = Processor::find(&image);
    become_root_in_user_namespace()?;
    let (lab, folder) = (Lab::through()?, Folder::new("try")?);
    let rxo = start(lab.host(), &folder, count)?;
    let content = Pattern::of_port(0).file(FILE_BYTES);
    let hash = image.hash(&content)?;
    output::aside(&format!("booting {count} guests {}", manner(processor)));
    let transfer = |n: usize, ()| -> Result<bool> {
        let mut guest = boot(&image, processor, folder.guest(n), n)?;
        ends_early(stop)?;
        let arrived = guest.send(lab.peer(), &content, TIMEOUT)?;
        ends_early(stop)?;
        Ok(arrived == hash && comes_back(&mut guest, lab.peer(), n, &content)?)
    };
    let intact = at_once(std::iter::repeat_n((), count), transfer)?;
    let totals: Value = rxo.interrupt()?;
    let outcomes = intact.into_iter().enumerate().map(|(n, intact)| Outcome {
        guest: name(n),
        intact,
        bytes: FILE_BYTES,
        figures: totals["guests"][n].clone(),
    });
    report(&outcomes.collect::<Vec<_>>(), flags.json)
}

/// Returns text on how guests run, for the user who waits for them.
fn manner(processor: Processor) -> &'static str {
    match processor {
        Processor::Kvm => "with KVM",
        Processor::Emulated | Processor::Counted => {
            "in emulation, because no kernel boots with /dev/kvm here; that takes some seconds each"
        }
    }
}

/// Starts `rxo guest` as a user would, and waits until it is running.
fn start(network: &Namespace, folder: &Folder, guests: usize) -> Result<Process> {
    let mut command = Command::new(process::program()?);
    let nic = format!("packet:{}", Lab::WIRE_INTERFACE);
    command.args(["rxo", "guest", "--json", "--stats", "1s", "--nic", &nic]);
    for n in 0..guests {
        let (name, socket, mac) = (name(n), folder.guest(n), number(n));
        command.arg(format!("--vhost={name}={},mac=52:54:00:00:00:{mac:02x}", socket.display()));
    }
    let mut rxo = network.run(|| Process::spawn("rxo guest", &mut command))??;
    rxo.line::<Value>()?;
    Ok(rxo)
}

fn boot(image: &GuestImage, processor: Processor, socket: PathBuf, n: usize) -> Result<Guest> {
    let options = GuestOptions {
        net: GuestNet::Vhost(socket),
        address: (Ipv4Addr::new(10, 77, 0, 10 + n as u8), 24),
        number: number(n),
        processor,
    };
    Ok(Guest::boot(image, &options)?)
}

/// Returns `true` if the peer fetches back the file unchanged. Each guest uses another address of the peer,
/// because all send to the same port.
fn comes_back(guest: &mut Guest, peer: &Namespace, n: usize, content: &[u8]) -> Result<bool> {
    let address = Ipv4Addr::new(10, 77, 0, 100 + n as u8);
    peer.interface(Lab::PEER_INTERFACE).add_address(address.into(), 24)?;
    Ok(guest.fetch(peer, address, TIMEOUT)? == content)
}

fn ends_early(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(partial("interrupted before all guests had their file".to_owned()));
    }
    Ok(())
}

/// Prints the table, or a JSON document.
fn report(outcomes: &[Outcome], is_json: bool) -> Result<()> {
    if is_json {
        output::json_document(&outcomes)?;
    } else {
        output::text(&table(outcomes))?;
    }
    let broken = outcomes.iter().filter(|outcome| !outcome.intact).count();
    if broken > 0 {
        bail!("{broken} of {} guests have another file than was sent", outcomes.len());
    }
    Ok(())
}

fn table(outcomes: &[Outcome]) -> String {
    let mut table = Table::new(&[
        "guest",
        "file",
        "packets",
        "deliveries",
        "pkt/aggregate",
        "held p99 us",
        "dropped",
    ]);
    for Outcome { guest, intact, figures, .. } in outcomes {
        let count = |name: &str| grouped(figures[name].as_u64().unwrap_or(0));
        table.row([
            guest.clone(),
            if *intact { "intact".to_owned() } else { "BROKEN".to_owned() },
            count("frames"),
            count("deliveries"),
            figures["packets_per_aggregate"].to_string(),
            figures["hold_p99_us"].to_string(),
            count("dropped"),
        ]);
    }
    table.render()
}

fn name(guest: usize) -> String {
    format!("guest{guest}")
}

/// The last byte of the guest's Ethernet address.
const fn number(guest: usize) -> u8 {
    0x10 + guest as u8
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(intact: bool) -> Outcome {
        let figures = json!({
            "frames": 5_800, "deliveries": 400, "packets_per_aggregate": 14.5,
            "hold_p99_us": 12.0, "dropped": 0,
        });
        Outcome { guest: name(0), intact, bytes: FILE_BYTES, figures }
    }

    #[test]
    fn the_table_has_a_row_for_each_guest() {
        let text = table(&[outcome(true), outcome(false)]);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 3, "{text}");
        assert!(rows[1].contains("intact") && rows[1].contains("5,800"), "{text}");
        assert!(rows[2].contains("BROKEN"), "{text}");
    }

    #[test]
    fn a_broken_file_is_an_error() {
        let error = report(&[outcome(true), outcome(false)], true).unwrap_err();
        assert_eq!(error.to_string(), "1 of 2 guests have another file than was sent");
    }
}
