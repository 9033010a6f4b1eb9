//! A small Linux in a virtual machine, whose network is one virtio card.
//!
//! It is separate from the namespaces because it is another kernel: what reaches its TCP has crossed a
//! virtio ring. QEMU emulates the processor, so no `/dev/kvm` is needed; the guest is then some tens of
//! times slower than the machine. Its file system is one archive, written here, with busybox and the
//! card's drivers. A shell on the serial port runs commands and says how they ended.
//!
//! # Contract
//! Every wait is bounded. The machine is killed when the [`Guest`] is dropped, also by a panic. Should
//! this process be killed itself, the guest switches itself off when it has heard nothing for two minutes.
//! No file is left behind but the kernel that [`GuestImage::find`] downloaded.

mod archive;
mod console;
mod count;
mod image;
mod processor;
mod programs;
mod qemu;
mod transfer;

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub use count::{Profile, Symbols};
pub use image::GuestImage;
pub use processor::Processor;

use console::Console;
use count::Counter;
use rxo_testbed::error::{Context, Result, failed};

/// The time that a guest may take to start. It takes two seconds on a machine with nothing else to do.
const BOOT: Duration = Duration::from_secs(180);
/// The time that a command of the lab itself may take.
const BRIEF: Duration = Duration::from_secs(120);
/// The name of the card in the guest.
const CARD: &str = "eth0";

/// A guest's machine.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// Where its card leads.
    pub net: GuestNet,
    /// Its address, and the bits of the network's prefix.
    pub address: (Ipv4Addr, u8),
    /// The last byte of its card's address, 52:54:00:00:00:xx.
    pub number: u8,
    /// The guest's processor.
    pub processor: Processor,
}

/// Where the card of a guest leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestNet {
    /// To a TAP with this name, which QEMU makes in the network of the calling thread.
    Tap(String),
    /// To the vhost-user server on this socket.
    Vhost(PathBuf),
    /// To where this line of a shell leads it: QEMU with the options of the card and of the memory. `…` in it
    /// stands for the others. The card has the address that the line gives it.
    Line(String),
}

/// What a machine does when its guest reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtReboot {
    /// It ends.
    End,
    /// It starts again.
    Start,
}

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    machine: Machine,
    console: Console,
    address: Ipv4Addr,
    prefix_bits: u8,
    /// `None` if its instructions are not counted.
    counter: Option<Counter>,
}

