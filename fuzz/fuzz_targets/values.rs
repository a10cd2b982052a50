//! See `esker_fuzz::values`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::values::run(data));
