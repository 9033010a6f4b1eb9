//! The table of the findings, as it stands in docs/guests-measured.md.

use std::fmt::Write;

use super::Findings;
use super::neighbour::Seen;

const HEAD: &str = "| the guest | Gbit/s | p50, p99 in ms | lost | Gbit/s now | p50, p99 now | lost now |\n\
                    |---|---|---|---|---|---|---|\n";

pub(super) fn markdown(findings: &Findings) -> String {
    let mut text = HEAD.to_owned();
    for row in &findings.rows {
        let before = row.before.as_ref().map_or_else(|| ["-"; 3].map(str::to_owned), cells);
        let [now, before] = [cells(&row.now), before].map(|cells| cells.join(" | "));
        _ = writeln!(text, "| {} | {before} | {now} |", row.attack);
    }
    text
}

fn cells(seen: &Seen) -> [String; 3] {
    let times = match (seen.p50_ms, seen.p99_ms) {
        (Some(p50), Some(p99)) => format!("{p50:.2}, {p99:.2}"),
        _ => "-".to_owned(),
    };
    [format!("{:.2}", seen.gbits), times, format!("{:.1} %", seen.lost_percent)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_page_is_that_of_the_kept_findings() {
        let findings = include_str!("../../../../docs/repro/attacks.json");
        let findings: Findings = serde_json::from_str(findings).unwrap();
        let page = include_str!("../../../../docs/guests-measured.md");
        assert!(page.contains(&markdown(&findings)), "{}", markdown(&findings));
        let busy = format!("{:.0} %", findings.others_percent);
        assert!(page.contains(&busy), "the page says how busy the machine was: {busy}");
    }
}
