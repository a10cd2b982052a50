//! See `esker_fuzz::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::frame::run(data));
