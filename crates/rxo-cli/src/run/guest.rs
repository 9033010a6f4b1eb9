//! The guests of `rxo guest`, as typed after `--vhost`.

use anyhow::{Context, Result};
use rxo::switch::{MacAddress, PortSettings, Switch, SwitchOptions, Vlans};
use rxo_console::shell;
use rxo_driver::DeviceName;
use serde::Serialize;

use crate::exit::usage;

/// Most guests: a single wait of the system takes that many descriptors besides the nic's.
const MOST_GUESTS: usize = 24;

/// A guest and its port of the switch.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    pub(super) name: String,
    pub(super) device: DeviceName,
    port: PortSettings,
}

/// A guest, as the configuration shows it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct GuestConfiguration {
    name: String,
    socket: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// The guest's VLAN; 0 for frames without a tag, and `None` for all.
    vlan: Option<u16>,
    /// The part of QEMU's command line for this guest.
    qemu: String,
}

impl Guest {
    /// Parses all guests.
    ///
    /// # Errors
    /// If a text is invalid, two guests have the same name or socket, or ports conflict.
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
                "--vhost {text}: write NAME=PATH[,mac=MAC][,vlan=N|all], such as \
                 web=/run/web.sock,mac=52:54:00:00:00:02"
            ))
        };
        let (name, rest) = text.split_once('=').ok_or_else(wrong)?;
        let mut parts = rest.split(',');
        let path = parts.next().filter(|path| !path.is_empty()).ok_or_else(wrong)?;
        if name.is_empty() {
            return Err(wrong());
        }
        let mut port = PortSettings { vlans: Vlans::Only(0), fixed: None };
        for part in parts {
            match part.split_once('=').ok_or_else(wrong)? {
                ("mac", mac) => port.fixed = Some(mac_address(text, mac)?),
                ("vlan", "all") => port.vlans = Vlans::All,
                ("vlan", vlan) => port.vlans = Vlans::Only(vlan_number(text, vlan)?),
                _ => return Err(wrong()),
            }
        }
        let device = format!("vhost:{path}").parse().with_context(|| format!("--vhost {text}"))?;
        Ok(Self { name: name.to_owned(), device, port })
    }

    /// Returns the guest as the configuration shows it.
    pub(super) fn configuration(&self) -> GuestConfiguration {
        let Self { name, device, port } = self;
        GuestConfiguration {
            name: name.clone(),
            socket: device.name().to_owned(),
            mac: port.fixed.map(|mac| mac.to_string()),
            vlan: match port.vlans {
                Vlans::All => None,
                Vlans::Only(vlan) => Some(vlan),
            },
            qemu: self.qemu(),
        }
    }

    /// Returns the part of QEMU's command line for this guest's device and its shared memory, quoted for a
    /// shell.
    fn qemu(&self) -> String {
        let Self { name, device, port } = self;
        let mac = port.fixed.map_or(String::new(), |mac| format!(",mac={mac}"));
        let id = qemu_id(name);
        // QEMU reads a doubled comma in a value as one.
        let path = device.name().replace(',', ",,");
        let socket = format!("socket,id={id},path={path},reconnect=1");
        let socket = shell::quoted(&socket);
        format!(
            "-m {QEMU_MEMORY} -object memory-backend-memfd,id={id}-mem,size={QEMU_MEMORY},share=on \
             -machine memory-backend={id}-mem -chardev {socket} \
             -netdev vhost-user,id={id}-net,chardev={id} -device virtio-net-pci,netdev={id}-net{mac}"
        )
    }
}

/// Memory size of a guest in QEMU's line, which the user may change.
const QEMU_MEMORY: &str = "1G";

/// Makes an identifier that QEMU accepts: a letter, then letters, digits, `-`, `.` and `_`.
fn qemu_id(name: &str) -> String {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let id: String = name.chars().map(|c| if is_valid(c) { c } else { '-' }).collect();
    let prefix = if id.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "guest-" };
    format!("{prefix}{id}")
}

/// Note about options that QEMU's lines leave out, because with KVM they would cost guests the interrupts of
/// each queue.
const WITHOUT_KVM: &str =
    "without KVM, end each line with ,vectors=0 because QEMU 7.2 crashes otherwise";

/// Returns QEMU's line for each guest, and the note. Nothing if there are no guests.
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
        format!("{} at {}, address {mac}, {vlan}", self.name, self.socket)
    }

    fn qemu_line(&self) -> String {
        format!("{}: qemu-system-x86_64 … {}", self.name, self.qemu)
    }
}

