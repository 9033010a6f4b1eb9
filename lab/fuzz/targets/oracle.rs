//! libFuzzer's entry to `rxo_fuzz::oracle`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::oracle::run(data));
