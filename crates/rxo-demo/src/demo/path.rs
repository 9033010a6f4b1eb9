//! The paths over which the demo sends the same transfer: five, and a sixth with `--floor`.

use serde::Serialize;

/// A path from the wire to the host's TCP, over which the demo sends its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Path {
    /// The path through the kernel alone, with GRO off: every frame is delivered separately.
    KernelGroOff,
    /// The path through the kernel alone, with GRO on.
    KernelGroOn,
    /// The path through rxo without coalescing, with one system call for each frame.
    WritePerFrame,
    /// The path through rxo without coalescing, with the same batched writes as on the path with coalescing.
    None,
    /// The path through rxo with coalescing.
    Rxo,
    /// The path through a bare loop in place of rxo ([`floor`](super::floor)).
    Floor,
}

impl Path {
    /// All paths, in the order of the demo's table. The last path is measured only with `--floor`.
    pub(crate) const ALL: [Self; 6] = [
        Self::KernelGroOff,
        Self::KernelGroOn,
        Self::WritePerFrame,
        Self::None,
        Self::Rxo,
        Self::Floor,
    ];

    /// Returns the path's name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KernelGroOff => "kernel-gro-off",
            Self::KernelGroOn => "kernel-gro-on",
            Self::WritePerFrame => "write-per-frame",
            Self::None => "none",
            Self::Rxo => "rxo",
            Self::Floor => "floor",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_table_say_the_same_name() {
        for path in Path::ALL {
            assert_eq!(serde_json::to_value(path).unwrap(), path.name());
        }
    }
}
