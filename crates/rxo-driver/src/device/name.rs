//! Device names as a user types them: `packet:eth1`, `tap:rxo0`, `tun:rxo0`.
//!
//! Contract: a name that parses is well-formed; whether such a device exists is checked only when it is
//! opened.

use std::fmt;
use std::str::FromStr;

use rxo_device::DeviceError;

use super::{DeviceHandle, DeviceKind, KINDS};
use crate::steering::MOST_QUEUES;
use crate::succession::Handed;

/// A device name: a kind, and a name within that kind.
#[derive(Clone)]
pub struct DeviceName {
    kind: &'static DeviceKind,
    /// The part of the device name after the first colon.
    text: String,
}

impl DeviceName {
    /// Parses `text` as `KIND:NAME`, where `kinds` lists the kinds that are accepted.
    pub(super) fn parse(kinds: &'static [DeviceKind], text: &str) -> Result<Self, DeviceError> {
        let split = text.split_once(':');
        let found = split.and_then(|(prefix, name)| {
            let kind = kinds.iter().find(|kind| kind.prefix == prefix)?;
            Some((kind, name))
        });
        let (kind, name) = found.ok_or_else(|| unknown(kinds, text))?;
        let wrong = |wrong| DeviceError::Usage(format!("device `{text}` {wrong}"));
        (kind.check_name)(name).map_err(wrong)?;
        Ok(Self { kind, text: name.to_owned() })
    }

    /// Returns the kind of device.
    #[must_use]
    pub const fn kind(&self) -> &'static DeviceKind {
        self.kind
    }

    /// Returns the part after the colon, without a queue: for most kinds the name of an interface.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts().0
    }

    /// Returns the part after the name of the interface, such as `0` in `xdp:eth1:0`; `None` if there is
    /// none.
    #[must_use]
    pub fn rest(&self) -> Option<&str> {
        self.parts().1
    }

    /// Divides the text at its first colon, which no interface name contains.
    fn parts(&self) -> (&str, Option<&str>) {
        let parts = self.text.split_once(':').filter(|_| self.kind.interface.is_some());
        parts.map_or((&self.text, None), |(name, rest)| (name, Some(rest)))
    }

    /// Checks that the device can be opened, without changing anything. Returns its MTU in bytes; `None` if the
    /// device does not exist yet, or if its MTU is known only once it is open.
    ///
    /// # Errors
    /// If the device does not exist or is down; the message names the reason and the remedy.
    pub fn survey(&self) -> Result<Option<u32>, DeviceError> {
        (self.kind.survey)(self)
    }

    /// Attaches to the device. Creates its interface if rxo creates the interfaces of this kind.
    ///
    /// # Errors
    /// If the device is in use, or a privilege is missing.
    pub fn attach(&self) -> Result<Box<dyn DeviceHandle>, DeviceError> {
        (self.kind.attach)(self)
    }

    /// Attaches to `queues` queues of a device that another process [hands over](DeviceHandle::hand_over).
    ///
    /// # Errors
    /// If devices of this kind cannot be handed over, this one has another number of queues, or it is gone.
    pub fn inherit(
        &self,
        handed: Handed,
        queues: u32,
    ) -> Result<Box<dyn DeviceHandle>, DeviceError> {
        let inherit = self.kind.inherit.ok_or_else(|| {
            let others = forms(KINDS.iter().filter(|kind| kind.can_be_inherited()));
            DeviceError::Usage(format!("device `{self}` cannot be handed over: use {others}"))
        })?;
        inherit(self, handed, queues)
    }

    /// Attaches to `queues` queues of the device; [`DeviceHandle::open_queues`] then opens them.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceName::attach`], and an error if devices of this kind have one queue, or
    /// if `queues` is not from 1 to 256.
    pub fn attach_queues(&self, queues: u32) -> Result<Box<dyn DeviceHandle>, DeviceError> {
        let attach = self.kind.queues.ok_or_else(|| {
            let others = forms(KINDS.iter().filter(|kind| kind.has_queues()));
            DeviceError::Usage(format!("device `{self}` has one queue: use {others}"))
        })?;
        if !(1..=MOST_QUEUES).contains(&queues) {
            let remedy = format!("choose from 1 to {MOST_QUEUES}");
            return Err(DeviceError::Usage(format!("{self}: {queues} queues; {remedy}")));
        }
        attach(self, queues)
    }
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        Self::parse(KINDS, text)
    }
}

impl PartialEq for DeviceName {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.prefix, &self.text) == (other.kind.prefix, &other.text)
    }
}

impl Eq for DeviceName {}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.prefix, self.text)
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceName({self})")
    }
}

fn unknown(kinds: &[DeviceKind], text: &str) -> DeviceError {
    DeviceError::Usage(format!("device `{text}` is not known: use {}", forms(kinds)))
}

/// Returns the forms of the names of `kinds`, for example `packet:IFNAME, tap:NAME or tun:NAME`.
fn forms<'a>(kinds: impl IntoIterator<Item = &'a DeviceKind>) -> String {
    let forms: Vec<_> =
        kinds.into_iter().map(|kind| format!("{}:{}", kind.prefix, kind.placeholder)).collect();
    match forms.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        forms => forms.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_every_kind() {
        for text in ["packet:eth1", "tap:rxo0", "tun:rxo0", "packet:exactly15bytes_"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        for text in ["vhost:/run/vm.sock", "virtio:relative.sock"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        assert_eq!("tap:rxo0".parse::<DeviceName>().unwrap().name(), "rxo0");
    }

    #[test]
    fn a_wrong_name_says_what_is_accepted() {
        let rows = [
            ("eth0", "packet:IFNAME, xdp:IFNAME[:QUEUE], tap:NAME, tun:NAME, "),
            ("dpdk:eth0", "packet:IFNAME"),
            ("tap:", "names no interface"),
            ("tap:a_name_of_16byte", "longer than 15"),
            ("tap:a b", "characters"),
            ("tap:a/b", "characters"),
            ("tap:tap%d", "characters"),
            ("packet:..", "characters"),
            ("vhost:", "names no socket"),
            (&format!("virtio:/{}", "x".repeat(105)), "longer than 105 bytes"),
        ];
        for (text, part) in rows {
            let error = text.parse::<DeviceName>().unwrap_err();
            assert!(matches!(error, DeviceError::Usage(_)), "{text}");
            let line = error.to_string();
            assert!(line.contains(text) && line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
