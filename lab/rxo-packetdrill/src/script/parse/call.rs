//! Parses calls: `write(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)`.

use super::super::lexer::Kind;
use super::super::{Call, Value};
use super::{Parser, ScriptError};
use crate::abi;

impl Parser {
    pub(super) fn call(&mut self) -> Result<Call, ScriptError> {
        let mut until = None;
        if self.peek() == Some(&Kind::Ellipsis) {
            self.at += 1;
            until = Some(self.duration()?);
        }
        let name = self.word("the name of a call")?;
        self.sign('(')?;
        let arguments = self.values(')')?;
        self.sign('=')?;
        let result = self.value(0)?;
        let error = match self.peek().cloned() {
            Some(Kind::Word(error)) => {
                self.at += 1;
                Some(error)
            }
            _ => None,
        };
        self.note()?;
        Ok(Call { until, name, arguments, result, error })
    }

    /// Skips a note in brackets, such as the meaning of an error.
    fn note(&mut self) -> Result<(), ScriptError> {
        if self.takes('(') {
            while !self.takes(')') {
                self.next().ok_or_else(|| self.expected(")"))?;
            }
        }
        Ok(())
    }

    /// Parses values up to and including `close`.
    fn values(&mut self, close: char) -> Result<Vec<Value>, ScriptError> {
        self.values_at(close, 0)
    }

    fn values_at(&mut self, close: char, depth: u8) -> Result<Vec<Value>, ScriptError> {
        let mut values = Vec::new();
        while !self.takes(close) {
            if !values.is_empty() {
                self.sign(',')?;
            }
            values.push(self.value(depth)?);
        }
        Ok(values)
    }

    fn value(&mut self, depth: u8) -> Result<Value, ScriptError> {
        if depth > DEEPEST {
            return Err(self.expected("fewer brackets inside each other"));
        }
        match self.next() {
            Some(Kind::Ellipsis) => Ok(Value::Any),
            Some(Kind::Text(text)) => Ok(Value::Text(text)),
            Some(Kind::Sign('[')) => self.values_at(']', depth + 1).map(Value::List),
            // `{..., 1000}`: a piece of a scattered buffer.
            Some(Kind::Sign('{')) if self.peek() == Some(&Kind::Ellipsis) => {
                self.values_at('}', depth + 1).map(Value::List)
            }
            Some(Kind::Sign('{')) => self.fields(depth + 1).map(Value::Fields),
            Some(Kind::Integer(_) | Kind::Word(_)) => {
                self.at -= 1;
                self.sum().map(Value::Number)
            }
            _ => Err(self.expected_before("a value")),
        }
    }

    /// Parses numbers or names joined by `|`, such as `O_RDWR|O_NONBLOCK`.
    fn sum(&mut self) -> Result<i64, ScriptError> {
        let mut sum = 0;
        loop {
            sum |= match self.next() {
                Some(Kind::Integer(number)) => number,
                Some(Kind::Word(name)) => {
                    abi::symbol(&name).ok_or_else(|| self.expected_before("a known name"))?
                }
                _ => return Err(self.expected_before("a number or a name")),
            };
            if !self.takes('|') {
                return Ok(sum);
            }
        }
    }

    /// Parses fields up to `}`, such as `fd=3, events=POLLIN}`.
    fn fields(&mut self, depth: u8) -> Result<Vec<(String, Value)>, ScriptError> {
        let mut fields = Vec::new();
        while !self.takes('}') {
            if !fields.is_empty() {
                self.sign(',')?;
            }
            let name = self.word("the name of a field")?;
            // `msg_iov(1)`: the number is ignored, because the list itself shows it.
            self.note()?;
            self.sign('=')?;
            fields.push((name, self.value(depth)?));
        }
        Ok(fields)
    }
}

/// Deepest nesting of brackets. Every level uses stack.
const DEEPEST: u8 = 8;
