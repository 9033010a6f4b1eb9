//! The page section on the savings of coalescing at other rates.

use super::table::{Cell, Drawing, Part, Section, Table};
use crate::figure::{Axis, Figure, Guide, Series, number};
use crate::projection::Projection;
use crate::words::percent;

/// Returns the section on savings at other rates, two figures with tables; `None` if no costs were given.
pub(super) fn section(projection: Option<&Projection>) -> Option<Section> {
    let projection = projection?;
    Some(Section {
        id: "projection",
        title: "At other rates",
        text: vec![gain(projection), costs(projection)],
        code: Vec::new(),
        drawings: vec![Drawing::of(&over_rate(projection)), Drawing::of(&over_k(projection))],
        tables: vec![rates(projection), steps(projection)],
    })
}

fn gain(projection: &Projection) -> String {
    let Projection { saved, one_core_without_gbit_per_s, one_core_with_gbit_per_s, .. } =
        projection;
    let what = if *saved >= 0.0 {
        format!("saves {} of the processor time", percent(*saved))
    } else {
        format!("costs {} more processor time than it saves", percent(-*saved))
    };
    format!(
        "With {} packets per delivery coalescing {what} of receiving. One core is full at {} \
         Gbit/s without it and at {} Gbit/s with it.",
        number(projection.packets_per_delivery),
        number(*one_core_without_gbit_per_s),
        number(*one_core_with_gbit_per_s)
    )
}

fn costs(projection: &Projection) -> String {
    let Projection { packet_ns, byte_ns, device_ns, coalesce_ns, packet_bytes, costs_from, .. } =
        projection;
    format!(
        "A model, not a measurement: {} ns for a packet that the stack handles, {} ns for a byte, \
         {} ns for taking a packet from the device, {} ns for coalescing it ({costs_from}); packets of {} bytes as in this traffic.",
        number(*packet_ns),
        number(*byte_ns),
        number(*device_ns),
        number(*coalesce_ns),
        number(*packet_bytes)
    )
}

fn over_rate(projection: &Projection) -> Figure {
    let line = |name: &str, cores: fn(&crate::projection::Point) -> f64| {
        Series::line(
            name,
            projection.points.iter().map(|point| (point.rate_gbit_per_s, cores(point))),
        )
    };
    let rates = projection.points.iter().map(|point| point.rate_gbit_per_s);
    Figure::new(
        "Cores busy with receiving over the rate",
        Axis::logarithmic("Gbit/s on the wire").ticks(rates),
        Axis::logarithmic("cores busy"),
    )
    .with(line("without coalescing", |point| point.cores_without).colour(1))
    .with(line("with coalescing", |point| point.cores_with).colour(0))
    .guide(Guide::Y(1.0, "one core".into()))
    .describe(gain(projection))
}

/// Returns the figure of processor time by packets per delivery: Menon's figure 11, for the measured machine and the
/// packets of the capture.
fn over_k(projection: &Projection) -> Figure {
    let points = projection.steps.iter().map(|step| (step.packets_per_delivery, step.packet_ns));
    let k = projection.packets_per_delivery;
    Figure::new(
        "Processor time of a packet over packets per delivery: x + y/k",
        Axis::linear("packets per delivery"),
        Axis::linear("ns per packet"),
    )
    .with(Series::line("x + y/k", points))
    .guide(Guide::X(k, format!("this traffic, {}", number(k))))
    .guide(Guide::Y(projection.fixed_ns, "x: what coalescing cannot change".into()))
    .describe(format!(
        "A packet costs {} ns with one packet per delivery and {} ns with {}; below {} ns it \
         cannot fall.",
        number(projection.fixed_ns + projection.divided_ns),
        number(projection.with_ns),
        number(k),
        number(projection.fixed_ns)
    ))
}

fn rates(projection: &Projection) -> Part {
    let rows = projection.points.iter().map(|point| {
        let cell = |value: f64| Cell::number(number(value), value);
        vec![cell(point.rate_gbit_per_s), cell(point.cores_without), cell(point.cores_with)]
    });
    let heads = ["#Gbit/s", "#cores without coalescing", "#cores with it"];
    Table::new(&heads, rows.collect()).behind("Cores over the rate as a table")
}

fn steps(projection: &Projection) -> Part {
    let rows = projection.steps.iter().map(|step| {
        let cell = |value: f64| Cell::number(number(value), value);
        vec![cell(step.packets_per_delivery), cell(step.packet_ns)]
    });
    Table::new(&["#packets per delivery", "#ns per packet"], rows.collect())
        .behind("Time over packets per delivery as a table")
}
