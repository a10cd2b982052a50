//! See `esker_fuzz::text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::text::run(data));
