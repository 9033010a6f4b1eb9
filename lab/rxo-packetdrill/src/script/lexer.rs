//! Turns text into tokens.

use super::parse::ScriptError;

/// A token, and the line on which it begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) line: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// An integer such as `12`, `-1` or `0x1f`.
    Integer(i64),
    /// A decimal number such as `.5` or `1.25`, in millionths.
    Millionths(i64),
    /// A word of letters, digits and underscores.
    Word(String),
    /// A text in double quotes.
    Text(String),
    /// A shell command in backticks.
    Command(String),
    /// Code between `%{` and `}%`.
    Code(String),
    /// An option such as `--name`.
    Option(String),
    /// The sign `...`.
    Ellipsis,
    /// Any other character.
    Sign(char),
}

/// Splits all of `text` into tokens.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ScriptError> {
    let mut lexer = Lexer { rest: text, line: 1 };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blank()?;
        let line = lexer.line;
        match lexer.next()? {
            Some(kind) => tokens.push(Token { line, kind }),
            None => return Ok(tokens),
        }
    }
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<Option<Kind>, ScriptError> {
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let kind = match first {
            '"' => Kind::Text(self.quoted('"')?),
            '`' => Kind::Command(self.quoted('`')?),
            '%' if self.rest.starts_with("%{") => {
                Kind::Code(self.until("%{", "}%", "code without its end: }%")?.to_owned())
            }
            '.' if self.rest.starts_with("...") => {
                self.take(3);
                Kind::Ellipsis
            }
            '-' if self.rest.starts_with("--") => self.option(),
            _ => match self.number()? {
                Some(number) => number,
                None if is_word(first) => Kind::Word(self.take_while(is_word).to_owned()),
                None => {
                    self.take(first.len_utf8());
                    Kind::Sign(first)
                }
            },
        };
        Ok(Some(kind))
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) -> Result<(), ScriptError> {
        loop {
            self.take_while(char::is_whitespace);
            if self.rest.starts_with("//") {
                self.take_while(|c| c != '\n');
            } else if self.rest.starts_with("/*") {
                self.until("/*", "*/", "comment without its end: */")?;
            } else {
                return Ok(());
            }
        }
    }

    fn option(&mut self) -> Kind {
        self.take(2);
        Kind::Option(self.take_while(is_word).to_owned())
    }

    /// Consumes the text from `open` to `close`, and returns the part between.
    fn until(
        &mut self,
        open: &str,
        close: &'static str,
        missing: &'static str,
    ) -> Result<&'a str, ScriptError> {
        let line = self.line;
        self.take(open.len());
        let end = self.rest.find(close).ok_or(ScriptError::new(line, missing))?;
        let inside = self.take(end);
        self.take(close.len());
        Ok(inside)
    }

    /// Consumes and returns the text between two `quote` characters. A backslash protects the next character,
    /// or continues the line.
    fn quoted(&mut self, quote: char) -> Result<String, ScriptError> {
        let line = self.line;
        self.take(quote.len_utf8());
        let mut text = String::new();
        let mut characters = self.rest.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => {
                    let kept = characters.next().map(|(_, kept)| kept);
                    text.extend(kept.map(|kept| if kept == '\n' { ' ' } else { kept }));
                }
                end if end == quote => {
                    self.take(at + end.len_utf8());
                    return Ok(text);
                }
                other => text.push(other),
            }
        }
        Err(ScriptError::new(line, "quotes without their end"))
    }

    /// Consumes a number; `None` if there is none, or the digits begin a word.
    fn number(&mut self) -> Result<Option<Kind>, ScriptError> {
        let unsigned = self.rest.strip_prefix('-').unwrap_or(self.rest);
        let sign_bytes = self.rest.len() - unsigned.len();
        let digits = prefix(unsigned, |c| c.is_ascii_digit());
        let fraction = unsigned[digits.len()..].strip_prefix('.');
        let fraction = fraction.map_or("", |rest| prefix(rest, |c| c.is_ascii_digit()));
        let sign = if sign_bytes == 0 { 1 } else { -1 };
        if !fraction.is_empty() {
            let bytes = sign_bytes + digits.len() + 1 + fraction.len();
            let millionths = self.millionths(digits, fraction)?;
            self.take(bytes);
            return Ok(Some(Kind::Millionths(sign * millionths)));
        }
        if sign_bytes == 0 && unsigned.starts_with("0x") {
            return self.hexadecimal().map(Some);
        }
        let word = prefix(unsigned, is_word);
        if digits.is_empty() || word.len() > digits.len() {
            return Ok(None);
        }
        let value: i64 = digits.parse().map_err(|_| self.too_large())?;
        self.take(sign_bytes + digits.len());
        Ok(Some(Kind::Integer(sign * value)))
    }

    fn hexadecimal(&mut self) -> Result<Kind, ScriptError> {
        let error = self.too_large();
        let word = self.take_while(is_word);
        i64::from_str_radix(&word[2..], 16).map(Kind::Integer).map_err(|_| error)
    }

    /// Converts to millionths. Digits of a fraction after the sixth are ignored.
    fn millionths(&self, digits: &str, fraction: &str) -> Result<i64, ScriptError> {
        let whole: i64 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| self.too_large())? };
        let part: i64 = format!("{:0<6.6}", fraction).parse().map_err(|_| self.too_large())?;
        let scaled = whole.checked_mul(1_000_000).and_then(|scaled| scaled.checked_add(part));
        scaled.ok_or_else(|| self.too_large())
    }

    fn too_large(&self) -> ScriptError {
        ScriptError::new(self.line, "a number that cannot be read")
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let part = prefix(self.rest, is_part);
        self.take(part.len())
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
}

fn prefix(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    &text[..end]
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}
