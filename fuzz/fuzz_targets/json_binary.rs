//! See `esker_fuzz::json_binary`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| esker_fuzz::json_binary::run(data));
