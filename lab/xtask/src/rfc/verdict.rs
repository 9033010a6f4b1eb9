//! Compares the requirements with the tests.

use super::reference::{Id, Reference, references};
use super::requirement::{Requirement, Standing};
use super::sources::Test;

/// The result of the comparison.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// Each requirement with the names of its tests.
    pub(super) rows: Vec<(Requirement, Vec<String>)>,
    /// The violations, one line each.
    pub(super) violations: Vec<String>,
}

impl Verdict {
    pub(super) fn new(requirements: Vec<Requirement>, tests: &[Test]) -> Self {
        let rows = requirements.into_iter().map(|requirement| (requirement, Vec::new())).collect();
        let mut verdict = Self { rows, violations: Vec::new() };
        for test in tests {
            for reference in references(&test.said) {
                verdict.take(test, &reference);
            }
        }
        verdict.find_untested();
        verdict
    }

    /// Returns the number of requirements for which `counts` is true.
    pub(super) fn count(&self, counts: impl Fn(&Standing) -> bool) -> usize {
        self.rows.iter().filter(|(requirement, _)| counts(&requirement.standing)).count()
    }

    /// Adds the test to the requirements in `reference`. An RFC that is not listed is skipped, because the
    /// endpoint need not follow it.
    fn take(&mut self, test: &Test, reference: &Reference) {
        if !self.rows.iter().any(|(requirement, _)| requirement.rfc == reference.rfc) {
            return;
        }
        for id in &reference.ids {
            self.take_id(test, reference, id);
        }
        for section in &reference.sections {
            self.credit(test, |one| {
                one.rfc == reference.rfc && one.id.is_none() && one.section == *section
            });
        }
    }

    fn take_id(&mut self, test: &Test, reference: &Reference, id: &Id) {
        let rfc = reference.rfc;
        let found = self.credit(test, |one| one.rfc == rfc && is_named(one, id));
        let name = match id {
            Id::Number(number) => number.clone(),
            Id::Letter { section, letter } => format!("section {section} ({letter})"),
        };
        match found {
            None => {
                let line = format!("{} names RFC {rfc} {name}, which is not listed", test.name);
                self.violations.push(line);
            }
            Some(section) if !reference.sections.contains(&section) => {
                let line = format!("{}: RFC {rfc} {name} stands in section {section}", test.name);
                self.violations.push(line);
            }
            Some(_) => {}
        }
    }

    /// Adds `test` to the requirement for which `is_meant` is true. Returns that requirement's section;
    /// `None` if there is no such requirement.
    fn credit(&mut self, test: &Test, is_meant: impl Fn(&Requirement) -> bool) -> Option<String> {
        let (requirement, tests) = self.rows.iter_mut().find(|(one, _)| is_meant(one))?;
        if !tests.contains(&test.name) {
            tests.push(test.name.clone());
        }
        Some(requirement.section.clone())
    }

    fn find_untested(&mut self) {
        for (requirement, tests) in &self.rows {
            if requirement.standing == Standing::Done && tests.is_empty() {
                let line = format!("{requirement} has no test: {}", requirement.asks);
                self.violations.push(line);
            }
        }
    }
}

fn is_named(requirement: &Requirement, id: &Id) -> bool {
    match id {
        Id::Number(number) => requirement.id.as_ref() == Some(number),
        Id::Letter { section, letter } => {
            requirement.id.as_ref() == Some(letter) && requirement.section == *section
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(section: &str, id: Option<&str>, standing: Standing) -> Requirement {
        let (section, id) = (section.to_owned(), id.map(str::to_owned));
        Requirement { rfc: 7, section, id, asks: "ask".to_owned(), standing }
    }

    fn judged(requirements: Vec<Requirement>, said: &[&str]) -> Verdict {
        let test = |(number, said): (usize, &&str)| Test {
            name: format!("t{number}"),
            said: (*said).to_owned(),
        };
        let tests: Vec<Test> = said.iter().enumerate().map(test).collect();
        Verdict::new(requirements, &tests)
    }

    #[test]
    fn a_requirement_that_is_done_wants_a_test() {
        let listed = || {
            vec![
                requirement("1.1", Some("MUST-1"), Standing::Done),
                requirement("1.2", Some("a"), Standing::Done),
                requirement("2", None, Standing::Done),
                requirement("3", None, Standing::Later("why".to_owned())),
            ]
        };
        assert_eq!(judged(listed(), &[]).violations.len(), 3);
        let said = ["RFC 7, section 1.1 (MUST-1).", "RFC 7, section 1.2 (a) and 2"];
        let verdict = judged(listed(), &said);
        assert_eq!(verdict.violations, [""; 0]);
        let tests: Vec<_> = verdict.rows.iter().map(|(_, tests)| tests.join(" ")).collect();
        assert_eq!(tests, ["t0", "t1", "t1", ""]);
    }

    #[test]
    fn what_does_not_exist_cannot_be_named() {
        let listed = || vec![requirement("1.1", Some("MUST-1"), Standing::Never("no".to_owned()))];
        let wrong = |said: &str| judged(listed(), &[said]).violations;
        assert_eq!(
            wrong("RFC 7, section 1.1 (MUST-2)"),
            ["t0 names RFC 7 MUST-2, which is not listed"]
        );
        assert_eq!(
            wrong("RFC 7, section 1.2 (MUST-1)"),
            ["t0: RFC 7 MUST-1 stands in section 1.1"]
        );
        assert_eq!(wrong("RFC 7, section 1.1 (b)").len(), 1);
        assert_eq!(wrong("RFC 7, section 9"), [""; 0]);
        assert_eq!(wrong("RFC 8, section 1 (b)"), [""; 0]);
    }
}
