//! Reading what a server has, by its own protocols.

use esker::Value;
use esker_client::{Call, Client};

use super::Error;
use super::ending_keys::{self, Keys};
use super::families;
use super::http::Http;
use super::judge::Contents;
use super::line::{ACCOUNTS, BALANCE, Kind, Line, Part, load_rows, text, transfer, value};
use super::redis::{Redis, Reply};
use super::redis_clients::{WATCHED, number};
use super::served::Place;
use super::stream_clients;

/// Keys of a bucket that are asked for at a time.
const KEYS: i64 = 100;

/// Makes the tables that are not there.
pub(super) fn prepare(place: &Place, lines: &[Line]) -> Result<(), Error> {
    let mut client = Client::connect(&place.wire)?;
    for statement in [
        "CREATE TABLE IF NOT EXISTS rows (client i64, n i64, text text, PRIMARY KEY (client, n))",
        "CREATE TABLE IF NOT EXISTS loads \
         (client i64, n i64, part i64, PRIMARY KEY (client, n, part))",
        "CREATE TABLE IF NOT EXISTS accounts (id i64 PRIMARY KEY, balance i64)",
        "CREATE TABLE IF NOT EXISTS debits \
         (client i64, n i64, account i64, amount i64, PRIMARY KEY (client, n))",
        "CREATE TABLE IF NOT EXISTS credits \
         (client i64, n i64, account i64, amount i64, PRIMARY KEY (client, n))",
        "CREATE TABLE IF NOT EXISTS counters (id i64 PRIMARY KEY, n i64)",
        "CREATE TABLE IF NOT EXISTS events (client i64, n i64, part i64)",
    ]
    .iter()
    .chain(&families::DEFINITIONS)
    .chain([&stream_clients::DEFINITION])
    {
        client.sql(statement, &[])?;
    }
    let pair = |id: i64, value: i64| vec![Value::from(id), value.into()];
    if client.get("accounts", &[0i64.into()])?.is_none() {
        let rows: Vec<_> = (0..ACCOUNTS).map(|id| pair(id, BALANCE)).collect();
        client.insert("accounts", &rows)?;
    }
    let counts = |line: &&Line| matches!(line.kind, Kind::OnceUpdates | Kind::WireOnceUpdates);
    for line in lines.iter().filter(counts) {
        if client.get("counters", &[line.client.into()])?.is_none() {
            client.insert("counters", &[pair(line.client, 0)])?;
        }
    }
    let made = Http::connect(&place.http)?.ask("PUT", "/buckets/entries", &[], b"")?;
    if made.status != 409 {
        made.expect(201)?;
    }
    Ok(())
}

/// What the server has, each part of it as it was sent.
pub(super) fn read(place: &Place, lines: &[Line], seed: u64) -> Result<Contents, Error> {
    let mut http = Http::connect(&place.http)?;
    let report = http.ask("POST", "/check", &[], b"")?.expect(200)?.body;
    if !report.contains("\"sound\":true") {
        return Err(format!("check: {report}").into());
    }
    let mut contents = Contents::default();
    let mut client = Client::connect(&place.wire)?;
    read_tables(&mut client, &mut contents, seed)?;
    stream_clients::read(&mut client, &mut contents.parts)?;
    for (part, of, n, count) in families::read(&mut client, lines)? {
        contents.parts.insert((part, of, n), count);
    }
    read_entries(&mut client, &mut http, lines, &mut contents, seed)?;
    read_redis(&place.redis, lines, &mut contents, seed)?;
    Ok(contents)
}

/// Lets readers that follow a stream read all of it.
pub(super) fn catch_up(place: &Place, lines: &mut [Line]) -> Result<(), Error> {
    let all = stream_clients::count(&mut Client::connect(&place.wire)?)?;
    let mut readers = lines.iter_mut().filter(|line| line.kind == Kind::FollowedEvents);
    readers.try_for_each(|line| stream_clients::catch_up(line, &place.http, all))
}

pub(super) fn numbers(row: &[Value]) -> Result<Vec<i64>, Error> {
    let number = |value: &Value| match value {
        Value::Int(n) => Ok(*n),
        Value::Uint(n) => Ok(i64::try_from(*n)?),
        other => Err(Error::from(format!("expected a number, found {other}"))),
    };
    row.iter().map(number).collect()
}

