//! libFuzzer's entry to `rxo_fuzz::split`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::split::run(data));
