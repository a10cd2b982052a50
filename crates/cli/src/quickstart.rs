//! `esker quickstart [DIR] [--serve]`: a year of real flights, loaded, queried and served.

use std::time::Duration;

use esker::{Database, ErrorKind, NewIndex, Schema, Table};
use esker_import::{ImportOptions, ImportReader, schema_text};
use esker_vfs::Environment;

use crate::arguments::{Format, QuickstartArguments, ServeArguments, ServeFlags};
use crate::failure::{Failure, Result};
use crate::{Console, load, output, serve, sql, units};

/// A table of the example data.
struct Example {
    table: &'static str,
    key: &'static [&'static str],
    holds: &'static str,
    bytes: &'static [u8],
}

const EXAMPLES: [Example; 5] = [
    Example {
        table: "flights",
        key: &[],
        holds: "every flight that left New York City in 2013",
        bytes: include_bytes!("../../../examples/flights/flights.csv.zst"),
    },
    Example {
        table: "airlines",
        key: &["carrier"],
        holds: "the names behind the carrier codes",
        bytes: include_bytes!("../../../examples/flights/airlines.csv.zst"),
    },
    Example {
        table: "airports",
        key: &["faa"],
        holds: "where the airports are",
        bytes: include_bytes!("../../../examples/flights/airports.csv.zst"),
    },
    Example {
        table: "planes",
        key: &["tailnum"],
        holds: "the aircraft, by tail number",
        bytes: include_bytes!("../../../examples/flights/planes.csv.zst"),
    },
    Example {
        table: "weather",
        key: &[],
        holds: "the weather at the three airports, hour by hour",
        bytes: include_bytes!("../../../examples/flights/weather.csv.zst"),
    },
];

const QUESTIONS: [(&str, &str); 8] = [
    (
        "Which airlines fly most, and how late do they arrive?",
        "SELECT carrier, count(*) AS flights, round(avg(arr_delay), 1) AS minutes_late
FROM flights GROUP BY carrier ORDER BY flights DESC LIMIT 5",
    ),
    (
        "What are these airlines called?",
        "SELECT name, count(*) AS flights
FROM flights JOIN airlines USING (carrier) GROUP BY name ORDER BY flights DESC LIMIT 3",
    ),
    (
        "In which months are flights late, and in which are they cancelled?",
        "SELECT month, round(avg(dep_delay), 1) AS minutes_late,
       count(*) - count(dep_time) AS cancelled
FROM flights GROUP BY month ORDER BY minutes_late DESC LIMIT 4",
    ),
    (
        "When should one leave to be on time?",
        "SELECT hour, round(avg(arr_delay), 1) AS minutes_late, count(*) AS flights
FROM flights GROUP BY hour HAVING count(arr_delay) > 1000 ORDER BY minutes_late LIMIT 4",
    ),
    (
        "Which days went wrong?",
        "SELECT month, day, round(avg(dep_delay), 1) AS minutes_late,
       count(*) - count(dep_time) AS cancelled
FROM flights GROUP BY month, day ORDER BY minutes_late DESC LIMIT 4",
    ),
    (
        "How often does a flight that left late arrive early?",
        "SELECT count(*) AS flights, round(avg(dep_delay), 1) AS left_late,
       round(avg(arr_delay), 1) AS arrived_late, round(avg(distance)) AS miles
FROM flights WHERE dep_delay > 0 AND arr_delay < 0",
    ),
    (
        "Which aircraft flew most?",
        "SELECT tailnum, count(*) AS flights, sum(distance) AS miles
FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum ORDER BY miles DESC LIMIT 4",
    ),
    (
        "When did it blow hardest?",
        "SELECT origin, time_hour, wind_gust, visib
FROM weather WHERE wind_gust > 55 ORDER BY wind_gust DESC, time_hour LIMIT 4",
    ),
];

/// An index, and a question that it answers.
struct IndexedQuestion {
    index: &'static str,
    fields: &'static [&'static str],
    statement: &'static str,
}

const INDEXED: [IndexedQuestion; 3] = [
    IndexedQuestion {
        index: "by_tailnum",
        fields: &["tailnum"],
        statement: "SELECT time_hour, origin, dest FROM flights WHERE tailnum = 'N14228'",
    },
    IndexedQuestion {
        index: "by_carrier_dep_delay",
        fields: &["carrier", "dep_delay"],
        statement: "SELECT count(*) FROM flights WHERE carrier = 'UA' AND dep_delay > 60",
    },
    IndexedQuestion {
        index: "by_distance",
        fields: &["distance"],
        statement: "SELECT flight, dest, distance FROM flights ORDER BY distance LIMIT 5",
    },
];

/// How often a question runs; the quickest counts.
const TIMES: usize = 5;

