//! `rxo cast send`: waits for receivers, sends the file to their group, and reports the result of each.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rxo::live::host::RunningHost;
use rxo_console::log::{self, Form};
use rxo_console::printer::Printer;
use rxo_host::{Cast, CastConfig, CastEvent, CastProgress, SharedBytes};
use serde::Serialize;

use super::again;
use super::outgoing::{Original, Outgoing, Source};
use super::plan::Plan;
use super::tally::Tally;
use crate::control::{ControlAddresses, host_counters, serve_metrics, with_sockets_removed};
use crate::flags::CastSendFlags;
use crate::hosting::{FastTotals, finish};
use crate::numbers::{gbit_per_s, grouped, ratio, rounded};
use crate::{output, stop};

/// Sends one file.
///
/// # Errors
/// If a flag is invalid, the file cannot be read, or a receiver failed, was refused, or did not join.
pub(crate) fn command(flags: &CastSendFlags) -> Result<()> {
    let addresses = ControlAddresses::of_metrics(&flags.metrics)?;
    with_sockets_removed(&flags.host, &addresses, || send(flags))
}

fn send(flags: &CastSendFlags) -> Result<()> {
    let mut plan = Plan::from_flags(flags)?;
    let original = Original::open(&flags.file, flags.raw)?;
    let bytes = original.bytes;
    plan.set_file_bytes(bytes);
    let sockets = ControlAddresses::of_metrics(&flags.metrics)?.bind()?;
    let stop = stop::on_request()?;
    let host = plan.host.start_with(Vec::new(), |config| plan.configure(config))?;
    let _read = serve_metrics(sockets, "rxo cast send", &host_counters(host.asker()))?;
    log::begin(Form::Plain, &plan.host.nic().to_string())?;
    let cast = host.handle().cast(plan.config)?;
    let mut sender = Sender {
        plan: &plan,
        host: &host,
        cast,
        bytes,
        hashing: Some(original.begin_hashing()?),
        outgoing: None,
        stop: Arc::clone(&stop),
        rest: SharedBytes::default(),
        tally: Tally::default(),
        printer: Printer::start(MOST_WAITING, skipped, Arc::clone(&stop))?,
    };
    let outcome = sender.run();
    let printed = sender.printer.finish();
    drop(sender);
    finish(host, &stop, outcome)?;
    printed
}

struct Sender<'a> {
    plan: &'a Plan,
    host: &'a RunningHost,
    cast: Cast,
    /// The length of the file, in bytes.
    bytes: u64,
    /// The thread that computes the hashes of the file; `None` after the thread has ended.
    hashing: Option<JoinHandle<Result<Source>>>,
    /// The stream to send, once the hashes of the file are known.
    outgoing: Option<Outgoing>,
    stop: Arc<AtomicBool>,
    /// The rest of the stream's last piece that did not fit into the send buffer.
    rest: SharedBytes,
    tally: Tally,
    printer: Printer,
}

/// The output line about a receiver that has ended.
#[derive(Debug, Serialize)]
struct Line {
    receiver: String,
    outcome: String,
    bytes: u64,
    repaired_bytes: u64,
    seconds: f64,
}

/// The result of the whole cast, for the last line of the output.
#[derive(Debug, Serialize)]
struct Total {
    /// Number of bytes of the file that were sent.
    bytes: u64,
    seconds: f64,
    gbit_per_s: f64,
    /// Number of receivers that the sender waits for.
    expected: usize,
    receivers: usize,
    done: usize,
    failed: usize,
    refused: usize,
    /// Number of parity packets sent to the group.
    parity_packets: u64,
    /// Number of segments that were repeated to the whole group.
    group_repairs: u64,
    own_repairs: u64,
    /// Bytes of all received frames per byte of the file, while the file was sent: the load on the return
    /// path.
    return_share: f64,
    /// Number of frames received per segment sent, while the file was sent. Nearly all of them are ACKs.
    acks_a_segment: f64,
    sha256: String,
    /// The hash of the manifest; `None` with `--raw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    /// Totals of the host's fast path; `None` if the fast path was never on.
    #[serde(skip_serializing_if = "Option::is_none")]
    fast_path: Option<FastTotals>,
}

fn skipped(lines: u64) -> String {
    format!("{lines} lines left out: nobody read them, or they could not be written")
}

