//! Ten thousand keys a request.

use std::time::Instant;

use esker_client::{Call, Client, Value};
use esker_wire::pack::Token;
use esker_wire::{Kind, Reader};

use super::service::{Service, TABLE};
use crate::Result;
use crate::bench::{Bench, boxed};
use crate::data::key;
use crate::outcome::Outcome;

const KEYS: u64 = 10_000;
const REQUESTS: u64 = 50;

pub(super) fn run(bench: &mut Bench) -> Result<Outcome> {
    let rows = (KEYS * REQUESTS).max(bench.rows.min(1_000_000));
    let service = Service::with_rows(bench, "server-many", rows)?;
    let mut client = service.connect()?;
    let keys = |request: u64| -> Vec<Vec<Value>> {
        (0..KEYS).map(|i| vec![Value::Text(key(i * REQUESTS + request))]).collect()
    };
    let keys: Vec<Vec<Vec<Value>>> = (0..REQUESTS).map(keys).collect();
    let first = keys.first().ok_or("no keys")?;
    let found = client.get_many(TABLE, first).map_err(boxed)?;
    for (key, row) in first.iter().zip(&found) {
        let row = row.as_ref().ok_or("a row was not found")?;
        if row.first() != key.first() {
            return Err("another row was found".into());
        }
    }
    let changed = |keys: &Vec<Vec<Value>>| -> Vec<Vec<Value>> {
        keys.iter().map(|key| [key.as_slice(), &["changed".into()]].concat()).collect()
    };
    let of_keys = |call: fn(&str, &[Vec<Value>]) -> Call| -> Vec<Call> {
        keys.iter().map(|keys| call(TABLE, keys)).collect()
    };
    let (gets, exists) = (of_keys(Call::get), of_keys(Call::exists));
    let upserts: Vec<Call> = keys.iter().map(|keys| Call::upsert(TABLE, &changed(keys))).collect();
    let set = |key: &Vec<Value>| (key.clone(), vec![("value", Value::from("updated"))]);
    let update = |keys: &Vec<Vec<Value>>| -> Call {
        Call::update_many(TABLE, &keys.iter().map(set).collect::<Vec<_>>())
    };
    let updates: Vec<Call> = keys.iter().map(update).collect();
    let mut outcome = Outcome::default();
    outcome = outcome.and(rate(&mut client, &gets)?, None);
    outcome = outcome.and(rate(&mut client, &exists)?, None);
    outcome = outcome.and(rate(&mut client, &upserts)?, None);
    outcome = outcome.and(rate(&mut client, &updates)?, None);
    let before = service.count()?;
    outcome = outcome.and(rate(&mut client, &of_keys(Call::delete))?, None);
    if service.count()? + KEYS * REQUESTS != before {
        return Err("not all rows were removed".into());
    }
    drop(client);
    service.stop()?;
    Ok(outcome)
}

/// Keys per second, one request after another, which were encoded before; the answers are walked
/// value by value.
fn rate(client: &mut Client, calls: &[Call]) -> Result<f64> {
    let start = Instant::now();
    for call in calls {
        let mut pipeline = client.pipeline();
        pipeline.push(call);
        let mut walked = Ok(());
        let walk = |_, frame: &esker_wire::Frame<'_>| {
            if frame.kind() != Ok(Kind::Done) {
                walked = Err(String::from_utf8_lossy(frame.payload).into_owned());
                return;
            }
            let mut reader = Reader::new(frame.payload);
            while !reader.is_at_end() && walked.is_ok() {
                match reader.token() {
                    Ok(Token::Bool(false)) => walked = Err("a row was not found".to_owned()),
                    Ok(_) => {}
                    Err(e) => walked = Err(e.to_string()),
                }
            }
        };
        pipeline.run_with(walk).map_err(boxed)?;
        walked?;
    }
    Ok((KEYS * calls.len() as u64) as f64 / start.elapsed().as_secs_f64())
}
