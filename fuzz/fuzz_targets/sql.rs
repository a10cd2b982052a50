//! See `esker_fuzz::sql`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::sql::run(data));