impl Sender<'_> {
    fn run(&mut self) -> Result<()> {
        self.gather()?;
        let before = self.carried();
        let begun = Instant::now();
        self.tally.begin();
        self.cast.start();
        let mut is_all_written = false;
        while self.tally.ended() < self.tally.joined {
            if self.stop.load(Ordering::Relaxed) {
                return self.interrupted(begun.elapsed(), self.carried().since(&before));
            }
            is_all_written = is_all_written || self.feed()?;
            let pause = if is_all_written { PAUSE } else { SHORT };
            if let Some(event) = self.cast.event(pause)? {
                self.note(event)?;
            }
        }
        self.clear();
        self.total(begun.elapsed(), self.carried().since(&before))
    }

    /// Reads how many frames and bytes the link has carried so far.
    fn carried(&self) -> Carried {
        self.host.counters().map_or_else(Carried::default, |seen| Carried {
            received_bytes: seen.source.bytes,
            received: seen.source.frames,
            sent: seen.sink.frames,
        })
    }

    /// Waits for the expected receivers, at most for the planned time.
    fn gather(&mut self) -> Result<()> {
        let Plan { receivers, config: CastConfig { local, group, .. }, .. } = *self.plan;
        output::note(&format!("waiting for {receivers} receivers at {local}, group {group}"));
        let begun = Instant::now();
        let lacks = |tally: &Tally| tally.present() < receivers && begun.elapsed() < self.plan.wait;
        while !self.is_hashed()? || lacks(&self.tally) {
            if self.stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            if let Some(event) = self.cast.event(PAUSE)? {
                self.note(event)?;
            }
        }
        match self.tally.present() {
            0 if self.tally.refused() > 0 => {
                let why = self.tally.shortfall(receivers, self.plan.wait);
                bail!(why.unwrap_or_default())
            }
            0 => bail!(
                "nobody came within {:?}; start rxo cast receive {local} --group {group}",
                self.plan.wait
            ),
            joined if joined < receivers => {
                output::note(&format!("{joined} of {receivers} receivers have come; sending"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns `true` once the hashes of the file are known. From then on, requests of receivers for blocks
    /// are answered.
    fn is_hashed(&mut self) -> Result<bool> {
        if let Some(hashing) = self.hashing.take_if(|hashing| hashing.is_finished()) {
            let outgoing = Outgoing::after(hashing)?;
            if let Some(root) = outgoing.source.root() {
                let local = self.plan.config.local;
                again::answer(&self.host.handle(), local, Arc::clone(&outgoing.source))
                    .with_context(|| format!("cannot answer at {}", again::address(local)))?;
                output::note(&format!("root {root}"));
            }
            self.outgoing = Some(outgoing);
        }
        Ok(self.hashing.is_none())
    }

    /// Writes as much of the file as the send buffer accepts. Returns `true` once everything is written.
    fn feed(&mut self) -> Result<bool> {
        while self.cast.room() > 0 {
            if self.rest.is_empty() {
                let outgoing = self.outgoing.as_mut().context("the file has no hashes yet")?;
                match outgoing.next_piece()? {
                    Some(piece) => self.rest = piece,
                    None => {
                        self.cast.finish();
                        return Ok(true);
                    }
                }
            }
            self.cast.write(&mut self.rest);
        }
        Ok(false)
    }

    fn note(&mut self, event: CastEvent) -> Result<()> {
        match event {
            CastEvent::Joined { peer } => self.tally.join(peer),
            CastEvent::Refused { peer, why } => {
                self.clear();
                output::note(&format!("{peer} is refused: {why}"));
                self.tally.refuse(peer, why.to_string());
            }
            CastEvent::WantsText { id, from, bytes } => {
                if let Some(outgoing) = &self.outgoing {
                    self.cast.provide(id, outgoing.source.piece(from, bytes)?);
                }
            }
            CastEvent::Ended { peer, outcome, bytes, repaired_bytes, time } => {
                self.tally.end(peer, outcome);
                self.clear();
                let seconds = rounded(time.as_secs_f64(), 3);
                let (receiver, outcome) = (peer.to_string(), outcome.to_string());
                self.print(&Line { receiver, outcome, bytes, repaired_bytes, seconds })?;
            }
            CastEvent::Progress(progress) => {
                self.tally.progress = progress;
                self.show();
            }
        }
        Ok(())
    }

    fn print(&self, line: &Line) -> Result<()> {
        if self.plan.json {
            self.printer.line(output::json(line)?);
            return Ok(());
        }
        let Line { receiver, outcome, bytes, repaired_bytes, seconds } = line;
        self.printer.line(format!(
            "{receiver}: {outcome}; {} bytes in {seconds:.3} s, {} of them again",
            grouped(*bytes),
            grouped(*repaired_bytes)
        ));
        Ok(())
    }

    /// Shows the progress of all receivers in one line of a terminal.
    fn show(&self) {
        if !self.shows_progress() {
            return;
        }
        let CastProgress { group, slowest, parity_packets, group_repairs, own_repairs, .. } =
            self.tally.progress;
        let percent = |bytes: u64| 100 * bytes / self.bytes.max(1);
        let slowest = slowest.map_or_else(|| "nobody".to_owned(), |peer| peer.to_string());
        output::progress(&format!(
            "\r\x1b[Ksent {} %, median {} %, slowest {} % ({slowest}); {} receivers, {} done, {} failed; \
             repairs: {} parity, {} to all, {} to one",
            percent(group.sent).min(100),
            percent(group.median).min(100),
            percent(group.slowest).min(100),
            group.receivers,
            self.tally.done,
            self.tally.failed,
            parity_packets,
            group_repairs,
            own_repairs,
        ));
    }

    fn clear(&self) {
        if self.shows_progress() {
            output::progress("\r\x1b[K");
        }
    }

    fn shows_progress(&self) -> bool {
        !self.plan.json && std::io::stderr().is_terminal()
    }

    /// Ends the cast after a signal, and prints the totals so far.
    fn interrupted(&self, time: Duration, carried: Carried) -> Result<()> {
        self.clear();
        self.print_total(&self.figures(time, carried))?;
        bail!("interrupted; the receivers that are not done have no file")
    }

    fn print_total(&self, total: &Total) -> Result<()> {
        let json = self.plan.json;
        self.printer.line(if json { output::json(total)? } else { total.text() });
        Ok(())
    }

    fn total(&self, time: Duration, carried: Carried) -> Result<()> {
        self.print_total(&self.figures(time, carried))?;
        match self.tally.shortfall(self.plan.receivers, self.plan.wait) {
            Some(why) => bail!(why),
            None => Ok(()),
        }
    }

    /// Computes the result of the cast so far.
    fn figures(&self, time: Duration, carried: Carried) -> Total {
        let Tally { joined, done, failed, progress, .. } = self.tally;
        // The stream is longer than the file, but after a signal or without receivers its end is not sent.
        let bytes = progress.group.sent.min(self.bytes);
        let source = self.outgoing.as_ref().map(|outgoing| &outgoing.source);
        Total {
            bytes,
            seconds: rounded(time.as_secs_f64(), 3),
            gbit_per_s: rounded(gbit_per_s(bytes, time), 3),
            expected: self.plan.receivers,
            receivers: joined,
            done,
            failed,
            refused: self.tally.refused(),
            parity_packets: progress.parity_packets,
            group_repairs: progress.group_repairs,
            own_repairs: progress.own_repairs,
            return_share: rounded(carried.return_share(bytes), 4),
            acks_a_segment: rounded(carried.acks_a_segment(), 3),
            sha256: source.map_or(String::new(), |source| source.sha256()),
            root: source.and_then(|source| source.root()),
            fast_path: self.host.counters().and_then(|seen| FastTotals::of(&seen.fast)),
        }
    }
}

rxo_frame::counters! {
    /// The numbers of frames and bytes that a link has carried in each direction.
    #[derive(Clone, Copy, Debug, Default)]
    struct Carried {
        received_bytes: u64,
        /// Number of frames received.
        received: u64,
        /// Number of frames sent; a GSO frame counts as its segments.
        sent: u64,
    }
}

impl Carried {
    fn return_share(self, file_bytes: u64) -> f64 {
        ratio(self.received_bytes as f64, file_bytes as f64)
    }

    fn acks_a_segment(self) -> f64 {
        ratio(self.received as f64, self.sent as f64)
    }
}

impl Total {
    fn text(&self) -> String {
        let fast_path = self.fast_path.as_ref().map(|it| format!("\n{}", it.text()));
        format!(
            "{} bytes to {} of {} receivers in {:.3} s ({:.3} Gbit/s); repairs: {} parity, {} to all, {} to one; \
             the return link carried {:.2} % of that, {:.2} ACKs a segment; sha256 {}{}",
            grouped(self.bytes),
            self.done,
            self.receivers,
            self.seconds,
            self.gbit_per_s,
            self.parity_packets,
            self.group_repairs,
            self.own_repairs,
            100.0 * self.return_share,
            self.acks_a_segment,
            self.sha256,
            fast_path.unwrap_or_default()
        )
    }
}

/// Maximum number of lines that wait to be printed. Each receiver causes one line, and many receivers may end at once.
const MOST_WAITING: usize = 4_096;
const PAUSE: Duration = Duration::from_millis(50);
/// Pause while the send buffer is full.
const SHORT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_says_what_the_return_link_carried() {
        let total = Total {
            bytes: 1_000_000,
            seconds: 0.1,
            gbit_per_s: 0.08,
            expected: 3,
            receivers: 3,
            done: 2,
            failed: 1,
            refused: 0,
            parity_packets: 3,
            group_repairs: 4,
            own_repairs: 5,
            return_share: 0.0093,
            acks_a_segment: 0.188,
            sha256: "abc".to_owned(),
            root: None,
            fast_path: None,
        };
        let said = "1,000,000 bytes to 2 of 3 receivers in 0.100 s (0.080 Gbit/s); \
                    repairs: 3 parity, 4 to all, 5 to one; the return link carried 0.93 % of that, 0.19 ACKs a segment; sha256 abc";
        assert_eq!(total.text(), said);
    }
}
