//! The results of one experiment.

use serde_json::{Map, Value};

use crate::claim::{Claim, Fact, book};
use crate::figure::Figure;

/// The results of one experiment.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The figures, each with the claims that it shows.
    pub(crate) figures: Vec<Figure>,
    /// All claims; empty if the experiment failed.
    pub(crate) claims: Vec<Claim>,
    /// The facts in the notes on the method, which stand in the experiment's book.
    pub(crate) facts: Vec<Fact>,
    /// The reasons why parts are missing.
    pub(crate) missing: Vec<String>,
    /// The measurements in the experiment's own form.
    pub(crate) measured: Map<String, Value>,
    /// A description of bytes that arrived wrong; `None` if every byte arrived as it was sent.
    pub(crate) damage: Option<String>,
}

impl Outcome {
    /// Returns every claim of the experiment `id`. Verdicts that depend on time are withheld for the reason that
    /// `disturbed` gives for the claim.
    pub(crate) fn all_claims(
        &self,
        id: &str,
        disturbed: impl Fn(&Claim) -> Option<String>,
    ) -> Vec<Claim> {
        let mut claims = self.claims.clone();
        if claims.is_empty() {
            let said = book(id).into_iter().flat_map(|book| &book.claims);
            claims.extend(said.map(|said| Claim::new(said, None, None)));
        }
        for claim in &mut claims {
            if let Some(why) = disturbed(claim) {
                claim.withhold(&why);
            }
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Status;
    use crate::claim::tests::claim;

    #[test]
    fn a_busy_machine_withholds_verdicts_and_a_failure_has_all_claims() {
        let claims =
            vec![claim("gallatin.table1.live", Some(20.0)), claim("gallatin.table2.live", None)];
        let outcome = Outcome { claims, ..Outcome::default() };
        let statuses = |busy: Option<&str>| -> Vec<Status> {
            let disturbed = |_: &Claim| busy.map(str::to_owned);
            outcome.all_claims("gallatin", disturbed).iter().map(Claim::status).collect()
        };
        assert_eq!(statuses(None), [Status::Exceeds, Status::NotRepeated]);
        assert_eq!(
            statuses(Some("A neighbour was busy.")),
            [Status::NoVerdict, Status::NotRepeated]
        );
        let failed = Outcome::default().all_claims("gallatin", |_| None);
        assert_eq!(failed.len(), book("gallatin").unwrap().claims.len());
        assert!(failed.iter().all(|claim| claim.status() == Status::NotRepeated));
    }
}
