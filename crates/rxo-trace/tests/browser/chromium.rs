//! A headless Chromium, controlled over a pipe (DevTools protocol, NUL-terminated messages).
//!
//! It starts with a profile of its own in an empty folder. Dropping it ends all its processes and
//! removes the folder, so nothing is left behind.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The name of the program, as Debian has it.
pub(crate) const PROGRAM: &str = "chromium";

/// The message that explains how to install the browser.
pub(crate) const REMEDY: &str =
    "chromium is not installed; `sudo apt-get install -y chromium` adds it";

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    folder: PathBuf,
    session: Option<String>,
    last_id: u64,
    /// The events of the page since it was opened, in order.
    pub(crate) events: Vec<Value>,
}

/// Returns `true` if the program is in `PATH`.
pub(crate) fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(PROGRAM).is_file())
}

impl Browser {
    /// Starts the browser and opens an empty page.
    pub(crate) fn start() -> Self {
        assert!(is_installed(), "{REMEDY}");
        let folder = own_folder();
        fs::create_dir_all(&folder).unwrap();
        // The protocol uses descriptors 3 and 4, which only a shell can set up without unsafe code. With
        // `exec`, the started process is the browser itself.
        let script = format!("exec {PROGRAM} \"$@\" 3<&0 4>&1 </dev/null >/dev/null");
        let mut process = Command::new("sh")
            .args(["-c", &script, PROGRAM])
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .env("HOME", &folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(folder.join("stderr")).unwrap())
            .spawn()
            .unwrap();
        let (send, from) = mpsc::channel();
        let messages = BufReader::new(process.stdout.take().unwrap()).split(0);
        thread::spawn(move || {
            for message in messages.map_while(Result::ok) {
                let value = serde_json::from_slice(&message).unwrap();
                if send.send(value).is_err() {
                    break;
                }
            }
        });
        let to = process.stdin.take();
        let mut browser =
            Self { process, to, from, folder, session: None, last_id: 0, events: Vec::new() };
        browser.open_page();
        browser
    }

    /// Shows `path` in a window of this width and colour scheme (`light` or `dark`), and waits
    /// until it is loaded. Forgets earlier events.
    pub(crate) fn show(&mut self, path: &Path, width: u32, scheme: &str) {
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", &json!({ "media": "", "features": [feature] }));
        let metrics = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let url = format!("file://{}", path.display());
        let answer = self.load("Page.navigate", &json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{answer}");
    }

    /// Makes a call that loads a page, and waits until it is loaded. Forgets earlier events.
    pub(crate) fn load(&mut self, method: &str, arguments: &Value) -> Value {
        self.events.clear();
        let answer = self.call(method, arguments);
        self.wait_for("Page.loadEventFired");
        answer
    }

    /// Returns the value of a JavaScript expression on the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let arguments = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", &arguments);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Clicks with the mouse in the middle of the element that the CSS selector finds.
    pub(crate) fn click(&mut self, selector: &str) {
        let middle = self.value(&format!(
            "(() => {{ const e = document.querySelector({selector:?}); \
             e.scrollIntoView({{ block: 'center', inline: 'center', behavior: 'instant' }}); \
             const r = e.getBoundingClientRect(); \
             return [r.x + r.width / 2, r.y + r.height / 2]; }})()"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1
            });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Makes a call of the protocol, on the page if there is one.
    pub(crate) fn call(&mut self, method: &str, arguments: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": arguments });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).unwrap();
        to.flush().unwrap();
        let answer = self.until(method, |message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    fn open_page(&mut self) {
        let target = self.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", &attached);
        self.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), &json!({}));
        }
    }

    fn wait_for(&mut self, event: &str) {
        if !self.events.iter().any(|message| message["method"] == event) {
            let message = self.until(event, |message| message["method"] == event);
            self.events.push(message);
        }
    }

    /// Returns the next message for which `wanted` returns true. The others are kept as events.
    fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(message) = self.from.recv_timeout(left) else {
                let said = fs::read_to_string(self.folder.join("stderr")).unwrap_or_default();
                panic!("{PROGRAM} did not answer {what} within {TIMEOUT:?}; it said: {said}");
            };
            if wanted(&message) {
                return message;
            }
            self.events.push(message);
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser exits at the end of the pipe. The result does not depend on how long that takes.
        self.to = None;
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while Instant::now() < deadline && matches!(self.process.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
        _ = self.process.kill();
        _ = self.process.wait();
        // The helper processes end with the browser. One that hangs is identified by our folder in its
        // command line.
        while Instant::now() < deadline + EXIT_TIMEOUT && !helpers(&self.folder).is_empty() {
            thread::sleep(Duration::from_millis(20));
        }
        for helper in helpers(&self.folder) {
            _ = Command::new("kill").args(["-KILL", &helper]).status();
        }
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the numbers of the processes that have `folder` in their command line.
pub(crate) fn helpers(folder: &Path) -> Vec<String> {
    let folder = folder.as_os_str().as_encoded_bytes();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = processes.filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.windows(folder.len()).any(|part| part == folder)
    });
    ours.filter_map(|process| process.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .collect()
}

/// Returns the folder of this process's browser.
pub(crate) fn own_folder() -> PathBuf {
    std::env::temp_dir().join(format!("rxo-browser-{}", std::process::id()))
}

/// A trusted page needs no sandbox, and root cannot use one.
const FLAGS: [&str; 11] = [
    "--headless",
    "--remote-debugging-pipe",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
];

/// Time limit for each answer; a busy machine may need long to start a browser.
const TIMEOUT: Duration = Duration::from_secs(60);
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
