//! The model: how many cores and how much memory traffic a rate takes. Pure.
//!
//! Workers share nothing on the packet path, so a rate takes as many of them as it is times that of one; how far that holds
//! is measured with the cores that there are. What all cores share is memory.

use rxo_bench::workers::Figures;

/// Costs of a byte of payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) name: &'static str,
    /// Processor time, in seconds a gigabyte.
    pub(super) seconds_a_gigabyte: f64,
    /// Bytes that cross the memory bus for a byte that arrives.
    pub(super) bus_bytes: f64,
}

/// A machine with so many cores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    pub(super) cores: u32,
    /// Channels of DDR5-4800.
    pub(super) channels: u32,
}

/// Machines as they are sold, and wires in Gbit/s.
pub(super) const SERVERS: [Server; 3] = [
    Server { cores: 8, channels: 2 },
    Server { cores: 32, channels: 8 },
    Server { cores: 128, channels: 24 },
];
pub(super) const WIRES: [f64; 4] = [25.0, 100.0, 200.0, 400.0];

/// Bytes a second of a channel, and the share of them that programs get.
const CHANNEL: f64 = 38.4e9;
const USABLE: f64 = 0.7;
/// Bytes that a copy moves for each byte: read, the line that is written fetched, and written.
pub(super) const COPY: f64 = 3.0;
/// The whole live path, by `rxo demo` in README.md: packet ring, worker, TAP, the host's TCP and its reader.
pub(super) const LIVE_SECONDS_A_GIGABYTE: f64 = 1.22;

/// The paths, from the least to all of it.
pub(super) fn paths(figures: &Figures) -> [Path; 3] {
    let of_one = |is_copied| {
        let mut rows = figures.rows.iter();
        let row = rows.find(|row| row.is_copied == is_copied && row.workers == 1);
        row.map_or(f64::NAN, |row| row.ns_per_frame[0] / figures.payload_bytes as f64)
    };
    let headers = 128.0 / figures.frame_bytes as f64;
    [
        Path {
            name: "worker, headers only",
            seconds_a_gigabyte: of_one(false),
            bus_bytes: 1.0 + headers,
        },
        Path {
            name: "worker and one copy",
            seconds_a_gigabyte: of_one(true),
            bus_bytes: 1.0 + COPY,
        },
        Path {
            name: "ring to TAP, host and reader",
            seconds_a_gigabyte: LIVE_SECONDS_A_GIGABYTE,
            bus_bytes: 1.0 + 2.0 * COPY,
        },
    ]
}

impl Path {
    /// Gbit/s of so many cores that do nothing else, if nothing but them is the limit.
    pub(super) fn rate(&self, cores: f64) -> f64 {
        cores * 8.0 / self.seconds_a_gigabyte
    }

    /// Cores that a wire keeps busy.
    pub(super) fn cores(&self, gbits: f64) -> f64 {
        gbits / self.rate(1.0)
    }

    /// Gbit/s at which memory ends it, for so many bytes a second of the bus.
    pub(super) fn most(&self, bus_bytes_a_second: f64) -> f64 {
        bus_bytes_a_second / self.bus_bytes * 8.0 / 1e9
    }
}

impl Server {
    /// Bytes a second that programs get of memory.
    pub(super) fn bus(&self) -> f64 {
        f64::from(self.channels) * CHANNEL * USABLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_and_rates_are_inverse_and_memory_is_an_upper_bound() {
        let path = Path { name: "x", seconds_a_gigabyte: 0.5, bus_bytes: 4.0 };
        assert_eq!((path.rate(1.0), path.cores(160.0)), (16.0, 10.0));
        // 40 GB/s of the bus carry 10 GB/s of payload.
        assert_eq!(path.most(40e9), 80.0);
    }

    #[test]
    fn the_cost_of_the_live_path_is_that_of_the_readme() {
        let readme = include_str!("../../../../README.md");
        let row = readme.lines().find(|line| line.starts_with("rxo   ")).unwrap();
        assert!(row.contains(&format!(" {LIVE_SECONDS_A_GIGABYTE} (")), "{row}");
    }
}
