//! The savings of coalescing at other rates, as text.

use rxo_console::table::Table;

use crate::projection::Projection;

/// Formats the projection: a sentence, the costs, and a table of cores by rate.
pub(super) fn text(projection: &Projection) -> String {
    let mut table = Table::new(&["Gbit/s", "cores without coalescing", "cores with it"]);
    for point in &projection.points {
        let cores = [point.cores_without, point.cores_with].map(|cores| format!("{cores:.2}"));
        table.row([point.rate_gbit_per_s.to_string()].into_iter().chain(cores));
    }
    let Projection {
        packets_per_delivery,
        packet_bytes,
        saved,
        one_core_without_gbit_per_s,
        one_core_with_gbit_per_s,
        ..
    } = projection;
    let gain = if *saved >= 0.0 {
        format!("takes {:.0} % less processor time", 100.0 * saved)
    } else {
        format!("takes {:.0} % more processor time", -100.0 * saved)
    };
    format!(
        "At other rates (a model)\n\n{}\n\nWith {packets_per_delivery:.1} packets of \
         {packet_bytes:.0} bytes per delivery receiving {gain}.\nOne core is full at \
         {one_core_without_gbit_per_s:.1} Gbit/s without coalescing, at \
         {one_core_with_gbit_per_s:.1} Gbit/s with it.\n{}",
        table.render(),
        costs(projection)
    )
}

fn costs(projection: &Projection) -> String {
    let Projection { packet_ns, byte_ns, coalesce_ns, device_ns, costs_from, .. } = projection;
    format!(
        "Costs: {packet_ns} ns for each packet that the stack handles, {byte_ns} ns for each byte, \
         {device_ns} ns for\neach packet from the device, {coalesce_ns} ns for coalescing it \
         ({costs_from})."
    )
}
