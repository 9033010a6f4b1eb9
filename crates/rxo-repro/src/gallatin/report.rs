//! Everything that was found: text for people, JSON for machines.

use serde::Serialize;

use super::claims;
use super::plan::Plan;
use super::statement::Statement;
use super::table::Table;
use crate::machine::Machine;
use crate::wrap::wrapped;

/// The paper's experiment, repeated.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) tables: Vec<Table>,
    /// What the paper says, and whether it is so here.
    statements: Vec<Statement>,
    machine: Machine,
    /// How it was done.
    notes: Vec<String>,
    /// The drawings that were written.
    pub(super) files: Vec<String>,
    /// Why this is not everything.
    pub(super) partial: Option<String>,
}

impl Report {
    pub(super) fn new(plan: &Plan, tables: Vec<Table>, machine: Machine) -> Self {
        let (statements, notes) = (claims::all(&tables), notes(plan));
        Self { tables, statements, machine, notes, files: Vec::new(), partial: None }
    }

    /// Whether every byte of every transfer arrived as it was sent.
    pub(super) fn is_intact(&self) -> bool {
        self.tables.iter().flat_map(|table| &table.rows).all(|row| row.hash_ok)
    }

    /// The tables, the statements, and how it was done.
    pub(super) fn text(&self) -> String {
        let mut parts: Vec<String> = self.tables.iter().map(Table::text).collect();
        parts.extend(self.statements.iter().map(Statement::text));
        parts.push(self.notes.iter().map(|note| wrapped(note)).collect::<Vec<_>>().join("\n"));
        if !self.files.is_empty() {
            parts.push(format!("Written: {}", self.files.join(", ")));
        }
        parts.extend(self.partial.iter().map(|why| format!("Partial: {why}.")));
        parts.push(self.machine.to_string());
        parts.join("\n\n")
    }
}

fn notes(plan: &Plan) -> Vec<String> {
    let Plan { connections, rounds, duration, .. } = plan;
    vec![
        format!(
            "Medians of {rounds} rounds of {} s with {connections} connection{}, least and most in \
             brackets. The sending host stands on one core with rxo, the receiver on another.",
            duration.as_secs_f64(),
            if *connections == 1 { "" } else { "s" }
        ),
        "us/KB: processor time of the sending host's threads, rxo and ksoftirqd for 1,024 bytes of \
         payload. ACKs in and their deliveries to the host's stack are of all rounds together, as \
         the kernel counts them."
            .to_owned(),
        "The kernel's row pays for no second receive path in user space; what its interrupts do \
         while no thread runs stands in nobody's account (JSON: core_s_per_gb)."
            .to_owned(),
    ]
}
