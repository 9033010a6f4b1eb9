//! The condition of a capture: connections and payload of the lab's senders.

use std::fmt;

use serde::Serialize;

/// Number of connections, and the bytes per write of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Condition {
    /// Number of senders, each with one connection.
    pub(super) connections: usize,
    /// The application's payload, in units of 1,024 bytes.
    pub(super) payload_kb: usize,
}

impl Condition {
    pub(super) const fn payload_bytes(self) -> usize {
        self.payload_kb * 1_024
    }

    /// Returns the file name under which the capture is kept.
    pub(super) fn file_name(self) -> String {
        format!("{}-connections-{}-KB.pcapng", self.connections, self.payload_kb)
    }

    /// Parses the condition from the name of a kept capture; `None` for other names.
    pub(super) fn of_file(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".pcapng")?.strip_suffix("-KB")?;
        let (connections, payload_kb) = name.split_once("-connections-")?;
        Some(Self { connections: connections.parse().ok()?, payload_kb: payload_kb.parse().ok()? })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} connections, {} KB payloads", self.connections, self.payload_kb)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_capture_is_known_by_its_name() {
        let condition = Condition { connections: 16, payload_kb: 8 };
        assert_eq!(Condition::of_file(&condition.file_name()), Some(condition));
        for name in ["trace.pcapng", "16-connections-8-KB.pcap", "x-connections-8-KB.pcapng"] {
            assert_eq!(Condition::of_file(name), None, "{name}");
        }
    }
}
