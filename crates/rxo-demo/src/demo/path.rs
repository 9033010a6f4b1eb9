//! The five ways that the demo sends the same transfer.

use serde::Serialize;

/// A way from the wire to the host's TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Path {
    /// The kernel alone; every frame goes up on its own.
    KernelGroOff,
    /// The kernel alone, coalescing.
    KernelGroOn,
    /// Through rxo, which coalesces nothing and makes a system call for every frame.
    WritePerFrame,
    /// Through rxo, which coalesces nothing and writes in batches as it does with coalescing.
    None,
    /// Through rxo, coalescing.
    Rxo,
}

impl Path {
    /// All of them, in the order of the table.
    pub(crate) const ALL: [Self; 5] =
        [Self::KernelGroOff, Self::KernelGroOn, Self::WritePerFrame, Self::None, Self::Rxo];

    /// The name in tables and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::KernelGroOff => "kernel-gro-off",
            Self::KernelGroOn => "kernel-gro-on",
            Self::WritePerFrame => "write-per-frame",
            Self::None => "none",
            Self::Rxo => "rxo",
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
