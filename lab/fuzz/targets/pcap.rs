//! libFuzzer's entry to `rxo_fuzz::pcap`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| rxo_fuzz::pcap::run(data));
