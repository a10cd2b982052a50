//! See `esker_fuzz::csv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::csv::run(data));
