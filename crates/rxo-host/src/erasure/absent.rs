//! The erasure code in a build without the feature `parity`: it computes no parity packets and restores no
//! segments.

use rxo_tcp::{IncompleteBlock, ParityBlock, Text};

pub(crate) const IS_BUILT: bool = false;

#[derive(Debug, Default)]
pub(crate) struct Encoder {}

impl Encoder {
    pub(crate) fn symbol(&mut self, _: &ParityBlock, _: u8, _: Text<'_>) -> Option<&[u8]> {
        None
    }
}

#[derive(Debug, Default)]
pub(crate) struct Decoder {}

impl Decoder {
    pub(crate) fn restore(
        &mut self,
        _: &IncompleteBlock,
        _: impl FnMut(usize, &mut [u8]) -> bool,
        _: impl FnMut(usize, &[u8]),
    ) {
    }
}
