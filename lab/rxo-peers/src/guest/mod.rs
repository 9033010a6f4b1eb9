//! A small Linux guest in a virtual machine with one virtio network card.
//!
//! It is separate from the namespaces because it is another kernel: data reaches its TCP through a virtio
//! ring. QEMU can emulate the processor, so no `/dev/kvm` is needed; the guest is then some tens of times
//! slower than the machine. Its file system is one archive, written here, with busybox and the card's
//! drivers. A shell on the serial port runs commands and reports their status.
//!
//! # Contract
//! Every wait is bounded. The machine is killed when the [`Guest`] is dropped, also by a panic. If this
//! process is killed, the guest switches itself off after two minutes without input. The only file left
//! behind is the kernel that [`GuestImage::find`] downloaded.

mod archive;
mod console;
mod count;
mod image;
mod migration;
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
pub use migration::Migration;
pub use processor::Processor;

use console::Console;
use count::Counter;
use migration::Monitor;
use rxo_testbed::error::{Context, Result, failed};

/// Timeout of a guest's start, which takes two seconds on an idle machine.
const BOOT: Duration = Duration::from_secs(180);
/// Timeout of the lab's own commands in a guest.
const BRIEF: Duration = Duration::from_secs(120);
/// Name of the card in the guest.
const CARD: &str = "eth0";

/// Options of a guest's virtual machine.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// Other end of the guest's card.
    pub net: GuestNet,
    /// Address of the guest, and the prefix length of its network.
    pub address: (Ipv4Addr, u8),
    /// Last byte of the card's MAC address, 52:54:00:00:00:xx.
    pub number: u8,
    /// The guest's processor.
    pub processor: Processor,
}

/// The other end of a guest's card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestNet {
    /// A TAP with this name, which QEMU makes in the network of the calling thread.
    Tap(String),
    /// The vhost-user server on this socket.
    Vhost(PathBuf),
    /// A shell line that starts QEMU with the options of the card and of the memory; `…` in it stands for the
    /// other options. The card has the MAC address that the line gives.
    Line(String),
}

/// The action of a machine when its guest reboots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtReboot {
    /// The machine ends.
    End,
    /// The machine starts again.
    Start,
}

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    machine: Machine,
    console: Console,
    address: Ipv4Addr,
    prefix_bits: u8,
    /// Counter of instructions; `None` if they are not counted.
    counter: Option<Counter>,
    /// The monitor of the machine; `None` if the guest is not migrated.
    monitor: Option<Monitor>,
    /// Its first file system, which the machine opens some time after its start.
    _system: File,
}

/// The process of QEMU. Dropping this kills it.
#[derive(Debug)]
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // The process may have ended by itself, so errors are ignored.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Guest {
    /// Starts a guest in the network of the calling thread, and waits until its card has its address.
    ///
    /// # Errors
    /// If QEMU cannot be started, or the guest does not come up; the message contains its last output.
    pub fn boot(image: &GuestImage, options: &GuestOptions) -> Result<Self> {
        Self::boot_until(image, options, AtReboot::End)
    }

    /// Starts a guest as [`Guest::boot`] does, which may [reboot](Guest::reboot). After a kernel panic the
    /// guest also starts again.
    ///
    /// # Errors
    /// The errors of [`Guest::boot`].
    pub fn boot_for_reboots(image: &GuestImage, options: &GuestOptions) -> Result<Self> {
        Self::boot_until(image, options, AtReboot::Start)
    }

    fn boot_until(image: &GuestImage, options: &GuestOptions, at_reboot: AtReboot) -> Result<Self> {
        let mut guest = Self::power_on(image, options, at_reboot, &[])?;
        guest.await_start()?;
        Ok(guest)
    }

    /// Starts the machine with `more` options, and waits for nothing.
    fn power_on(
        image: &GuestImage,
        options: &GuestOptions,
        at_reboot: AtReboot,
        more: &[String],
    ) -> Result<Self> {
        let system = file_system(image, options.processor == Processor::Counted)?;
        let counter =
            (options.processor == Processor::Counted).then(|| Counter::new(image)).transpose()?;
        let mut command = qemu::command(image, options, &system, counter.as_ref(), at_reboot);
        command.args(more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child =
            command.spawn().context(|| format!("cannot start {}", image.qemu().display()))?;
        let mut machine = Machine(child);
        let console = Console::new(&mut machine.0)?;
        let (address, prefix_bits) = options.address;
        Ok(Self { machine, console, address, prefix_bits, counter, monitor: None, _system: system })
    }

    /// Reboots the guest at once, as after a crash, in the same machine. Waits until the card has its address
    /// again.
    ///
    /// # Errors
    /// If the guest does not start again; only a guest of [`Guest::boot_for_reboots`] does.
    pub fn reboot(&mut self) -> Result<()> {
        self.start("reboot -f")?;
        self.await_start()
    }

    /// Waits until the guest's shell is ready, and assigns the card's address.
    fn await_start(&mut self) -> Result<()> {
        self.console.wait_for_start(BOOT).map_err(|error| self.explained(error))?;
        let (address, bits) = (self.address, self.prefix_bits);
        let command = format!("ip addr add {address}/{bits} dev {CARD} && ip link set {CARD} up");
        self.run(&command, BRIEF).map(|_| ())
    }

    /// Runs a shell command in the guest, and returns its output.
    ///
    /// # Errors
    /// If the command fails, or takes longer than `timeout`.
    pub fn run(&mut self, command: &str, timeout: Duration) -> Result<String> {
        self.start(command)?;
        self.finish(timeout)
    }

    /// Starts a command; [`Guest::finish`] waits for its end. Only one command can run at a time.
    ///
    /// # Errors
    /// If the guest has ended.
    pub fn start(&mut self, command: &str) -> Result<()> {
        self.console.write(command)
    }

    /// Waits until the started command ends, and returns its output.
    ///
    /// # Errors
    /// If the command fails, or takes longer than `timeout`.
    pub fn finish(&mut self, timeout: Duration) -> Result<String> {
        let (text, status) =
            self.console.wait_for_end(timeout).map_err(|error| self.explained(error))?;
        if status == "0" {
            return Ok(text);
        }
        Err(failed(format!("a command of the guest ended with {status}: {}", text.trim())))
    }

    /// Returns the number of packets that the card has delivered to the guest's kernel: aggregates and single
    /// frames.
    ///
    /// # Errors
    /// If the guest does not answer.
    pub fn received_packets(&mut self) -> Result<u64> {
        self.statistic("rx_packets")
    }

    /// Returns the bytes of all packets that the guest's card received, with their Ethernet headers.
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

    /// Returns the process id of the machine, to measure its cost.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.machine.0.id()
    }

    /// Adds QEMU's standard error to `error`.
    fn explained(&mut self, error: rxo_testbed::LabError) -> rxo_testbed::LabError {
        let complaint = console::complaint(&mut self.machine.0);
        match complaint.is_empty() {
            true => error,
            false => failed(format!("{error}; QEMU says: {complaint}")),
        }
    }
}

/// Returns the guest's file system as an open file without a name.
fn file_system(image: &GuestImage, count: bool) -> Result<File> {
    let programs = if count { vec![("gro", count::gro_program()?)] } else { Vec::new() };
    nameless("cpio", &image.archive(&programs)?)
}

/// Makes an open file with this content that has no name.
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

/// Runs a program with piped input and output. A program that does not read all of its input reports the
/// reason itself.
fn run_with_input(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let mut child = command.spawn()?;
    let written = child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input));
    let output = child.wait_with_output()?;
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(output),
    }
}

/// Returns a path that no other guest uses.
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
