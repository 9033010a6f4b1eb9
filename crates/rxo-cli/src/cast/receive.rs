//! `rxo cast receive`: joins the group, opens its connection to the sender, and writes the file.
//!
//! The file appears under its name when it is complete and its hash is right; until then an existing file of
//! this name remains. After that, the receiver sends a FIN, which reports to the sender that the receiver is
//! done. If anything fails, the connection is reset.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::mem::take;
use std::net::{Shutdown, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow, bail};
use rxo::live::host::{self, RunningHost, Unsettled, cast_receiver};
use rxo::tcp::Statistics;
use rxo_confine::Access;
use rxo_console::log::{self, Form};
use rxo_console::output_file::OutputFile;
use rxo_driver::wait;
use rxo_host::TcpStream;
use serde::Serialize;

use super::addresses;
use super::again::Asker;
use super::manifest::{BLOCK_BYTES, Hash, MOST_FILE_BYTES, Manifest, hexadecimal, parse_hash};
use super::stream::{self, Copied, StreamError};
use crate::control::{ControlAddresses, host_counters, serve_metrics, with_sockets_removed};
use crate::exit::{partial, usage};
use crate::flags::CastReceiveFlags;
use crate::hosting::{FastTotals, HostPlan, finish};
use crate::numbers::{gbit_per_s, grouped, parse_time, ratio, rounded};
use crate::sandbox::folders_of;
use crate::stop;

/// Receives one file, and prints the result.
///
/// # Errors
/// If a flag is invalid, the sender cannot be reached, or the file arrives incomplete.
pub(crate) fn command(flags: &CastReceiveFlags) -> Result<()> {
    let addresses = ControlAddresses::of_metrics(&flags.metrics)?;
    with_sockets_removed(&flags.host, &addresses, || receive(flags))
}

fn receive(flags: &CastReceiveFlags) -> Result<()> {
    let plan = Plan::from_flags(flags)?;
    let sockets = ControlAddresses::of_metrics(&flags.metrics)?.bind()?;
    let stop = stop::on_request()?;
    let host = plan.host.start_with(plan.files(), cast_receiver)?;
    let _read = serve_metrics(sockets, "rxo cast receive", &host_counters(host.asker()))?;
    log::begin(Form::Plain, &plan.host.nic().to_string())?;
    // A file that cannot be written must fail before the group waits for this receiver.
    let output = plan.out.as_deref().map(Output::create).transpose()?;
    let receiver = Receiver { plan: &plan, host: &host, stop: Arc::clone(&stop) };
    let outcome = receiver.connect().and_then(|stream| {
        let received = receiver.receive(&stream, output);
        received.inspect_err(|_| stream.abort())
    });
    finish(host, &stop, outcome)
}

struct Plan {
    host: HostPlan,
    source: SocketAddr,
    group: SocketAddr,
    out: Option<PathBuf>,
    wait: Duration,
    /// The hash that the manifest must have (`--root`); `None` if any sender is accepted.
    root: Option<Hash>,
    json: bool,
}

impl Plan {
    fn from_flags(flags: &CastReceiveFlags) -> Result<Self> {
        let host = HostPlan::from_flags(&flags.host)?;
        let (source, group) = addresses::channel(&flags.source, &flags.group)?;
        if !host.addresses().any(|ip| ip.is_ipv4() == source.is_ipv4()) {
            let version = if source.is_ipv4() { "IPv4" } else { "IPv6" };
            return Err(usage(format!("{source}: no --ip is of {version}; add one that is")));
        }
        let wait = parse_time(&flags.wait)
            .ok_or_else(|| usage(format!("--wait {}: give a time such as 30s", flags.wait)))?;
        let root = flags.root.as_deref().map(|text| {
            let wrong =
                || usage(format!("--root {text}: give the 64 digits that the sender prints"));
            parse_hash(text).ok_or_else(wrong)
        });
        let (root, out) = (root.transpose()?, flags.out.clone());
        Ok(Self { host, source, group, out, wait, root, json: flags.json })
    }

    /// Returns the paths that the process opens for the received file, and the kind of access. They are the
    /// file's folder, where the complete file is renamed, or the pipe or device itself.
    fn files(&self) -> Vec<(PathBuf, Access)> {
        let is_stream = |out: &Path| out.metadata().is_ok_and(|found| !found.is_file());
        let paths = match self.out.as_deref() {
            None => vec![".".into()],
            Some(out) if out == Path::new("-") => Vec::new(),
            Some(out) if is_stream(out) => vec![out.to_owned()],
            Some(out) => folders_of([out]),
        };
        paths.into_iter().map(|path| (path, Access::Write)).collect()
    }
}

/// The output of a receiver, until the file is complete.
struct Output {
    unfinished: OutputFile,
    file: File,
}

