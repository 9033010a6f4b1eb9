//! The counts as tables: every case with its ACK rate, on which the saving depends.

use rxo_console::numbers::grouped;
use rxo_console::table::Table;
use rxo_demo::stats::Spread;

use super::case::{Case, Way, size};
use super::category::Component;
use super::count::Cost;
use super::figures::{an_ack, find, saved_percent};
use super::live::Window;

/// Returns a table with a row for each count.
pub(super) fn requests(costs: &[Cost]) -> String {
    let mut table = Table::new(&[
        "file",
        "way",
        "ACKs/segment",
        "ACKs/request",
        "ACKs/call",
        "pure ACKs %",
        "instr/request",
        "saved %",
        "instr/ACK, receiving",
    ]);
    for cost in costs {
        let Case { way, file_bytes, acks } = cost.case;
        let stack = find(costs, Case { way: Way::Stack, file_bytes, acks });
        let saved = stack.map(|stack| saved_percent(stack.total(), cost.total()));
        let is_fast = cost.acks_a_call > 0.0;
        table.row([
            size(file_bytes),
            way.title().to_owned(),
            format!("{:.3}", cost.acks_a_segment),
            format!("{:.1}", cost.acks_a_request),
            if is_fast { format!("{:.1}", cost.acks_a_call) } else { "-".to_owned() },
            format!("{:.1}", cost.pure_acks_percent),
            grouped(cost.total().round() as u64),
            saved.map_or("-".to_owned(), |saved| format!("{saved:.1}")),
            grouped(an_ack(cost).round() as u64),
        ]);
    }
    table.render()
}

/// Returns a table of the instructions of a request by component, in thousands.
pub(super) fn components(costs: &[Cost]) -> String {
    let names = Component::ALL.map(Component::name);
    let head: Vec<&str> = ["file", "way", "ACKs/segment"].into_iter().chain(names).collect();
    let mut table = Table::new(&head);
    for cost in costs {
        let counts = cost.components.map(|count| grouped((count / 1e3).round() as u64));
        let rate = format!("{:.3}", cost.acks_a_segment);
        let head = [size(cost.case.file_bytes), cost.case.way.title().to_owned(), rate];
        table.row(head.into_iter().chain(counts));
    }
    table.render()
}

/// Returns a table of the live server's windows.
pub(super) fn live(windows: &[(Way, Vec<Window>)]) -> String {
    let mut table =
        Table::new(&["way", "us/request", "ACKs/segment", "Gbit/s", "requests", "windows"]);
    for (way, windows) in windows {
        let spread = |of: fn(&Window) -> f64, digits| {
            Spread::over(windows, of).map_or("-".to_owned(), |spread| spread.ranged(digits))
        };
        table.row([
            way.title().to_owned(),
            spread(|window| window.us_a_request, 0),
            spread(|window| window.acks_a_segment, 3),
            spread(|window| window.gbit_per_s, 2),
            grouped(windows.iter().map(|window| window.requests).sum::<f64>().round() as u64),
            windows.len().to_string(),
        ]);
    }
    table.render()
}
