//! Counts tests in the output of `cargo test`, for the totals of a run.

/// Numbers of tests, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) passed: u64,
    pub(super) failed: u64,
    pub(super) ignored: u64,
}

impl Tally {
    /// Adds the counts in `line`, if it is the result line of a test binary.
    pub(super) fn read(&mut self, line: &str) {
        let Some((_, counts)) =
            line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let Some((number, what)) = count.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// Returns the counts in the last line of pytest, such as `2 failed, 30 passed in 4.10s`; zeros for any
    /// other line.
    pub(super) fn of_pytest(line: &str) -> Self {
        let mut tally = Self::default();
        let Some((counts, _)) = line.rsplit_once(" in ") else { return tally };
        for count in counts.split(", ") {
            let Some((number, what)) = count.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            match what {
                "passed" => tally.passed = number,
                "failed" | "error" | "errors" => tally.failed += number,
                "skipped" => tally.ignored = number,
                _ => {}
            }
        }
        tally
    }
}

/// Adds up the counts in several result lines.
impl<'l> FromIterator<&'l str> for Tally {
    fn from_iter<I: IntoIterator<Item = &'l str>>(lines: I) -> Self {
        let mut tally = Self::default();
        lines.into_iter().for_each(|line| tally.read(line));
        tally
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up() {
        let lines = [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 7 filtered out; \
             finished in 0.01s",
            "test a::test_result ... ok",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
        ];
        let tally: Tally = lines.into_iter().collect();
        assert_eq!(tally, Tally { passed: 8, failed: 2, ignored: 1 });
    }

    #[test]
    fn other_lines_do_not_count() {
        let mut tally = Tally::default();
        for line in ["3 passed; 0 failed", "test result: ", "test result: ok. x passed; failed"] {
            tally.read(line);
        }
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn the_last_line_of_pytest_is_read() {
        let counts = |passed, failed, ignored| Tally { passed, failed, ignored };
        assert_eq!(Tally::of_pytest("30 passed in 4.10s"), counts(30, 0, 0));
        assert_eq!(Tally::of_pytest("2 failed, 28 passed, 1 warning in 4.10s"), counts(28, 2, 0));
        assert_eq!(Tally::of_pytest("FAILED tests/test_a.py::b - failed in 3"), counts(0, 0, 0));
    }
}
