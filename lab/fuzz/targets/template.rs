//! libFuzzer's entry to `rxo_fuzz::template`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::template::run(data));
