//! `esker info DB [TABLE]`.

use std::path::Path;

use comfy_table::CellAlignment;
use esker::{Database, DefaultValue, IndexInfo, IndexKind, Info, Schema, TableInfo};
use esker_import::schema_text;
use esker_query::Constraint;
use esker_query::model::{Expr, Function};
use esker_vfs::{Environment, OpenMode};

use crate::arguments::InfoArguments;
use crate::failure::{Failure, Result, Status};
use crate::output::{plain_table, printable};
use crate::{Console, sql, units};

pub(crate) fn run(arguments: &InfoArguments, console: &mut Console<'_>) -> Result<()> {
    let database = sql::open_to_read(&arguments.db)?;
    let info = database.info();
    match &arguments.table {
        Some(name) => show_table(&database, &info, name, console),
        None => {
            show_tables(&info, console)?;
            show_figures(&arguments.db, &info, console)
        }
    }
}

/// How many files a database has, and how long they are together.
fn files(dir: &Path) -> Result<String> {
    let files = Environment::os().files;
    let names = files.list(dir)?;
    let mut bytes = 0;
    for name in &names {
        bytes += files.open(&dir.join(name), OpenMode::Read)?.len()?;
    }
    Ok(format!("{}, {}", units::count(names.len() as u64), units::bytes(bytes)))
}

pub(crate) fn show_tables(info: &Info, console: &mut Console<'_>) -> Result<()> {
    if info.tables.is_empty() {
        writeln!(console.out, "no tables")?;
    } else {
        let header = ["table", "rows", "dead", "segments", "groups", "data", "key index"];
        let mut table = plain_table(header);
        for t in &info.tables {
            table.add_row([
                printable(&t.name),
                units::count(t.live_rows),
                units::count(t.dead_rows),
                units::count(t.segments as u64),
                units::count(t.groups as u64),
                units::bytes(t.segment_bytes + t.group_bytes),
                units::bytes(t.index_bytes),
            ]);
        }
        table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
        writeln!(console.out, "{table}")?;
    }
    if !info.sequences.is_empty() {
        let mut table = plain_table(["sequence", "next", "start", "increment"]);
        for s in &info.sequences {
            let next = s.next.map_or_else(|| "no more".to_owned(), |next| next.to_string());
            let (start, increment) = (s.start.to_string(), s.increment.to_string());
            table.add_row([printable(&s.name), next, start, increment]);
        }
        table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
        writeln!(console.out, "\n{table}")?;
    }
    Ok(())
}

fn show_figures(dir: &Path, info: &Info, console: &mut Console<'_>) -> Result<()> {
    let memory = &info.memory;
    let parts = [
        ("files", files(dir)?),
        ("newest commit", units::count(info.visible_commit)),
        ("checkpoint at commit", units::count(info.checkpoint_commit)),
        ("memory", format!("{} of {}", units::bytes(memory.total), units::bytes(memory.limit))),
    ];
    for (name, value) in parts {
        writeln!(console.out, "{name:22}{value}")?;
    }
    if let Some(error) = &info.last_error {
        writeln!(console.out, "background work failed: {error}")?;
    }
    Ok(())
}

pub(crate) fn show_table(
    database: &Database,
    info: &Info,
    name: &str,
    console: &mut Console<'_>,
) -> Result<()> {
    let schema = database.table(name)?.schema();
    let found = info.tables.iter().find(|t| t.name == name);
    let t: &TableInfo = found
        .ok_or_else(|| Failure::new(Status::NotFound, format!("no figures for table {name:?}")))?;
    writeln!(console.out, "  {}\n", schema_text::parts(&schema).join(",\n  "))?;
    show_rules(&schema, console)?;
    let (segments, groups) = (t.segments as u64, t.groups as u64);
    let bytes = t.segment_bytes + t.group_bytes;
    let a_row = |bytes: u64| format!("{:.1} B a row", bytes as f64 / t.live_rows.max(1) as f64);
    let parts = [
        ("rows", units::count(t.live_rows)),
        ("dead versions", units::count(t.dead_rows)),
        (
            "sealed",
            format!("{}, {}", units::counted(segments, "segment"), units::bytes(t.segment_bytes)),
        ),
        (
            "not sealed",
            format!("{}, {}", units::counted(groups, "group"), units::bytes(t.group_bytes)),
        ),
        ("data", format!("{}, {}", units::bytes(bytes), a_row(bytes))),
        (
            "key index",
            format!("{} of memory, {}", units::bytes(t.index_bytes), a_row(t.index_bytes)),
        ),
    ];
    for (name, value) in parts {
        writeln!(console.out, "{name:22}{value}")?;
    }
    for (i, index) in t.indexes.iter().enumerate() {
        let label = if i == 0 { "indexes" } else { "" };
        let (name, fields) = (printable(&index.name), printable(&index.fields.join(", ")));
        let state = state_of(index);
        let kind = match (index.unique, index.kind) {
            (true, _) => ", unique".to_owned(),
            (false, IndexKind::Ordered) => String::new(),
            (false, kind) => format!(", {}", kind.name()),
        };
        writeln!(console.out, "{label:22}{name} ({fields}){kind}: {state}")?;
    }
    Ok(())
}

/// Defaults and checks, in SQL's spelling.
fn show_rules(schema: &Schema, console: &mut Console<'_>) -> Result<()> {
    let mut lines = Vec::new();
    for field in schema.fields() {
        let default = match &field.default {
            None => continue,
            Some(DefaultValue::Literal(value)) => Expr::Literal(value.clone()).to_string(),
            Some(DefaultValue::Now) => "now()".to_owned(),
            Some(DefaultValue::After(us)) => format!("{} s after it is written", us / 1_000_000),
            Some(DefaultValue::Uuid) => "uuid()".to_owned(),
            Some(DefaultValue::NextValue(name)) => {
                Expr::call(Function::Nextval, [Expr::literal(name.as_str())]).to_string()
            }
        };
        lines.push(format!("default of {}: {default}", printable(&field.name)));
    }
    if let Some(field) = schema.expiry_field() {
        lines.push(format!("rows expire by {}", printable(&field.name)));
    }
    for check in schema.checks() {
        let condition = Constraint::decode(&check.condition).map_err(esker::Error::from)?;
        lines.push(format!("check {}: {condition}", printable(&check.name)));
    }
    if !lines.is_empty() {
        writeln!(console.out, "  {}\n", lines.join("\n  "))?;
    }
    Ok(())
}

/// How much of an index is built.
fn state_of(index: &IndexInfo) -> String {
    let segments = units::counted(index.of as u64, "segment");
    let built = match (index.built, index.of) {
        (_, 0) => "nothing to build yet".to_owned(),
        (built, of) if built == of => format!("built for all of {segments}"),
        (built, _) => format!("built for {} of {segments}", units::count(built as u64)),
    };
    match index.too_many_values {
        0 => built,
        count => {
            let most = esker::BITMAP_VALUES_MAX;
            let count = units::count(count as u64);
            format!("{built}; too many values in {count} (more than {most}), scanned")
        }
    }
}
