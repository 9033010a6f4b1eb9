//! The C interface to studies of captures: the effect that coalescing would have. Only in `librxo-trace`.

use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rxo_capture::{Capture, Position};
use rxo_trace::report::Report;
use rxo_trace::study::{BadPollRule, Point, Settings, Study};
use rxo_trace::{html, text};

use crate::border::{self, Failure, RXO_IO, RXO_OK, boxed, free, guarded, object};

/// The result of studying captures: the effect that coalescing would have.
pub struct RxoStudy {
    report: Report,
    json: CString,
    text: CString,
    partial: Option<CString>,
}

/// The choices of `rxo_analyze`. Set all to 0 first, for what later versions append.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RxoAnalyzeOptions {
    /// `sizeof(rxo_analyze_options)`.
    pub size: usize,
    /// The policy, as for `rxo_new`; NULL is "linux-gro".
    pub policy: *const c_char,
    /// The rule for polls; NULL is "time:50us".
    pub poll: *const c_char,
    /// Reading ends soon after a thread or a signal handler has written anything but 0 there; or NULL. A wait for a
    /// pipe is not ended: it lasts until the pipe has bytes or is closed.
    pub stop: *const c_int,
    /// Called with `context`, the index of the capture in `paths`, and how many of its bytes have been read,
    /// of how many (0 if unknown), each time that 1024 packets were read; or NULL. It may set `*stop`.
    pub progress: Option<
        unsafe extern "C" fn(context: *mut c_void, index: usize, bytes: u64, all_bytes: u64),
    >,
    /// The first argument of `progress`.
    pub context: *mut c_void,
}

/// Studies the effect of coalescing on the traffic in `count` captures (pcap or pcapng, plain, gzip or zstd).
/// `options` may be NULL. A damaged capture is read up to the damage, and a stopped study has what was read so
/// far: see `rxo_study_partial`. NULL if an argument is invalid or no capture can be opened: see `rxo_error`.
///
/// # Safety
/// `paths` are `count` zero-terminated texts; `options` is null or has its `size` bytes, with texts that are null
/// or zero-terminated, and a `stop` that is null or valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_analyze(
    paths: *const *const c_char,
    count: usize,
    options: *const RxoAnalyzeOptions,
) -> *mut RxoStudy {
    boxed(|| {
        if paths.is_null() || count == 0 {
            return Err(Failure::invalid("no capture"));
        }
        // SAFETY: the caller's promise.
        let options = unsafe { self::options(options) }?;
        // SAFETY: the caller's promises.
        let poll = unsafe { text_or(options.poll, "time:50us") }?;
        // SAFETY: the caller's promises.
        let policy = border::policy(unsafe { text_or(options.policy, "linux-gro") }?)?;
        let poll = poll.parse().map_err(|BadPollRule| {
            Failure::invalid(format!("poll {poll} is invalid: {}", BadPollRule::ACCEPTED))
        })?;
        let study = Study::new(Settings::new(Point { policy, poll }));
        let study = study.map_err(|error| Failure::invalid(error.to_string()))?;
        // SAFETY: the caller's promise.
        let paths = (0..count).map(|index| unsafe { border::text(*paths.add(index)) });
        finished(read(study, &paths.collect::<Result<Vec<_>, _>>()?, &options)?)
    })
}

/// Frees the study. Does nothing if `s` is NULL.
///
/// # Safety
/// `s` is null or from `rxo_analyze`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_free(s: *mut RxoStudy) {
    // SAFETY: the caller's promise.
    unsafe { free(s) }
}

/// Number of packets in the captures.
///
/// # Safety
/// `s` is null or from `rxo_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_packets(s: *const RxoStudy) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { s.as_ref() }.map_or(0, |study| study.report.traffic.packets)
}

/// Number of packets that coalescing eliminates: packets minus deliveries.
///
/// # Safety
/// `s` is null or from `rxo_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_eliminated(s: *const RxoStudy) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { s.as_ref() }.map_or(0, |study| study.report.outcome.eliminated)
}

/// The reason why the study is incomplete, such as a damaged capture or `stop`; NULL if it is complete. Valid
/// until the study is freed.
///
/// # Safety
/// `s` is null or from `rxo_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_partial(s: *const RxoStudy) -> *const c_char {
    // SAFETY: the caller's promise.
    let partial = unsafe { s.as_ref() }.and_then(|study| study.partial.as_ref());
    partial.map_or(ptr::null(), |why| why.as_ptr())
}

