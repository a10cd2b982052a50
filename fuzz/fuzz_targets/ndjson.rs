//! See `esker_fuzz::json`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::json::run_lines(data));
