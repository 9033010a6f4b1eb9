//! Evaluates expressions over the measurements of one run. Pure.
//!
//! Every value is a list of JSON values: a measurement that is missing is an empty one, and so is whatever
//! follows from it. An object with a median, a least and a most value is a number with its range, which
//! survives arithmetic with numbers that have none.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::expression::{Condition, Expression, Step, Word, parse};
use super::functions::{self, Point, combined, flat, point, text};
use crate::claim::Book;

/// The names that expressions can use: measurements, the book's tables and definitions, and variables.
#[derive(Clone)]
pub(super) struct Scope<'m> {
    pub(super) book: &'static Book,
    measured: &'m Map<String, Value>,
    variables: Map<String, Value>,
    /// The names of the tables that expressions have read; shared by all scopes made from one.
    read: Rc<RefCell<BTreeSet<String>>>,
}

/// A row, and the values of an expression over its fields.
type OfRow = (Map<String, Value>, Vec<Value>);

impl<'m> Scope<'m> {
    pub(super) fn new(book: &'static Book, measured: &'m Map<String, Value>) -> Self {
        Self { book, measured, variables: Map::new(), read: Rc::default() }
    }

    /// Returns the names of the tables that expressions have read.
    pub(super) fn tables(&self) -> BTreeSet<String> {
        self.read.borrow().clone()
    }

    /// Returns this scope with more variables.
    pub(super) fn with(&self, variables: impl IntoIterator<Item = (String, Value)>) -> Self {
        let mut scope = self.clone();
        scope.variables.extend(variables);
        scope
    }

    /// Returns the values of the expression `text`.
    ///
    /// # Errors
    /// If `text` is no expression, or names a table, a definition or a function that does not exist.
    pub(super) fn values(&self, text: &str) -> Result<Vec<Value>> {
        parse(text).and_then(|parsed| self.evaluate(&parsed)).with_context(|| {
            format!("claims/{}.json: the expression `{text}`", self.book.experiment)
        })
    }

    /// Returns the number that the expression `text` is; `None` if it is missing.
    pub(super) fn point(&self, text: &str) -> Result<Option<Point>> {
        Ok(point(&self.values(text)?).filter(|point| point.value.is_finite()))
    }

    /// Returns the numbers that the expression `text` is.
    pub(super) fn numbers(&self, text: &str) -> Result<Vec<f64>> {
        Ok(self.values(text)?.iter().filter_map(Point::of).map(|point| point.value).collect())
    }

    pub(super) fn evaluate(&self, expression: &Expression) -> Result<Vec<Value>> {
        Ok(match expression {
            Expression::Number(number) => vec![Value::from(*number)],
            Expression::Text(text) => vec![Value::from(text.as_str())],
            Expression::Name(name) => flat(self.root(name)?),
            Expression::Of(root, steps) => {
                let begin = self.evaluate(root)?;
                steps.iter().fold(begin, |values, step| self.step(values, step))
            }
            Expression::Binary(operator, sides) => {
                let [left, right] = &**sides;
                combined(*operator, &self.evaluate(left)?, &self.evaluate(right)?)
            }
            Expression::Call(name, arguments) => self.call(name, arguments)?,
        })
    }

    fn root(&self, root: &Word) -> Result<Vec<Value>> {
        let name = match root {
            Word::Variable(name) => {
                return Ok(self.variables.get(name).cloned().into_iter().collect());
            }
            Word::Plain(name) => name,
        };
        if let Some(table) = self.measured.get(name) {
            self.read.borrow_mut().insert(name.clone());
            return Ok(vec![table.clone()]);
        }
        match self.book.tables.get(name) {
            Some(table) => Ok(vec![table.clone()]),
            None => bail!("there is no table {name}"),
        }
    }

