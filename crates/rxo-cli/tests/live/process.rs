//! `rxo` as a process in a private network.

use std::io::{BufRead, BufReader, Lines, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rxo_testbed::Namespace;
use serde_json::Value;

/// Time limit for a single step of a process, on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A running `rxo run --json` or `rxo card --json`, killed on drop.
pub(crate) struct Rxo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Rxo {
    /// Starts `rxo run --json` with `flags` in `namespace`, and waits for its first line, the configuration,
    /// which it prints when it is ready.
    pub(crate) fn start(namespace: &Namespace, flags: &str) -> (Self, Value) {
        Self::start_with(namespace, flags, &[])
    }

    /// Starts `rxo card --json` with `flags`, and waits like [`Rxo::start`].
    pub(crate) fn start_card(namespace: &Namespace, flags: &str) -> (Self, Value) {
        let child = spawn(namespace, &format!("card --json {flags}"));
        Self::begun(child).unwrap_or_else(|said| panic!("rxo did not start: {said}"))
    }

    /// Starts a run like [`Rxo::start`], with `variables` in the environment.
    pub(crate) fn start_with(
        namespace: &Namespace,
        flags: &str,
        variables: &[(&str, &Path)],
    ) -> (Self, Value) {
        let mut command = command(&format!("run --json {flags}"));
        command.envs(variables.iter().copied());
        Self::started(namespace, command)
    }

    /// Starts `rxo guest --json` with `flags`, and waits like [`Rxo::start`].
    pub(crate) fn guests(namespace: &Namespace, flags: &str) -> (Self, Value) {
        Self::started(namespace, command(&format!("guest --json {flags}")))
    }

    /// Starts `rxo guest --json` like [`Rxo::guests`], under this soft limit of open files.
    pub(crate) fn guests_within(
        namespace: &Namespace,
        flags: &str,
        open_files: u32,
    ) -> (Self, Value) {
        let limited = format!("ulimit -Sn {open_files}; exec \"$0\" \"$@\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &limited, crate::PROGRAM, "guest", "--json"]);
        shell.args(flags.split_whitespace()).stdin(Stdio::piped());
        shell.stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::started(namespace, shell)
    }

    fn started(namespace: &Namespace, mut command: Command) -> (Self, Value) {
        let child = namespace.run(|| command.spawn()).unwrap().unwrap();
        Self::begun(child).unwrap_or_else(|said| panic!("rxo did not start: {said}"))
    }

    /// Waits until a child process `rxo run --json` is ready; `None` if it ends instead.
    pub(crate) fn from_child(child: Child) -> Option<(Self, Value)> {
        Self::begun(child).ok()
    }

    /// Returns the process and its first line, or its standard error if it ended.
    fn begun(mut child: Child) -> Result<(Self, Value), String> {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let Some(first) = lines.next() else { return Err(finish(child).1) };
        let configuration = serde_json::from_str(&first.unwrap()).unwrap();
        Ok((Self { child, lines }, configuration))
    }

    /// Returns the next line, parsed as JSON.
    pub(crate) fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Sends the signal of this name.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.id());
    }

    /// Waits until all signals sent to the process have been taken: meanwhile the kernel merges equal pending
    /// signals.
    pub(crate) fn took_signals(&self) {
        wait_until("a signal is taken", || !has_pending_signals(self.id()));
    }

    /// Returns the process id of the keeper, which waits for the worker, and restores what the worker
    /// changed.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the process id of the worker.
    pub(crate) fn worker(&self) -> u32 {
        worker_of(self.id()).unwrap()
    }

    /// Returns the process id of the restorer, which outlives both others.
    pub(crate) fn restorer(&self) -> u32 {
        processes()
            .find(|&number| parent(number) == Some(self.id()) && name(number) == "rxo-restorer")
            .unwrap()
    }

    /// Sends the worker the signal of this name.
    pub(crate) fn signal_worker(&self, name: &str) {
        signal(name, self.worker());
    }

    /// Asserts that the process has not ended; the message is its standard error.
    pub(crate) fn assert_running(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            let mut said = String::new();
            self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("rxo has ended ({status}): {said}");
        }
    }

    /// Waits until the process ends. Returns its exit code, the unread lines, and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Value>, String) {
        let lines: Vec<Value> =
            self.lines.by_ref().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), lines, said)
    }
}

impl Drop for Rxo {
    fn drop(&mut self) {
        // The process has already ended if a caller waited for it.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A process that keeps a network namespace alive, killed on drop.
pub(crate) struct Sleeping(Child);

impl Sleeping {
    /// Starts a process in `namespace` that does nothing.
    pub(crate) fn start(namespace: &Namespace) -> Self {
        let sleep = || Command::new("sleep").arg("600").spawn();
        Self(namespace.run(sleep).unwrap().unwrap())
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Returns the worker of `keeper`, if it exists yet.
pub(crate) fn worker_of(keeper: u32) -> Option<u32> {
    processes().find(|&number| parent(number) == Some(keeper) && !cleans_up(number))
}

/// Returns `true` if a process only waits for the end of a command, to restore an interface or remove its sockets.
fn cleans_up(process: u32) -> bool {
    ["rxo-restorer", "rxo-remover"].contains(&name(process).as_str())
}

/// Returns the name of a process as `ps` shows it; empty after it has ended.
fn name(process: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Returns the ids of all processes.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn signal(name: &str, process: u32) {
    let command = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
}

fn has_pending_signals(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap();
    u64::from_str_radix(pending.trim(), 16).unwrap() != 0
}

/// Returns the parent of a process: the second field after the name in parentheses.
fn parent(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Runs `rxo` with `line` in `namespace` to its end, which must come within [`LONG`].
pub(crate) fn run(namespace: &Namespace, line: &str) -> Output {
    run_within(namespace, line, LONG)
}

/// Like [`run`], with the time limit `long`.
pub(crate) fn run_within(namespace: &Namespace, line: &str, long: Duration) -> Output {
    let child = spawn(namespace, line);
    let id = child.id();
    let (tell, hear) = mpsc::channel();
    // The output is read during the run, because it may not fit into a pipe.
    thread::spawn(move || tell.send(child.wait_with_output()));
    if let Ok(output) = hear.recv_timeout(long) {
        return output.unwrap();
    }
    let killed = Command::new("sh").args(["-c", &format!("kill -KILL {id}")]).status();
    let output = hear.recv().unwrap().unwrap();
    panic!("rxo {line} did not end ({killed:?}): {}", String::from_utf8_lossy(&output.stderr));
}

/// Waits until `is_so`; fails after [`LONG`].
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "waited too long: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Starts `rxo` with `line` in `namespace`, with a pipe as its standard input.
pub(crate) fn spawn(namespace: &Namespace, line: &str) -> Child {
    namespace.run(|| command(line).spawn()).unwrap().unwrap()
}

pub(crate) fn command(line: &str) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    command.args(line.split_whitespace()).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A process that uses a processor until it is dropped.
pub(crate) struct Busy(Child);

impl Busy {
    /// Starts a program that should limit its own processor time in case this process is killed.
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
