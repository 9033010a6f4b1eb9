//! Numbers of variable length, and a reader that does not trust its input.

use super::BadNote;

/// Appends `number` to `to`, seven bits a byte, least significant first.
pub(crate) fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Appends `number` to `to`. Positive and negative numbers near 0 both take few bytes.
pub(crate) fn put_signed(to: &mut Vec<u8>, number: i64) {
    put_number(to, (number << 1 ^ number >> 63) as u64);
}

/// A reader of encoded numbers and bytes. A length that exceeds the input causes an error, because the input is
/// not trusted.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns `true` if all bytes of the input were read.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads and returns the next byte.
    ///
    /// # Errors
    /// If no byte is left in the input.
    pub fn byte(&mut self) -> Result<u8, BadNote> {
        let (first, rest) = self.rest.split_first().ok_or(ENDS)?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads and returns the next `count` bytes.
    ///
    /// # Errors
    /// If fewer bytes are left in the input.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], BadNote> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(ENDS)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads and returns the next two bytes.
    ///
    /// # Errors
    /// If fewer bytes are left in the input.
    pub fn pair(&mut self) -> Result<[u8; 2], BadNote> {
        self.bytes(2)?.try_into().map_err(|_| ENDS)
    }

    /// Reads and returns the next number.
    ///
    /// # Errors
    /// If the number does not end, or does not fit into 64 bits.
    pub fn number(&mut self) -> Result<u64, BadNote> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadNote("holds a number of more than 64 bits"))
    }

    /// Reads and returns the next number, which is a size of at most `most`.
    ///
    /// # Errors
    /// The errors of [`Reader::number`], and an error if the number is larger than `most`.
    pub fn size(&mut self, most: usize) -> Result<usize, BadNote> {
        let size = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if size > most { Err(BadNote("holds an invalid size")) } else { Ok(size) }
    }

    /// Reads and returns the next signed number.
    ///
    /// # Errors
    /// The errors of [`Reader::number`].
    pub fn signed(&mut self) -> Result<i64, BadNote> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

const ENDS: BadNote = BadNote("ends early");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_number_comes_back(number: u64, signed: i64) {
            let mut bytes = Vec::new();
            put_number(&mut bytes, number);
            put_signed(&mut bytes, signed);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert!(reader.is_at_end());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while !reader.is_at_end() {
                if reader.number().is_err() {
                    break;
                }
            }
        }
    }

    #[test]
    fn small_numbers_take_one_byte() {
        for number in [0, 1, -1, 63, -64] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(bytes.len(), 1, "{number}");
        }
    }

    #[test]
    fn a_number_that_never_ends_is_refused() {
        assert!(Reader::new(&[0xff; 20]).number().is_err());
        assert_eq!(Reader::new(&[0x80]).number(), Err(ENDS));
    }
}
