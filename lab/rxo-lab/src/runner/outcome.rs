//! The results of one experiment.

use anyhow::Result;
use rxo_demo::turns::Turns;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::claim::{Claim, Fact, book};
use crate::figure::Figure;
use crate::missing::Missing;

/// An experiment: a plan that can be measured.
pub(crate) trait Experiment {
    /// Checks for programs, and installs what private networks could not reach later.
    ///
    /// # Errors
    /// If a program is missing; the message names the remedy.
    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of measurements that the experiment makes.
    ///
    /// # Errors
    /// If an input of the experiment is missing.
    fn steps(&self) -> Result<usize>;

    /// Runs all measurements. If the user interrupts, returns the results so far.
    ///
    /// # Errors
    /// If a network cannot be built, or a transfer breaks.
    fn measure(&self, turns: &Turns<'_>) -> Result<Outcome>;

    /// Returns `true` if the experiment needs network namespaces.
    fn needs_networks(&self) -> bool {
        true
    }
}

/// The results of one experiment.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The figures, each with the claims that it decides.
    pub(crate) figures: Vec<Figure>,
    /// Claims that no figure shows.
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
    /// Makes an outcome of figures and of the measurements behind them.
    ///
    /// # Errors
    /// If `measured` is no object of JSON, which would be a bug.
    pub(crate) fn new(figures: Vec<Figure>, measured: &impl Serialize) -> Result<Self> {
        let measured = match serde_json::to_value(measured)? {
            Value::Object(map) => map,
            other => Map::from_iter([("values".to_owned(), other)]),
        };
        Ok(Self { figures, measured, ..Self::default() })
    }

    /// Adds everything of `other`.
    pub(crate) fn and(mut self, other: Self) -> Self {
        let Self { figures, claims, facts, missing, measured, damage } = other;
        self.figures.extend(figures);
        self.claims.extend(claims);
        self.facts.extend(facts);
        self.missing.extend(missing);
        self.measured.extend(measured);
        Self { damage: self.damage.or(damage), ..self }
    }

    pub(crate) fn claims(self, claims: Vec<Claim>) -> Self {
        Self { claims, ..self }
    }

    pub(crate) fn facts(self, facts: Vec<Fact>) -> Self {
        Self { facts, ..self }
    }

    pub(crate) fn missing(self, missing: Missing) -> Self {
        Self { missing: missing.into_reasons(), ..self }
    }

    /// Adds the damage unless every byte arrived as it was sent.
    pub(crate) fn intact(self, is_intact: bool) -> Self {
        let damage = "bytes arrived that were not sent; please report this with the results";
        Self { damage: (!is_intact).then(|| damage.to_owned()), ..self }
    }

    /// Returns every claim of the experiment, in the order of its book: those of the figures, the others, and
    /// those without a measurement. Verdicts that depend on time are withheld if `busy` gives a reason.
    ///
    /// # Errors
    /// If a claim was measured, or a figure drawn, that the book does not have, which would be a bug.
    pub(crate) fn all_claims(&self, id: &str, busy: Option<&str>) -> Result<Vec<Claim>> {
        let of_figures = self.figures.iter().flat_map(|figure| &figure.claims);
        let measured: Vec<&Claim> = of_figures.chain(&self.claims).collect();
        if let Some(unknown) = measured.iter().find(|claim| claim.is_unknown()) {
            anyhow::bail!("claims/{id}.json does not have the claim {}", unknown.id());
        }
        let has_words = |figure: &&Figure| {
            book(id).is_some_and(|book| book.figures.contains_key(figure.number))
        };
        if let Some(figure) = self.figures.iter().find(|figure| !has_words(figure)) {
            anyhow::bail!("claims/{id}.json does not have the figure {}", figure.number);
        }
        let of = |said: &crate::claim::Said| {
            let found = measured.iter().find(|claim| claim.id() == said.id);
            found.map_or_else(|| Claim::unmeasured(said), |claim| (*claim).clone())
        };
        let mut claims: Vec<Claim> =
            book(id).into_iter().flat_map(|book| &book.claims).map(of).collect();
        if let Some(why) = busy {
            claims.iter_mut().for_each(|claim| claim.withhold(why));
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Status;

    #[test]
    fn claims_without_a_measurement_are_listed_too() {
        let claim = Claim::new("gallatin.table1.saving", Some(20.0), None);
        let outcome = Outcome::default().claims(vec![claim]);
        let all = outcome.all_claims("gallatin", None).unwrap();
        assert_eq!(all.len(), book("gallatin").unwrap().claims.len());
        assert_eq!((all[0].status(), all[1].status()), (Status::Exceeds, Status::NotRepeated));
        let busy = outcome.all_claims("gallatin", Some("A neighbour was busy.")).unwrap();
        assert_eq!((busy[0].status(), busy[1].status()), (Status::NoVerdict, Status::NotRepeated));
    }

    #[test]
    fn a_claim_that_no_book_has_is_an_error() {
        let outcome = Outcome::default().claims(vec![Claim::new("gallatin.typo", Some(1.0), None)]);
        let error = outcome.all_claims("gallatin", None).unwrap_err().to_string();
        assert_eq!(error, "claims/gallatin.json does not have the claim gallatin.typo");
    }
}
