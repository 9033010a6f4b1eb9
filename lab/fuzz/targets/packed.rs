//! libFuzzer's entry to `rxo_fuzz::packed`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::packed::run(data));
