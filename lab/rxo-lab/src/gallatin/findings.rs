//! The findings: text for people, JSON for programs.

use rxo_demo::experiment::Findings;
use rxo_demo::wrap::count;
use serde::Serialize;

use super::claims;
use super::drawing;
use super::plan::{MODERATION, Plan};
use super::table::Table;
use crate::limits::Effort;
use crate::statement::Statement;

/// The results of the repeated experiment.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    tables: Vec<Table>,
    /// The paper's statements, and whether they hold here.
    statements: Vec<Statement>,
}

impl Found {
    pub(super) fn new(tables: Vec<Table>) -> Self {
        Self { statements: claims::all(&tables), tables }
    }
}

impl Findings for Found {
    /// Returns the tables, then the statements.
    fn paragraphs(&self) -> Vec<String> {
        let tables = self.tables.iter().map(Table::text);
        tables.chain(self.statements.iter().map(Statement::text)).collect()
    }

    fn withhold(&mut self) {
        self.statements.iter_mut().for_each(Statement::withhold);
    }

    fn drawings(&self) -> Vec<(String, String)> {
        drawing::all(&self.tables)
    }

    fn is_intact(&self) -> bool {
        self.tables.iter().flat_map(|table| &table.rows).all(|row| row.hash_ok)
    }
}

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let Plan { connections, effort: Effort { rounds, duration }, .. } = plan;
    vec![
        format!(
            "Medians of {rounds} rounds of {} s with {}, least and most in brackets. The sending host \
             stands on one core with rxo, the receiver on another.",
            duration.as_secs_f64(),
            count(*connections, "connection")
        ),
        "us/KB: processor time of the sending host's threads, rxo and ksoftirqd for 1,024 bytes of \
         payload. ACKs in and their deliveries to the host's stack are of all rounds together, as \
         the kernel counts them."
            .to_owned(),
        format!(
            "Both of rxo's rows take ACKs {} us together, as from the paper's card, which moderates its \
             interrupts in all rows. The kernel's row has no card.",
            MODERATION.as_micros()
        ),
        "The kernel's row pays for no second receive path in user space; what its interrupts do \
         while no thread runs stands in nobody's account (JSON: core_s_per_gb)."
            .to_owned(),
    ]
}
