//! The guests of `rxo guest`, as typed after `--vhost`.

mod rights;

use std::net::IpAddr;

use anyhow::{Context, Result};
use rxo::switch::{Guard, Port, PortSettings, Switch, SwitchOptions, Vlans};
use rxo::worker::Budget;
use rxo_console::numbers::{grouped, parse_bytes};
use rxo_console::shell;
use rxo_device::middleware::parse_rate;
use rxo_driver::{DeviceName, GuestMemory};
use serde::Serialize;

use self::rights::Rights;
pub(super) use self::rights::memory_bytes;

use crate::exit::usage;

/// Maximum number of guests: each needs a thread and about 15 MB.
const MOST_GUESTS: usize = 24;

/// A guest: its device, its port of the switch, and its rights.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub(super) name: String,
    pub(super) device: DeviceName,
    vlans: Vlans,
    rights: Rights,
    pub(super) budget: Budget,
}

/// The guest's part of the effective configuration.
#[derive(Clone, Debug, Serialize)]
pub(super) struct GuestConfiguration {
    name: String,
    socket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// The guest's VLAN; 0 for frames without a tag, `None` for all VLANs.
    vlan: Option<u16>,
    /// The IP addresses that the guest may use ([`Guard::ips`]); empty if it may use any.
    ips: Vec<IpAddr>,
    isolated: bool,
    router: bool,
    dhcp: bool,
    /// Maximum memory that the guest may share, in bytes; left out without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    sparse: bool,
    /// The guest's rights on the link as text, without the right to use its own address.
    #[serde(skip)]
    rights: String,
    /// Maximum rate at which the guest sends, in bytes per second; left out without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_bytes_per_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst_bytes: Option<u64>,
    /// Maximum number of frames per second to several receivers; `None` for no limit.
    storm_frames_per_s: Option<u64>,
    /// The part of QEMU's command line for this guest.
    qemu: String,
}

impl Guest {
    /// Parses the values of all `--vhost` flags.
    ///
    /// # Errors
    /// If a value is invalid, two guests have the same name or socket, or ports conflict.
    pub(super) fn all(texts: &[String]) -> Result<Vec<Self>> {
        if texts.len() > MOST_GUESTS {
            let count = texts.len();
            return Err(usage(format!("--vhost was given {count} times; at most {MOST_GUESTS}")));
        }
        let guests: Vec<Self> =
            texts.iter().map(|text| Self::parse(text)).collect::<Result<_>>()?;
        for (n, guest) in guests.iter().enumerate() {
            let Self { name, device, .. } = guest;
            if guests[..n].iter().any(|other| other.name == *name) {
                return Err(usage(format!("two guests have the name {name}; give each its own")));
            }
            if guests[..n].iter().any(|other| other.device == *device) {
                let path = device.name();
                return Err(usage(format!("two guests have the socket {path}; give each its own")));
            }
        }
        switch(&guests)?;
        Ok(guests)
    }

    fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            usage(format!(
                "--vhost {text}: write NAME=PATH,mac=MAC|learn=yes[,vlan=N|all][,ip=IP][,memory=SIZE][,isolated=yes]\
                 [,router=yes][,dhcp=yes][,sparse=yes][,rate=RATE[,burst=BYTES]][,storm=N|off], such as \
                 web=/run/web.sock,mac=52:54:00:00:00:02"
            ))
        };
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let mut parts = rest.split(',');
        let path = parts.next().filter(|path| !path.is_empty()).ok_or_else(wrong)?;
        if name.is_empty() {
            return Err(wrong());
        }
        let (mut vlans, mut rights) = (Vlans::Only(0), Rights::default());
        let (mut budget, mut has_burst) = (Budget::default(), false);
        for part in parts {
            match part.split_once('=').ok_or_else(wrong)? {
                ("vlan", "all") => vlans = Vlans::All,
                ("vlan", vlan) => vlans = Vlans::Only(vlan_number(text, vlan)?),
                ("rate", rate) => budget.rate = Some(bytes_per_s(text, rate)?),
                ("burst", burst) => (budget.burst, has_burst) = (burst_bytes(text, burst)?, true),
                ("storm", "off") => budget.storm = None,
                ("storm", storm) => budget.storm = Some(storm_frames(text, storm)?),
                (key, value) if rights.take(text, key, value)? => {}
                _ => return Err(wrong()),
            }
        }
        rights.check(text)?;
        if has_burst && budget.rate.is_none() {
            let remedy = "burst= is what may exceed rate=; give both, or neither";
            return Err(usage(format!("--vhost {text}: {remedy}")));
        }
        let device = format!("vhost:{path}").parse().with_context(|| format!("--vhost {text}"))?;
        Ok(Self { name: name.to_owned(), device, vlans, rights, budget })
    }

    /// Returns the limits of the memory that the guest may share.
    pub(super) const fn memory(&self) -> GuestMemory {
        self.rights.memory
    }

    /// Returns the guest's part of the effective configuration.
    pub(super) fn configuration(&self) -> GuestConfiguration {
        let Self { name, device, vlans, rights, budget } = self;
        let Guard { ips, routes, serves_dhcp, is_isolated } = rights.guard.clone();
        GuestConfiguration {
            name: name.clone(),
            socket: device.name().to_owned(),
            mac: rights.mac.map(|mac| mac.to_string()),
            vlan: match vlans {
                Vlans::All => None,
                Vlans::Only(vlan) => Some(*vlan),
            },
            ips,
            isolated: is_isolated,
            router: routes,
            dhcp: serves_dhcp,
            memory_bytes: rights.memory.most_bytes,
            sparse: rights.memory.may_be_sparse,
            rights: rights.text(),
            rate_bytes_per_s: budget.rate,
            burst_bytes: budget.rate.map(|_| budget.burst),
            storm_frames_per_s: budget.storm,
            qemu: self.qemu(),
        }
    }

    /// Returns the part of QEMU's command line for this guest's device and its shared memory, quoted for a
    /// shell.
    fn qemu(&self) -> String {
        let Self { name, device, rights, .. } = self;
        let mac = rights.mac.map_or(String::new(), |mac| format!(",mac={mac}"));
        let GuestMemory { most_bytes, may_be_sparse } = rights.memory;
        let memory = most_bytes.map_or(QEMU_MEMORY.to_owned(), |bytes| format!("{}M", bytes >> 20));
        let allocated = if may_be_sparse { "" } else { ",prealloc=on" };
        let id = qemu_id(name);
        // QEMU reads a doubled comma in a value as one.
        let path = device.name().replace(',', ",,");
        let socket = format!("socket,id={id},path={path},reconnect=1");
        let socket = shell::quoted(&socket);
        format!(
            "-m {memory} -object memory-backend-memfd,id={id}-mem,size={memory},share=on{allocated} \
             -machine memory-backend={id}-mem -chardev {socket} \
             -netdev vhost-user,id={id}-net,chardev={id} -device virtio-net-pci,netdev={id}-net{mac}"
        )
    }
}

/// The memory size of a guest in QEMU's command line, which the user may change.
const QEMU_MEMORY: &str = "1G";

/// Makes an identifier that QEMU accepts: a letter, then letters, digits, `-`, `.` and `_`.
fn qemu_id(name: &str) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let id: String = name.chars().map(|c| if is_valid(c) { c } else { '-' }).collect();
    let prefix = if id.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "guest-" };
    format!("{prefix}{id}")
}

/// The note about options that QEMU's lines leave out: with KVM these options would take away the interrupts of
/// each queue.
const WITHOUT_KVM: &str =
    "without KVM, end each line with ,vectors=0 because QEMU 7.2 crashes otherwise";

