//! Writes one figure of each kind into a folder, for inspection:
//! `cargo run -p rxo-trace --example figures -- FOLDER`.

use std::path::Path;

use rxo_trace::figure::{Axis, Bar, Draw, Figure, Guide, HeatMap, Ranking, Series};

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let write = |name: &str, svg: String| std::fs::write(Path::new(&folder).join(name), svg);
    write("bars.svg", bars().to_svg())?;
    write("lines.svg", lines().to_svg())?;
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
