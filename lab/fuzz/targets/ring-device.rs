//! libFuzzer's entry to `rxo_fuzz::rings::device`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::rings::device(data));
