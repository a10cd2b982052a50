//! See `esker_fuzz::transaction`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::transaction::run(data));
