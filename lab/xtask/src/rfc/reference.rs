//! Parses the requirements that a test's documentation names: `RFC 9293, section 3.8.6.3 (MUST-40, SHLD-18)`.

/// A reference to one RFC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) rfc: u16,
    /// All sections that the reference names.
    pub(super) sections: Vec<String>,
    /// The requirements that it names: by the RFC's own numbers, or by a section and our letter.
    pub(super) ids: Vec<Id>,
}

/// The name of a requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Id {
    /// `MUST-40`: unique in its RFC.
    Number(String),
    /// `section 5.2 (a)`: unique in its section.
    Letter { section: String, letter: String },
}

/// Returns all references in `text`, one for each `RFC NUMBER`.
pub(super) fn references(text: &str) -> Vec<Reference> {
    let parts = text.split("RFC ").skip(1);
    parts.filter_map(reference).collect()
}

fn reference(text: &str) -> Option<Reference> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let rfc = text.get(..digits)?.parse().ok()?;
    let mut reader = Reader {
        found: Reference { rfc, sections: Vec::new(), ids: Vec::new() },
        mode: Mode::Prose,
    };
    text.get(digits..)?.split_whitespace().for_each(|word| reader.read(word));
    Some(reader.found)
}

struct Reader {
    found: Reference,
    mode: Mode,
}

/// The kind of name that the parser expects next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Prose,
    Section,
    /// Numbers with this prefix; after the word `to` the next number ends a range.
    Number {
        prefix: &'static str,
        last: Option<u16>,
        is_range: bool,
    },
}

impl Reader {
    fn read(&mut self, word: &str) {
        let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let ends = word.ends_with([':', ';', '.']);
        if bare.eq_ignore_ascii_case("section") || bare.eq_ignore_ascii_case("sections") {
            self.mode = Mode::Section;
        } else if let Some((prefix, number)) = numbered(bare) {
            self.number(prefix, number);
        } else if !self.goes_on(word, bare) {
            self.mode = Mode::Prose;
        }
        if ends {
            self.mode = Mode::Prose;
        }
    }

    /// Returns `true` if `word` continues the current reference: another number, a letter, or a word that
    /// joins them.
    fn goes_on(&mut self, word: &str, bare: &str) -> bool {
        match self.mode.clone() {
            Mode::Prose => false,
            Mode::Section => self.section(word, bare),
            Mode::Number { prefix, last, .. } if bare == "to" => {
                self.mode = Mode::Number { prefix, last, is_range: true };
                true
            }
            Mode::Number { prefix, last, is_range } => match (bare.parse::<u16>(), last) {
                (Ok(number), Some(last)) if is_range => {
                    (last + 1..=number).for_each(|number| self.number(prefix, number));
                    true
                }
                (Ok(number), _) => {
                    self.number(prefix, number);
                    true
                }
                // `3.1 (MUST-4) and 3.2 (MUST-64)`
                _ if bare.contains('.') => self.section(word, bare),
                _ => bare == "and",
            },
        }
    }

    fn section(&mut self, word: &str, bare: &str) -> bool {
        let is_number = bare.starts_with(|letter: char| letter.is_ascii_digit())
            && bare.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
        if is_number {
            self.found.sections.push(bare.to_owned());
            self.mode = Mode::Section;
            return true;
        }
        let is_letter = bare.len() == 1 && word.ends_with([')', ',', ':', '.']);
        if let (true, Some(section)) = (is_letter, self.found.sections.last()) {
            let letter = bare.to_owned();
            self.found.ids.push(Id::Letter { section: section.clone(), letter });
            return true;
        }
        bare == "and" || bare == "to"
    }

    fn number(&mut self, prefix: &'static str, number: u16) {
        self.found.ids.push(Id::Number(format!("{prefix}{number}")));
        self.mode = Mode::Number { prefix, last: Some(number), is_range: false };
    }
}

fn numbered(word: &str) -> Option<(&'static str, u16)> {
    let prefix = ["MUST-", "SHLD-", "REC-"].into_iter().find(|prefix| word.starts_with(prefix))?;
    Some((prefix, word.strip_prefix(prefix)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        let name = |id: &Id| match id {
            Id::Number(number) => number.clone(),
            Id::Letter { section, letter } => format!("{section}{letter}"),
        };
        let one = |found: Reference| {
            let ids: Vec<String> = found.ids.iter().map(name).collect();
            format!("{} {} {}", found.rfc, found.sections.join("+"), ids.join("+"))
        };
        references(text).into_iter().map(one).collect()
    }

    #[test]
    fn sections_and_numbers_are_read() {
        let rows = [
            ("RFC 9293, section 3.8.6.3 (MUST-40): in time", "9293 3.8.6.3 MUST-40"),
            ("RFC 9293, section 3.8.4 (MUST-24 to 26)", "9293 3.8.4 MUST-24+MUST-25+MUST-26"),
            ("RFC 9293, section 3.7.1 (MUST-14, 15, SHLD-5)", "9293 3.7.1 MUST-14+MUST-15+SHLD-5"),
            ("RFC 9293, sections 3.1 (MUST-4) and 3.2 (MUST-64)", "9293 3.1+3.2 MUST-4+MUST-64"),
            ("RFC 9293, sections 3.7.4 and 3.8.6.", "9293 3.7.4+3.8.6 "),
            ("RFC 9438, section 4.6: to 0.7 of the window", "9438 4.6 "),
            ("RFC 5681, section 3.2, step 3 of 5", "5681 3.2 "),
            ("RFC 5961, section 5.2 (a, b): what 3 do", "5961 5.2 5.2a+5.2b"),
            ("RFC 2018, sections 3 (a) and 4 (c).", "2018 3+4 3a+4c"),
            ("RFC 3522 and 4015: a word", "3522  "),
        ];
        for (text, expected) in rows {
            assert_eq!(said(text), [expected], "{text}");
        }
        assert_eq!(said("RFC 6528, section 3 (RFC 9293 MUST-9)"), ["6528 3 ", "9293  MUST-9"]);
        assert!(said("no such thing").is_empty());
    }
}
