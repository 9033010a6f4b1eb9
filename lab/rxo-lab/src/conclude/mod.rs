//! Figures and claims as data: an experiment measures tables of rows, and its book says what follows from them.
//!
//! A book (`claims/*.json`) has [`expression`]s over the rows: the value of each claim and the sentences about it
//! ([`template`]), and the lines of each figure ([`chart`]). They are evaluated here ([`scope`]), so that an
//! experiment in Rust is its cases and their measurement.

mod chart;
mod expression;
mod scope;
mod template;

use anyhow::Result;
use serde_json::{Map, Value};

use self::scope::Scope;
use self::template::fill;
use crate::claim::{Book, Claim, Derivation, Said};
use crate::figure::Figure;

/// Returns the figures and the claims of `book` over the rows that were measured. What is missing is left out.
///
/// # Errors
/// If an expression of the book cannot be evaluated, which would be a bug.
pub(crate) fn conclude(
    book: &'static Book,
    measured: &Map<String, Value>,
) -> Result<(Vec<Figure>, Vec<Claim>)> {
    let scope = Scope::new(book, measured);
    let claims = book.claims.iter().map(|said| claim(&scope, said));
    let claims: Vec<Claim> = claims.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let of = |id: &String| {
        let found = claims.iter().find(|claim| claim.id() == id).cloned();
        found.or_else(|| Some(Claim::unmeasured(book.claims.iter().find(|said| said.id == *id)?)))
    };
    let mut figures = Vec::new();
    for drawing in &book.drawings {
        if let Some(figure) = chart::draw(&scope, drawing)? {
            figures
                .push(Figure { claims: drawing.claims.iter().filter_map(of).collect(), ..figure });
        }
    }
    Ok((figures, claims))
}

/// Returns the claim `said` with its value; `None` if it has none.
fn claim(scope: &Scope<'_>, said: &Said) -> Result<Option<Claim>> {
    let Some(Derivation { value, detail, because, undecided }) = &said.ours else {
        return Ok(None);
    };
    let Some(ours) = scope.point(value)? else { return Ok(None) };
    let filled = |template: &Option<String>| match template {
        Some(template) => fill(scope, template),
        None => Ok(None),
    };
    let mut claim = Claim::new(&said.id, Some(ours), filled(detail)?);
    if let Some(because) = filled(because)? {
        claim = claim.because(|| because);
    }
    if let Some((above, why)) = undecided
        && scope.point(above)?.is_some_and(|above| above.value > 0.0)
        && let Some(why) = fill(scope, why)?
    {
        claim = claim.undecided(why);
    }
    Ok(Some(claim))
}

#[cfg(test)]
mod tests;
