//! Writes one figure of each kind into a folder, for inspection:
//! `cargo run -p rxo-trace --example figures -- FOLDER`.

use std::path::Path;

use rxo_trace::figure::{Axis, Bar, Bracket, Draw, Figure, Guide, HeatMap, Ranking, Series};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let write = |name: &str, svg: String| std::fs::write(Path::new(&folder).join(name), svg);
    write("bars.svg", bars().to_svg())?;
    write("lines.svg", lines().to_svg())?;
    write("ranges.svg", ranges().to_svg())?;
    write("stacks.svg", stacks().to_svg())?;
    write("long.svg", long().to_svg())?;
    write("ranking.svg", ranking().to_svg())?;
    write("heat.svg", heat().to_svg())
}

fn bars() -> Figure {
    let payloads = ["2 KB", "4 KB", "8 KB", "16 KB", "32 KB", "64 KB"];
    let mut figure = Figure::new(
        "Packets eliminated by payload size",
        Axis::categories("application payload", payloads),
        Axis::linear("packets eliminated of 10,000"),
    );
    for (index, connections) in [4, 8, 16].into_iter().enumerate() {
        let here = (0..6).map(|step| 5_000.0 + f64::from(step) * 500.0 - index as f64 * 100.0);
        let paper = (0..6).map(|step| 5_200.0 + f64::from(step) * 450.0 - index as f64 * 100.0);
        figure = figure
            .with(Series::bars(format!("{connections} connections"), here).colour(index))
            .with(Series::bars(format!("{connections}, paper"), paper).colour(index).reference());
    }
    figure
}

/// Returns a figure of medians with their ranges. The values at the first position of the x axis are invalid, and far
/// above the others.
fn ranges() -> Figure {
    let payloads = ["2 KB", "4 KB", "8 KB", "16 KB", "32 KB", "64 KB"];
    let levels = [
        ("Regular", [91.7, 22.3, 22.4, 23.7, 22.6, 22.6]),
        ("RSC_2", [190.0, 20.5, 20.1, 20.4, 19.3, 21.2]),
        ("RSC_3", [223.0, 22.8, 18.6, 18.9, 19.0, 19.2]),
        ("RSC_5", [210.0, 17.7, 17.2, 17.2, 17.2, 17.5]),
    ];
    let axes = (Axis::categories("payload", payloads), Axis::linear("percent of one core"));
    let figure = Figure::new("Processor time for 0.95 Gbit/s", axes.0, axes.1);
    let figure = levels.into_iter().fold(figure, |figure, (name, values)| {
        let ranges = values.map(|value| Some((value * 0.9, value * 1.15)));
        let series = Series::over_categories(name, values).ranges(ranges);
        figure.with(series.invalid([true]))
    });
    let paper = [f64::NAN, f64::NAN, 39.5, f64::NAN, f64::NAN, f64::NAN];
    figure.with(Series::over_categories("paper: Regular", paper).reference().colour(0))
}

fn stacks() -> Figure {
    let parts = [
        ("rx", [634.0, 132.0, 133.0]),
        ("tx", [487.0, 517.0, 416.0]),
        ("non-proto", [55.0, 66.0, 55.0]),
        ("driver in", [117.0, 116.0, 120.0]),
        ("driver out", [2_976.0, 3_188.0, 3_401.0]),
        ("aggr", [291.0, 242.0, 224.0]),
        ("per-byte", [832.0, 892.0, 852.0]),
        ("misc", [1_280.0, 1_414.0, 1_322.0]),
    ];
    let stacks = ["Original", "+ Receive Aggregation", "+ ACK Offload"];
    let figure = Figure::new(
        "What a packet costs, one connection",
        Axis::categories("stack", stacks),
        Axis::linear("cycles per packet"),
    );
    let figure = parts
        .into_iter()
        .fold(figure, |figure, (name, values)| figure.with(Series::stack(name, values)));
    [1_176.0, 715.0, 604.0].into_iter().enumerate().fold(figure, |figure, (place, to)| {
        figure.bracket(Bracket { x: place as f64, from: 0.0, to, name: "per packet".into() })
    })
}

fn long() -> Figure {
    let line = |factor: f64| (0..200).map(move |x| (f64::from(x), factor * f64::from(x).sqrt()));
    Figure::new("Congestion window", Axis::linear("ms"), Axis::linear("segments"))
        .with(Series::line("not coalesced", line(1_000.0)))
        .with(Series::line("coalesced", line(700.0)))
        .guide(Guide::Y(5_000.0, "enough".into()))
}

fn lines() -> Figure {
    let rates = [1.0, 2.5, 5.0, 10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0];
    let line = |name: &str, cost: f64| Series::line(name, rates.map(|rate| (rate, rate * cost)));
    Figure::new(
        "Cores busy over the rate",
        Axis::logarithmic("Gbit/s").ticks(rates),
        Axis::logarithmic("cores busy"),
    )
    .with(line("without coalescing", 0.09))
    .with(line("with coalescing", 0.03))
    .with(line("paper", 0.05).reference())
    .guide(Guide::Y(1.0, "one core".into()))
    .guide(Guide::X(25.0, "this capture".into()))
}

fn ranking() -> Ranking {
    let names = ["end_of_poll", "psh", "segment_limit", "out_of_sequence", "ack_changed"];
    let bars = names.iter().enumerate().map(|(index, name)| Bar {
        name: (*name).to_owned(),
        value: 1.0 / (index + 1) as f64,
        text: format!("{} (20 %)", 12_000 / (index + 1)),
        colour: 0,
    });
    Ranking { title: "Why aggregates ended".into(), bars: bars.collect(), ..Ranking::default() }
}

fn heat() -> HeatMap {
    HeatMap {
        title: "Packets eliminated of 10,000".into(),
        x_label: "flows".into(),
        columns: [1, 2, 3, 4, 6, 8].map(|flows| flows.to_string()).to_vec(),
        y_label: "max_bytes".into(),
        rows: ["4096", "8192", "16384", "32768"].map(str::to_owned).to_vec(),
        values: (0..24).map(|cell| 4_000.0 + f64::from(cell) * 150.0).collect(),
        ..HeatMap::default()
    }
}
