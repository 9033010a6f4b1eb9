//! libFuzzer's entry to `rxo_fuzz::pcapng`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::pcapng::run(data));