/// Makes the switch between a nic, which carries all VLANs, and guests.
///
/// # Errors
/// If the ports' settings conflict.
pub(super) fn switch(guests: &[Guest]) -> Result<Switch> {
    let nic = PortSettings { vlans: Vlans::All, fixed: None };
    let ports = std::iter::once(nic).chain(guests.iter().map(|guest| guest.port)).collect();
    Switch::new(ports, SwitchOptions::default()).map_err(|error| usage(format!("--vhost: {error}")))
}

fn mac_address(text: &str, mac: &str) -> Result<MacAddress> {
    mac.parse().map_err(|_| {
        usage(format!("--vhost {text}: {mac} is no address; write one such as 52:54:00:00:00:02"))
    })
}

fn vlan_number(text: &str, vlan: &str) -> Result<u16> {
    vlan.parse().ok().filter(|vlan| (1..=4_094).contains(vlan)).ok_or_else(|| {
        usage(format!("--vhost {text}: vlan={vlan} is no VLAN; give 1 to 4094, or all"))
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
        let texts =
            ["web=/run/web.sock,mac=52:54:00:00:00:02", "db=/run/db.sock,vlan=7", "t=s,vlan=all"];
        let guests = all(&texts).unwrap();
        let shown = guests.iter().map(|guest| guest.configuration().text());
        let expected = [
            "web at /run/web.sock, address 52:54:00:00:00:02, no VLAN",
            "db at /run/db.sock, address learned, VLAN 7",
            "t at s, address learned, all VLANs",
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
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
        let shown = lines(&["web=/run/web.sock", "db=/run/db.sock"]);
        assert_eq!((shown.len(), &shown[2][..]), (3, WITHOUT_KVM));
        assert!(WITHOUT_KVM.contains(" ,vectors=0 "));
    }

    #[test]
    fn qemu_gets_the_memory_that_both_share() {
        let line = all(&["web=/run/web.sock"]).unwrap()[0].configuration().qemu_line();
        assert_eq!(
            line,
            "web: qemu-system-x86_64 … -m 1G -object memory-backend-memfd,id=web-mem,size=1G,share=on \
             -machine memory-backend=web-mem -chardev socket,id=web,path=/run/web.sock,reconnect=1 \
             -netdev vhost-user,id=web-net,chardev=web -device virtio-net-pci,netdev=web-net"
        );
    }

    #[test]
    fn qemu_gets_identifiers_that_it_accepts_and_a_shell_words_that_it_reads() {
        let ids = ["web", "7web", "my web/1", "", "Ä", "a.b_c-d"].map(qemu_id);
        assert_eq!(ids, ["web", "guest-7web", "my-web-1", "guest-", "guest--", "a.b_c-d"]);
        let line = all(&["7's=/run/my vm's.sock"]).unwrap()[0].configuration().qemu_line();
        let words = r"-chardev 'socket,id=guest-7-s,path=/run/my vm'\''s.sock,reconnect=1' -netdev";
        assert!(line.contains(words), "{line}");
    }

    #[test]
    fn an_invalid_guest_is_named_with_a_valid_one() {
        let rows: [(&[&str], &str); 9] = [
            (&["web"], "--vhost web: write NAME=PATH"),
            (&["=/run/s"], "--vhost =/run/s: write NAME=PATH"),
            (&["web="], "--vhost web=: write NAME=PATH"),
            (&["web=s,speed=1"], "--vhost web=s,speed=1: write NAME=PATH"),
            (&["web=s,mac=x"], "--vhost web=s,mac=x: x is no address; write one such as"),
            (&["web=s,vlan=0"], "--vhost web=s,vlan=0: vlan=0 is no VLAN; give 1 to 4094"),
            (&["a=s", "a=t"], "two guests have the name a; give each its own"),
            (&["a=s", "b=s"], "two guests have the socket s; give each its own"),
            (
                &["a=s,mac=52:54:00:00:00:02", "b=t,mac=52:54:00:00:00:02"],
                "--vhost: two ports have the address 52:54:00:00:00:02",
            ),
        ];
        for (texts, message) in rows {
            let error = all(texts).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let many: Vec<_> = (0..25).map(|n| format!("g{n}=s{n}")).collect();
        assert!(Guest::all(&many).unwrap_err().to_string().contains("at most 24"));
    }
}
