//! CONFIG GET: what programs ask for that measure, or look at persistence.

use super::call::{Call, Outcome};
use super::glob;

pub(super) fn get(call: &mut Call<'_>) -> Outcome {
    let databases = call.state.buckets.len().to_string();
    let bytes = call.state.request_bytes_max.to_string();
    let known = [
        ("appendonly", "yes"),
        ("databases", databases.as_str()),
        ("proto-max-bulk-len", bytes.as_str()),
        ("save", ""),
    ];
    let patterns = call.rest(2);
    // What is looked up by its name is answered with the name as it was given.
    let found = known.into_iter().filter_map(|(name, value)| {
        let is_named = |pattern: &&[u8]| pattern.eq_ignore_ascii_case(name.as_bytes());
        let is_match =
            |pattern: &&[u8]| glob::is_match(&pattern.to_ascii_lowercase(), name.as_bytes());
        let asked = || patterns.iter().map(|pattern| &**pattern);
        let any = || asked().find(is_match).map(|_| name.as_bytes());
        asked().find(is_named).or_else(any).map(|name| (name, value))
    });
    let found: Vec<_> = found.collect();
    call.reply.map(found.len());
    for (name, value) in found {
        call.reply.bulk(name);
        call.reply.bulk(value.as_bytes());
    }
    Ok(())
}
