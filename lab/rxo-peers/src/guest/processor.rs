//! The processor of a guest: the machine's own, or QEMU's emulation.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{GuestImage, Machine};

const KVM: &str = "/dev/kvm";
/// The time that a kernel may take until it finds no file system and gives up: a second where KVM works.
const PROBE: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The processor of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processor {
    /// QEMU emulates it, which works everywhere and takes some tens of times as long.
    #[default]
    Emulated,
    /// Emulated, and [`Guest::instructions`](super::Guest::instructions) counts. This needs a C compiler, and the
    /// guest is slower. The processor then copies memory as one without fast string moves does, so that what
    /// it copies is counted too.
    Counted,
    /// The machine's own processor, by KVM.
    Kvm,
}

impl Processor {
    /// KVM if a kernel boots with it on this machine, else emulation. Where there is `/dev/kvm` this takes
    /// a second, and five if no kernel boots: nested machines may have a device that runs no kernel, so
    /// only an attempt can tell.
    pub fn find(image: &GuestImage) -> Self {
        if Path::new(KVM).exists() && boots(image) { Self::Kvm } else { Self::Emulated }
    }

    /// QEMU's options for it.
    pub(super) fn arguments(self) -> [&'static str; 4] {
        match self {
            Self::Emulated => ["-accel", "tcg", "-cpu", "max"],
            // Moves of strings would count as one instruction however long they are.
            Self::Counted => ["-accel", "tcg", "-cpu", "max,-erms,-fsrm"],
            Self::Kvm => ["-accel", "kvm", "-cpu", "host"],
        }
    }
}

/// Returns true if a kernel comes as far as to miss its file system, which ends the machine.
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
            Ok(None) => thread::sleep(BETWEEN_LOOKS),
            Err(_) => return false,
        }
    }
    false
}

/// Returns true if the kernel said that it gives up. A processor that shuts down ends the machine as well, in silence.
fn says_panic(machine: &mut Machine) -> bool {
    let mut said = Vec::new();
    let read = machine.0.stdout.take().map(|mut stdout| stdout.read_to_end(&mut said));
    matches!(read, Some(Ok(_))) && String::from_utf8_lossy(&said).contains("Kernel panic")
}
