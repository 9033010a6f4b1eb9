//! Unpacks gzip: a file of consecutive members.
//!
//! `flate2`'s decoder reads the members' headers, and the inflater below it reads their bodies. The decoder is
//! not used for bodies, because it would discard the bytes that were unpacked in the step that found damage,
//! and these bytes are worth reporting.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;
use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::damaged;
use super::thread::Filler;

/// The first bytes of a gzip member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Unpacks every gzip member of `packed`. Zeros after the last member are padding, as on tapes; any other bytes
/// after the last member are an error.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = BufReader::with_capacity(128 * 1024, packed);
    let mut inflater = Decompress::new(false);
    loop {
        skip_header(&mut packed)?;
        inflater.reset(false);
        let mut member = Member::new(&mut packed, &mut inflater);
        output.take_all(&mut member)?;
        let (checksum, bytes) = (member.crc.sum(), member.crc.amount());
        check_trailer(&mut packed, checksum, bytes)?;
        if !is_next_member(&mut packed)? {
            return Ok(());
        }
    }
}

/// Skips the header of a gzip member.
fn skip_header(packed: &mut impl BufRead) -> io::Result<()> {
    let mut decoder = GzDecoder::new(packed);
    if decoder.header().is_some() {
        return Ok(());
    }
    // There is no header, so reading a byte fails and returns the reason.
    match decoder.read(&mut [0]) {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Err(damaged("gzip: a member has no valid header")),
    }
}

/// Checks that the checksum and the length stored after a gzip member match the unpacked data.
fn check_trailer(packed: &mut impl Read, checksum: u32, bytes: u32) -> io::Result<()> {
    let mut trailer = [0; 8];
    packed.read_exact(&mut trailer)?;
    let stored = u64::from_le_bytes(trailer);
    if stored == u64::from(bytes) << 32 | u64::from(checksum) {
        return Ok(());
    }
    Err(damaged("gzip: the checksum or the length of a member is wrong"))
}

/// Returns `true` if another gzip member follows in `packed`. Skips padding.
fn is_next_member(packed: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let ready = packed.fill_buf()?;
        let Some(&first) = ready.first() else { return Ok(false) };
        match first {
            0 => {
                let zeros = ready.iter().take_while(|byte| **byte == 0).count();
                packed.consume(zeros);
            }
            _ if first == MAGIC[0] => return Ok(true),
            _ => return Err(damaged("something other than gzip follows the last member")),
        }
    }
}

/// The body of a gzip member, which is unpacked while it is read.
struct Member<'a, R> {
    packed: &'a mut R,
    inflater: &'a mut Decompress,
    crc: Crc,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Going,
    AtEnd,
    Damaged,
}

impl<'a, R: BufRead> Member<'a, R> {
    fn new(packed: &'a mut R, inflater: &'a mut Decompress) -> Self {
        Self { packed, inflater, crc: Crc::new(), state: State::Going }
    }

    /// Unpacks some of the available data into `into`. Returns the number of unpacked bytes.
    fn step(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ready = self.packed.fill_buf()?;
        let is_cut = ready.is_empty();
        let (read, written) = (self.inflater.total_in(), self.inflater.total_out());
        let status = self.inflater.decompress(ready, into, FlushDecompress::None);
        let read = (self.inflater.total_in() - read) as usize;
        let written = (self.inflater.total_out() - written) as usize;
        self.packed.consume(read);
        self.crc.update(into.get(..written).unwrap_or_default());
        match status {
            Ok(Status::StreamEnd) => self.state = State::AtEnd,
            Err(_) => self.state = State::Damaged,
            Ok(_) if read + written > 0 => {}
            Ok(_) if is_cut => return Err(io::ErrorKind::UnexpectedEof.into()),
            // No progress in spite of input and free space: without this the loop would never end.
            Ok(_) => self.state = State::Damaged,
        }
        Ok(written)
    }
}

impl<R: BufRead> Read for Member<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while matches!(self.state, State::Going) && !into.is_empty() {
            let written = self.step(into)?;
            if written > 0 {
                return Ok(written);
            }
        }
        match self.state {
            State::Damaged => Err(damaged("gzip: a member cannot be unpacked on")),
            State::Going | State::AtEnd => Ok(0),
        }
    }
}