fn read_tables(client: &mut Client, contents: &mut Contents, seed: u64) -> Result<(), Error> {
    for row in client.sql("SELECT client, n, text FROM rows", &[])?.rows {
        let (key, found) = row.split_at(2);
        let [of, n] = numbers(key)?.try_into().map_err(|_| "a row of another length")?;
        if found != [Value::from(text(seed, of, n))] {
            return Err(format!("row {of}, {n}: {found:?}").into());
        }
        *contents.parts.entry((Part::Row, of, n)).or_default() += 1;
    }
    let question = "SELECT client, n, count(*), sum(part) FROM loads GROUP BY client, n";
    for row in client.sql(question, &[])?.rows {
        let [of, n, count, sum] = numbers(&row)?.try_into().map_err(|_| "a row")?;
        let count = count.unsigned_abs();
        let whole = load_rows(n);
        if count == whole && sum.unsigned_abs() != whole * (whole - 1) / 2 {
            return Err(format!("load {of}, {n}: other rows than were sent").into());
        }
        contents.parts.insert((Part::LoadedRow, of, n), count);
    }
    for (table, part) in [("debits", Part::Debit), ("credits", Part::Credit)] {
        for row in client.sql(&format!("SELECT * FROM {table}"), &[])?.rows {
            let [of, n, account, amount] = numbers(&row)?.try_into().map_err(|_| "a row")?;
            let moved = transfer(seed, of, n);
            let expected = if part == Part::Debit { moved.from } else { moved.to };
            if (account, amount) != (expected, moved.amount) {
                return Err(format!("{table} {of}, {n}: {account}, {amount}: {moved:?}").into());
            }
            *contents.parts.entry((part, of, n)).or_default() += 1;
        }
    }
    for row in client.sql("SELECT id, balance FROM accounts", &[])?.rows {
        let [id, balance] = numbers(&row)?.try_into().map_err(|_| "a row")?;
        contents.balances.insert(id, balance);
    }
    for row in client.sql("SELECT id, n FROM counters", &[])?.rows {
        let [of, count] = numbers(&row)?.try_into().map_err(|_| "a row")?;
        contents.parts.extend((0..count).map(|n| ((Part::Update, of, n), 1)));
    }
    let question = "SELECT client, n, count(*) FROM events GROUP BY client, n";
    for row in client.sql(question, &[])?.rows {
        let [of, n, count] = numbers(&row)?.try_into().map_err(|_| "a row")?;
        contents.parts.insert((Part::Event, of, n), count.unsigned_abs());
    }
    Ok(())
}

fn read_entries(
    client: &mut Client,
    http: &mut Http,
    lines: &[Line],
    contents: &mut Contents,
    seed: u64,
) -> Result<(), Error> {
    let mut total = 0u64;
    let is_of_entries = |line: &&Line| matches!(line.kind, Kind::WireEntries | Kind::HttpEntries);
    for line in lines.iter().filter(is_of_entries) {
        for first in (0..line.sent).step_by(usize::try_from(KEYS)?) {
            let all: Vec<i64> = (first..line.sent).take(usize::try_from(KEYS)?).collect();
            let keys: Vec<_> = all.iter().map(|n| format!("{}.{n}", line.client)).collect();
            let values = client.call(&Call::bucket_get("entries", &keys))?.values()?;
            for (n, found) in all.into_iter().zip(values) {
                let Some(found) = found else { continue };
                if found != value(seed, line.client, n) {
                    return Err(format!("entry {}.{n}: other bytes", line.client).into());
                }
                contents.parts.insert((Part::Entry, line.client, n), 1);
                total += 1;
            }
        }
    }
    let described = http.ask("GET", "/buckets/entries", &[], b"")?.expect(200)?.body;
    match described.contains(&format!("\"entries\":{total},")) {
        true => Ok(()),
        false => Err(format!("{total} entries were sent: {described}").into()),
    }
}

fn read_redis(
    address: &str,
    lines: &[Line],
    contents: &mut Contents,
    seed: u64,
) -> Result<(), Error> {
    let mut redis = Redis::connect(address)?;
    let mut total = 0i64;
    let mut counters = Vec::new();
    for line in lines {
        match line.kind {
            Kind::Increments => counters.push(("n", Part::Increment, line)),
            Kind::RedisTransactions => {
                counters.push(("left", Part::Left, line));
                counters.push(("right", Part::Right, line));
                for n in 0..line.sent {
                    let key = format!("text:{}:{n}", line.client);
                    let Reply::Bytes(found) = redis.ask(&["GET", &key])? else { continue };
                    let Some(found) = found else { continue };
                    if found != text(seed, line.client, n).into_bytes() {
                        return Err(format!("{key}: other bytes").into());
                    }
                    contents.parts.insert((Part::Text, line.client, n), 1);
                    total += 1;
                }
            }
            Kind::WatchedCounts => total += read_marks(&mut redis, line, contents)?,
            _ => {}
        }
    }
    if let Reply::Bytes(Some(found)) = redis.ask(&["GET", WATCHED])? {
        contents.watched = number(&found)?;
        total += 1;
    }
    for (name, part, line) in counters {
        let reply = redis.ask(&["GET", &format!("{name}:{}", line.client)])?;
        let Reply::Bytes(Some(found)) = reply else { continue };
        total += 1;
        for n in 0..String::from_utf8_lossy(&found).parse()? {
            contents.parts.insert((part, line.client, n), 1);
        }
    }
    match redis.ask(&["DBSIZE"])? {
        Reply::Number(count) if count == total => {}
        other => return Err(format!("{total} keys of Redis's were sent: {other:?}").into()),
    }
    // Those that end are in another database.
    contents.keys = Keys::read(&mut redis, lines)?;
    for line in lines.iter().filter(|line| line.kind == Kind::EndingKeys) {
        let count = ending_keys::done(&mut redis, line.client)?;
        contents.parts.extend((0..count).map(|n| ((Part::Ending, line.client, n), 1)));
    }
    Ok(())
}

/// Reads what a client has raised a number to; how many keys there are.
fn read_marks(redis: &mut Redis, line: &Line, contents: &mut Contents) -> Result<i64, Error> {
    let mut total = 0;
    for n in 0..line.sent {
        let key = format!("mark:{}:{n}", line.client);
        let Reply::Bytes(Some(found)) = redis.ask(&["GET", &key])? else { continue };
        *contents.marks.entry(number(&found)?).or_default() += 1;
        contents.parts.insert((Part::Mark, line.client, n), 1);
        total += 1;
    }
    Ok(total)
}
