//! Turns tokens into events.
//!
//! `time.rs`, `packet.rs` and `call.rs` each parse one part of an event. This file has the shared parser and
//! the structure of a script.

mod call;
mod packet;
mod time;

use super::lexer::{Kind, Token, tokens};
use super::{Action, Event, Script};

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct ScriptError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the found and the expected text.
    pub what: String,
}

impl ScriptError {
    pub(super) fn new(line: usize, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

/// Parses a script: options, an optional command, then events.
pub(super) fn script(text: &str) -> Result<Script, ScriptError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let mut script = Script::default();
    while let Some(option) = parser.option()? {
        script.options.push(option);
    }
    while !parser.is_at_end() {
        script.events.push(parser.event()?);
    }
    Ok(script)
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    /// Parses an option, `--name` or `--name=value`; `None` if none comes next.
    fn option(&mut self) -> Result<Option<(String, String)>, ScriptError> {
        let Some(Kind::Option(name)) = self.peek().cloned() else { return Ok(None) };
        self.at += 1;
        if !self.takes('=') {
            return Ok(Some((name, String::new())));
        }
        let value = match self.next() {
            Some(Kind::Integer(number)) => number.to_string(),
            Some(Kind::Word(text) | Kind::Text(text)) => text,
            _ => return Err(self.expected_before("the value of an option")),
        };
        Ok(Some((name, value)))
    }

    fn event(&mut self) -> Result<Event, ScriptError> {
        let line = self.line();
        if let Some(Kind::Command(command)) = self.peek().cloned() {
            // Before the first event and after the last, a command has no time.
            self.at += 1;
            return Ok(Event { line, time: super::Time::Any, action: Action::Command(command) });
        }
        let time = self.time()?;
        let line = self.line();
        let action = match self.peek().cloned() {
            Some(Kind::Sign('<' | '>')) => self.packet()?,
            Some(Kind::Command(command)) => {
                self.at += 1;
                Action::Command(command)
            }
            Some(Kind::Code(code)) => {
                self.at += 1;
                Action::Code(code)
            }
            Some(Kind::Word(_) | Kind::Ellipsis) => Action::Call(self.call()?),
            _ => return Err(self.expected("<, >, a call, a command or code")),
        };
        Ok(Event { line, time, action })
    }

    fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn next(&mut self) -> Option<Kind> {
        let kind = self.peek().cloned();
        self.at += usize::from(kind.is_some());
        kind
    }

    /// Returns the line of the next token, or of the last one.
    fn line(&self) -> usize {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    /// Consumes `sign` if it comes next. Returns `true` if it did.
    fn takes(&mut self, sign: char) -> bool {
        let is_next = self.peek() == Some(&Kind::Sign(sign));
        self.at += usize::from(is_next);
        is_next
    }

    fn sign(&mut self, sign: char) -> Result<(), ScriptError> {
        if self.takes(sign) { Ok(()) } else { Err(self.expected(&sign.to_string())) }
    }

    /// Consumes `word` if it comes next. Returns `true` if it did.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Some(Kind::Word(next)) if next == word);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self, what: &str) -> Result<String, ScriptError> {
        match self.peek().cloned() {
            Some(Kind::Word(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// Consumes a number that fits `T`.
    fn number<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, ScriptError> {
        let Some(Kind::Integer(number)) = self.peek().cloned() else {
            return Err(self.expected(what));
        };
        let fitting = T::try_from(number).map_err(|_| self.expected(what))?;
        self.at += 1;
        Ok(fitting)
    }

    fn expected(&self, what: &str) -> ScriptError {
        let found = self.peek().map_or_else(|| "the end".to_owned(), shown);
        ScriptError::new(self.line(), format!("expected {what}, found {found}"))
    }

    /// Returns the error for the token that was consumed last.
    fn expected_before(&mut self, what: &str) -> ScriptError {
        self.at = self.at.saturating_sub(1);
        self.expected(what)
    }
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Integer(number) => number.to_string(),
        Kind::Millionths(number) => format!("{}.{:06}", number / 1_000_000, number % 1_000_000),
        Kind::Word(word) => word.clone(),
        Kind::Text(text) => format!("{text:?}"),
        Kind::Command(_) => "a command".to_owned(),
        Kind::Code(_) => "code".to_owned(),
        Kind::Option(name) => format!("--{name}"),
        Kind::Ellipsis => "...".to_owned(),
        Kind::Sign(sign) => sign.to_string(),
    }
}
