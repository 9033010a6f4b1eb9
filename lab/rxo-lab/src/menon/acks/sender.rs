//! The senders whose congestion window is observed.

use serde::Serialize;

/// A sender with its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sender {
    /// Our own sender: RFC 5681 without byte counting, initial window of ten segments.
    Counting,
    /// Linux with Reno.
    Reno,
    /// Linux with CUBIC.
    Cubic,
    /// Linux with BBR.
    Bbr,
}

impl Sender {
    pub(super) const ALL: [Self; 4] = [Self::Counting, Self::Reno, Self::Cubic, Self::Bbr];
    /// The senders of the Linux kernel.
    pub(super) const LINUX: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counting => "counting",
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Returns the kernel's name of the congestion control; `None` for our own sender.
    pub(super) fn congestion_control(self) -> Option<String> {
        (self != Self::Counting).then(|| self.name().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_tables_say_the_same() {
        for sender in Sender::ALL {
            assert_eq!(serde_json::to_value(sender).unwrap(), sender.name());
        }
    }
}
