//! Figures and claims as data: an experiment measures tables of rows, and its book says what follows from them.
//!
//! A book (`claims/*.json`) has [`expression`]s over the rows: the value of each claim and the sentences about it
//! ([`template`]), and the lines of each figure ([`chart`]). They are evaluated here ([`scope`]), so that an
//! experiment in Rust is its cases and their measurement.

mod chart;
mod expression;
mod functions;
mod scope;
mod template;

use anyhow::Result;
use serde_json::{Map, Value};

use self::scope::Scope;
use self::template::fill;
use crate::claim::{Book, Claim, Derivation, Said};
use crate::figure::Figure;

/// Returns the figures of `book` over the rows that were measured, without those that would be empty, and all its claims.
///
/// # Errors
/// If an expression of the book cannot be evaluated, which would be a bug.
pub(crate) fn conclude(
    book: &'static Book,
    measured: &Map<String, Value>,
) -> Result<(Vec<Figure>, Vec<Claim>)> {
    let claims = book.claims.iter().map(|said| {
        let scope = Scope::new(book, measured);
        Ok(claim(&scope, said)?.with_tables(scope.tables()))
    });
    let claims: Vec<Claim> = claims.collect::<Result<_>>()?;
    let scope = Scope::new(book, measured);
    let mut figures = Vec::new();
    for drawing in &book.drawings {
        if let Some(figure) = chart::draw(&scope, drawing)? {
            let of = |id: &String| claims.iter().find(|claim| claim.id() == id).cloned();
            figures
                .push(Figure { claims: drawing.claims.iter().filter_map(of).collect(), ..figure });
        }
    }
    Ok((figures, claims))
}

/// Returns the claim `said` with its value, if it was measured.
fn claim(scope: &Scope<'_>, said: &Said) -> Result<Claim> {
    let unmeasured = || Claim::new(said, None, None);
    let Some(Derivation { value, detail, because, undecided }) = &said.ours else {
        return Ok(unmeasured());
    };
    let Some(ours) = scope.point(value)? else { return Ok(unmeasured()) };
    let filled = |template: &Option<String>| match template {
        Some(template) => fill(scope, template),
        None => Ok(None),
    };
    let mut claim = Claim::new(said, Some(ours.into()), filled(detail)?);
    if let Some(because) = filled(because)? {
        claim = claim.because(|| because);
    }
    if let Some((above, why)) = undecided
        && scope.point(above)?.is_some_and(|above| above.value > 0.0)
        && let Some(why) = fill(scope, why)?
    {
        claim = claim.undecided(why);
    }
    Ok(claim)
}

#[cfg(test)]
pub(crate) mod tests;
