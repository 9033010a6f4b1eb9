//! Driver, speed, channels and flags of an interface, as `ethtool` shows them.

use super::Interface;

/// A structure that begins with its command number, and has the length that the kernel expects for that
/// command.
pub(super) trait Command {}

/// The kernel's structure `ethtool_value`: a command and its 32-bit value.
#[repr(C)]
pub(super) struct Value {
    pub(super) command: u32,
    pub(super) data: u32,
}

/// The kernel's structure `ethtool_cmd`: speed, duplex and link modes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Link {
    command: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    duplex: u8,
    port: u8,
    phy_address: u8,
    transceiver: u8,
    autonegotiation: u8,
    mdio: u8,
    most_sent: u32,
    most_received: u32,
    speed_high: u16,
    crossing: [u8; 2],
    partner_advertising: u32,
    reserved: [u32; 2],
}

/// The kernel's structure `ethtool_drvinfo`: name and version of the driver.
#[repr(C)]
struct Driver {
    command: u32,
    name: [u8; 32],
    version: [u8; 32],
    firmware: [u8; 32],
    bus: [u8; 32],
    rom_version: [u8; 32],
    reserved: [u8; 12],
    counts: [u32; 5],
}

/// The kernel's structure `ethtool_channels`: the numbers of queues.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    most: [u32; 4],
    receive: u32,
    send: u32,
    other: u32,
    combined: u32,
}

impl Command for Value {}
impl Command for Link {}
impl Command for Driver {}
impl Command for Channels {}

impl Interface {
    /// Returns the name of the interface's driver; `None` if it is not reported.
    #[must_use]
    pub(crate) fn driver(&self) -> Option<String> {
        let name = self.driver_info()?.name;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Returns the driver's description of itself; `None` if the driver reports none.
    fn driver_info(&self) -> Option<Driver> {
        let mut driver = Driver {
            command: GET_DRIVER,
            name: [0; 32],
            version: [0; 32],
            firmware: [0; 32],
            bus: [0; 32],
            rom_version: [0; 32],
            reserved: [0; 12],
            counts: [0; 5],
        };
        self.ethtool(&mut driver, "read the driver of").ok()?;
        Some(driver)
    }

    /// Returns `true` if the interface has no hardware behind it: its frames come from memory of this
    /// machine, not from a wire.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.driver_info().is_some_and(|driver| driver.bus[0] == 0)
    }

    /// Returns `true` if the device removes the VLAN tags of received frames.
    #[must_use]
    pub(crate) fn strips_vlans(&self) -> bool {
        self.flags_of_device() & STRIPS_VLANS != 0
    }

    /// Returns the link speed in Mbit/s; `None` if it is unknown.
    #[must_use]
    pub(crate) fn speed_mbit(&self) -> Option<u32> {
        let mut link = Link { command: GET_LINK, ..Link::default() };
        self.ethtool(&mut link, "read the speed of").ok()?;
        let speed = u32::from(link.speed_high) << 16 | u32::from(link.speed);
        let is_known = speed != 0 && speed != u32::MAX && speed != u32::from(u16::MAX);
        is_known.then_some(speed)
    }

    /// Returns the number of queues in use: for receiving, and for sending. `None` if the driver does not
    /// report the numbers.
    #[must_use]
    pub(crate) fn channels(&self) -> Option<[u32; 2]> {
        let mut channels = Channels { command: GET_CHANNELS, ..Channels::default() };
        self.ethtool(&mut channels, "read the channels of").ok()?;
        let Channels { receive, send, combined, .. } = channels;
        Some([receive + combined, send + combined])
    }

    /// Returns the number of receive queues of the interface; `None` if the driver does not report it.
    #[must_use]
    pub fn receive_queues(&self) -> Option<u32> {
        self.channels().map(|[receive, _]| receive)
    }

    /// Returns `true` if the device coalesces received packets by its own rules (LRO).
    #[must_use]
    pub(crate) fn has_lro(&self) -> bool {
        self.flags_of_device() & LRO != 0
    }

    /// Returns the flags of the device; 0 if they are not reported.
    fn flags_of_device(&self) -> u32 {
        let mut flags = Value { command: GET_FLAGS, data: 0 };
        self.ethtool(&mut flags, "read the flags of").map_or(0, |()| flags.data)
    }

    /// Sets speed and duplex to those of `like`. Does nothing if the speed cannot be read or set.
    pub(crate) fn show_speed_of(&self, like: &Self) {
        let mut theirs = Link { command: GET_LINK, ..Link::default() };
        let mut ours = theirs;
        let read = |interface: &Self, link: &mut Link| {
            interface.ethtool(link, "read the speed of").is_ok()
        };
        if read(like, &mut theirs) && read(self, &mut ours) {
            ours.command = SET_LINK;
            (ours.speed, ours.speed_high, ours.duplex) =
                (theirs.speed, theirs.speed_high, theirs.duplex);
            _ = self.ethtool(&mut ours, "set the speed of");
        }
    }
}

// linux/ethtool.h.
const GET_LINK: u32 = 0x01;
const SET_LINK: u32 = 0x02;
const GET_DRIVER: u32 = 0x03;
const GET_FLAGS: u32 = 0x25;
const GET_CHANNELS: u32 = 0x3c;
const STRIPS_VLANS: u32 = 1 << 8;
const LRO: u32 = 1 << 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_lengths_that_the_kernel_expects() {
        let bytes =
            [size_of::<Value>(), size_of::<Link>(), size_of::<Driver>(), size_of::<Channels>()];
        assert_eq!(bytes, [8, 44, 196, 36]);
    }
}