/// Returns QEMU's line for each guest, and the note about KVM; nothing if there are no guests.
pub(super) fn qemu_lines(guests: &[GuestConfiguration]) -> impl Iterator<Item = String> {
    let note = (!guests.is_empty()).then(|| WITHOUT_KVM.to_owned());
    guests.iter().map(GuestConfiguration::qemu_line).chain(note)
}

impl GuestConfiguration {
    /// Formats the guest's line of the configuration.
    pub(super) fn text(&self) -> String {
        let mac = self.mac.as_deref().unwrap_or("learned");
        let vlan = match self.vlan {
            None => "all VLANs".to_owned(),
            Some(0) => "no VLAN".to_owned(),
            Some(vlan) => format!("VLAN {vlan}"),
        };
        let (name, socket, rights) = (&self.name, &self.socket, &self.rights);
        format!("{name} at {socket}, address {mac}, {vlan}{rights}{}", self.limits())
    }

    /// Formats the limits of the guest that differ from the default.
    fn limits(&self) -> String {
        let rate = self.rate_bytes_per_s.zip(self.burst_bytes).map(|(rate, burst)| {
            let kbit = grouped(rate / 125);
            format!(", {kbit} kbit/s, {} bytes at once", grouped(burst))
        });
        let storm = match self.storm_frames_per_s {
            Some(Budget::STORM) => String::new(),
            Some(frames) => format!(", {} frames/s for several others", grouped(frames)),
            None => ", any number of frames for several others".to_owned(),
        };
        rate.unwrap_or_default() + &storm
    }

    fn qemu_line(&self) -> String {
        format!("{}: qemu-system-x86_64 … {}", self.name, self.qemu)
    }
}

/// Creates the switch between a nic, which carries all VLANs, and the guests.
///
/// # Errors
/// If the ports' settings conflict.
pub(super) fn switch(guests: &[Guest]) -> Result<Switch> {
    let nic = PortSettings { vlans: Vlans::All, fixed: None };
    let port = |guest: &Guest| PortSettings { vlans: guest.vlans, fixed: guest.rights.mac };
    let ports = std::iter::once(nic).chain(guests.iter().map(port)).collect();
    let made = Switch::new(ports, SwitchOptions::default());
    let mut switch = made.map_err(|error| usage(format!("--vhost: {error}")))?;
    for (n, guest) in guests.iter().enumerate() {
        switch.guard(Port::new(n + 1), guest.rights.guard.clone());
    }
    Ok(switch)
}

fn vlan_number(text: &str, vlan: &str) -> Result<u16> {
    vlan.parse().ok().filter(|vlan| (1..=4_094).contains(vlan)).ok_or_else(|| {
        usage(format!("--vhost {text}: vlan={vlan} is no VLAN; give 1 to 4094, or all"))
    })
}

fn bytes_per_s(text: &str, rate: &str) -> Result<u64> {
    parse_rate(rate).ok_or_else(|| {
        usage(format!(
            "--vhost {text}: rate={rate} is no rate; give one such as 800kbit, 100mbit or 10gbit"
        ))
    })
}

fn burst_bytes(text: &str, burst: &str) -> Result<u64> {
    parse_bytes(burst).filter(|bytes| *bytes > 0).ok_or_else(|| {
        usage(format!(
            "--vhost {text}: burst={burst} is no number of bytes; give one such as 256KiB"
        ))
    })
}

