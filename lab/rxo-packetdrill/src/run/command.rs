//! Shell commands of a script: `sysctl -q net.ipv4.tcp_sack=0`, `../common/defaults.sh`.
//!
//! There is no shell. Supported are sysctl(8), Google's `set_sysctls.py`, and files of such lines beside the
//! script. Commands about state that a fresh host on virtual time lacks do nothing.

use std::path::Path;

use super::{Runner, Wrong};

impl Runner {
    /// Runs each line of `command`. A file in it may name further files, up to `depth` times.
    pub(super) fn command(&mut self, command: &str, depth: u8) -> Result<(), Wrong> {
        let whole = command.replace("\\\n", " ");
        for line in whole.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words = words(line);
            let Some((program, arguments)) = words.split_first() else { continue };
            match program.as_str() {
                "sysctl" => self.sysctls(arguments)?,
                name if name.ends_with("set_sysctls.py") => self.sysctls(arguments)?,
                _ if DO_NOTHING.iter().any(|known| line.starts_with(known)) => {}
                name if name.ends_with(".sh") && depth > 0 => self.file(name, depth - 1)?,
                _ => return Err(Wrong::new(KNOWN, line)),
            }
        }
        Ok(())
    }

    /// Runs the lines of a file beside the script.
    fn file(&mut self, name: &str, depth: u8) -> Result<(), Wrong> {
        let path = self.folder.join(Path::new(name));
        let text = std::fs::read_to_string(&path).map_err(|error| {
            Wrong::new(format!("the file {}", path.display()), error.to_string())
        })?;
        self.command(&text, depth)
    }

    fn sysctls(&mut self, arguments: &[String]) -> Result<(), Wrong> {
        for setting in arguments {
            if matches!(setting.as_str(), "-q" | "-w" | "-e") {
                continue;
            }
            let (name, value) =
                setting.split_once('=').ok_or_else(|| Wrong::new("name=value", setting))?;
            let name = name.strip_prefix("/proc/sys/").unwrap_or(name);
            self.machine
                .set_sysctl(name, &evaluated(value))
                .map_err(|error| Wrong::new("a setting of this host", error.to_string()))?;
        }
        Ok(())
    }
}

/// Splits a line into words; quotes and `$((…))` protect white space. Drops comments and output redirections.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut is_quoted = false;
    for character in line.chars().chain([' ']) {
        match character {
            '"' | '\'' => is_quoted = !is_quoted,
            space if space.is_whitespace() && !is_quoted => words.push(core::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    let end = words.iter().position(|word| word.starts_with(['#', '>']));
    words.truncate(end.unwrap_or(words.len()));
    words
}

/// Replaces `$((15*1024))` with the product.
fn evaluated(value: &str) -> String {
    let mut done = String::new();
    let mut rest = value;
    while let Some((before, (inside, after))) =
        rest.split_once("$((").and_then(|(before, rest)| Some((before, rest.split_once("))")?)))
    {
        let product = inside.split('*').map(|part| part.trim().parse::<u64>().ok());
        let product = product.reduce(|all, next| all?.checked_mul(next?)).flatten();
        done += before;
        done += &product.map_or_else(|| format!("$(({inside}))"), |number| number.to_string());
        rest = after;
    }
    done + rest
}

/// Depth of files that name further files: a file named by a script may name none.
pub(super) const DEEPEST: u8 = 1;
/// Commands without effect, because each script has a new host: cached metrics, queueing disciplines, device
/// offloads, Linux's default for HyStart, and restoring settings.
const DO_NOTHING: &[&str] = &[
    "#",
    "ip tcp_metrics flush",
    "tc qdisc add dev tun0 root pfifo",
    "tc qdisc replace dev tun0 root fq",
    "ethtool -K tun0 tso",
    "echo 3 > /sys/module/tcp_cubic/parameters/hystart_detect",
    "/tmp/sysctl_restore_",
];
const KNOWN: &str =
    "`sysctl -q name=value`, or a file of such lines: there is no system here for other commands";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_together_by_quotes() {
        let words = words(r#"sysctl -q a=1  b="2 3" > /dev/null 2>&1"#);
        assert_eq!(words, ["sysctl", "-q", "a=1", "b=2 3"]);
    }

    #[test]
    fn products_are_computed() {
        assert_eq!(evaluated("4096 $((256*1024)) $((2 * 3))"), "4096 262144 6");
        assert_eq!(evaluated("$((x*2))"), "$((x*2))");
    }
}