/// The report as JSON, like the output of `rxo analyze --json`. Valid until the study is freed.
///
/// # Safety
/// `s` is null or from `rxo_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_json(s: *const RxoStudy) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { s.as_ref() }.map_or(c"".as_ptr(), |study| study.json.as_ptr())
}

/// The report as text, like the output of `rxo analyze`. Valid until the study is freed.
///
/// # Safety
/// `s` is null or from `rxo_analyze`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_text(s: *const RxoStudy) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { s.as_ref() }.map_or(c"".as_ptr(), |study| study.text.as_ptr())
}

/// Writes the report and its figures to an HTML file, which is never left incomplete.
///
/// # Safety
/// `s` is from `rxo_analyze`; `path` is zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_study_html(s: *const RxoStudy, path: *const c_char) -> c_int {
    let written = guarded(|| {
        // SAFETY: the caller's promises.
        let (study, path) = unsafe { (object(s.cast_mut())?, border::text(path)?) };
        html::write(&study.report, Path::new(path))
            .map_err(|error| Failure(RXO_IO, format!("{path}: {error}")))
    });
    written.err().unwrap_or(RXO_OK)
}

/// Returns the options that the caller gave, with 0 for what an older caller does not know.
///
/// # Safety
/// As for [`rxo_analyze`].
unsafe fn options(given: *const RxoAnalyzeOptions) -> Result<RxoAnalyzeOptions, Failure> {
    let (word, known) = (size_of::<usize>(), size_of::<RxoAnalyzeOptions>());
    let mut options = RxoAnalyzeOptions {
        size: known,
        policy: ptr::null(),
        poll: ptr::null(),
        stop: ptr::null(),
        progress: None,
        context: ptr::null_mut(),
    };
    if given.is_null() {
        return Ok(options);
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { given.cast::<usize>().read() };
    if !(word..=known).contains(&size) || !size.is_multiple_of(word) {
        let text = format!("options of {size} bytes: set size to sizeof(rxo_analyze_options)");
        return Err(Failure::invalid(text));
    }
    let to: *mut RxoAnalyzeOptions = &mut options;
    // SAFETY: the caller's promise; `size` is at most that of `options`, in which any bytes but these are valid.
    unsafe { given.cast::<u8>().copy_to_nonoverlapping(to.cast(), size) };
    Ok(options)
}

/// Returns a text from C, or `default` if it is null.
///
/// # Safety
/// `text` is null or zero-terminated.
unsafe fn text_or(text: *const c_char, default: &str) -> Result<&str, Failure> {
    // SAFETY: the caller's promise.
    if text.is_null() { Ok(default) } else { unsafe { border::text(text) } }
}

impl RxoAnalyzeOptions {
    /// Reports that `position` of the capture `index` is reached. Returns `true` unless reading shall stop.
    fn goes_on(&self, index: usize, position: Position) -> bool {
        let Position { file_bytes_read, file_bytes } = position;
        if let Some(progress) = self.progress {
            // SAFETY: the caller's function with the context that it gave.
            unsafe { progress(self.context, index, file_bytes_read, file_bytes.unwrap_or(0)) };
        }
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        // SAFETY: the caller of `rxo_analyze` promises that it is valid if it is not null.
        !self.stop.is_null()
            && unsafe { AtomicI32::from_ptr(self.stop.cast_mut()) }.load(Relaxed) != 0
    }
}

fn read(mut study: Study, paths: &[&str], options: &RxoAnalyzeOptions) -> Result<Report, Failure> {
    let (mut opened, mut failed) = (0, None);
    for (index, path) in paths.iter().enumerate().take_while(|_| !options.is_stopped()) {
        match Capture::open(Path::new(path)) {
            Ok(mut capture) => {
                opened += 1;
                study.read(&mut capture, |position| options.goes_on(index, position));
            }
            Err(error) => {
                study.refuse_source(path, &error.to_string());
                failed = failed.or(Some(error));
            }
        }
    }
    match failed {
        Some(error) if opened == 0 => Err(Failure(RXO_IO, error.to_string())),
        _ => Ok(study.finish(options.is_stopped().then(|| "stopped by the caller".to_owned()))),
    }
}

fn finished(report: Report) -> Result<RxoStudy, Failure> {
    let json = serde_json::to_string(&report).map_err(|e| Failure(RXO_IO, e.to_string()))?;
    let text = text::text(&report);
    let c = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
    let partial = report.partial.clone().map(c);
    Ok(RxoStudy { json: c(json), text: c(text), partial, report })
}
