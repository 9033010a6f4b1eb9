//! The tables and the plot of docs/scale.md.

use std::fmt::Write;

use rxo_bench::workers::Figures;
use rxo_trace::figure::{Axis, Draw, Figure, Series};

use super::model::{COPY, Path, SERVERS, Server, WIRES, paths};

pub(super) fn markdown(figures: &Figures) -> String {
    [measured(figures), wires(figures), servers(figures)].join("\n")
}

fn measured(figures: &Figures) -> String {
    let mut text =
        "| worker | workers | ns a frame | Gbit/s of all | times one |\n|---|---|---|---|---|\n"
            .to_owned();
    for row in &figures.rows {
        let ns = row.ns_per_frame[0];
        let gbits = row.workers as f64 * figures.payload_bytes as f64 * 8.0 / ns;
        let name = if row.is_copied { "and one copy" } else { "headers only" };
        _ = writeln!(
            text,
            "| {name} | {} | {ns:.1} | {gbits:.0} | {:.2} |",
            row.workers, row.times_one
        );
    }
    text
}

fn wires(figures: &Figures) -> String {
    let mut text = "| path | CPU s/GB | bytes on the bus for each |".to_owned();
    WIRES.iter().for_each(|wire| _ = write!(text, " cores for {wire:.0} Gbit/s |"));
    text += "\n|---|---|---|---|---|---|---|\n";
    for path in paths(figures) {
        let Path { name, seconds_a_gigabyte, bus_bytes } = path;
        _ = write!(text, "| {name} | {seconds_a_gigabyte:.3} | {bus_bytes:.1} |");
        WIRES.iter().for_each(|wire| _ = write!(text, " {:.1} |", path.cores(*wire)));
        text += "\n";
    }
    text
}

fn servers(figures: &Figures) -> String {
    let mut text =
        "| cores | memory, GB/s | path | Gbit/s of the cores | Gbit/s of memory | ends it |\n|---|---|---|---|---|---|\n".to_owned();
    for server in SERVERS {
        for path in paths(figures) {
            let (cores, memory) = (path.rate(f64::from(server.cores)), path.most(server.bus()));
            let ends = if cores < memory { "cores" } else { "memory" };
            let Server { cores: count, .. } = server;
            let bus = server.bus() / 1e9;
            _ = writeln!(
                text,
                "| {count} | {bus:.0} | {} | {cores:.0} | {memory:.0} | {ends} |",
                path.name
            );
        }
    }
    let [one, all] = figures.copied_bytes_a_second.map(|rate| rate * COPY / 1e9);
    _ = writeln!(
        text,
        "\nMemory of the machine that was measured: {one:.0} GB/s for one core that copies, {all:.0} GB/s for all."
    );
    _ = writeln!(
        text,
        "It is {}. Others used {:.0} % of its processors.",
        figures.machine,
        figures.others * 100.0
    );
    text
}

/// Gbit/s by cores for each path, up to where the memory of the largest machine ends it.
pub(super) fn plot(figures: &Figures) -> String {
    let cores = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
    let bus = SERVERS.map(|server| server.bus()).into_iter().fold(0.0, f64::max);
    let axes = (Axis::logarithmic("cores"), Axis::logarithmic("Gbit/s"));
    let figure = Figure::new("Gbit/s by cores, up to the end of memory", axes.0, axes.1);
    let line = |path: Path| {
        let points = cores.map(|cores| (cores, path.rate(cores).min(path.most(bus))));
        Series::line(path.name, points)
    };
    let lines = paths(figures).map(line);
    lines.into_iter().fold(figure, Figure::with).to_svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Figures {
        serde_json::from_str(include_str!("../../../../docs/repro/scale.json")).unwrap()
    }

    #[test]
    fn the_page_has_the_tables_of_the_kept_figures() {
        let page = include_str!("../../../../docs/scale.md");
        for table in [measured(&kept()), wires(&kept()), servers(&kept())] {
            assert!(page.contains(&table), "{table}");
        }
    }

    #[test]
    fn the_plot_is_that_of_the_kept_figures() {
        assert!(
            plot(&kept()) == include_str!("../../../../docs/repro/scale.svg"),
            "run the command"
        );
    }
}
