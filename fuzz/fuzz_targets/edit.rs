//! See `esker_fuzz::edit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::edit::run(data));
