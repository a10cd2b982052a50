//! See `esker_fuzz::database`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::database::run(data));
