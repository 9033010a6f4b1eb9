//! Whose window is watched.

use serde::Serialize;

/// A sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sender {
    /// Our own: RFC 5681 without byte counting, ten segments at first.
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
    /// Those of the kernel.
    pub(super) const LINUX: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Counting => "counting",
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// What the kernel calls its congestion control; `None` for our own.
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
