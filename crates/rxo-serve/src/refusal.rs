//! Refusals: answers without the requested file, as a status and a sentence.

use crate::lookup::Problem;

/// The status and the reason of an answer without the requested file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) why: &'static str,
}

impl Refusal {
    pub(crate) const fn new(status: u16, why: &'static str) -> Self {
        Self { status, why }
    }
}

/// Converts the problem to a refusal that describes it to the client, without details about the machine.
impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Missing => NOT_FOUND,
            Problem::Forbidden => FORBIDDEN,
            Problem::Busy => Self::new(503, "too much at once; try again"),
            Problem::Unreadable => Self::new(500, "the file could not be read"),
        }
    }
}

pub(crate) const NOT_FOUND: Refusal = Refusal::new(404, "there is no such file");
pub(crate) const FORBIDDEN: Refusal = Refusal::new(403, "this file is not served");

/// Returns the reason phrase of RFC 9110 for each status that the server uses.
pub(crate) const fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}
