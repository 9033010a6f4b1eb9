//! libFuzzer's entry to `rxo_fuzz::cast::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::cast::run(data));