impl Output {
    fn create(path: &Path) -> Result<Self> {
        let (unfinished, file) = OutputFile::create(path, &[])?;
        Ok(Self { unfinished, file })
    }
}

struct Receiver<'a> {
    plan: &'a Plan,
    host: &'a RunningHost,
    stop: Arc<AtomicBool>,
}

impl Receiver<'_> {
    /// Returns `true` if receiving must stop: a signal has arrived, or the host has ended.
    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || !self.host.is_running()
    }

    /// Joins the group and connects to the sender; repeats both until the sender listens. Returns the connection.
    fn connect(&self) -> Result<TcpStream> {
        let begun = Instant::now();
        let to = || format!("cannot join the cast of {}", self.plan.source);
        loop {
            match self.try_connect(begun) {
                Ok(stream) => return Ok(stream),
                Err(error) if self.should_stop() || begun.elapsed() >= self.plan.wait => {
                    return Err(error).with_context(to);
                }
                Err(_) => wait::pause(BETWEEN_TRIES),
            }
        }
    }

    fn try_connect(&self, begun: Instant) -> Result<TcpStream> {
        let Plan { source, group, wait, .. } = *self.plan;
        let stream = self.host.handle().join_nonblocking(source, group)?;
        while !stream.is_connected()? {
            if self.should_stop() {
                return Err(partial("interrupted"));
            }
            if begun.elapsed() >= wait {
                bail!("nobody answers; check the address, and that the sender has a route back");
            }
            wait::pause(SHORT);
        }
        let seen = stream.statistics();
        if !(seen.timestamps && seen.sack) {
            stream.abort();
            bail!("the sender uses no timestamps or no SACK, so it is no rxo cast send");
        }
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(SHORT))?;
        Ok(stream)
    }

    fn receive(&self, stream: &TcpStream, output: Option<Output>) -> Result<()> {
        let begun = Instant::now();
        let incoming = BufReader::with_capacity(
            BLOCK_BYTES,
            Incoming { receiver: self, stream, was_little: false },
        );
        let asker = Asker::new(self.host.handle(), self.plan.source);
        let (manifest, mut rest) = manifest(incoming, self.plan.root, || asker.manifest())
            .map_err(|error| self.failed(error, 0, None))?;
        let Output { unfinished, mut file } = match output {
            Some(output) => output,
            None => Output::create(&named_by_sender(&manifest.name)?)?,
        };
        let mut come = 0;
        let again = |index: u64, block: &mut [u8]| asker.block(index, block);
        let copied = stream::copy(&mut rest, &mut file, &manifest, again, |bytes| come = bytes)
            .map_err(|error| match error {
                // A local write failed, so the input is valid and the exit code is 1.
                StreamError::Write(error) => anyhow!(
                    "{} cannot be written: {error}; no file was written, and the others go on",
                    unfinished.name()
                ),
                error => self.failed(error, come, Some(manifest.bytes)),
            })?;
        let report = unfinished.complete(&file)?;
        let figures = self.figures(&manifest, begun.elapsed(), copied, &stream.statistics());
        let shut = stream.shutdown(Shutdown::Write).map_err(Unsettled::Failed);
        let told = shut.and_then(|()| host::wait_until_delivered(stream, || self.should_stop()));
        told.map_err(|error| {
            partial(format!("the file is complete, but the sender may not know: {error}"))
        })?;
        match self.plan.json {
            true => report.json(&figures),
            false => report.text(&figures.line()),
        }
    }

    /// Returns the error for a file that arrived incomplete: `come` bytes arrived of the `all` bytes that were
    /// expected. `all` is `None` if the length of the file is unknown.
    fn failed(&self, error: StreamError, come: u64, all: Option<u64>) -> Error {
        let all = all.map_or(String::new(), |all| format!(" of {}", grouped(all)));
        let source = self.plan.source;
        let why = match error {
            StreamError::Broken(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                "the sender has reset the connection, and prints the reason".to_owned()
            }
            error => error.to_string(),
        };
        partial(format!(
            "the cast of {source} failed after {}{all} bytes: {why}; no file was written",
            grouped(come)
        ))
    }

    fn figures(
        &self,
        manifest: &Manifest,
        time: Duration,
        copied: Copied,
        seen: &Statistics,
    ) -> Figures {
        let counters = self.host.counters().unwrap_or_default();
        let (sent, received) = (counters.sink.frames, counters.source.frames);
        Figures {
            name: manifest.name.clone(),
            bytes: manifest.bytes,
            seconds: rounded(time.as_secs_f64(), 3),
            gbit_per_s: rounded(gbit_per_s(manifest.bytes, time), 3),
            sha256: hexadecimal(&copied.sha256),
            root: hexadecimal(&manifest.root()),
            blocks_again: copied.again,
            group_segments: seen.group.taken,
            group_repeated: seen.group.outside,
            group_refused: seen.group.refused,
            frames_received: received,
            frames_sent: sent,
            acks_a_segment: acks_a_segment(sent, manifest.bytes, seen.received_mss),
            fast_path: FastTotals::of(&counters.fast),
        }
    }
}

