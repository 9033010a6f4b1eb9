//! libFuzzer's entry to `rxo_fuzz::http::run`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::http::run(data));
