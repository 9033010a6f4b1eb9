//! The counters of rxo and of the interfaces on both sides at a quiet moment, and the equations between them.
//! Pure.

use rxo_peers::DatagramReport;
use rxo_testbed::InterfaceCounters;
use serde::{Deserialize, Serialize};

/// All counters since the start of the processes. An aggregate counts as its segments, except where
/// deliveries are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) peer: Ends,
    pub(super) nic: Ends,
    pub(super) tap: Ends,
    /// Counters of `rxo run`.
    pub(super) run: Run,
    /// Counters of the interface behind which `rxo serve` runs; the next field has the counters of `rxo
    /// serve`.
    pub(super) wire: Ends,
    pub(super) serve: Serve,
    /// Datagrams dropped because a socket buffer was full, at the host; the next field counts those at the
    /// peer.
    pub(super) host_not_taken: u64,
    pub(super) peer_not_taken: u64,
}

/// Frames and bytes of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Ends {
    pub(super) received: u64,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
}

/// The counters of `rxo run`, of its answer to the request `counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Run {
    pub(super) nic_in: Taken,
    pub(super) host_in: Taken,
    pub(super) nic_out: Given,
    pub(super) host_out: Given,
    pub(super) overload: u64,
    pub(super) unaccounted: u64,
}

/// The counters of `rxo serve`, of its answer to the request `counters`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Serve {
    pub(super) nic_in: Taken,
    pub(super) nic_out: Given,
}

/// Packets taken from a device, and lost in its ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Taken {
    pub(super) packets: u64,
    pub(super) ring_drops: u64,
}

/// Frames given to a device. Segments are added where it has none of them in one piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Given {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) deliveries: u64,
    pub(super) dropped_frames: u64,
    pub(super) segments_added: u64,
}

impl From<InterfaceCounters> for Ends {
    fn from(of: InterfaceCounters) -> Self {
        let InterfaceCounters { received_frames, sent_frames, sent_bytes, .. } = of;
        Self { received: received_frames, sent: sent_frames, sent_bytes }
    }
}

/// An equation: its description, and the function that computes both sides.
type Equation = (&'static str, fn(&Counts) -> (u64, u64));

/// The equations that hold while no packet is in flight.
const EQUATIONS: &[Equation] = &[
    ("sent by the peer = received by the nic", |c| (c.peer.sent, c.nic.received)),
    ("received by the nic = taken by rxo + lost in its ring", |c| {
        (c.nic.received, c.run.nic_in.packets + c.run.nic_in.ring_drops)
    }),
    ("taken by rxo = sent to the host + dropped + overload", |c| {
        (
            c.run.nic_in.packets,
            c.run.host_out.frames + c.run.host_out.dropped_frames + c.run.overload,
        )
    }),
    ("deliveries of rxo = received by the TAP", |c| (c.run.host_out.deliveries, c.tap.received)),
    ("sent by the TAP = taken by rxo from the host", |c| (c.tap.sent, c.run.host_in.packets)),
    ("taken from the host + segments cut = sent to the nic + dropped", |c| {
        (
            c.run.host_in.packets + c.run.nic_out.segments_added,
            c.run.nic_out.frames + c.run.nic_out.dropped_frames,
        )
    }),
    ("bytes sent to the nic + headers of segments = bytes sent by the nic", |c| {
        let segments = c.nic.sent.wrapping_sub(c.run.nic_out.frames);
        (c.run.nic_out.bytes.wrapping_add(segments.wrapping_mul(HEADERS_BYTES)), c.nic.sent_bytes)
    }),
    ("sent by the nic = received by the peer", |c| (c.nic.sent, c.peer.received)),
    ("sent to the server = taken by rxo serve + lost in its ring", |c| {
        (c.wire.sent, c.serve.nic_in.packets + c.serve.nic_in.ring_drops)
    }),
    ("sent by rxo serve = received from the server", |c| (c.serve.nic_out.frames, c.wire.received)),
    ("unaccounted = 0", |c| (c.run.unaccounted, 0)),
];

/// Header bytes that the kernel repeats in every segment of a GSO frame but the first: Ethernet, IPv4, and
/// TCP with timestamps. All GSO frames here have these headers.
const HEADERS_BYTES: u64 = 14 + 20 + 32;

/// An equation with the values of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Compared {
    pub(super) what: &'static str,
    pub(super) left: u64,
    pub(super) right: u64,
}

impl Compared {
    pub(super) const fn holds(&self) -> bool {
        self.left == self.right
    }
}

impl Counts {
    /// Returns both sides of every equation, relative to `base`: before it, some counters were not active
    /// yet.
    pub(super) fn compare(&self, base: &Self) -> Vec<Compared> {
        let compared = |&(what, sides): &Equation| {
            let ((left, right), (left_base, right_base)) = (sides(self), sides(base));
            Compared {
                what,
                left: left.wrapping_sub(left_base),
                right: right.wrapping_sub(right_base),
            }
        };
        EQUATIONS.iter().map(compared).collect()
    }

