//! The exit code: 0 for success, 2 for a usage error, 3 for a partial result, 4 for a run that would break, 1
//! for any other failure. An error is one line on standard error, never a backtrace.

use std::io;
use std::process::ExitCode;

use anyhow::{Error, Result};
use clap::error::ErrorKind;
use rxo_console::fault::UsageError;
use rxo_console::log::{self, Level};
use rxo_console::output;
use rxo_device::DeviceError;
use rxo_testbed::LabError;
use thiserror::Error;

pub(crate) use rxo_console::fault::{PartialError, partial, usage};

const SUCCESS: u8 = 0;
const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const PARTIAL: u8 = 3;
const BREAKS: u8 = 4;

/// The error of a check that found that a run would break something. The string describes what would break.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct BreaksError(String);

/// Creates a [`BreaksError`]; `why` describes what a run would break.
pub(crate) fn breaks(why: impl Into<String>) -> Error {
    BreaksError(why.into()).into()
}

/// The error of another rxo process, which has printed the reason itself and ended with this exit code.
#[derive(Debug, Error)]
#[error("another process of rxo ended with code {0}")]
pub(crate) struct ReportedError(u8);

/// Returns the result of this process after another rxo process has ended with `code`: that exit code,
/// without a message. `code` is `None` if a signal ended the other process.
pub(crate) fn as_ended(code: Option<i32>) -> Result<()> {
    match code.and_then(|code| u8::try_from(code).ok()) {
        Some(0) => Ok(()),
        code => Err(ReportedError(code.unwrap_or(FAILURE)).into()),
    }
}

/// Prints the error of a command, if there is one, and returns the command's exit code.
pub fn of_result(result: Result<()>) -> ExitCode {
    let code = report(result);
    log::finish();
    ExitCode::from(code)
}

/// Prints `error` and ends this process at once. Does not close devices and sockets in order, because another
/// process uses them.
pub(crate) fn at_once(error: Error) -> ! {
    let code = report(Err(error));
    log::finish();
    std::process::exit(code.into())
}

fn report(result: Result<()>) -> u8 {
    let Err(error) = result else { return SUCCESS };
    if let Some(ReportedError(code)) = error.downcast_ref() {
        return *code;
    }
    // A closed reader of our output (`rxo policies | head`) is no failure.
    if error.chain().any(is_broken_pipe) {
        return SUCCESS;
    }
    log::write(Level::Error, &one_line(&error));
    code(&error)
}

/// Prints clap's message about the flags of `program`: an error, the help, or the version. Returns the exit
/// code.
pub fn of_flags(program: &str, error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // If standard output is closed, nobody reads the help, so the error is ignored.
            _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output::note(&missing_line(program, &error.to_string()));
            ExitCode::from(USAGE)
        }
        _ => {
            output::note(&flags_line(program, &error.to_string()));
            ExitCode::from(USAGE)
        }
    }
}

fn code(error: &Error) -> u8 {
    if error.is::<PartialError>() {
        PARTIAL
    } else if error.is::<BreaksError>() {
        BREAKS
    } else if is_usage(error) {
        USAGE
    } else {
        FAILURE
    }
}

pub(crate) fn is_usage(error: &Error) -> bool {
    error.is::<UsageError>()
        || matches!(error.downcast_ref(), Some(DeviceError::Usage(_)))
        || matches!(error.downcast_ref(), Some(LabError::Usage(_)))
}

fn is_broken_pipe(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Formats the error and its causes as one line. Leaves out a cause whose message is already contained in the
/// line so far.
pub(crate) fn one_line(error: &Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string().replace('\n', " ");
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
    }
    line
}

/// Returns the error line for a missing subcommand. The usage line of the `rendered` help contains the name of the
/// command.
fn missing_line(program: &str, rendered: &str) -> String {
    let usage = rendered.lines().find_map(|line| line.strip_prefix("Usage: "));
    let before =
        usage.and_then(|usage| usage.split_once(" <")).map_or(program, |(before, _)| before);
    format!("a command is missing after `{before}`; `{before} --help` lists them")
}

/// Joins the paragraphs of clap's error into one line: the fault, the accepted values, and how to get help.
pub(crate) fn flags_line(program: &str, rendered: &str) -> String {
    let message = rendered.split("\n\nUsage:").next().unwrap_or(rendered);
    let message = message.split("\n\nFor more").next().unwrap_or(message);
    let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line = lines.join(" ").replace(" tip: ", "; ");
    format!("{}; `{program} --help` explains", line.trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn usage_is_told_from_failure_whoever_found_it() {
        let device = DeviceError::Usage("there is no interface eth9".into());
        let refused = DeviceError::System { message: "no".into(), source: io::Error::other("x") };
        assert!(is_usage(&usage("--stats 1y")));
        assert!(is_usage(&Error::from(device).context("--nic packet:eth9")));
        assert!(is_usage(&LabError::Usage("500 connections".into()).into()));
        assert!(!is_usage(&Error::from(refused).context("--nic packet:eth9")));
    }

    #[test]
    fn each_kind_of_end_has_its_code() {
        assert_eq!(code(&usage("--poll x")), USAGE);
        assert_eq!(code(&partial("interrupted").context("analyze")), PARTIAL);
        assert_eq!(code(&breaks("rules")), BREAKS);
        assert_eq!(code(&Error::from(io::Error::other("x"))), FAILURE);
    }

    #[test]
    fn causes_follow_on_one_line_and_only_once() {
        let refused = io::Error::from_raw_os_error(1);
        let text = refused.to_string();
        let source =
            DeviceError::System { message: "cannot open tap:rxo0".into(), source: refused };
        let error = Err::<(), _>(source).context("the host's side").unwrap_err();
        assert_eq!(one_line(&error), format!("the host's side: cannot open tap:rxo0: {text}"));
    }

    #[test]
    fn a_closed_reader_is_no_failure() {
        let error = Error::from(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing");
        assert!(error.chain().any(is_broken_pipe));
    }

    #[test]
    fn a_missing_command_is_looked_up_where_it_is_missing() {
        let help = "Send one file to many\n\nUsage: rxo cast <COMMAND>\n\nCommands:\n";
        let line = "a command is missing after `rxo cast`; `rxo cast --help` lists them";
        assert_eq!(missing_line("rxo", help), line);
        assert!(missing_line("rxo-lab", "").contains("`rxo-lab --help`"));
    }

    #[test]
    fn what_clap_says_becomes_one_line() {
        let said = "error: invalid value 'maybe' for '--checksum <HOW>'\n  [possible values: trust, \
                    verify]\n\nFor more information, try '--help'.\n";
        assert_eq!(
            flags_line("rxo", said),
            "invalid value 'maybe' for '--checksum <HOW>' [possible values: trust, verify]; \
             `rxo --help` explains"
        );
        let said = "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: \
                    '--json'\n\nUsage: rxo policies --json\n";
        assert_eq!(
            flags_line("rxo", said),
            "unexpected argument '--jsn' found; a similar argument exists: '--json'; `rxo --help` \
             explains"
        );
    }
}
