//! Explains the figures of the demo in one plain sentence.

use super::path::Path;
use super::row::Row;
use crate::stats::share_of;
use crate::wrap::count;

/// Returns a sentence that compares the path through rxo with the other paths of the run, including figures
/// in which rxo is worse.
pub(crate) fn sentence(rows: &[Row]) -> String {
    let of = |path| rows.iter().find(|row| row.path == path);
    let (Some(rxo), Some(gro), Some(single), Some(batched)) =
        (of(Path::Rxo), of(Path::KernelGroOn), of(Path::WritePerFrame), of(Path::None))
    else {
        return "Not every path was measured, so there is nothing to compare.".to_owned();
    };
    if rows.iter().any(|row| !row.hash_ok) {
        return "Bytes arrived that were not sent: the figures mean nothing until that is found."
            .to_owned();
    }
    let connections = match rxo.connections {
        1 => "one connection".to_owned(),
        many => format!("{many} connections"),
    };
    let floor = of(Path::Floor).map_or_else(String::new, |floor| {
        format!(
            " A bare loop in place of rxo is at {} the throughput; rxo takes {:.2} times its CPU time.",
            share_of(floor.gbit_per_s, rxo.gbit_per_s),
            rxo.cpu_s_per_gb / floor.cpu_s_per_gb,
        )
    });
    format!(
        "With {connections} rxo hands the host {:.0} packets at a time, and a byte costs {} with a \
         write per frame and {} with batched writes and no coalescing; next to the kernel's own \
         GRO it is at {} the throughput for {:.2} times the CPU time, and a request and \
         its response take {} than without coalescing.{floor}",
        rxo.segments_per_aggregate,
        compared(rxo.cpu_s_per_gb, single.cpu_s_per_gb),
        compared(rxo.cpu_s_per_gb, batched.cpu_s_per_gb),
        share_of(rxo.gbit_per_s, gro.gbit_per_s),
        rxo.cpu_s_per_gb / gro.cpu_s_per_gb,
        delay(rxo.rr_p50_us - batched.rr_p50_us),
    )
}

/// Returns a phrase that compares the processor time `ours` with `theirs`.
fn compared(ours: f64, theirs: f64) -> String {
    if ours <= theirs {
        format!("{:.1} times less CPU time than", theirs / ours)
    } else {
        format!("{:.1} times as much CPU time as", ours / theirs)
    }
}

fn delay(difference_us: f64) -> String {
    let time = count(difference_us.abs().round() as usize, "microsecond");
    if difference_us >= 0.5 {
        format!("{time} longer")
    } else if difference_us <= -0.5 {
        format!("{time} less")
    } else {
        "no longer".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{CpuParts, Sample};
    use super::*;
    use crate::losses::Losses;

    fn row(path: Path, gbit_per_s: f64, cpu_s_per_gb: f64, rr_p50_us: f64) -> Row {
        let sample = Sample {
            gbit_per_s,
            cpu_s_per_gb,
            deliveries_per_1000_packets: 1_000.0,
            segments_per_aggregate: if path == Path::Rxo { 25.0 } else { 1.0 },
            hold_us: None,
            rr_per_s: 1e6 / rr_p50_us,
            rr_p50_us,
            cpu_parts: CpuParts::default(),
            losses: Losses::default(),
            hash_ok: true,
        };
        Row::of(path, 1, &[sample]).unwrap()
    }

    fn rows(ours: f64) -> Vec<Row> {
        vec![
            row(Path::KernelGroOff, 13.0, 1.0, 60.0),
            row(Path::KernelGroOn, 12.0, 0.8, 60.0),
            row(Path::WritePerFrame, 4.0, 2.4, 80.0),
            row(Path::None, 8.0, 1.5, 80.0),
            row(Path::Rxo, 12.0, ours, 82.0),
        ]
    }

    #[test]
    fn a_gain_is_told_as_one() {
        assert_eq!(
            sentence(&rows(1.0)),
            "With one connection rxo hands the host 25 packets at a time, and a byte costs 2.4 \
             times less CPU time than with a write per frame and 1.5 times less CPU time than with \
             batched writes and no coalescing; next to the kernel's own GRO it is at 100 % of the \
             throughput for 1.25 times the CPU time, and a request and its response take 2 \
             microseconds longer than without coalescing."
        );
    }

    #[test]
    fn one_microsecond_is_no_plural() {
        let rows = [(1.2, "1 microsecond longer"), (-1.0, "1 microsecond less")];
        for (difference_us, text) in rows {
            assert_eq!(delay(difference_us), text);
        }
        assert_eq!((delay(2.0), delay(0.4)), ("2 microseconds longer".into(), "no longer".into()));
    }

    #[test]
    fn a_loss_is_not_dressed_up() {
        let text = sentence(&rows(3.0));
        assert!(text.contains("1.2 times as much CPU time as with a write per frame"), "{text}");
        assert!(text.contains("and 2.0 times as much CPU time as with batched"), "{text}");
    }

    #[test]
    fn wrong_bytes_outweigh_every_figure() {
        let mut rows = rows(1.0);
        rows[0].hash_ok = false;
        assert!(sentence(&rows).starts_with("Bytes arrived that were not sent"));
    }

    #[test]
    fn a_path_left_out_is_not_compared() {
        assert!(sentence(&rows(1.0)[..4]).starts_with("Not every path"));
    }
}
