//! Clients that speak the wire protocol.

use esker_client::{Call, Client, Code, Duplicates, Format};
use esker_wire::Kind as FrameKind;

use super::line::{Line, load_rows, load_text, text, transfer, value};
use super::{Ended, Outcome};

/// Requests of a client that are under way at a time.
const DEPTH: usize = 8;

/// Rows, one after another.
pub(super) fn write_rows(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let n = line.begin();
        let row = vec![line.client.into(), n.into(), text(seed, line.client, n).into()];
        client.insert("rows", &[row])?;
        line.answer();
    }
}

/// Rows, many requests at a time.
pub(super) fn pipeline_rows(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let mut pipeline = client.pipeline();
        for _ in 0..DEPTH {
            let n = line.begin();
            let row = vec![line.client.into(), n.into(), text(seed, line.client, n).into()];
            pipeline.push(&Call::insert("rows", &[row]));
        }
        let mut answered = [false; DEPTH];
        let mut refused = false;
        let outcome = pipeline.run_with(|position, frame| match frame.kind() {
            Ok(FrameKind::Done) => {
                if let Some(slot) = answered.get_mut(position) {
                    *slot = true;
                }
            }
            _ => refused = true,
        });
        // What survives is a prefix: so is what was answered of one connection.
        answered.iter().take_while(|answered| **answered).for_each(|_| line.answer());
        if refused {
            return Err(Ended::Wrong("a row was refused".to_owned()));
        }
        outcome?;
    }
}

/// Loads, in each form in turn.
pub(super) fn load_rows_of_all_forms(line: &mut Line, address: &str) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let n = line.begin();
        let format = match n % 3 {
            0 => Format::MessagePack,
            1 => Format::Csv,
            _ => Format::Ndjson,
        };
        let mut load = client.load("loads", format, Duplicates::Error)?;
        match format {
            Format::MessagePack => {
                for part in 0..load_rows(n) {
                    load.push(&[line.client.into(), n.into(), part.into()])?;
                }
            }
            _ => load.push_text(load_text(format == Format::Csv, line.client, n).as_bytes())?,
        }
        load.finish()?;
        line.answer();
    }
}

/// Money from one account to another, and a row about each end of it, in one transaction.
pub(super) fn transfer_money(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let n = line.begin();
        loop {
            match transfer_once(&mut client, line, n, seed) {
                Err(e) if e.code() == Some(Code::Conflict) => {
                    line.counts.conflicts += 1;
                    // A commit that met it has ended the transaction already.
                    match client.rollback() {
                        Err(e) if e.code().is_none() => return Err(e.into()),
                        _ => {}
                    }
                }
                outcome => break outcome?,
            }
        }
        line.answer();
    }
}

fn transfer_once(client: &mut Client, line: &Line, n: i64, seed: u64) -> esker_client::Result<()> {
    let moved = transfer(seed, line.client, n);
    client.begin()?;
    let update = "UPDATE accounts SET balance = balance + ? WHERE id = ?";
    client.sql(update, &[(-moved.amount).into(), moved.from.into()])?;
    client.sql(update, &[moved.amount.into(), moved.to.into()])?;
    for (table, account) in [("debits", moved.from), ("credits", moved.to)] {
        let row = [line.client, n, account, moved.amount].map(Into::into).to_vec();
        client.insert(table, &[row])?;
    }
    client.commit()
}

/// Entries of a bucket.
pub(super) fn put_entries(line: &mut Line, address: &str, seed: u64) -> Outcome {
    let mut client = Client::connect(address)?;
    loop {
        let n = line.begin();
        let key = format!("{}.{n}", line.client);
        client.bucket_put("entries", key, value(seed, line.client, n))?;
        line.answer();
    }
}

/// Writes with an idempotency key. What the last server left unanswered is sent again first.
pub(super) fn write_once(line: &mut Line, address: &str) -> Outcome {
    let mut client = Client::connect(address)?;
    let of = line.client;
    let add = |n: i64, by: i64| {
        let update = "UPDATE counters SET n = n + ? WHERE id = ?";
        Call::sql(update, &[by.into(), of.into()]).once(&n.to_string())
    };
    if line.sent > line.answered {
        client.call(&add(line.answered, 1))?;
        line.answer();
        line.counts.retried += 1;
    }
    if line.answered > 0 {
        let found = client.sql("SELECT n FROM counters WHERE id = ?", &[of.into()])?.rows;
        let found = found.first().and_then(|row| row.first()).map(ToString::to_string);
        if found != Some(line.answered.to_string()) {
            let message = format!("counter {of}: {found:?}, not {}", line.answered);
            return Err(Ended::Wrong(message));
        }
        match client.call(&add(line.answered - 1, 2)) {
            Err(e) if e.code() == Some(Code::InvalidRequest) => line.counts.refused += 1,
            Err(e) => return Err(e.into()),
            Ok(_) => return Err(Ended::Wrong("a key with another body was taken".to_owned())),
        }
    }
    loop {
        let n = line.begin();
        client.call(&add(n, 1))?;
        line.answer();
    }
}
