//! The Internet checksum (in preparation; the lead's temporary text, overwrite freely, keep the names:
//! Sum{ZERO,of,word,of_length,fold,checksum,+}, Summer{detect,sum}, pseudo_header(&FlowKey,u8,u32)->Sum, verify_transport(&Parsed,&[u8],Summer)->bool).
#![allow(missing_docs, reason = "temporary")]
use crate::{FlowKey, Parsed};
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum(u64);
impl Sum {
    pub const ZERO: Self = Self(0);
    /// sum of a short run of bytes (headers), big-endian words
    #[inline]
    pub fn of(bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut sum: u64 = words.iter().map(|w| u64::from(u32::from_be_bytes(*w))).sum();
        let (halves, last) = rest.as_chunks::<2>();
        sum += halves.iter().map(|w| u64::from(u16::from_be_bytes(*w))).sum::<u64>();
        if let [b] = last { sum += u64::from(*b) << 8; }
        Self(sum)
    }
    #[inline]
    pub const fn of_words(w: [u32; 2]) -> Self { Self(w[0] as u64 + w[1] as u64) }
    #[inline]
    pub const fn word(word: u16) -> Self { Self(word as u64) }
    #[inline]
    pub const fn fold(self) -> u16 {
        let s = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        let s = (s >> 16) + (s & 0xffff);
        let s = (s >> 16) + (s & 0xffff);
        ((s >> 16) + (s & 0xffff)) as u16
    }
    #[inline]
    pub const fn checksum(self) -> u16 { !self.fold() }
    pub const fn swapped(self) -> Self { Self(self.fold().swap_bytes() as u64) }
}
impl core::ops::Add for Sum { type Output = Self; #[inline] fn add(self, o: Self) -> Self { Self(self.0 + o.0) } }
impl core::ops::Sub for Sum { type Output = Self; #[inline] fn sub(self, o: Self) -> Self { Self(self.0 + u64::from(!o.fold())) } }
#[derive(Clone, Copy, Debug)]
pub struct Summer;
impl Summer { pub fn detect() -> Self { Self } #[inline] pub fn sum(self, b: &[u8]) -> Sum { Sum::of(b) } }
#[inline]
pub fn pseudo_header(key: &FlowKey, protocol: u8, bytes: u32) -> Sum {
    key.address_sum() + Sum(u64::from(protocol) + u64::from(bytes))
}
pub fn verify_transport(parsed: &Parsed, frame: &[u8], summer: Summer) -> bool {
    let seg = &frame[parsed.transport_at as usize..parsed.end as usize];
    (summer.sum(seg) + pseudo_header(&parsed.key, 6, seg.len() as u32)).fold() == 0xffff
}
