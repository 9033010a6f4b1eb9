//! Shell commands of a script: `sysctl -q net.ipv4.tcp_sack=0`.

use super::{Runner, Wrong};

impl Runner {
    /// Runs each line of `command`. There is no shell, and sysctl is the only command.
    pub(super) fn command(&mut self, command: &str) -> Result<(), Wrong> {
        for line in command.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some(arguments) = line.strip_prefix("sysctl ") else {
                return Err(Wrong::new(KNOWN, line));
            };
            self.sysctl(arguments)?;
        }
        Ok(())
    }

    fn sysctl(&mut self, arguments: &str) -> Result<(), Wrong> {
        for setting in settings(arguments) {
            if matches!(setting.as_str(), "-q" | "-w") {
                continue;
            }
            let (name, value) =
                setting.split_once('=').ok_or_else(|| Wrong::new("name=value", &setting))?;
            self.host
                .set_sysctl(name, value)
                .map_err(|error| Wrong::new("a setting of this host", error.to_string()))?;
        }
        Ok(())
    }
}

/// Splits into words; quotes protect white space.
fn settings(arguments: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut is_quoted = false;
    for character in arguments.chars().chain([' ']) {
        match character {
            '"' | '\'' => is_quoted = !is_quoted,
            space if space.is_whitespace() && !is_quoted => words.push(core::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

const KNOWN: &str = "`sysctl -q name=value`: there is no system here for other commands";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_together_by_quotes() {
        let words = settings(r#"-q a=1  b="2 3""#);
        assert_eq!(words, ["-q", "a=1", "b=2 3"]);
    }
}