pub(crate) fn run(arguments: &QuickstartArguments, console: &mut Console<'_>) -> Result<()> {
    let environment = Environment::os();
    let dir = arguments.dir.display();
    writeln!(console.out, "Esker quickstart: a year of flights, in the database {dir}\n")?;
    let database = Database::open(&arguments.dir)?;
    writeln!(
        console.out,
        "1. Load five tables from compressed CSV. Each is loaded whole or not at all, and is on \
         the disk when its line appears.\n"
    )?;
    for example in &EXAMPLES {
        load_example(&environment, &database, example, console)?;
    }
    writeln!(
        console.out,
        "\n2. Ask eight questions. Each reads the columns it names from end to end: no index helps."
    )?;
    for (number, (question, statement)) in QUESTIONS.iter().enumerate() {
        let shown = statement.replace('\n', "\n    ");
        writeln!(console.out, "\n({}) {question}\n    {shown}", number + 1)?;
        let result = database.query(&esker_sql::parse(statement)?)?;
        output::write_result(console.out, &result, Format::Table, &output::Style::default())?;
        writeln!(console.out, "{}", sql::timing(&result))?;
        console.out.flush()?;
    }
    ask_with_indexes(&environment, &database, console)?;
    database.close()?;
    if arguments.serve {
        return serve_it(arguments, console);
    }
    let next = format!(
        "\n4. Try next:\n\
         \x20   esker info {dir} flights\n\
         \x20   esker get {dir} planes N14228\n\
         \x20   esker sql {dir} \"SELECT dest, count(*) FROM flights GROUP BY dest\"\n\
         \x20   esker sql {dir} \"EXPLAIN SELECT * FROM flights WHERE tailnum = 'N14228'\"\n\
         \x20   esker sql {dir}                # a shell\n\
         \x20   esker load {dir} mine FILE     # .csv, .ndjson, .json, also .gz\n\
         \x20   esker export {dir} planes\n\
         \x20   esker check {dir}\n\
         (In a clone of the repository: `cargo run --release --bin esker -- info {dir}` and so on.)"
    );
    writeln!(console.out, "{next}")?;
    Ok(())
}

/// Serves the database until it is stopped. The data is public, so no one on this machine
/// needs a token; where it listens may still come from the environment.
fn serve_it(arguments: &QuickstartArguments, console: &mut Console<'_>) -> Result<()> {
    writeln!(
        console.out,
        "\n4. Serve it, until Ctrl-C. What to ask is in docs/guide/server.md.\n"
    )?;
    let flags = ServeFlags(vec![("trust_local", "true".to_owned())]);
    let db = Some(arguments.dir.clone());
    serve::run(&ServeArguments { db, config: None, flags }, console)
}

/// Asks questions, makes indexes, and asks again.
fn ask_with_indexes(
    environment: &Environment,
    database: &Database,
    console: &mut Console<'_>,
) -> Result<()> {
    const TABLE: &str = "flights";
    writeln!(
        console.out,
        "\n3. Make three indexes, and ask what they are for: before and after. The answers are \
         the same.\n"
    )?;
    // Those of an earlier run.
    let schema = database.table(TABLE)?.schema();
    for index in schema.row_indexes() {
        if INDEXED.iter().any(|known| known.index == index.name) {
            database.drop_index(TABLE, &index.name)?;
        }
    }
    let before = ask_indexed(environment, database)?;
    let started_ns = environment.clock.monotonic_ns();
    let new = |q: &IndexedQuestion| NewIndex::new(q.index, q.fields.iter().copied());
    database.create_indexes(TABLE, &INDEXED.iter().map(new).collect::<Vec<_>>())?;
    let built = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    let after = ask_indexed(environment, database)?;
    for ((question, before), after) in INDEXED.iter().zip(before).zip(after) {
        let (before, after) = (units::duration(before), units::duration(after));
        writeln!(console.out, "    {}\n        {before} → {after}", question.statement)?;
    }
    let built = units::duration(built);
    writeln!(console.out, "    (the three were made in {built})")?;
    console.out.flush()?;
    Ok(())
}

/// How long each question takes.
fn ask_indexed(environment: &Environment, database: &Database) -> Result<Vec<Duration>> {
    let mut elapsed = Vec::with_capacity(INDEXED.len());
    for question in &INDEXED {
        let query = esker_sql::parse(question.statement)?;
        let mut least_ns = u64::MAX;
        for _ in 0..TIMES {
            let started_ns = environment.clock.monotonic_ns();
            database.query(&query)?;
            least_ns = least_ns.min(environment.clock.monotonic_ns() - started_ns);
        }
        elapsed.push(Duration::from_nanos(least_ns));
    }
    Ok(elapsed)
}

/// Loads one table, unless an earlier run has.
fn load_example(
    environment: &Environment,
    database: &Database,
    example: &Example,
    console: &mut Console<'_>,
) -> Result<()> {
    let Example { table: name, key, holds, bytes } = example;
    let existing = match database.table(name) {
        Ok(table) => Some(table),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e.into()),
    };
    let existing_rows = existing.as_ref().map_or(Ok(0), Table::count)?;
    if existing_rows > 0 {
        let rows = units::counted(existing_rows, "row");
        writeln!(console.out, "    {name:8}  {rows}, loaded by an earlier run: {holds}")?;
        return Ok(());
    }
    let started_ns = environment.clock.monotonic_ns();
    let options = ImportOptions::default().nulls(["NA"]).strict(true).key(key.iter().copied());
    let (file, length) = (format!("{name}.csv.zst"), Some(bytes.len() as u64));
    let reader = ImportReader::from_reader(environment, &file, *bytes, length, options)?;
    let columns = reader.schema().fields().len();
    let report = match existing {
        // An earlier run was interrupted between making and filling it.
        Some(table) if *table.schema() != *reader.schema() => {
            return Err(not_the_example(name, &table.schema(), reader.schema()));
        }
        existing => load::load_example(database, name, existing, reader)?,
    };
    let elapsed = Duration::from_nanos(environment.clock.monotonic_ns() - started_ns);
    let (rows, rate) = (units::count(report.rows), units::rate(report.rows, elapsed));
    let time = units::duration(elapsed);
    writeln!(
        console.out,
        "    {name:8}  {rows:>7} × {columns:<2}  {time:>8}  {rate:>13}   {holds}"
    )?;
    console.out.flush()?;
    Ok(())
}

/// An empty table of an example's name is its owner's, not ours to fill or to remove.
fn not_the_example(name: &str, found: &Schema, wanted: &Schema) -> Failure {
    let [found, wanted] = [found, wanted].map(|schema| schema_text::parts(schema).join(", "));
    Failure::usage(format!(
        "table {name:?} exists, empty, with other fields than the example has: expected \
         ({wanted}), found ({found}); give another directory"
    ))
}
