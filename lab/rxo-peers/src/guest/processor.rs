//! The processor of a guest: the machine's own, or QEMU's emulation.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{GuestImage, Machine};

const KVM: &str = "/dev/kvm";
/// Timeout for a kernel to start and to fail because it has no file system; it takes a second if KVM works.
const PROBE: Duration = Duration::from_secs(5);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The processor of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// QEMU's emulation, which works everywhere but is some tens of times slower.
    #[default]
    Emulated,
    /// Emulation with counted instructions, for [`Guest::instructions`](super::Guest::instructions). It needs
    /// a C compiler, and slows the guest down. The processor lacks fast string moves, so that copies are
    /// counted by their length.
    Counted,
    /// The machine's own processor, through KVM.
    Kvm,
}

impl Processor {
    /// Chooses KVM if a kernel boots with it on this machine, otherwise emulation. With `/dev/kvm` the probe
    /// takes one second, or five if no kernel boots: on nested machines a device may exist that runs no
    /// kernel, so only an attempt can tell.
    pub fn find(image: &GuestImage) -> Self {
        if Path::new(KVM).exists() && boots(image) { Self::Kvm } else { Self::Emulated }
    }

    /// Returns QEMU's options for the processor.
    pub(super) fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Emulated => ["-accel", "tcg", "-cpu", "max"],
            // A string move would count as one instruction, whatever its length.
            Self::Counted => ["-accel", "tcg", "-cpu", "max,-erms,-fsrm"],
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
        }
    }
}

/// Returns `true` if a kernel starts far enough to miss its file system, which ends the machine.
fn boots(image: &GuestImage) -> bool {
    let child = Command::new(image.qemu())
        .args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio", "-m", "128M"])
        .args(Processor::Kvm.arguments())
        .arg("-kernel")
        .arg(image.kernel())
        .args(["-append", "console=ttyS0 quiet panic=-1"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut machine) = child.map(Machine) else { return false };
    let deadline = Instant::now() + PROBE;
    while Instant::now() < deadline {
        match machine.0.try_wait() {
            Ok(Some(_)) => return says_panic(&mut machine),
            Ok(None) => thread::sleep(CHECK_INTERVAL),
            Err(_) => return false,
        }
    }
    false
}

/// Returns `true` if the kernel reported a panic. A processor that shuts down also ends the machine, but
/// silently.
fn says_panic(machine: &mut Machine) -> bool {
    let mut said = Vec::new();
    let read = machine.0.stdout.take().map(|mut stdout| stdout.read_to_end(&mut said));
    matches!(read, Some(Ok(_))) && String::from_utf8_lossy(&said).contains("Kernel panic")
}