/// The result of receiving a file, as printed.
#[derive(Debug, Serialize)]
struct Figures {
    name: String,
    bytes: u64,
    seconds: f64,
    gbit_per_s: f64,
    sha256: String,
    /// The hash of the manifest, in hexadecimal digits.
    root: String,
    /// Number of blocks that differed from their hash, and were requested again.
    blocks_again: u64,
    /// Number of segments to the group that were accepted, modulo 2^32.
    group_segments: u32,
    /// Number of segments to the group that this receiver already had.
    group_repeated: u32,
    /// Number of segments to the group that the sender cannot have sent.
    group_refused: u32,
    frames_received: u64,
    frames_sent: u64,
    /// The number of frames sent per segment of the file (its last segment may be short). Includes the frames
    /// of the handshake and membership reports.
    acks_a_segment: f64,
    /// Totals of the host's fast path; `None` if the fast path was never on.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_path: Option<FastTotals>,
}

impl Figures {
    fn line(&self) -> String {
        let fast_path = self.fast_path.as_ref().map(|it| format!("\n{}", it.text()));
        let again = match self.blocks_again {
            0 => String::new(),
            blocks => format!("{blocks} blocks asked for again, "),
        };
        format!(
            "{}: {} bytes in {:.3} s ({:.3} Gbit/s), {} segments to the group, {:.3} ACKs a segment, {again}sha256 {}{}",
            self.name,
            grouped(self.bytes),
            self.seconds,
            self.gbit_per_s,
            grouped(self.group_segments.into()),
            self.acks_a_segment,
            self.sha256,
            fast_path.unwrap_or_default()
        )
    }
}

/// Returns the number of frames sent per segment of the file. Received frames may be GSO frames, so the number of
/// segments is computed from the file's length.
fn acks_a_segment(sent: u64, file_bytes: u64, segment_bytes: u32) -> f64 {
    let segments = file_bytes.div_ceil(segment_bytes.max(1).into());
    rounded(ratio(sent as f64, segments as f64), 3)
}

/// A reader of the connection to the sender that continues after each read timeout, however long the sender pauses.
/// After a read of less than [`MUCH`] it pauses, so that more data is there: it would be woken for each batch otherwise,
/// and wait for the worker's lock each time.
struct Incoming<'a> {
    receiver: &'a Receiver<'a>,
    stream: &'a TcpStream,
    /// `true` if the last read returned less than [`MUCH`].
    was_little: bool,
}

impl Read for Incoming<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.stream;
        if take(&mut self.was_little) {
            wait::pause(BETWEEN_READS);
        }
        loop {
            // Checked before each read: a steady stream of data must not delay the end.
            if self.receiver.should_stop() {
                return Err(io::Error::other("interrupted"));
            }
            match stream.read(to) {
                Err(error) if crate::endpoint::is_timeout(&error) => {}
                read => {
                    self.was_little = read.as_ref().is_ok_and(|bytes| (1..MUCH).contains(bytes));
                    return read;
                }
            }
        }
    }
}

/// The bytes of the file: first the bytes that were read together with the manifest, then the rest of the
/// group's stream.
type FileStream<R> = Chain<Cursor<Vec<u8>>, R>;

/// Reads the manifest from the group's stream. Returns the manifest, and the rest of the stream, which is the
/// file. If `root` is given and the manifest has another hash, requests the right manifest through `again`. The
/// manifest of a file of more than [`MOST_UNASKED_BYTES`] is requested at once: if it is forged, it must not take
/// more memory than the right one.
///
/// # Errors
/// If the stream does not begin with a manifest, or the hash of the manifest from `again` also differs from
/// `root`.
fn manifest<R: Read>(
    mut stream: R,
    root: Option<Hash>,
    again: impl FnOnce() -> Result<Manifest, StreamError>,
) -> Result<(Manifest, FileStream<R>), StreamError> {
    let Some(root) = root else {
        let manifest = Manifest::read(&mut stream, MOST_FILE_BYTES)?;
        return Ok((manifest, Cursor::new(Vec::new()).chain(stream)));
    };
    let mut recorder = Recorder { stream, read: Vec::new() };
    let manifest = match Manifest::read(&mut recorder, MOST_UNASKED_BYTES) {
        Ok(manifest) if manifest.root() == root => manifest,
        Err(error @ StreamError::Broken(_)) => return Err(error),
        _ => again()?,
    };
    if manifest.root() != root {
        return Err(StreamError::Root(hexadecimal(&manifest.root())));
    }
    // A wrong manifest may have had another length.
    let Recorder { mut stream, mut read } = recorder;
    let bytes = manifest.encoded().len();
    let missing = bytes.saturating_sub(read.len()) as u64;
    io::copy(&mut stream.by_ref().take(missing), &mut io::sink()).map_err(StreamError::Broken)?;
    let more = read.split_off(bytes.min(read.len()));
    Ok((manifest, Cursor::new(more).chain(stream)))
}

