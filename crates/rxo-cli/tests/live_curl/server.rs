//! A running `rxo serve` in a private network, the directory that it serves, and `curl` as its client.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use rxo_testbed::Lab;
use rxo_testbed::traffic::Pattern;
use serde_json::Value;

/// The server on the lab's wire. Drop kills it and removes its directory.
pub(crate) struct Server {
    pub(crate) lab: Lab,
    /// Set if clients run in the server's namespace, at the other end of its TAP or TUN.
    is_local: bool,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    folder: PathBuf,
}

impl Server {
    /// Serves a directory with these files, whose modification times are old, and waits until the server is
    /// ready. A secret file is beside the directory.
    pub(crate) fn start(name: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start_on(WIRE, name, files)
    }

    /// Like [`Server::start`], with additional flags.
    pub(crate) fn start_with(flags: &str, name: &str, files: &[(&str, &[u8])]) -> Self {
        Self::start_on(&format!("{WIRE} {flags}"), name, files)
    }

    /// Like [`Server::start`], on a TAP or TUN, with the kernel of the server's namespace at its other end.
    pub(crate) fn start_local(kind: &str, files: &[(&str, &[u8])]) -> Self {
        let flags = format!("--nic {kind}:rxo0 --ip 10.77.0.2/24");
        let mut server = Self::start_on(&flags, kind, files);
        server.is_local = true;
        let interface = server.lab.host().interface("rxo0");
        interface.add_address("10.77.0.1".parse().unwrap(), 24).unwrap();
        server
    }

    fn start_on(flags: &str, name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = std::env::temp_dir().join(format!("rxo-curl-{}-{name}", std::process::id()));
        // Remains of a killed run.
        _ = fs::remove_dir_all(&folder);
        let www = folder.join("www");
        fs::create_dir_all(&www).unwrap();
        fs::write(folder.join("secret"), "the secret").unwrap();
        for (name, bytes) in files {
            fs::write(www.join(name), bytes).unwrap();
            let file = File::options().write(true).open(www.join(name)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        }
        let lab = Lab::through().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rxo"));
        command.arg("serve").arg(&www).arg("--json").args(flags.split_whitespace());
        command.stdout(Stdio::piped()).stderr(File::create(folder.join(NOTES)).unwrap());
        let mut child = lab.host().run(|| command.spawn()).unwrap().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().expect("rxo did not start").unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(first["addresses"][0], "10.77.0.2:80");
        Self { lab, is_local: false, child, lines, folder }
    }

    /// Returns a path for a file that a client downloads.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Runs curl with these arguments where the clients are. Returns its exit code and standard output.
    pub(crate) fn curl(&self, words: &str) -> (i32, Vec<u8>) {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "60"]);
        command.args(words.split_whitespace()).stderr(Stdio::inherit());
        let clients = if self.is_local { self.lab.host() } else { self.lab.peer() };
        let output = clients.run(|| command.output()).unwrap().unwrap();
        (output.status.code().unwrap(), output.stdout)
    }

    /// Runs curl, which must succeed, and returns its output as text.
    pub(crate) fn said(&self, words: &str) -> String {
        let (code, output) = self.curl(words);
        assert_eq!(code, 0, "curl {words}");
        String::from_utf8(output).unwrap()
    }

    /// Returns the server's resident memory, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        1_024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    }

    /// Waits until the server has printed these words on standard error.
    pub(crate) fn wait_for_note(&self, words: &str) {
        let begin = Instant::now();
        while !self.notes().contains(words) {
            assert!(begin.elapsed() < TIMEOUT, "no {words:?} in {:?}", self.notes());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn notes(&self) -> String {
        fs::read_to_string(self.folder.join(NOTES)).unwrap_or_default()
    }

    /// The directory that is served.
    pub(crate) fn www(&self) -> PathBuf {
        self.folder.join("www")
    }

    /// Ends the server with SIGTERM, and returns the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        let command = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }

    /// Returns the next line of the access log.
    pub(crate) fn next_access(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        eprint!("{}", self.notes());
        // After a failure the server may have already ended.
        _ = self.child.kill();
        _ = self.child.wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns bytes without repetition, so that a missing or duplicated part is detected.
pub(crate) fn bytes(length: usize) -> Vec<u8> {
    Pattern::of_port(80).file(length)
}

/// The file with the server's standard error.
const NOTES: &str = "notes";
const TIMEOUT: Duration = Duration::from_secs(60);
const WIRE: &str = "--nic packet:wire0 --ip 10.77.0.2/24 --ip fd77::2/64";
