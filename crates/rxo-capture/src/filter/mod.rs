//! Packet filters as of tcpdump (pcap-filter(7)): libpcap compiles them, and libpcap runs them.
//!
//! libpcap is loaded when the first filter is made, so that nothing is needed to build this crate, or to run programs
//! that filter nothing. A filter is compiled for each link type, because the offsets of its fields depend on it.

mod libpcap;

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
    /// The program for each link type so far, or the reason why the filter cannot be compiled for it.
    programs: Vec<(LinkType, Result<Program, FilterError>)>,
}

/// The reason why a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// libpcap cannot be loaded; the text has the system's reason.
    #[error("libpcap cannot be loaded ({0}): {REMEDY}")]
    Missing(String),
    /// libpcap cannot compile the filter; the text has its reason.
    #[error("{0} (`man pcap-filter` describes the language)")]
    Invalid(String),
    /// The filter cannot be compiled for packets of this link type, although it can for others.
    #[error("{why}, in packets of link type {}", link.0)]
    Unfit {
        /// The link type.
        link: LinkType,
        /// The reason of libpcap.
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
    /// Makes a filter of `text`, which must compile for one of `links`. Loads libpcap. Names of hosts in the text are
    /// looked up.
    ///
    /// # Errors
    /// If libpcap cannot be loaded, or the filter compiles for none of the link types; the reason is that for the first.
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
            // It compiled for another link type, and no packet of this one can match: that is an answer.
            Err(why) if why == libpcap::REJECTS_ALL => Ok(Program::NOTHING),
            program => program.map_err(|why| FilterError::Unfit { link, why }),
        };
        self.programs.push((link, program));
        self.programs.len() - 1
    }
}

/// Returns the length of what precedes IP in packets of the BSD loopback. Its numbers of address families differ between
/// systems, and libpcap without a file knows only those of this one, so filters begin behind it.
fn family_bytes(link: LinkType) -> usize {
    if matches!(link, LinkType::NULL | LinkType::LOOP) { 4 } else { 0 }
}

/// Returns the number by which libpcap knows a link type in memory on Linux. It differs from the number in files only for
/// old types (tcpdump.org/linktypes.html).
fn data_link(link: LinkType) -> c_int {
    match link {
        LinkType::RAW | LinkType(14) | LinkType::NULL | LinkType::LOOP => 12,
        LinkType(100) => 11,
        LinkType(number) => number.into(),
    }
}
