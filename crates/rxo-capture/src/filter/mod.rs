//! Packet filters in the syntax of tcpdump (pcap-filter(7)), which libpcap compiles and runs.
//!
//! libpcap is loaded when the first filter is created, so it is needed neither to build this crate nor to run
//! programs that filter nothing. A filter is compiled for each link type, because the offsets of its fields
//! depend on it.

mod libpcap;
mod names;

use core::ffi::c_int;
use std::ffi::CString;

use thiserror::Error;

use self::libpcap::{Library, Program};
use super::{LinkType, Record};

/// A packet filter.
///
/// # Examples
/// ```no_run
/// use rxo_capture::{Capture, Filter, LinkType};
///
/// let mut filter = Filter::new("dst port 445 and greater 1000", &[LinkType::ETHERNET])?;
/// let mut capture = Capture::open("traffic.pcap".as_ref())?;
/// let mut records = Vec::new();
/// capture.read_batch(&mut records, 64)?;
/// for record in &records {
///     println!("{}", filter.accepts(record, LinkType::ETHERNET)?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Filter {
    library: &'static Library,
    text: CString,
    /// The compiled program for each link type that occurred so far, or the reason why the filter cannot be
    /// compiled for that link type.
    programs: Vec<(LinkType, Result<Program, FilterError>)>,
}

/// The reason why a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// libpcap cannot be loaded. The string is the system's reason.
    #[error("libpcap cannot be loaded ({0}): {REMEDY}")]
    Missing(String),
    /// libpcap cannot compile the filter. The string is libpcap's reason.
    #[error("{0} (`man pcap-filter` describes the language)")]
    Invalid(String),
    /// The filter cannot be compiled for packets of this link type, although it can be compiled for other link
    /// types.
    #[error("{why}, in packets of link type {}", link.0)]
    Unfit {
        /// The link type.
        link: LinkType,
        /// The reason that libpcap gave.
        why: String,
    },
}

const REMEDY: &str = if cfg!(target_feature = "crt-static") {
    "a static program loads no libraries; filter by `tcpdump -r FILE -w - FILTER` before, or use a program that is built \
     on this system"
} else {
    "install it: `apt install libpcap0.8`, `dnf install libpcap` or `apk add libpcap`"
};

impl Filter {
    /// Creates a filter from `text`, which must compile for at least one of `links`. Loads libpcap. libpcap
    /// resolves host names in `text`.
    ///
    /// # Errors
    /// If libpcap cannot be loaded, or the filter compiles for none of the link types. The error then contains
    /// the reason for the first link type.
    pub fn new(text: &str, links: &[LinkType]) -> Result<Self, FilterError> {
        let text = CString::new(text)
            .map_err(|_| FilterError::Invalid("a filter has no zero bytes".to_owned()))?;
        let library = Library::get().map_err(FilterError::Missing)?;
        let mut first = None;
        for link in links {
            match library.compile(&text, data_link(*link)) {
                Ok(program) => {
                    let programs = vec![(*link, Ok(program))];
                    return Ok(Self { library, text, programs });
                }
                Err(why) => _ = first.get_or_insert(why),
            }
        }
        Err(FilterError::Invalid(first.unwrap_or_default()))
    }

    /// Returns the first name of a host or a network in the filter `text`; `None` if there is none. Each machine looks names up
    /// by itself, and may find another address. Names of ports and protocols do not count.
    ///
    /// # Examples
    /// ```
    /// use rxo_capture::Filter;
    ///
    /// assert_eq!(Filter::host_name("dst fileserver and port https"), Some("fileserver"));
    /// assert_eq!(Filter::host_name("dst 10.0.0.1 and port https"), None);
    /// ```
    #[must_use]
    pub fn host_name(text: &str) -> Option<&str> {
        names::first_host_name(text)
    }

    /// Returns `true` if the filter accepts `record`, whose link type is `link`.
    ///
    /// # Errors
    /// If the filter cannot be compiled for that link type.
    pub fn accepts(&mut self, record: &Record, link: LinkType) -> Result<bool, FilterError> {
        let known = self.programs.iter().position(|(of, _)| *of == link);
        let at = known.unwrap_or_else(|| self.add(link));
        let program = self.programs[at].1.as_ref().map_err(Clone::clone)?;
        let bytes = record.bytes.as_ref().get(family_bytes(link)..).unwrap_or_default();
        Ok(self.library.accepts(program, bytes, record.original_bytes))
    }

    /// Compiles the filter for `link`. Returns the index of the program.
    #[cold]
    fn add(&mut self, link: LinkType) -> usize {
        let program = match self.library.compile(&self.text, data_link(link)) {
            // The filter compiled for another link type, and no packet of this type can match. This is a valid
            // result.
            Err(why) if why == libpcap::REJECTS_ALL => Ok(Program::NOTHING),
            program => program.map_err(|why| FilterError::Unfit { link, why }),
        };
        self.programs.push((link, program));
        self.programs.len() - 1
    }
}

/// Returns the length in bytes of the header that precedes IP in packets of the BSD loopback; 0 for other link
/// types. The header contains the number of an address family, which differs between systems. Without a file,
/// libpcap knows only the numbers of this system, so filters are applied to the bytes after this header.
fn family_bytes(link: LinkType) -> usize {
    if matches!(link, LinkType::NULL | LinkType::LOOP) { 4 } else { 0 }
}

/// Returns the number that libpcap uses for a link type in memory on Linux. For some old types, this number
/// differs from the number in files (tcpdump.org/linktypes.html).
fn data_link(link: LinkType) -> c_int {
    match link {
        LinkType::RAW | LinkType(14) | LinkType::NULL | LinkType::LOOP => 12,
        LinkType(100) => 11,
        LinkType(number) => number.into(),
    }
}
