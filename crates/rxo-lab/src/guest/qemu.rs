//! The command line of QEMU for a guest.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use super::count::Counter;
use super::{GuestImage, GuestNet, GuestOptions};

const MEMORY: &str = "128M";
/// `panic=-1` with `-no-reboot` ends a machine whose kernel fails.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 quiet panic=-1 mitigations=off";
/// Debian's kernel fills memory with zeros when it is allocated; that is not the cost of receiving.
const COUNTED_ARGUMENTS: &str = "init_on_alloc=0 nokaslr";

/// QEMU with the guest's `system` as its first file system. `system` must stay open until the guest has
/// started.
pub(super) fn command(
    image: &GuestImage,
    options: &GuestOptions,
    system: &File,
    counter: Option<&Counter>,
) -> Command {
    let arguments = match counter {
        None => KERNEL_ARGUMENTS.to_owned(),
        Some(_) => format!("{KERNEL_ARGUMENTS} {COUNTED_ARGUMENTS}"),
    };
    let system = format!("/proc/{}/fd/{}", std::process::id(), system.as_raw_fd());
    let mut command = Command::new(image.qemu());
    command
        .args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"])
        .args(options.processor.arguments())
        // A machine that can never have a second processor gets no memory barriers from the emulator;
        // a vhost-user server in another process needs them.
        .args(["-smp", "1,maxcpus=2", "-m", MEMORY])
        // Memory that a vhost-user server can map.
        .args(["-object", &format!("memory-backend-memfd,id=memory,size={MEMORY},share=on")])
        .args(["-machine", "q35,memory-backend=memory"])
        .arg("-kernel")
        .arg(image.kernel())
        .args(["-initrd", &system, "-append", &arguments]);
    match &options.net {
        GuestNet::Tap(name) => {
            let tap = format!("tap,id=net,ifname={name},script=no,downscript=no,vhost=off");
            command.args(["-netdev", &tap]);
        }
        GuestNet::Vhost(path) => {
            // A comma in a path is written twice.
            let path = path.display().to_string().replace(',', ",,");
            command.args(["-chardev", &format!("socket,id=card,path={path}")]);
            command.args(["-netdev", "vhost-user,id=net,chardev=card"]);
        }
    }
    // QEMU 7.2 crashes with vhost-user and MSI-X under emulation: no vectors.
    let mac = format!("52:54:00:00:00:{:02x}", options.number);
    let device = format!("virtio-net-pci,netdev=net,mac={mac},vectors=0,romfile=");
    command.args(["-device", &device]);
    if let Some(counter) = counter {
        command.args(["-plugin", &counter.argument()]);
    }
    command
}