fn storm_frames(text: &str, storm: &str) -> Result<u64> {
    storm.parse().ok().filter(|frames| *frames > 0).ok_or_else(|| {
        usage(format!(
            "--vhost {text}: storm={storm} is no limit; give frames a second such as 5000, or off"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str]) -> Result<Vec<Guest>> {
        Guest::all(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_guest_is_a_name_a_socket_and_what_its_port_carries() {
        let texts = [
            "web=/run/web.sock,mac=52:54:00:00:00:02",
            "db=/run/db.sock,vlan=7,learn=yes",
            "t=s,vlan=all,mac=52:54:00:00:00:03,ip=192.0.2.7,ip=fd00::7,isolated=yes,memory=2G",
            "r=r,learn=yes,router=yes,dhcp=yes,sparse=yes,memory=512M,isolated=no",
        ];
        let guests = all(&texts).unwrap();
        let shown = guests.iter().map(|guest| guest.configuration().text());
        let expected = [
            "web at /run/web.sock, address 52:54:00:00:00:02, no VLAN",
            "db at /run/db.sock, address learned, VLAN 7",
            "t at s, address 52:54:00:00:00:03, all VLANs, 192.0.2.7, fd00::7, isolated, at most \
             2147483648 bytes of memory",
            "r at r, address learned, no VLAN, a router, a DHCP server, memory with holes, at most \
             536870912 bytes of memory",
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_guest_has_limits() {
        let texts =
            ["a=s,rate=100mbit", "b=t,rate=8gbit,burst=1MiB,storm=100", "c=u,storm=off", "d=v"];
        let texts = texts.map(|text| format!("{text},learn=yes"));
        let guests = Guest::all(&texts).unwrap();
        let budgets: Vec<_> = guests.iter().map(|guest| guest.budget).collect();
        let usual = Budget::default();
        let expected = [
            Budget { rate: Some(12_500_000), ..usual },
            Budget { rate: Some(1_000_000_000), burst: 1 << 20, storm: Some(100) },
            Budget { storm: None, ..usual },
            usual,
        ];
        assert_eq!(budgets, expected);
        let shown: Vec<_> = guests.iter().map(|guest| guest.configuration().limits()).collect();
        let said = [
            ", 100,000 kbit/s, 262,144 bytes at once",
            ", 8,000,000 kbit/s, 1,048,576 bytes at once, 100 frames/s for several others",
            ", any number of frames for several others",
            "",
        ];
        assert_eq!(shown, said);
    }

    #[test]
    fn qemu_gets_the_socket_and_the_address() {
        let guests = all(&["web=/run/web.sock,mac=52:54:00:00:00:02"]).unwrap();
        let line = guests[0].configuration().qemu_line();
        for part in ["path=/run/web.sock,reconnect=1", "netdev=web-net,mac=52:54:00:00:00:02"] {
            assert!(line.contains(part), "{line}");
        }
    }

    /// Options without which QEMU 7.2 crashes.
    #[test]
    fn what_qemu_needs_without_kvm_is_said_once_below_the_lines() {
        let lines = |texts: &[&str]| {
            let guests: Vec<_> = all(texts).unwrap().iter().map(Guest::configuration).collect();
            qemu_lines(&guests).collect::<Vec<_>>()
        };
        let shown = lines(&["web=/run/web.sock,learn=yes", "db=/run/db.sock,learn=yes"]);
        assert_eq!((shown.len(), &shown[2][..]), (3, WITHOUT_KVM));
        assert!(WITHOUT_KVM.contains(" ,vectors=0 "));
    }

    #[test]
    fn qemu_gets_the_memory_that_both_share() {
        let line = |rest: &str| {
            let text = format!("web=/run/web.sock,learn=yes{rest}");
            all(&[&text]).unwrap()[0].configuration().qemu_line()
        };
        let sparse = "-m 512M -object memory-backend-memfd,id=web-mem,size=512M,share=on -machine";
        assert!(line(",memory=512M,sparse=yes").contains(sparse));
        assert_eq!(
            line(""),
            "web: qemu-system-x86_64 … -m 1G -object \
             memory-backend-memfd,id=web-mem,size=1G,share=on,prealloc=on \
             -machine memory-backend=web-mem -chardev socket,id=web,path=/run/web.sock,reconnect=1 \
             -netdev vhost-user,id=web-net,chardev=web -device virtio-net-pci,netdev=web-net"
        );
    }

    #[test]
    fn qemu_gets_identifiers_that_it_accepts_and_a_shell_words_that_it_reads() {
        let ids = ["web", "7web", "my web/1", "", "Ä", "a.b_c-d"].map(qemu_id);
        assert_eq!(ids, ["web", "guest-7web", "my-web-1", "guest-", "guest--", "a.b_c-d"]);
        let line =
            all(&["7's=/run/my vm's.sock,learn=yes"]).unwrap()[0].configuration().qemu_line();
        let words = r"-chardev 'socket,id=guest-7-s,path=/run/my vm'\''s.sock,reconnect=1' -netdev";
        assert!(line.contains(words), "{line}");
    }

    #[test]
    fn an_invalid_guest_is_named_with_a_valid_one() {
        let rows: [(&[&str], &str); 21] = [
            (&["web"], "--vhost web: write NAME=PATH"),
            (&["=/run/s"], "--vhost =/run/s: write NAME=PATH"),
            (&["web="], "--vhost web=: write NAME=PATH"),
            (&["web=s,speed=1"], "--vhost web=s,speed=1: write NAME=PATH"),
            (&["web=s,mac=x"], "--vhost web=s,mac=x: x is no address; write one such as"),
            (&["web=s,vlan=0"], "--vhost web=s,vlan=0: vlan=0 is no VLAN; give 1 to 4094"),
            (
                &["web=s"],
                "--vhost web=s: give its address by mac=, such as mac=52:54:00:00:00:02, or",
            ),
            (&["web=s,learn=no"], "--vhost web=s,learn=no: give its address by mac="),
            (&["web=s,learn=on"], "--vhost web=s,learn=on: learn=on means nothing; give yes or no"),
            (
                &["web=s,mac=52:54:00:00:00:02,learn=yes"],
                "--vhost web=s,mac=52:54:00:00:00:02,learn=yes: mac= is its only address, and learn=yes",
            ),
            (&["a=s,learn=yes,ip=7"], "--vhost a=s,learn=yes,ip=7: 7 is no IP address; write one"),
            (
                &["a=s,learn=yes,ip=fd00::7,router=yes"],
                "--vhost a=s,learn=yes,ip=fd00::7,router=yes: a router sends for other addresses",
            ),
            (
                &["a=s,learn=yes,memory=0"],
                "--vhost a=s,learn=yes,memory=0: memory=0 is no size; give one such as 2G",
            ),
            (
                &["a=s,learn=yes,sparse=yes"],
                "--vhost a=s,learn=yes,sparse=yes: with sparse=yes rxo pays for memory of the guest;",
            ),
            (&["web=s,rate=5"], "--vhost web=s,rate=5: rate=5 is no rate; give one such as"),
            (
                &["web=s,rate=1gbit,burst=0"],
                "--vhost web=s,rate=1gbit,burst=0: burst=0 is no number",
            ),
            (
                &["web=s,learn=yes,burst=1k"],
                "--vhost web=s,learn=yes,burst=1k: burst= is what may exceed rate=; give both",
            ),
            (
                &["web=s,storm=0"],
                "--vhost web=s,storm=0: storm=0 is no limit; give frames a second",
            ),
            (&["a=s,learn=yes", "a=t,learn=yes"], "two guests have the name a; give each its own"),
            (
                &["a=s,learn=yes", "b=s,learn=yes"],
                "two guests have the socket s; give each its own",
            ),
            (
                &["a=s,mac=52:54:00:00:00:02", "b=t,mac=52:54:00:00:00:02"],
                "--vhost: two ports have the address 52:54:00:00:00:02",
            ),
        ];
        for (texts, message) in rows {
            let error = all(texts).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let many: Vec<_> = (0..25).map(|n| format!("g{n}=s{n},learn=yes")).collect();
        assert!(Guest::all(&many).unwrap_err().to_string().contains("at most 24"));
    }
}
