//! The language in which a book says how values follow from measurements. Pure.
//!
//! ```text
//! costs[system=da frames_a_poll=2.55].copies    a field of the rows of a table that meet conditions
//! $system, $latency.p50_us                      a variable: of a column, a line or a row
//! share('da', 2.55)                             a definition of the book, or a function; steps may follow
//! each(costs, $copies), most(costs, $copies)    a value of each row; the row with the largest value
//! 100 * (a - b) / b                             arithmetic
//! ```
//!
//! The table is one of the measurements or of the book. A value in a condition is a word, a quoted text or a
//! variable; a field in a path may be any of these, too.

use anyhow::{Result, bail, ensure};

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Text(String),
    /// A table or a variable.
    Name(Word),
    /// Fields and rows of another expression, step by step.
    Of(Box<Self>, Vec<Step>),
    Call(String, Vec<Self>),
    Binary(char, Box<[Self; 2]>),
}

/// A name as written, or the value of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Plain(String),
    Variable(String),
}

/// A step from rows to what they contain.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Field(Word),
    Where(Vec<Condition>),
}

/// A condition on a field of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    /// The path of the field, with dots.
    pub(super) field: String,
    pub(super) operator: &'static str,
    pub(super) value: Word,
}

/// Parses `text`.
///
/// # Errors
/// If `text` is no expression; the message has the rest that cannot be read.
pub(super) fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { rest: text };
    let found = parser.sum()?;
    ensure!(parser.rest.trim().is_empty(), "`{text}`: cannot read `{}`", parser.rest);
    Ok(found)
}

struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn sum(&mut self) -> Result<Expression> {
        self.binary(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expression> {
        self.binary(&['*', '/'], Self::unary)
    }

    fn binary(
        &mut self,
        operators: &[char],
        part: fn(&mut Self) -> Result<Expression>,
    ) -> Result<Expression> {
        let mut left = part(self)?;
        while let Some(operator) = operators.iter().find(|operator| self.takes(**operator)) {
            left = Expression::Binary(*operator, Box::new([left, part(self)?]));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression> {
        if self.takes('-') {
            let of = self.unary()?;
            return Ok(Expression::Binary('-', Box::new([Expression::Number(0.0), of])));
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expression> {
        let root = self.root()?;
        let steps = self.steps()?;
        Ok(if steps.is_empty() { root } else { Expression::Of(Box::new(root), steps) })
    }

    fn root(&mut self) -> Result<Expression> {
        if self.takes('(') {
            let inner = self.sum()?;
            self.expects(')')?;
            return Ok(inner);
        }
        if self.next_is(|first| first.is_ascii_digit()) {
            let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
            return Ok(Expression::Number(digits.parse()?));
        }
        if self.next_is(|first| first == '\'') {
            return Ok(Expression::Text(self.quoted()?));
        }
        match self.word()? {
            Word::Plain(name) if self.takes('(') => Ok(Expression::Call(name, self.arguments()?)),
            name => Ok(Expression::Name(name)),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>> {
        let mut all = Vec::new();
        while !self.takes(')') {
            all.push(self.sum()?);
            if !self.takes(',') {
                self.expects(')')?;
                break;
            }
        }
        Ok(all)
    }

    fn steps(&mut self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        loop {
            if self.takes('[') {
                let mut conditions = Vec::new();
                while !self.takes(']') {
                    conditions.push(self.condition()?);
                }
                steps.push(Step::Where(conditions));
            } else if self.takes('.') {
                steps.push(Step::Field(self.word()?));
            } else {
                return Ok(steps);
            }
        }
    }

    fn condition(&mut self) -> Result<Condition> {
        self.rest = self.rest.trim_start();
        let field = self.take_while(|c| is_of_name(c) || c == '.').to_owned();
        let operator = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator));
        let Some(operator) = operator.filter(|_| !field.is_empty()) else {
            bail!("no condition begins at `{}`", self.rest);
        };
        self.rest = &self.rest[operator.len()..];
        let is_special = self.next_is(|first| "'$".contains(first));
        let value = match is_special {
            true => self.word()?,
            false => Word::Plain(self.take_while(|c| !c.is_whitespace() && c != ']').to_owned()),
        };
        Ok(Condition { field, operator, value })
    }

    /// Reads a name, a quoted text, or a variable.
    fn word(&mut self) -> Result<Word> {
        if self.takes('$') {
            return Ok(Word::Variable(self.name()?));
        }
        match self.next_is(|first| first == '\'') {
            true => Ok(Word::Plain(self.quoted()?)),
            false => Ok(Word::Plain(self.name()?)),
        }
    }

    fn name(&mut self) -> Result<String> {
        self.rest = self.rest.trim_start();
        let name = self.take_while(is_of_name);
        ensure!(!name.is_empty(), "no name begins at `{}`", self.rest);
        Ok(name.to_owned())
    }

    fn quoted(&mut self) -> Result<String> {
        self.expects('\'')?;
        let text = self.take_while(|c| c != '\'').to_owned();
        self.expects('\'')?;
        Ok(text)
    }

    fn next_is(&mut self, is: impl Fn(char) -> bool) -> bool {
        self.rest = self.rest.trim_start();
        self.rest.chars().next().is_some_and(is)
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_next = self.next_is(|first| first == wanted);
        if is_next {
            self.rest = &self.rest[wanted.len_utf8()..];
        }
        is_next
    }

    fn expects(&mut self, wanted: char) -> Result<()> {
        ensure!(self.takes(wanted), "`{wanted}` is missing before `{}`", self.rest);
        Ok(())
    }

    fn take_while(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The operators of conditions; one that another begins with stands behind that.
const OPERATORS: [&str; 6] = ["!=", "<=", ">=", "=", "<", ">"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_expression_is_named() {
        for (text, part) in [
            ("1 +", "no name begins at ``"),
            ("costs[system", "no condition begins at ``"),
            ("(1", "`)` is missing"),
            ("1 2", "cannot read `2`"),
            ("'da", "`'` is missing"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
