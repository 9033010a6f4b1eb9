//! Unpacks Zstandard: a file of consecutive frames. Skippable frames are ignored.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::thread::Filler;
use super::watched::Watched;
use super::{damaged, unsupported};
use crate::limits::WINDOW_BYTES;

/// The number of bytes that are decoded before they are passed to the reader.
const STEP_BYTES: usize = 256 * 1024;

/// Unpacks every Zstandard frame of `packed`.
pub(super) fn unpack(packed: impl Read, output: &mut Filler) -> io::Result<()> {
    let mut packed = Watched::new(packed);
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_BYTES);
    while !packed.reader.fill_buf()?.is_empty() {
        match decoder.reset(&mut packed) {
            Ok(()) => unpack_frame(&mut decoder, &mut packed, output)?,
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                length,
                ..
            })) => packed.skip(u64::from(length))?,
            Err(error) => return Err(explain(&mut packed, error)),
        }
    }
    Ok(())
}

fn unpack_frame<R: Read>(
    decoder: &mut FrameDecoder,
    packed: &mut Watched<R>,
    output: &mut Filler,
) -> io::Result<()> {
    while !decoder.is_finished() {
        let step = BlockDecodingStrategy::UptoBytes(STEP_BYTES);
        if let Err(error) = decoder.decode_blocks(&mut *packed, step) {
            let error = explain(packed, error);
            give_up_window(decoder);
            output.take_all(decoder)?;
            return Err(error);
        }
        output.take_all(decoder)?;
    }
    match (decoder.get_checksum_from_data(), decoder.get_calculated_checksum()) {
        (Some(stored), Some(found)) if stored != found => {
            Err(damaged("zstd: the checksum is wrong"))
        }
        _ => Ok(()),
    }
}

/// Makes the decoder return the window of data that it keeps for decoding. Call it after an error of the
/// decoder, because the data before the error is worth reporting. For this purpose, the decoder gets an empty
/// last block, and a checksum if the frame should have one.
fn give_up_window(decoder: &mut FrameDecoder) {
    const EMPTY_LAST_BLOCK_AND_CHECKSUM: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
    // If even this fails, everything possible has been returned.
    let _ = decoder.decode_blocks(&EMPTY_LAST_BLOCK_AND_CHECKSUM[..], BlockDecodingStrategy::All);
}

/// Returns the cause of the decoder's `error`: the input's own error or end if there was one, otherwise the decoder's
/// message.
fn explain<R>(packed: &mut Watched<R>, error: FrameDecoderError) -> io::Error {
    match (packed.failed.take(), error) {
        (Some(failed), _) => failed,
        (None, FrameDecoderError::WindowSizeTooBig { requested, max }) => {
            unsupported(format_args!(
                "zstd needs a window of {requested} bytes, more than {max}; unpack it first: \
                     zstd -d --long=31"
            ))
        }
        (None, FrameDecoderError::DictNotProvided { dict_id }) => unsupported(format_args!(
            "zstd needs dictionary {dict_id}; unpack it first: zstd -d -D DICTIONARY"
        )),
        (None, error) => damaged(format_args!("zstd: {error}")),
    }
}
