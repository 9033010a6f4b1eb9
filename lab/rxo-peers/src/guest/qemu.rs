//! The command line of QEMU for a guest.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use super::count::Counter;
use super::{AtReboot, GuestImage, GuestNet, GuestOptions};

const MEMORY: &str = "128M";
/// Kernel arguments. `panic=-1` with `-no-reboot` ends a machine whose kernel fails; without `-no-reboot` it
/// starts again.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 mitigations=off";
/// Kernel arguments for counting. Debian's kernel zeroes memory at allocation, which is no cost of receiving.
const COUNTED_ARGUMENTS: &str = "init_on_alloc=0 nokaslr";

/// Returns QEMU's command with `system` as the guest's first file system, which must stay open until the
/// guest has started.
pub(super) fn command(
    image: &GuestImage,
    options: &GuestOptions,
    system: &File,
    counter: Option<&Counter>,
    at_reboot: AtReboot,
) -> Command {
    let mut rest = rest(image, options, system, counter);
    rest.extend((at_reboot == AtReboot::End).then(|| "-no-reboot".to_owned()));
    let (netdev, chardev) = match &options.net {
        // The line itself has the options of its card.
        GuestNet::Line(line) => return of_line(line, &rest),
        GuestNet::Tap(name) => {
            (format!("tap,id=net,ifname={name},script=no,downscript=no,vhost=off"), None)
        }
        GuestNet::Vhost(path) => {
            // A comma in a path must be doubled.
            let path = path.display().to_string().replace(',', ",,");
            // After the server ends, QEMU tries to reconnect every second.
            let chardev = format!("socket,id=card,path={path},reconnect=1");
            ("vhost-user,id=net,chardev=card".to_owned(), Some(chardev))
        }
    };
    let mut command = Command::new(image.qemu());
    command
        .args(rest)
        .args(["-m", MEMORY])
        // Memory that a vhost-user server can map, without holes that it would be charged for.
        .args([
            "-object",
            &format!("memory-backend-memfd,id=memory,size={MEMORY},share=on,prealloc=on"),
        ])
        .args(["-machine", "memory-backend=memory"]);
    if let Some(chardev) = chardev {
        command.args(["-chardev", &chardev]);
    }
    // QEMU 7.2 crashes with vhost-user and MSI-X under emulation, so there are no vectors.
    let device =
        format!("virtio-net-pci,netdev=net,mac=52:54:00:00:00:{:02x},vectors=0", options.number);
    command.args(["-netdev", &netdev, "-device", &device]);
    command
}

/// Returns the options that concern neither the card nor the memory.
fn rest(
    image: &GuestImage,
    options: &GuestOptions,
    system: &File,
    counter: Option<&Counter>,
) -> Vec<String> {
    let arguments = match counter {
        None => KERNEL_ARGUMENTS.to_owned(),
        Some(_) => format!("{KERNEL_ARGUMENTS} {COUNTED_ARGUMENTS}"),
    };
    let system = format!("/proc/{}/fd/{}", std::process::id(), system.as_raw_fd());
    let kernel = image.kernel().display().to_string();
    let fixed = [
        // Threads get names, so that the processor's thread can be identified.
        "-name guest,debug-threads=on",
        "-nodefaults -display none -serial stdio -machine q35",
        // A machine that can never have a second processor gets no memory barriers from the emulator;
        // a vhost-user server in another process needs them.
        "-smp 1,maxcpus=2",
        "-global virtio-net-pci.romfile=",
    ];
    let mut rest: Vec<String> =
        fixed.iter().flat_map(|part| part.split(' ')).map(str::to_owned).collect();
    rest.extend(options.processor.arguments().map(str::to_owned));
    rest.extend(["-kernel", &kernel, "-initrd", &system, "-append", &arguments].map(str::to_owned));
    rest.extend(counter.into_iter().flat_map(|counter| ["-plugin".to_owned(), counter.argument()]));
    rest
}

/// Returns a shell command that starts QEMU by a line in which `…` stands for `rest`. QEMU replaces the
/// shell.
fn of_line(line: &str, rest: &[String]) -> Command {
    let line = format!("exec {}", line.replace('…', "\"$@\""));
    let mut command = Command::new("sh");
    command.args(["-c", &line, "sh"]).args(rest);
    command
}
