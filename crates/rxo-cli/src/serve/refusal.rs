//! Why a request gets no file: a status and a sentence.

use std::io;

use rustix::io::Errno;

/// An answer without what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) why: &'static str,
}

impl Refusal {
    pub(super) const fn new(status: u16, why: &'static str) -> Self {
        Self { status, why }
    }
}

/// What the system said of a name, as the client is to hear it. Nothing of the machine is told.
impl From<&io::Error> for Refusal {
    fn from(error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP) => NOT_FOUND,
            // XDEV: the way led out of the directory.
            Some(Errno::ACCESS | Errno::PERM | Errno::XDEV) => FORBIDDEN,
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE) => {
                Self::new(503, "too much at once; try again")
            }
            _ => Self::new(500, "the file could not be read"),
        }
    }
}

pub(super) const NOT_FOUND: Refusal = Refusal::new(404, "there is no such file");
pub(super) const FORBIDDEN: Refusal = Refusal::new(403, "this file is not served");

/// The reason phrase of RFC 9110 for the statuses that are used here.
pub(super) const fn phrase(status: u16) -> &'static str {
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
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_out_is_forbidden_and_a_wrong_name_not_found() {
        let of = |errno: Errno| Refusal::from(&io::Error::from(errno)).status;
        assert_eq!(of(Errno::XDEV), 403);
        assert_eq!(of(Errno::NAMETOOLONG), 404);
        assert_eq!(of(Errno::AGAIN), 503);
        assert_eq!(of(Errno::IO), 500);
    }
}
