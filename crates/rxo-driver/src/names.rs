//! Device names as a user types them: `packet:eth1`, `tap:rxo0`, `tun:rxo0`.
//!
//! Contract: what parses here is well-formed; whether such a device exists shows on opening.

use std::fmt;
use std::str::FromStr;

use rxo_device::DeviceError;

use crate::tap::TapKind;

/// The longest interface name the kernel takes, in bytes.
const LONGEST_NAME_BYTES: usize = 15;

/// A device, by kind and interface name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DeviceName {
    /// A packet socket on an existing interface.
    Packet(String),
    /// A TAP or TUN interface, made when it does not exist.
    Tap(TapKind, String),
}

impl DeviceName {
    /// The interface's name.
    #[must_use]
    pub fn interface(&self) -> &str {
        match self {
            Self::Packet(name) | Self::Tap(_, name) => name,
        }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let (kind, name) = text.split_once(':').ok_or_else(|| unknown_kind(text))?;
        let device = match kind {
            "packet" => Self::Packet(name.to_owned()),
            "tap" => Self::Tap(TapKind::Tap, name.to_owned()),
            "tun" => Self::Tap(TapKind::Tun, name.to_owned()),
            _ => return Err(unknown_kind(text)),
        };
        check_name(text, name)?;
        Ok(device)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(name) => write!(f, "packet:{name}"),
            Self::Tap(kind, name) => write!(f, "{kind}:{name}"),
        }
    }
}

fn unknown_kind(text: &str) -> DeviceError {
    DeviceError::Usage(format!(
        "device `{text}` is not known: use packet:IFNAME, tap:NAME or tun:NAME"
    ))
}

fn check_name(text: &str, name: &str) -> Result<(), DeviceError> {
    // The kernel's own rule, and `%`, which it would take for a pattern.
    let refused = |c: char| c.is_whitespace() || c == '/' || c == ':' || c == '%' || c == '\0';
    let wrong = if name.is_empty() {
        "names no interface"
    } else if name.len() > LONGEST_NAME_BYTES {
        "has an interface name longer than 15 bytes"
    } else if name == "." || name == ".." || name.contains(refused) {
        "has an interface name with characters the system does not allow"
    } else {
        return Ok(());
    };
    Err(DeviceError::Usage(format!("device `{text}` {wrong}: give one such as `eth1`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_every_kind() {
        for text in ["packet:eth1", "tap:rxo0", "tun:rxo0", "packet:exactly15bytes_"] {
            assert_eq!(text.parse::<DeviceName>().unwrap().to_string(), text);
        }
        assert_eq!("tap:rxo0".parse::<DeviceName>().unwrap().interface(), "rxo0");
    }

    #[test]
    fn a_wrong_name_says_what_is_accepted() {
        let rows = [
            ("eth0", "packet:IFNAME"),
            ("dpdk:eth0", "packet:IFNAME"),
            ("tap:", "names no interface"),
            ("tap:a_name_of_16byte", "longer than 15"),
            ("tap:a b", "characters"),
            ("tap:a/b", "characters"),
            ("tap:tap%d", "characters"),
            ("packet:..", "characters"),
        ];
        for (text, part) in rows {
            let error = text.parse::<DeviceName>().unwrap_err();
            assert!(matches!(error, DeviceError::Usage(_)), "{text}");
            let line = error.to_string();
            assert!(line.contains(text) && line.contains(part) && !line.contains('\n'), "{line}");
        }
    }
}
