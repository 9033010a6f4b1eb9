//! Device names as a user types them: `packet:eth1`, `tap:rxo0`, `tun:rxo0`.
//!
//! Contract: a name that parses is well-formed; whether such a device exists is checked only when it is
//! opened.

use std::fmt;
use std::str::FromStr;

use rxo_device::DeviceError;

use super::kind::{Attach, Ends};
use super::{DeviceHandle, DeviceKind, DeviceOptions, DeviceSink, DeviceSource, KINDS};

/// A device name: a kind, and a name within that kind.
#[derive(Clone)]
pub struct DeviceName {
    kind: &'static DeviceKind,
    name: String,
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
        Ok(Self { kind, name: name.to_owned() })
    }

    /// Returns the kind of device.
    #[must_use]
    pub const fn kind(&self) -> &'static DeviceKind {
        self.kind
    }

    /// Returns the part after the colon: for most kinds the name of an interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Checks that the device can be opened, without changing anything. Returns its MTU in bytes; `None` if
    /// the device does not exist yet, or if only an open device has an MTU.
    ///
    /// # Errors
    /// If the device does not exist or is down; the message names the reason and the remedy.
    pub fn survey(&self) -> Result<Option<u32>, DeviceError> {
        (self.kind.survey)(self)
    }

    /// Checks that the device both receives and sends frames, as a worker's devices must.
    ///
    /// # Errors
    /// If the device has one direction only; the message names the kinds that have both.
    pub fn check_both_ways(&self) -> Result<(), DeviceError> {
        self.both_ways().map(|_| ())
    }

    /// Attaches to a device that has both directions, and creates it if it is of a kind that rxo creates.
    ///
    /// # Errors
    /// If the device has one direction only, is in use, or privilege is missing.
    pub fn attach(&self) -> Result<Box<dyn DeviceHandle>, DeviceError> {
        (self.both_ways()?)(self)
    }

    /// Opens the device as a source of frames.
    ///
    /// # Errors
    /// If the device is only a sink; otherwise as for [`Device::open`](super::Device::open).
    pub fn open_source(&self, options: DeviceOptions) -> Result<DeviceSource, DeviceError> {
        match self.kind.ends {
            Ends::Both(attach) => Ok(attach(self)?.open(options)?.source),
            Ends::Source(open) => open(self, options),
            Ends::Sink(_) => Err(self.only("takes", |ends| !matches!(ends, Ends::Sink(_)))),
        }
    }

    /// Opens the device as a sink for frames.
    ///
    /// # Errors
    /// If the device is only a source; otherwise as for [`Device::open`](super::Device::open).
    pub fn open_sink(&self, options: DeviceOptions) -> Result<DeviceSink, DeviceError> {
        match self.kind.ends {
            Ends::Both(attach) => Ok(attach(self)?.open(options)?.sink),
            Ends::Sink(open) => open(self, options),
            Ends::Source(_) => Err(self.only("gives", |ends| !matches!(ends, Ends::Source(_)))),
        }
    }

    fn both_ways(&self) -> Result<Attach, DeviceError> {
        let has_both = |ends: &Ends| matches!(ends, Ends::Both(_));
        match self.kind.ends {
            Ends::Both(attach) => Ok(attach),
            Ends::Source(_) => Err(self.only("gives", has_both)),
            Ends::Sink(_) => Err(self.only("takes", has_both)),
        }
    }

    /// Creates the error for a device that only `verb` frames ("gives" or "takes"). It lists the kinds for
    /// which `fits` is true.
    fn only(&self, verb: &str, fits: fn(&Ends) -> bool) -> DeviceError {
        let others = forms(KINDS.iter().filter(|kind| fits(&kind.ends)));
        DeviceError::Usage(format!("device `{self}` only {verb} frames: use {others}"))
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
        (self.kind.prefix, &self.name) == (other.kind.prefix, &other.name)
    }
}

impl Eq for DeviceName {}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.prefix, self.name)
    }
}

impl fmt::Debug for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceName({self})")
    }
}

fn unknown(kinds: &[DeviceKind], text: &str) -> DeviceError {
    DeviceError::Usage(format!("device `{text}` is not known: use {}", forms(kinds.iter())))
}

/// Lists the forms of names of `kinds` for a message: `packet:IFNAME, tap:NAME or tun:NAME`.
fn forms<'k>(kinds: impl Iterator<Item = &'k DeviceKind>) -> String {
    let forms: Vec<_> = kinds.map(|kind| format!("{}:{}", kind.prefix, kind.placeholder)).collect();
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
            ("eth0", "packet:IFNAME, tap:NAME, tun:NAME, vhost:PATH or virtio:PATH"),
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
