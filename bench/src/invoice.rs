//! `esker-bench invoice`: a million invoices of 64 fields with fourteen indexes, loaded and asked.
//!
//! Of every answer it is checked that there are as many rows as there should be, and that each is
//! one of those asked for: a row's number stands in its key.

use esker::{Database, NewIndex, QueryResult, Schema, Value};
use esker_format::schema::Alteration;

use crate::Result;
use crate::bench::{Bench, segments};
use crate::loading::{Form, INVOICES, load_as};
use crate::outcome::Goal::{AtLeast, AtMost};
use crate::outcome::Outcome;
use crate::outcome::Unit::{Microseconds, RowsPerSecond, Seconds};
use crate::rows::{Row, ask, row};
use crate::timing::{self, Timing};

const REPEATS: usize = 20;
const NAME: &str = "invoices";

/// Every row, in the order of the table.
pub(crate) const ROWS: &[Row] = &[
    row(
        "load-indexed",
        &[ask("NDJSON, 14 indexes, durable", AtLeast(0.25e6), RowsPerSecond, "(disk, bare)")],
        load,
    ),
    row("find", &[ask("the slowest", AtMost(500.0), Microseconds, "")], |b| ask_all(b, FINDS)),
    row("contains", &[ask("the slowest", AtMost(5_000.0), Microseconds, "")], |b| {
        ask_all(b, CONTAINS)
    }),
    row("fetch", &[ask("the slowest", AtMost(500.0), Microseconds, "")], |b| ask_all(b, FETCHES)),
    row("add-indexes", &[ask("14, afterwards", AtMost(1.0), Seconds, "")], add),
];

/// A question: which invoices are meant, and how many of them at most.
struct Question {
    sql: &'static str,
    is_meant: fn(u64) -> bool,
    limit: u64,
}

const fn find(sql: &'static str, is_meant: fn(u64) -> bool) -> Question {
    Question { sql, is_meant, limit: 10 }
}

const FINDS: &[Question] = &[
    find(
        "SELECT * FROM invoices WHERE supplierId = 'SUP-00000000000000000000000000000000' LIMIT 10",
        |i| i.is_multiple_of(100),
    ),
    find(
        "SELECT * FROM invoices WHERE buyerId = 'BUY-00000000000000000000000000000000' LIMIT 10",
        |i| i.is_multiple_of(500),
    ),
    find("SELECT * FROM invoices WHERE status IN ('APPROVED', 'PENDING') LIMIT 10", |i| {
        [1, 2].contains(&(i % 5))
    }),
    find(
        "SELECT * FROM invoices WHERE status = 'APPROVED' AND currencyCode = 'MYR' LIMIT 10",
        |_| false,
    ),
    find(
        "SELECT * FROM invoices WHERE status = 'APPROVED' AND totalIncludingTax >= 10000 LIMIT 10",
        |i| i % 5 == 2 && (100 + i % 49_900) * 106 >= 1_000_000,
    ),
    find(
        "SELECT * FROM invoices WHERE status = 'APPROVED' \
         AND invoiceDate BETWEEN '2024-01-01 00:00:00' AND '2024-12-31 00:00:00' LIMIT 10",
        |i| i % 5 == 2,
    ),
    find("SELECT * FROM invoices WHERE status = 'APPROVED' AND source = 'API' LIMIT 10", |i| {
        i % 20 == 12
    }),
    find("SELECT * FROM invoices WHERE irbmStatus = 'VALID' AND pdfSent LIMIT 10", |i| {
        i % 4 == 1 && i % 3 != 0
    }),
    find(
        "SELECT * FROM invoices WHERE invoiceDate >= '2024-01-01 00:00:00' \
         AND invoiceDate <= '2024-02-01 00:00:00' LIMIT 10",
        |i| date(i) <= (2, 1),
    ),
    find(
        "SELECT * FROM invoices WHERE createdAt >= '2024-01-01 00:00:00' \
         AND createdAt <= '2024-01-15 00:00:00' LIMIT 10",
        |i| date(i) <= (1, 15),
    ),
    find("SELECT * FROM invoices WHERE status = 'APPROVED' OR status = 'PENDING' LIMIT 10", |i| {
        [1, 2].contains(&(i % 5))
    }),
];

const CONTAINS: &[Question] = &[
    find("SELECT * FROM invoices WHERE contains(number, '00050') LIMIT 10", |i| {
        format!("INV-2026-{i:07}").contains("00050")
    }),
    find("SELECT * FROM invoices WHERE contains(batchNumber, 'BATCH-05') LIMIT 10", |i| {
        format!("BATCH-{:04}", i / 1_000).contains("BATCH-05")
    }),
];

