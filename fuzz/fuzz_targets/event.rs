//! See `esker_fuzz::event`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::event::run(data));
