//! Checks of the kernel's features: each check tries to use a feature as a run would use it.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::thread;

use rxo_device::DeviceError;

use crate::packet::ring::RingMap;
use crate::packet::socket::QUEUE_BYTES;
use crate::tap::{self, Offered};
use crate::{Finding, isolation as tables, sys, uring, xdp};

const ADMIN: &str = "CAP_NET_ADMIN";
const RAW: &str = "CAP_NET_RAW";

pub(super) fn kernel() -> Finding {
    of_release(fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim())
}

fn of_release(release: &str) -> Finding {
    let numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let numbers: Vec<u32> = numbers.map_while(Result::ok).take(2).collect();
    let found = format!("Linux {release}");
    if numbers.as_slice() >= OWNED_TABLES.as_slice() {
        return Finding::fine("kernel", found);
    }
    let remedy = "take Linux 5.12 or newer: with older ones the packet filter stays when all processes are killed";
    Finding::limited("kernel", found, remedy)
}

pub(super) fn cores() -> Finding {
    let count = thread::available_parallelism().map_or(1, usize::from);
    let found = if count == 1 { "1".to_owned() } else { format!("{count} for this process") };
    if count > 1 {
        return Finding::fine("cores", found);
    }
    Finding::limited("cores", found, "rxo shares it with the host's own work; give two")
}

/// Checks whether a TAP can be created, which offloads it has, and the length of the header before each
/// packet.
pub(super) fn tap() -> Vec<Finding> {
    match tap::probe() {
        Ok(offered) => {
            vec![Finding::fine(TUN, "a TAP can be made"), of_offloads(offered), header(offered)]
        }
        Err(DeviceError::System { source, .. })
            if source.kind() == io::ErrorKind::PermissionDenied =>
        {
            [TUN, OFFLOADS, HEADER].map(|name| Finding::not_run(name, ADMIN)).to_vec()
        }
        Err(DeviceError::System { message, source }) => {
            vec![Finding::breaks(TUN, source.to_string(), message)]
        }
        Err(error) => vec![Finding::breaks(TUN, error.to_string(), "")],
    }
}

fn of_offloads(offered: Offered) -> Finding {
    let Offered { tcp, udp, tunnels, .. } = offered;
    let all = [("TSO", tcp), ("USO", udp), ("tunnels over UDP", tunnels)];
    let has = all.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect::<Vec<_>>();
    let found = if has.is_empty() { "checksums only".to_owned() } else { has.join(", ") };
    match offered {
        Offered { tcp: false, .. } => {
            let remedy = "the host cannot be given aggregates; take another kernel";
            Finding::breaks(OFFLOADS, found, remedy)
        }
        Offered { udp: false, .. } => {
            Finding::limited(OFFLOADS, found, "UDP is not coalesced; Linux 6.2 takes it")
        }
        Offered { tunnels: false, .. } => Finding::limited(
            OFFLOADS,
            found,
            "TCP in tunnels is not coalesced; Linux 6.17 takes it",
        ),
        _ => Finding::fine(OFFLOADS, found),
    }
}

fn header(offered: Offered) -> Finding {
    Finding::fine(HEADER, format!("{} bytes", offered.header_bytes))
}

pub(super) fn packet_ring() -> Finding {
    let ring = || -> io::Result<bool> {
        let socket = packet_socket()?;
        let version = |number: libc::c_int, socket: &std::os::fd::OwnedFd| {
            sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &number)
        };
        version(libc::tpacket_versions::TPACKET_V2 as _, &socket)?;
        RingMap::new(socket.as_fd(), SLOTS, MTU)?;
        Ok(version(libc::tpacket_versions::TPACKET_V3 as _, &packet_socket()?).is_ok())
    };
    match ring() {
        Ok(has_third) => {
            let third = if has_third { "TPACKET_V3 is there as well" } else { "no TPACKET_V3" };
            Finding::fine(RING, format!("TPACKET_V2, which rxo uses; {third}"))
        }
        Err(error) => Finding::failed((RING, RAW), &error, |text| {
            Finding::breaks(RING, text, "load the module af_packet, and give the process memory")
        }),
    }
}

