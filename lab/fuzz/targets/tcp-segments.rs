//! libFuzzer's entry to `rxo_fuzz::tcp::segments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::tcp::segments(data));