    /// Returns the datagrams for the host and for the peer that may be missing: those that a counter reports
    /// as lost since `base`.
    pub(super) fn excused(&self, base: &Self) -> [u64; 2] {
        let lost = |of: &Self| {
            let Run { nic_in, host_in, nic_out, host_out, overload, .. } = of.run;
            [
                nic_in.ring_drops + overload + host_out.dropped_frames + of.host_not_taken,
                host_in.ring_drops + nic_out.dropped_frames + of.peer_not_taken,
            ]
        };
        let ([host, peer], [host_base, peer_base]) = (lost(self), lost(base));
        [host - host_base, peer - peer_base]
    }
}

/// Returns the complaint about datagrams, of which `excused` frames were counted as lost; `None` if all are
/// accounted for.
pub(super) fn complaint(what: &str, report: &DatagramReport, excused: u64) -> Option<String> {
    let missing = report.sent - report.received;
    let said = if report.wrong > 0 {
        format!("{} arrived with a wrong byte", report.wrong)
    } else if report.repeated > 0 {
        format!("{} arrived twice", report.repeated)
    } else if missing > excused {
        format!("{missing} are missing, and only {excused} frames were counted as lost")
    } else {
        return None;
    };
    Some(format!("of {} datagrams for the {what} {said}", report.sent))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Makes consistent counts: 100 frames to the host in 10 deliveries with 5 lost, 20 frames to the nic,
    /// and a server.
    fn counts() -> Counts {
        let ends = |received, sent| Ends { received, sent, sent_bytes: 0 };
        let given = Given::default();
        Counts {
            peer: ends(24, 105),
            // Segmentation adds four segments to those that rxo sent.
            nic: Ends { sent_bytes: 5_000 + 4 * 66, ..ends(105, 24) },
            tap: ends(10, 8),
            run: Run {
                nic_in: Taken { packets: 100, ring_drops: 5 },
                host_in: Taken { packets: 8, ring_drops: 0 },
                host_out: Given { frames: 98, deliveries: 10, dropped_frames: 1, ..given },
                nic_out: Given { frames: 20, bytes: 5_000, segments_added: 12, ..given },
                overload: 1,
                unaccounted: 0,
            },
            wire: ends(7, 9),
            serve: Serve {
                nic_in: Taken { packets: 9, ring_drops: 0 },
                nic_out: Given { frames: 7, ..given },
            },
            ..Counts::default()
        }
    }

    fn broken(counts: &Counts) -> Vec<&'static str> {
        let compared = counts.compare(&Counts::default());
        compared.iter().filter(|one| !one.holds()).map(|one| one.what).collect()
    }

    #[test]
    fn everything_adds_up() {
        assert_eq!(broken(&counts()), [""; 0]);
        let base = counts();
        assert!(counts().compare(&base).iter().all(|one| (one.left, one.right) == (0, 0)));
    }

    #[test]
    fn one_frame_that_nobody_counts_is_found_wherever_it_vanishes() {
        type Case = (fn(&mut Counts), &'static str);
        let cases: [Case; 9] = [
            (|c| c.peer.sent += 1, "sent by the peer"),
            (|c| c.run.nic_in.ring_drops -= 1, "received by the nic"),
            (|c| c.run.overload -= 1, "taken by rxo = sent to the host"),
            (|c| c.tap.received -= 1, "deliveries of rxo"),
            (|c| c.tap.sent += 1, "sent by the TAP"),
            (|c| c.run.nic_out.bytes -= 60, "bytes sent to the nic"),
            (|c| c.peer.received -= 1, "sent by the nic = received by the peer"),
            (|c| c.serve.nic_in.packets -= 1, "sent to the server"),
            (|c| c.run.unaccounted += 1, "unaccounted"),
        ];
        for (change, what) in cases {
            let mut counts = counts();
            change(&mut counts);
            let broken = broken(&counts);
            assert!(broken.len() == 1 && broken[0].starts_with(what), "{what}: {broken:?}");
        }
    }

    #[test]
    fn missing_datagrams_need_an_excuse() {
        let report = DatagramReport { sent: 10, received: 7, ..DatagramReport::default() };
        assert_eq!(counts().excused(&Counts::default()), [7, 0]);
        assert_eq!(complaint("host", &report, 3), None);
        let said = complaint("host", &report, 2).unwrap();
        assert_eq!(
            said,
            "of 10 datagrams for the host 3 are missing, and only 2 frames were counted as lost"
        );
        let twice = DatagramReport { repeated: 1, ..report };
        assert!(complaint("host", &twice, 9).unwrap().contains("twice"));
        let wrong = DatagramReport { wrong: 1, ..report };
        assert!(complaint("host", &wrong, 9).unwrap().contains("wrong byte"));
    }

    #[test]
    fn a_counter_that_is_not_there_is_named() {
        let answer = json!({ "nic_in": { "packets": 1 } });
        let said = serde_json::from_value::<Serve>(answer).unwrap_err().to_string();
        assert!(said.contains("ring_drops"), "{said}");
    }
}
