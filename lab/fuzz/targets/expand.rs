//! libFuzzer's entry to `rxo_fuzz::expand`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::expand::run(data));
