//! See `esker_fuzz::columns`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::columns::run(data));
