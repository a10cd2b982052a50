//! The guide of SQL says what happens: its statements are run, its functions are the code's.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and read the guide"
)]

use esker::{Database, Options, Value};
use esker_query::model::{FUNCTIONS, Family, FunctionEntry};
use esker_sql::{Outcome, Session};
use esker_vfs::sim::{Options as SimOptions, Simulation};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/sql.md");
const ROLLUPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/rollups.md");
const FUNCTIONS_PAGE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/functions.md");
const INTROSPECTION: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/introspection.md");
const START: &str = "<!-- functions -->\n";
const END: &str = "<!-- end of functions -->";

/// A statement, and the lines that it answers.
fn statements(guide: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut text = String::new();
    let mut in_sql = false;
    for line in guide.lines() {
        match line {
            "```sql" => in_sql = true,
            "```" => in_sql = false,
            _ if !in_sql => {}
            _ => match line.strip_prefix("-- ") {
                Some(answer) => found.last_mut().unwrap().1.push(answer.to_owned()),
                None => {
                    text.push_str(line);
                    text.push('\n');
                    if line.ends_with(';') {
                        found.push((std::mem::take(&mut text), Vec::new()));
                    }
                }
            },
        }
    }
    assert!(text.is_empty(), "a statement without an end: {text}");
    found
}

/// What a statement comes to, line by line.
fn answer(session: &mut Session, text: &str) -> Vec<String> {
    let outcome = match session.sql(text, ()) {
        Ok(outcome) => outcome,
        Err(e) => return vec![format!("error: {}", e.to_string().lines().next().unwrap())],
    };
    let rows = outcome.rows_changed();
    match &outcome {
        Outcome::Done(done) => return vec![done.clone()],
        Outcome::Plan(plan) => return plan.lines().map(str::to_owned).collect(),
        _ => {}
    }
    match outcome.into_rows() {
        Some(result) => {
            let row =
                |row: &Vec<Value>| row.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
            result.to_rows().iter().map(row).collect()
        }
        None if rows == 1 => vec!["1 row".into()],
        None => vec![format!("{rows} rows")],
    }
}

#[test]
fn every_statement_of_the_guide_does_what_it_says() {
    let statements = statements(&std::fs::read_to_string(GUIDE).unwrap());
    assert!(statements.len() > 25);
    expect_answers(statements);
}

#[test]
fn every_aggregate_of_the_reference_does_what_it_says() {
    let statements = statements(&std::fs::read_to_string(FUNCTIONS_PAGE).unwrap());
    assert!(statements.len() > 7);
    expect_answers(statements);
}

#[test]
fn every_statement_about_tables_does_what_it_says() {
    let statements = statements(&std::fs::read_to_string(INTROSPECTION).unwrap());
    assert!(statements.len() > 30);
    expect_answers(statements);
}

#[test]
fn every_statement_about_materialized_views_does_what_it_says() {
    let statements = statements(&std::fs::read_to_string(ROLLUPS).unwrap());
    assert!(statements.len() > 15);
    // Rows are sealed where there is a disk, once there are enough.
    let machine = Simulation::new(5, SimOptions::default());
    let options = Options::new().environment(machine.environment()).background(false);
    let options = options.group_limit(5_000, 64 << 20).small_group_limit(1);
    expect_answers_of(&options.open("db").unwrap(), statements);
}

fn expect_answers(statements: Vec<(String, Vec<String>)>) {
    expect_answers_of(&Options::new().memory().unwrap(), statements);
}

fn expect_answers_of(db: &Database, statements: Vec<(String, Vec<String>)>) {
    let mut session = Session::new(db);
    let mut wrong = String::new();
    for (text, wanted) in statements {
        let found = answer(&mut session, &text);
        db.wait_idle().unwrap();
        let fails = found.first().is_some_and(|line| line.starts_with("error"));
        let is_told = !wanted.is_empty() || fails;
        if is_told && found != wanted {
            wrong.push_str(&format!("{text}found:\n{}\n", found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn line(entry: &FunctionEntry) -> String {
    let FunctionEntry { name, operands, aliases, meaning, example: (example, value), .. } = entry;
    let also = match aliases {
        [] => String::new(),
        aliases => format!("; also `{}`", aliases.join("`, `")),
    };
    let (meaning, example) = (meaning.replace('|', "\\|"), example.replace('|', "\\|"));
    format!("| `{name}({operands})`{also} | {meaning} | `{example}` is `{value}` |\n")
}

fn functions() -> String {
    let family = |family: &Family| {
        let lines = FUNCTIONS.iter().filter(|e| e.family == *family).map(line);
        let head = "| function | what it is | example |\n|---|---|---|\n";
        format!("\n### {}\n\n{head}{}", family.title(), lines.collect::<String>())
    };
    Family::ALL.iter().map(family).collect::<String>() + "\n"
}

/// With `ESKER_UPDATE_GUIDE` set, writes it.
#[test]
fn the_functions_of_the_reference_are_those_of_the_code() {
    let page = std::fs::read_to_string(FUNCTIONS_PAGE).unwrap();
    let (before, rest) = page.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let wanted = functions();
    if std::env::var_os("ESKER_UPDATE_GUIDE").is_some() {
        std::fs::write(FUNCTIONS_PAGE, format!("{before}{START}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "run it with ESKER_UPDATE_GUIDE=1");
}
