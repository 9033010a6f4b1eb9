//! A program in a private network, which ends together with this process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use rxo_testbed::error::{Context, Result, failed};
use rxo_testbed::{Namespace, until};

/// Script of a shell between this process and the program. It ends the program when its own input closes,
/// prints the program's id first, and returns its exit code.
const KEEPER: &str =
    r#""$@" > "$0" 2>&1 & pid=$!; echo $pid; read -r _; kill -TERM $pid 2>/dev/null; wait $pid"#;

/// A running program.
#[derive(Debug)]
pub(crate) struct Process {
    keeper: Child,
    /// Input of the keeper shell. Closing it ends the program.
    leash: Option<ChildStdin>,
    id: u32,
    name: String,
    output: PathBuf,
}

impl Process {
    /// Starts `command` in `namespace`; its output goes to the file `output`.
    pub(crate) fn start(namespace: &Namespace, command: &[String], output: &Path) -> Result<Self> {
        let name = command[0].clone();
        let start = || {
            let mut keeper = Command::new("sh");
            keeper.args(["-c", KEEPER]).arg(output).args(command);
            keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        };
        let mut keeper = namespace.run(start)?.context(|| format!("cannot start {name}"))?;
        let leash = keeper.stdin.take();
        let mut line = String::new();
        let said = keeper.stdout.take().map(BufReader::new);
        said.map_or(Ok(0), |mut said| said.read_line(&mut line))
            .context(|| format!("cannot read the id of {name}"))?;
        let id = line.trim().parse().map_err(|_| failed(format!("{name} has no id")))?;
        Ok(Self { keeper, leash, id, name, output: output.to_owned() })
    }

    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Returns the program's output so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.output).unwrap_or_default()
    }

    /// Returns `true` if the program has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        let mut stat = String::new();
        let read = File::open(format!("/proc/{}/stat", self.id))
            .and_then(|mut file| file.read_to_string(&mut stat));
        read.is_ok() && !stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z"))
    }

    /// Fails if the program has ended; the error contains its output.
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.is_alive() {
            return Ok(());
        }
        let (code, said) = self.stop()?;
        Err(failed(format!("{} ended with {code}: {}", self.name, said.trim())))
    }

    /// Ends the program. Returns its exit code and its output.
    pub(crate) fn stop(&mut self) -> Result<(i32, String)> {
        self.leash = None;
        let name = self.name.clone();
        let keeper = std::cell::RefCell::new(&mut self.keeper);
        until(|| Ok(matches!(keeper.borrow_mut().try_wait(), Ok(Some(_)))))?
            .context(|| format!("{name} does not end"))?;
        let code = self.keeper.wait().ok().and_then(|status| status.code()).unwrap_or(-1);
        Ok((code, self.said()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _nobody_hears = self.stop();
    }
}
