//! The reference of operators is the table of the code, and SQL spells them as it says.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and read the reference"
)]

use esker_query::model::Expr;
use esker_query::operator::{FILTER_OPERATORS, FilterFamily, FilterOperator, Operands, Subjects};

const REFERENCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/operators.md");
const START: &str = "<!-- operators -->\n";
const END: &str = "<!-- end of operators -->";

fn line(entry: &FilterOperator) -> String {
    let code = |names: &[&str]| {
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
    };
    let names = match entry.aliases {
        [] => code(&[entry.name]),
        aliases => format!("{}; also {}", code(&[entry.name]), code(aliases)),
    };
    let opposite = entry.opposite.map_or_else(|| "`not`".to_owned(), |name| code(&[name]));
    format!(
        "| {names} | `{}` | {} | {} | {opposite} | `{}` |\n",
        entry.sql,
        entry.meaning,
        entry.of_null.title(),
        entry.example.replace('|', "\\|")
    )
}

fn operators() -> String {
    let family = |family: &FilterFamily| {
        let entries = || FILTER_OPERATORS.iter().filter(|e| e.family == *family);
        let subjects = entries().next().map_or("", |e| e.subjects.title());
        let head = "| operator | SQL | meaning | of NULL | opposite | in a JSON query |\n\
                    |---|---|---|---|---|---|\n";
        let lines = entries().map(line).collect::<String>();
        format!("\n### {}\n\nFor {subjects}.\n\n{head}{lines}", family.title())
    };
    FilterFamily::ALL.iter().map(family).collect::<String>() + "\n"
}

/// With `ESKER_UPDATE_GUIDE` set, writes it.
#[test]
fn the_reference_has_the_operators_of_the_code() {
    let text = std::fs::read_to_string(REFERENCE).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let wanted = operators();
    if std::env::var_os("ESKER_UPDATE_GUIDE").is_some() {
        std::fs::write(REFERENCE, format!("{before}{START}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "run it with ESKER_UPDATE_GUIDE=1");
}

#[test]
fn sql_spells_operators_as_the_table_says() {
    for entry in FILTER_OPERATORS {
        let is_number = entry.takes_lengths() || entry.subjects == Subjects::All;
        let value = if is_number { "7" } else { "'s'" };
        for spelling in entry.sql.split(", ").filter(|s| !s.starts_with('…')) {
            let spelling = match entry.operands {
                Operands::Many => "x ".to_owned() + &entry.sql[2..].replace(", …", ""),
                // A comma within a call is no comma between spellings.
                _ if spelling.matches('(').count() != spelling.matches(')').count() => continue,
                _ if spelling.starts_with("v)") => continue,
                _ => spelling.replace(" [ESCAPE e]", ""),
            };
            let words: Vec<_> = spelling.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
            let spelled: String = words
                .into_iter()
                .map(|word| match word.trim_end_matches(|c: char| !c.is_alphanumeric()) {
                    "v" | "w" => word.replace(['v', 'w'], value),
                    _ => word.to_owned(),
                })
                .collect();
            check(entry, &spelled, value);
        }
        // Calls, whose comma is within.
        if let Some(call) = entry.sql.split(" ~ v, ").last().filter(|sql| sql.contains("(x, v)")) {
            let call = call.rsplit("~ v, ").next().unwrap();
            check(entry, &call.replace("(x, v)", &format!("(x, {value})")), value);
        }
    }
}

fn check(entry: &FilterOperator, spelled: &str, value: &str) {
    let parsed = esker_sql::parse(&format!("SELECT * FROM t WHERE {spelled}")).unwrap();
    let value: Expr = if value == "7" { 7i64.into() } else { "s".into() };
    let operands = match entry.operands {
        Operands::None => vec![],
        Operands::One | Operands::Many => vec![value],
        Operands::Two => vec![value.clone(), value],
        Operands::Field => vec![Expr::field("y")],
    };
    let wanted = entry.apply(Expr::field("x"), operands).unwrap();
    assert_eq!(parsed.filter.unwrap(), wanted, "{}: {spelled}", entry.name);
}