/// A reader that stores all bytes that were read through it.
struct Recorder<R> {
    stream: R,
    read: Vec<u8>,
}

impl<R: Read> Read for Recorder<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.stream.read(to)?;
        self.read.extend_from_slice(&to[..bytes]);
        Ok(bytes)
    }
}

/// The length of the largest file whose manifest is read from the group's stream if the right root is known: 128 GiB,
/// whose manifest has 16 MiB.
const MOST_UNASKED_BYTES: u64 = 128 << 30;
/// The number of bytes after which the next read does not wait.
const MUCH: usize = 64 << 10;
/// The pause after a smaller read. It must be short beside the time in which the window fills: 7 ms at 1 Gbit/s.
const BETWEEN_READS: Duration = Duration::from_millis(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(200);
const SHORT: Duration = Duration::from_millis(20);

/// Returns the path in the current directory for a file whose name the sender has chosen. The sender is not
/// authenticated, so a name that is hidden or already exists is refused.
fn named_by_sender(name: &str) -> Result<PathBuf> {
    let path = Path::new(".").join(name);
    if name.starts_with('.') || path.symlink_metadata().is_ok() {
        bail!(
            "the sender's file has the name {name}, which is hidden or is here already; give --out FILE"
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forged_manifest_is_replaced_by_the_one_of_the_root() {
        let right = Manifest { bytes: 3, name: "a".to_owned(), hashes: vec![[7; 32]] };
        let longer = Manifest { name: "longer".to_owned(), ..right.clone() };
        let more = Manifest { bytes: 600_000, hashes: vec![[8; 32]; 3], ..right.clone() };
        let stream = [right.encoded(), b"abc".to_vec()].concat();
        for forged in [&right, &longer, &more] {
            // A forger replaces the first bytes of the stream; those behind them stay.
            let mut forged = forged.encoded();
            forged.truncate(stream.len());
            forged.extend_from_slice(&stream[forged.len()..]);
            let again = || Ok(right.clone());
            let (found, mut rest) = manifest(&forged[..], Some(right.root()), again).unwrap();
            let mut file = Vec::new();
            rest.read_to_end(&mut file).unwrap();
            assert_eq!((found, &file[..]), (right.clone(), &forged[right.encoded().len()..]));
        }
        let wrong = manifest(&stream[..], Some([0; 32]), || Ok(right.clone()));
        let said = wrong.map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("the sender's root is {}, not the one of --root", hexadecimal(&right.root()))
        );
        let never = || panic!("nobody said which root is right");
        assert!(
            manifest(&longer.encoded()[..], None, never).is_ok_and(|(found, _)| found == longer)
        );
    }

    /// The first segment of the stream is forged, and claims a file of 8 TiB.
    #[test]
    fn a_forged_length_takes_no_more_memory_than_the_right_manifest() {
        let right = Manifest { bytes: 3, name: "a".to_owned(), hashes: vec![[7; 32]] };
        let mut forged = right.encoded();
        forged[8..16].copy_from_slice(&MOST_FILE_BYTES.to_be_bytes());
        let mut read = 0;
        let endless = io::repeat(0).take(1 << 20);
        let stream = Counted { stream: Cursor::new(forged).chain(endless), read: &mut read };
        let (found, _) = manifest(stream, Some(right.root()), || Ok(right.clone())).unwrap();
        assert_eq!((found, read), (right.clone(), right.encoded().len()));
    }

    struct Counted<'a, R> {
        stream: R,
        read: &'a mut usize,
    }

    impl<R: Read> Read for Counted<'_, R> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let bytes = self.stream.read(to)?;
            *self.read += bytes;
            Ok(bytes)
        }
    }

    #[test]
    fn a_file_shorter_than_a_segment_is_a_segment() {
        let rows = [(3, 1, 3.0), (3, 1_460, 3.0), (3, 1_461, 1.5), (5, 14_600, 0.5), (3, 0, 0.0)];
        for (sent, bytes, each) in rows {
            let seen = acks_a_segment(sent, bytes, 1_460);
            assert!((seen - each).abs() < 1e-9, "{bytes} bytes: {seen}");
        }
    }
}
