//! The C interface to studies of captures: the effect that coalescing would have.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;

use rxo_capture::Capture;
use rxo_trace::report::Report;
use rxo_trace::study::{BadPollRule, Point, Settings, Study};
use rxo_trace::{html, text};

use crate::border::{self, Failure, RXO_IO, RXO_OK, boxed, free, guarded, object};

/// The result of studying captures: the effect that coalescing would have.
pub struct RxoStudy {
    report: Report,
    json: CString,
    text: CString,
}

/// Studies the effect of coalescing on the traffic in `count` captures (pcap or pcapng, plain, gzip or zstd).
/// `policy` as for `rxo_new`; `poll` is the rule for polls, such as "time:50us". A damaged capture is read up
/// to the damage. NULL if an argument is invalid or no capture can be opened: see `rxo_error`.
///
/// # Safety
/// `paths` are `count` zero-terminated texts; `policy` and `poll` are zero-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rxo_analyze(
    paths: *const *const c_char,
    count: usize,
    policy: *const c_char,
    poll: *const c_char,
) -> *mut RxoStudy {
    boxed(|| {
        if paths.is_null() || count == 0 {
            return Err(Failure::invalid("no capture"));
        }
        // SAFETY: the caller's promises.
        let (policy, poll) = unsafe { (border::text(policy)?, border::text(poll)?) };
        let poll = poll.parse().map_err(|BadPollRule| {
            Failure::invalid(format!("poll {poll} is invalid: {}", BadPollRule::ACCEPTED))
        })?;
        let settings = Settings::new(Point { policy: border::policy(policy)?, poll });
        let study = Study::new(settings).map_err(|error| Failure::invalid(error.to_string()))?;
        // SAFETY: the caller's promise.
        let paths = (0..count).map(|index| unsafe { border::text(*paths.add(index)) });
        finished(read(study, &paths.collect::<Result<Vec<_>, _>>()?)?)
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

fn read(mut study: Study, paths: &[&str]) -> Result<Report, Failure> {
    let (mut opened, mut failed) = (0, None);
    for path in paths {
        match Capture::open(Path::new(path)) {
            Ok(mut capture) => {
                opened += 1;
                study.read(&mut capture, |_| true);
            }
            Err(error) => {
                study.refuse_source(path, &error.to_string());
                failed = failed.or(Some(error));
            }
        }
    }
    match failed {
        Some(error) if opened == 0 => Err(Failure(RXO_IO, error.to_string())),
        _ => Ok(study.finish(None)),
    }
}

fn finished(report: Report) -> Result<RxoStudy, Failure> {
    let json = serde_json::to_string(&report).map_err(|e| Failure(RXO_IO, e.to_string()))?;
    let text = text::text(&report);
    let c = |text: String| CString::new(text.replace('\0', " ")).unwrap_or_default();
    Ok(RxoStudy { json: c(json), text: c(text), report })
}