/// Checks the buffer sizes that a packet socket can get: only a privileged process may exceed the system's
/// limits.
pub(super) fn packet_queues() -> Finding {
    let limit = |name: &str| fs::read_to_string(format!("/proc/sys/net/core/{name}"));
    let limits = ["rmem_max", "wmem_max", "optmem_max"];
    let shown = limits.map(|name| match limit(name) {
        Ok(bytes) => format!("{name} {}", bytes.trim()),
        Err(_) => format!("{name} unknown here"),
    });
    let shown = shown.join(", ");
    let forced = packet_socket().and_then(|socket| {
        [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE].iter().try_for_each(|option| {
            sys::set_option(socket.as_fd(), libc::SOL_SOCKET, *option, &QUEUE_BYTES)
        })
    });
    let what = format!("{} MB, beyond {shown}", QUEUE_BYTES >> 20);
    match forced {
        Ok(()) => Finding::fine(QUEUES, what),
        Err(error) => Finding::failed((QUEUES, "CAP_NET_RAW and CAP_NET_ADMIN"), &error, |text| {
            let remedy = format!(
                "`sysctl -w net.core.rmem_max={QUEUE_BYTES} net.core.wmem_max={QUEUE_BYTES}`"
            );
            Finding::limited(QUEUES, format!("{text}: at most {shown}"), remedy)
        }),
    }
}

pub(super) fn io_uring() -> Finding {
    let without = "rxo writes packets one by one instead";
    match uring::probe() {
        Ok(true) => Finding::fine(URING, "entries run within the call that waits"),
        Ok(false) => Finding::limited(
            URING,
            "without deferred entries",
            "Linux 6.1 has them: a write is 100 ns cheaper",
        ),
        Err(error) => Finding::limited(
            URING,
            error.to_string(),
            format!(
                "{without}; `sysctl -w kernel.io_uring_disabled=0`, or let the container have it"
            ),
        ),
    }
}

/// Checks whether the kernel has AF_XDP, and whether this process may load its program. Without AF_XDP, a
/// device `xdp:` uses the packet ring.
pub(super) fn af_xdp() -> Finding {
    let socket = sys::socket(libc::AF_XDP, libc::SOCK_RAW, 0);
    match socket.and_then(|_| xdp::try_to_load()) {
        Ok(()) => Finding::fine(XDP, "sockets and programs; xdp:IFNAME uses them"),
        Err(error) => Finding::failed((XDP, "CAP_NET_RAW and CAP_BPF"), &error, |text| {
            Finding::fine(XDP, format!("not here ({text}); xdp:IFNAME uses the packet ring"))
        }),
    }
}

pub(super) fn isolation(interface: &str) -> Finding {
    match tables::try_on(interface) {
        Ok(()) => Finding::fine(ISOLATION, "nftables filters at the ingress"),
        Err(error) => Finding::failed((ISOLATION, ADMIN), &error, |text| {
            let found = format!("cannot keep the kernel off {interface}: {text}");
            Finding::breaks(ISOLATION, found, format!("{}, or give --no-isolation", tables::MODULE))
        }),
    }
}

fn packet_socket() -> io::Result<std::os::fd::OwnedFd> {
    // A socket that is not bound receives nothing.
    sys::socket(libc::AF_PACKET, libc::SOCK_RAW, 0)
}

const TUN: &str = "TUN";
const OFFLOADS: &str = "TUN offloads";
const HEADER: &str = "virtio header";
const RING: &str = "packet ring";
const QUEUES: &str = "packet queues";
const URING: &str = "io_uring";
const XDP: &str = "AF_XDP";
const ISOLATION: &str = "isolation";
/// The first kernel version, as major and minor number, that removes an nftables table together with its
/// owner.
const OWNED_TABLES: [u32; 2] = [5, 12];
/// Number of ring slots for the check of packet sockets; so few that every machine has enough memory.
const SLOTS: u32 = 64;
const MTU: u32 = 1_500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    #[test]
    fn a_release_is_compared_by_its_numbers() {
        let rows = [
            ("6.18.5", State::Fine),
            ("5.12.0-rc1", State::Fine),
            ("10.0", State::Fine),
            ("5.4.0-42-generic", State::Limited),
            ("4.19", State::Limited),
            ("", State::Limited),
        ];
        for (release, state) in rows {
            assert_eq!(of_release(release).state, state, "{release}");
        }
    }

    #[test]
    fn offloads_that_are_missing_have_their_kernel() {
        let all = Offered { tcp: true, udp: true, tunnels: true, header_bytes: 24 };
        assert_eq!(of_offloads(all), Finding::fine(OFFLOADS, "TSO, USO, tunnels over UDP"));
        let older = of_offloads(Offered { tunnels: false, ..all });
        assert!(older.state == State::Limited && older.remedy.contains("6.17"), "{older}");
        let old = of_offloads(Offered { tunnels: false, udp: false, ..all });
        assert!(old.state == State::Limited && old.remedy.contains("6.2"), "{old}");
        let none = Offered { tcp: false, udp: false, tunnels: false, header_bytes: 12 };
        assert_eq!(of_offloads(none).state, State::Breaks);
    }
}
