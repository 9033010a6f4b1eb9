//! The alignment of payload in the guest's memory.

use rxo_driver::LINE_BYTES;
use serde::{Serialize, Serializer};

/// Bytes of payload, by the start address of their buffer modulo a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::xen) struct Alignment(pub(in crate::xen) [u64; LINE_BYTES]);

impl Alignment {
    /// Returns the share of the payload at each start address modulo a cache line; zeros without payload.
    pub(in crate::xen) fn shares(&self) -> [f64; LINE_BYTES] {
        let all = self.0.iter().sum::<u64>().max(1);
        self.0.map(|bytes| bytes as f64 / all as f64)
    }
}

/// Serializes as an object from start addresses to bytes, without empty entries.
impl Serialize for Alignment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().enumerate().filter(|(_, bytes)| **bytes > 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_said() {
        let mut bytes = [0; LINE_BYTES];
        (bytes[14], bytes[50]) = (300, 100);
        let alignment = Alignment(bytes);
        assert_eq!((alignment.shares()[14], alignment.shares()[50]), (0.75, 0.25));
        assert_eq!(serde_json::to_string(&alignment).unwrap(), r#"{"14":300,"50":100}"#);
    }
}
