//! `rxo-lab guests`: does `rxo guest` work on this machine?
//!
//! A private network with a Linux peer, `rxo guest` as a process of its own, and small Linux guests in virtual
//! machines, emulated where KVM boots none. Every guest receives a file from the peer, and the peer gets it
//! back. The hashes decide. Nothing outside the private network is changed.

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
use rxo_peers::{Guest, GuestImage, GuestNet, GuestOptions, Processor};
use rxo_testbed::traffic::Pattern;
use rxo_testbed::{Lab, Namespace, become_root_in_user_namespace};
use serde::Serialize;
use serde_json::Value;

use crate::flags::TryFlags;
use crate::folder::Folder;
use crate::guests::{self, at_once};
use crate::process::{self, Process};

/// The most guests: each is a machine with 128 MiB.
const MOST_GUESTS: usize = 8;
const FILE_BYTES: usize = 8 << 20;
/// The time that a transfer may take. Emulated machines are slow, and all may share one core.
const PATIENCE: Duration = Duration::from_secs(300);

/// What became of one guest.
#[derive(Debug, Serialize)]
struct Outcome {
    guest: String,
    /// True if both hashes were right.
    intact: bool,
    bytes: usize,
    /// The figures of `rxo guest` for it.
    figures: Value,
}

/// Boots guests, transfers a file into each and back, and prints what came of it.
///
/// # Errors
/// If a program is missing, a guest does not start, or a hash is wrong.
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
        let arrived = guest.send(lab.peer(), &content, PATIENCE)?;
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

/// How guests run, for whoever waits for them.
fn manner(processor: Processor) -> &'static str {
    match processor {
        Processor::Kvm => "with KVM",
        Processor::Emulated | Processor::Counted => {
            "in emulation, because no kernel boots with /dev/kvm here; that takes some seconds each"
        }
    }
}

/// Starts `rxo guest` as a user does, and waits until it is at work.
fn start(network: &Namespace, folder: &Folder, guests: usize) -> Result<Process> {
    let mut command = Command::new(process::program()?);
    let nic = format!("packet:{}", Lab::WIRE_INTERFACE);
    command.args(["rxo", "guest", "--json", "--stats", "1s", "--nic", &nic]);
    for n in 0..guests {
        command.arg(format!("--vhost={}={}", name(n), folder.guest(n).display()));
    }
    let mut rxo = network.run(|| Process::spawn("rxo guest", &mut command))??;
    rxo.line::<Value>()?;
    Ok(rxo)
}

fn boot(image: &GuestImage, processor: Processor, socket: PathBuf, n: usize) -> Result<Guest> {
    let options = GuestOptions {
        net: GuestNet::Vhost(socket),
        address: (Ipv4Addr::new(10, 77, 0, 10 + n as u8), 24),
        number: 0x10 + n as u8,
        processor,
    };
    Ok(Guest::boot(image, &options)?)
}

/// Whether the peer gets the file back as it was. Each guest sends to an address of its own, because all
/// send to one port.
fn comes_back(guest: &mut Guest, peer: &Namespace, n: usize, content: &[u8]) -> Result<bool> {
    let address = Ipv4Addr::new(10, 77, 0, 100 + n as u8);
    peer.interface(Lab::PEER_INTERFACE).add_address(address.into(), 24)?;
    Ok(guest.fetch(peer, address, PATIENCE)? == content)
}

fn ends_early(stop: &AtomicBool) -> Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(partial("interrupted before all guests had their file".to_owned()));
    }
    Ok(())
}

/// Prints the table, or a JSON document.
///
/// # Errors
/// If a file did not arrive as it was.
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