const FETCHES: &[Question] = &[
    Question {
        sql: "SELECT * FROM invoices LIMIT 100 OFFSET 5000",
        is_meant: |_| true,
        limit: 100,
    },
    Question {
        sql: "SELECT key, number, status, totalIncludingTax, supplierId FROM invoices LIMIT 100",
        is_meant: |_| true,
        limit: 100,
    },
    Question { sql: "SELECT key FROM invoices LIMIT 100", is_meant: |_| true, limit: 100 },
];

/// Month and day of an invoice.
fn date(i: u64) -> (u64, u64) {
    let day = i % 366 + 1;
    ((day / 31 + 1).min(12), day % 28 + 1)
}

fn indexes() -> Vec<NewIndex> {
    let of = |fields: &[&str]| NewIndex::new(format!("by_{}", fields.join("_")), fields.to_vec());
    let mut indexes: Vec<NewIndex> = [
        "buyerId",
        "status",
        "irbmStatus",
        "supplierId",
        "invoiceDate",
        "number",
        "batchNumber",
        "validationDate",
        "submissionDate",
        "createdAt",
    ]
    .iter()
    .map(|field| of(&[*field]))
    .collect();
    for pair in [
        ["irbmStatus", "pdfSent"],
        ["status", "source"],
        ["status", "createdAt"],
        ["status", "invoiceDate"],
    ] {
        indexes.push(of(&pair));
    }
    indexes
}

/// The table with all indexes.
pub(crate) fn indexed() -> Result<Schema> {
    let add: Vec<_> = indexes().into_iter().map(Alteration::AddIndex).collect();
    Ok(INVOICES.schema()?.alter(&add)?)
}

fn load(bench: &mut Bench) -> Result<Outcome> {
    bench.kept.remove(NAME);
    let loaded = load_as(bench, &INVOICES, &indexed()?, Form::Ndjson)?;
    bench.kept.insert(NAME, loaded.database);
    Ok(Outcome::of(loaded.rate, loaded.bare)
        .segments(loaded.segments)
        .note(format!("{:.2} s, {:.2} s on the CPU", loaded.seconds, loaded.cpu_seconds)))
}

fn database(bench: &mut Bench) -> Result<Database> {
    if !bench.kept.contains_key(NAME) {
        load(bench)?;
    }
    Ok(bench.kept.get(NAME).cloned().ok_or("no invoices")?)
}

fn add(bench: &mut Bench) -> Result<Outcome> {
    let database = database(bench)?;
    for index in indexes() {
        database.drop_index(NAME, &index.name)?;
    }
    let start = std::time::Instant::now();
    database.create_indexes(NAME, &indexes())?;
    let elapsed = start.elapsed().as_secs_f64();
    let info = database.info();
    let table = info.tables.iter().find(|table| table.name == NAME).ok_or("no invoices")?;
    if table.indexes.len() != indexes().len() || table.indexes.iter().any(|i| i.built != i.of) {
        return Err("not every index is built".into());
    }
    Ok(Outcome::default().and(elapsed, None).segments(segments(&database, NAME)))
}

fn ask_all(bench: &mut Bench, questions: &[Question]) -> Result<Outcome> {
    let database = database(bench)?;
    let (mut slowest, mut of) = (Timing::default(), "");
    for question in questions {
        let query = esker_sql::parse(question.sql)?;
        check(question, &database.query(&query)?, bench.rows)?;
        let timing = timing::repeat(REPEATS, || database.query(&query))?;
        if timing.median >= slowest.median {
            (slowest, of) = (timing, question.sql);
        }
    }
    Ok(Outcome::default()
        .and(slowest.median, None)
        .segments(segments(&database, NAME))
        .note(format!("least {:.0} µs, of {of}", slowest.least)))
}

fn check(question: &Question, found: &QueryResult, rows: u64) -> Result<()> {
    let mut meant = (0..rows).filter(|i| (question.is_meant)(*i));
    let wanted = meant.by_ref().take(usize::try_from(question.limit)?).count();
    let found = found.to_rows();
    let is_meant = |row: &Vec<Value>| match row.first() {
        Some(Value::Text(key)) => {
            let i = key.strip_prefix("INV-").and_then(|number| number.parse().ok());
            i.is_some_and(|i| i < rows && (question.is_meant)(i))
        }
        _ => false,
    };
    if found.len() == wanted && found.iter().all(is_meant) {
        return Ok(());
    }
    Err(format!("wrong answer to {}: {} rows, not {wanted}", question.sql, found.len()).into())
}