    fn step(&self, values: Vec<Value>, step: &Step) -> Vec<Value> {
        match step {
            Step::Field(word) => {
                let Some(name) = self.word(word) else { return Vec::new() };
                let name = text(&name);
                flat(values.iter().filter_map(|value| value.get(&name)).cloned().collect())
            }
            Step::Where(conditions) => values
                .into_iter()
                .filter(|row| conditions.iter().all(|condition| self.holds(row, condition)))
                .collect(),
        }
    }

    /// Returns the value of a word; `None` for a variable that is not bound.
    fn word(&self, word: &Word) -> Option<Value> {
        match word {
            Word::Plain(text) => Some(Value::from(text.as_str())),
            Word::Variable(name) => self.variables.get(name).cloned(),
        }
    }

    fn holds(&self, row: &Value, Condition { field, operator, value }: &Condition) -> bool {
        let found = field.split('.').try_fold(row, |row, name| row.get(name));
        let Some(wanted) = self.word(value) else { return false };
        let found = text(found.unwrap_or(&Value::Null));
        let wanted = text(&wanted);
        let numbers = found.parse::<f64>().ok().zip(wanted.parse::<f64>().ok());
        let is_equal = numbers.map_or(found == wanted, |(one, other)| one == other);
        match *operator {
            "=" => is_equal,
            "!=" => !is_equal,
            "<=" => numbers.is_some_and(|(one, other)| one <= other),
            ">=" => numbers.is_some_and(|(one, other)| one >= other),
            "<" => numbers.is_some_and(|(one, other)| one < other),
            _ => numbers.is_some_and(|(one, other)| one > other),
        }
    }

    fn call(&self, name: &str, arguments: &[Expression]) -> Result<Vec<Value>> {
        match (name, arguments) {
            ("each", [rows, of]) => {
                let all = self.by_row(rows, of)?.into_iter().map(|(_, values)| values);
                return Ok(all.collect::<Vec<_>>().concat());
            }
            ("most", [rows, of]) => {
                let all = self.by_row(rows, of)?.into_iter();
                let all = all.filter_map(|(row, values)| Some((row, point(&values)?.value)));
                let most = all.max_by(|(_, one), (_, other)| one.total_cmp(other));
                return Ok(most.into_iter().map(|(row, _)| Value::Object(row)).collect());
            }
            ("either", all) => {
                let all = all.iter().map(|of| self.evaluate(of)).collect::<Result<Vec<_>>>()?;
                return Ok(all.into_iter().find(|it| !it.is_empty()).unwrap_or_default());
            }
            ("values", [objects]) => {
                let objects = self.evaluate(objects)?;
                let values = objects.iter().filter_map(Value::as_object).flat_map(Map::values);
                return Ok(flat(values.cloned().collect()));
            }
            _ => {}
        }
        let given = arguments.iter().map(|of| self.evaluate(of)).collect::<Result<Vec<_>>>()?;
        let Some((parameters, of)) = self.definition(name) else {
            return functions::apply(name, &given);
        };
        let named = parameters.zip(given);
        let bound = named.filter_map(|(name, values)| Some((name, values.into_iter().next()?)));
        self.with(bound).values(of)
    }

    /// Returns the values of `of` for each of `rows`, whose fields are variables.
    fn by_row(&self, rows: &Expression, of: &Expression) -> Result<Vec<OfRow>> {
        let rows = self.evaluate(rows)?.into_iter().filter_map(|row| match row {
            Value::Object(fields) => Some(fields),
            _ => None,
        });
        rows.map(|row| Ok((row.clone(), self.with(row).evaluate(of)?))).collect()
    }

    /// Returns the parameters and the expression of a definition, which is written as `name(a b)`.
    fn definition(
        &self,
        name: &str,
    ) -> Option<(impl Iterator<Item = String> + use<>, &'static str)> {
        let book = self.book;
        book.define.iter().find_map(|(head, of)| {
            let parameters = head.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
            let parameters: Vec<_> = parameters.split_whitespace().map(str::to_owned).collect();
            Some((parameters.into_iter(), of.as_str()))
        })
    }
}
