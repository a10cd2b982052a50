//! See `esker_fuzz::key`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::key::run(data));