/// Kills QEMU when dropped.
#[derive(Debug)]
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody left to tell.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guest {
    /// Starts a guest in the network of the calling thread, and waits until its card has its address.
    ///
    /// # Errors
    /// If QEMU cannot be started, or the guest does not come up; the message has the last that it said.
    pub fn boot(image: &GuestImage, options: &GuestOptions) -> Result<Self> {
        Self::boot_until(image, options, AtReboot::End)
    }

    /// Starts a guest as [`Guest::boot`] does, which may [reboot](Guest::reboot). A kernel that fails also starts
    /// again.
    ///
    /// # Errors
    /// As [`Guest::boot`].
    pub fn boot_for_reboots(image: &GuestImage, options: &GuestOptions) -> Result<Self> {
        Self::boot_until(image, options, AtReboot::Start)
    }

    fn boot_until(image: &GuestImage, options: &GuestOptions, at_reboot: AtReboot) -> Result<Self> {
        let system = file_system(image, options.processor == Processor::Counted)?;
        let counter =
            (options.processor == Processor::Counted).then(|| Counter::new(image)).transpose()?;
        let mut command = qemu::command(image, options, &system, counter.as_ref(), at_reboot);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child =
            command.spawn().context(|| format!("cannot start {}", image.qemu().display()))?;
        let mut machine = Machine(child);
        let console = Console::new(&mut machine.0)?;
        let (address, prefix_bits) = options.address;
        let mut guest = Self { machine, console, address, prefix_bits, counter };
        guest.await_start()?;
        Ok(guest)
    }

    /// Reboots at once, as after a crash: nothing ends in order, in the same machine. Waits until the card has its
    /// address again.
    ///
    /// # Errors
    /// If the guest does not come up again: only one of [`Guest::boot_for_reboots`] does.
    pub fn reboot(&mut self) -> Result<()> {
        self.start("reboot -f")?;
        self.await_start()
    }

    /// Waits until its shell hears, and gives its card the address.
    fn await_start(&mut self) -> Result<()> {
        self.console.wait_for_start(BOOT).map_err(|error| self.explained(error))?;
        let (address, bits) = (self.address, self.prefix_bits);
        let command = format!("ip addr add {address}/{bits} dev {CARD} && ip link set {CARD} up");
        self.run(&command, BRIEF).map(|_| ())
    }

    /// Runs a command of its shell and returns what it printed.
    ///
    /// # Errors
    /// If it fails, or takes longer than `timeout`.
    pub fn run(&mut self, command: &str, timeout: Duration) -> Result<String> {
        self.start(command)?;
        self.finish(timeout)
    }

    /// Starts a command; [`Guest::finish`] waits for it. There may be one at a time.
    ///
    /// # Errors
    /// If the guest has ended.
    pub fn start(&mut self, command: &str) -> Result<()> {
        self.console.write(command)
    }

    /// Waits for the command that was started and returns what it printed.
    ///
    /// # Errors
    /// If it fails, or takes longer than `timeout`.
    pub fn finish(&mut self, timeout: Duration) -> Result<String> {
        let (text, status) =
            self.console.wait_for_end(timeout).map_err(|error| self.explained(error))?;
        if status == "0" {
            return Ok(text);
        }
        Err(failed(format!("a command of the guest ended with {status}: {}", text.trim())))
    }

    /// Packets that its card gave to its kernel: aggregates and single frames.
    ///
    /// # Errors
    /// If the guest does not answer.
    pub fn received_packets(&mut self) -> Result<u64> {
        self.statistic("rx_packets")
    }

    /// Bytes of those packets, with their Ethernet headers.
    ///
    /// # Errors
    /// If the guest does not answer.
    pub fn received_bytes(&mut self) -> Result<u64> {
        self.statistic("rx_bytes")
    }

    fn statistic(&mut self, name: &str) -> Result<u64> {
        let text = self.run(&format!("cat /sys/class/net/{CARD}/statistics/{name}"), BRIEF)?;
        text.trim().parse().map_err(|_| failed(format!("the guest says {text:?} for {name}")))
    }

    /// The process of the machine, to measure its cost.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.machine.0.id()
    }

    /// Adds what QEMU complained of.
    fn explained(&mut self, error: rxo_testbed::LabError) -> rxo_testbed::LabError {
        let complaint = console::complaint(&mut self.machine.0);
        match complaint.is_empty() {
            true => error,
            false => failed(format!("{error}; QEMU says: {complaint}")),
        }
    }
}

/// The guest's file system, as a file that has no name any more.
fn file_system(image: &GuestImage, count: bool) -> Result<File> {
    let programs = if count { vec![("gro", count::gro_program()?)] } else { Vec::new() };
    nameless("cpio", &image.archive(&programs)?)
}

/// A file with that content that has no name any more.
fn nameless(kind: &str, content: &[u8]) -> Result<File> {
    let path = temporary_path(kind);
    let make = || {
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        file.write_all(content)?;
        Ok(file)
    };
    make().context(|| format!("cannot write {}", path.display()))
}

/// Runs a program whose input and output are pipes. One that does not want all of its input says why itself.
fn run_with_input(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input));
    let output = child.wait_with_output()?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(output),
    }
}

/// A path that no other guest uses.
fn temporary_path(kind: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("rxo-guest-{}-{number}.{kind}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_leaves_its_input_is_judged_by_what_it_says() {
        let mut command = Command::new("sh");
        command.args(["-c", "exec <&-; echo no such option; exit 1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let output = run_with_input(&mut command, &[0; 1 << 20]).unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b"no such option\n"[..]));
    }
}
