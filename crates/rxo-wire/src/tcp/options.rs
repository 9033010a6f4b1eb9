//! Reads TCP options (RFC 9293 section 3.1, RFC 7323, RFC 2018).

/// The arrangement of the options in a TCP header, classified for coalescing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionLayout {
    /// The header has no options.
    None,
    /// Two no-operation options and the timestamp, as nearly every stack sends it (RFC 7323, appendix A).
    AlignedTimestamp,
    /// The timestamp and padding, in another arrangement.
    Timestamp,
    /// Any other options, with or without a timestamp.
    Other,
    /// The length of an option is invalid, or exceeds the header.
    Malformed,
}

impl OptionLayout {
    /// Returns `true` if the options were read and include a timestamp.
    #[inline]
    #[must_use]
    pub const fn has_timestamp(self) -> bool {
        matches!(self, Self::AlignedTimestamp | Self::Timestamp)
    }
}

/// The two values of the timestamp option (RFC 7323, section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// The timestamp value (TSval).
    pub value: u32,
    /// The echoed timestamp (TSecr).
    pub echo: u32,
}

impl Timestamp {
    /// Finds the timestamp in `options`, the part of a TCP header after its first 20 bytes. `None` if there
    /// is none, or an option's length is invalid. Fast without options, and for a timestamp at its usual
    /// offset (RFC 7323, appendix A).
    ///
    /// # Examples
    /// ```
    /// use rxo_wire::build::timestamp_option;
    /// use rxo_wire::tcp::Timestamp;
    ///
    /// let sent = Timestamp { value: 7, echo: 5 };
    /// assert_eq!(Timestamp::find(&timestamp_option(sent)), Some(sent));
    /// assert_eq!(Timestamp::find(&[]), None);
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn find(options: &[u8]) -> Option<Self> {
        match options {
            [] => None,
            options => Self::find_aligned(options).or_else(|| Self::find_beside(options)),
        }
    }

    /// Reads `options` that are two no-operation options and the timestamp, as nearly every stack sends it;
    /// `None` if they are anything else (RFC 7323, appendix A).
    #[inline]
    #[must_use]
    pub const fn find_aligned(options: &[u8]) -> Option<Self> {
        match options {
            [1, 1, 8, 10, data @ ..] => Self::read(data),
            _ => None,
        }
    }

    /// Searches for the timestamp in `options` of any arrangement; `None` if there is none, or an option is
    /// malformed.
    #[cold]
    fn find_beside(options: &[u8]) -> Option<Self> {
        let is_intact = Options::new(options).all(|option| option.is_ok());
        Options::new(options).flatten().find_map(|it| it.timestamp()).filter(|_| is_intact)
    }

    /// Reads the data of a timestamp option; `None` unless it has 8 bytes.
    const fn read(data: &[u8]) -> Option<Self> {
        match *data {
            [a, b, c, d, e, f, g, h] => Some(Self::from_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    /// Decodes a timestamp from its eight bytes.
    #[inline]
    pub(super) const fn from_bytes([a, b, c, d, e, f, g, h]: [u8; 8]) -> Self {
        Self { value: u32::from_be_bytes([a, b, c, d]), echo: u32::from_be_bytes([e, f, g, h]) }
    }
}

/// One option of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpOption<'a> {
    /// The kind of the TCP option.
    pub kind: OptionKind,
    /// The data of the option, without kind and length.
    pub data: &'a [u8],
}

impl TcpOption<'_> {
    /// Returns the timestamp if this option is a timestamp and has the right length; otherwise `None`.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> Option<Timestamp> {
        if self.kind == OptionKind::Timestamp { Timestamp::read(self.data) } else { None }
    }
}

/// The kind of an option; each variant names its registered number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Kind 1: no operation, padding between options.
    NoOperation,
    /// Kind 2: maximum segment size.
    MaximumSegmentSize,
    /// Kind 3: window scale.
    WindowScale,
    /// Kind 4: selective acknowledgement permitted.
    SackPermitted,
    /// Kind 5: selective acknowledgement (SACK blocks).
    Sack,
    /// Kind 8: timestamp.
    Timestamp,
    /// Any other kind of option, with its number.
    Unknown(u8),
}

impl OptionKind {
    const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::NoOperation,
            2 => Self::MaximumSegmentSize,
            3 => Self::WindowScale,
            4 => Self::SackPermitted,
            5 => Self::Sack,
            8 => Self::Timestamp,
            other => Self::Unknown(other),
        }
    }
}

/// Iterator over the options of a TCP header. Ends at an end-of-list option, at the end of the bytes, or after an `Err`
/// for an invalid length.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    rest: &'a [u8],
}

/// Error: the length of an option exceeds the header, or is below 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption;

impl<'a> Options<'a> {
    /// Creates an iterator over the options in `bytes`, the part of a TCP header after its first 20 bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<TcpOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&number, after) = self.rest.split_first()?;
        if number == 0 {
            self.rest = &[];
            return None;
        }
        if number == 1 {
            self.rest = after;
            return Some(Ok(TcpOption { kind: OptionKind::NoOperation, data: &[] }));
        }
        let length = after.first().map_or(0, |length| usize::from(*length));
        let Some(data) = self.rest.get(2..length) else {
            self.rest = &[];
            return Some(Err(BadOption));
        };
        self.rest = &self.rest[length..];
        Some(Ok(TcpOption { kind: OptionKind::from_number(number), data }))
    }
}

/// Returns the arrangement of the options in `bytes`, and the timestamp; its values are zero if there is none.
#[inline]
pub(crate) fn classify(bytes: &[u8]) -> (OptionLayout, Timestamp) {
    if bytes.is_empty() {
        return (OptionLayout::None, Timestamp::default());
    }
    match Timestamp::find_aligned(bytes) {
        Some(timestamp) => (OptionLayout::AlignedTimestamp, timestamp),
        None => classify_any(bytes),
    }
}

#[cold]
fn classify_any(bytes: &[u8]) -> (OptionLayout, Timestamp) {
    let mut found = Timestamp::default();
    let mut layout = OptionLayout::None;
    for option in Options::new(bytes) {
        match option {
            Err(BadOption) => return (OptionLayout::Malformed, Timestamp::default()),
            Ok(TcpOption { kind: OptionKind::NoOperation, .. }) => {}
            Ok(option) => match option.timestamp() {
                Some(timestamp) if layout == OptionLayout::None => {
                    (layout, found) = (OptionLayout::Timestamp, timestamp);
                }
                _ => layout = OptionLayout::Other,
            },
        }
    }
    match layout {
        // Padding alone is still an option field that the peer's stack chose to send.
        OptionLayout::None => (OptionLayout::Other, found),
        layout => (layout, found),
    }
}
