//! `esker info DB [TABLE]`.

use comfy_table::CellAlignment;
use esker::{IndexInfo, IndexKind, SequenceInfo, StreamInfo, TableInfo, Value, ViewInfo};
use esker_server::session::{AdminTask, DatabaseFigures, TableFigures};

use crate::arguments::InfoArguments;
use crate::failure::Result;
use crate::output::{plain_table, printable};
use crate::{Console, clock, remote, sql, units};

pub(crate) fn run(arguments: &InfoArguments, console: &mut Console<'_>) -> Result<()> {
    let table = arguments.table.as_deref();
    if let Some(address) = remote::address(&arguments.db) {
        let mut client = remote::connect(address)?;
        let task = AdminTask::Info { table: table.map(str::to_owned) };
        return match table {
            Some(_) => show_table(&remote::admin(&mut client, &task)?, console),
            None => show_database(&remote::admin(&mut client, &task)?, console),
        };
    }
    let database = sql::open_to_read(&arguments.db)?;
    let view = database.views().into_iter().find(|view| Some(view.name.as_str()) == table);
    if let Some(view) = view {
        return show_view(&view, console);
    }
    match table {
        Some(name) => show_table(&TableFigures::of(&database, name)?, console),
        None => show_database(&DatabaseFigures::of(&database)?, console),
    }
}

fn show_database(figures: &DatabaseFigures, console: &mut Console<'_>) -> Result<()> {
    show_tables(figures, console)?;
    let (files, memory) = (&figures.files, &figures.memory);
    let parts = [
        ("files", format!("{}, {}", units::count(files.count), units::bytes(files.bytes))),
        ("newest commit", units::count(figures.visible_commit)),
        ("checkpoint at commit", units::count(figures.checkpoint_commit)),
        ("memory", format!("{} of {}", units::bytes(memory.total), units::bytes(memory.limit))),
    ];
    for (name, value) in parts {
        writeln!(console.out, "{name:22}{value}")?;
    }
    clock::write_warning(&figures.clock, console)?;
    if let Some(error) = &figures.last_error {
        writeln!(console.out, "background work failed: {error}")?;
    }
    Ok(())
}

pub(crate) fn show_tables(figures: &DatabaseFigures, console: &mut Console<'_>) -> Result<()> {
    if figures.tables.is_empty() {
        writeln!(console.out, "no tables")?;
    } else {
        list_tables(&figures.tables, console)?;
    }
    if !figures.sequences.is_empty() {
        writeln!(console.out)?;
        list_sequences(&figures.sequences, console)?;
    }
    if !figures.views.is_empty() {
        writeln!(console.out)?;
        list_views(&figures.views, console)?;
    }
    Ok(())
}

fn list_tables(tables: &[TableInfo], console: &mut Console<'_>) -> Result<()> {
    let header = ["table", "rows", "dead", "segments", "groups", "data", "key index"];
    let mut table = plain_table(header);
    for t in tables {
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
    Ok(writeln!(console.out, "{table}")?)
}

pub(crate) fn list_sequences(sequences: &[SequenceInfo], console: &mut Console<'_>) -> Result<()> {
    let mut table = plain_table(["sequence", "next", "start", "increment"]);
    for s in sequences {
        let next = s.next.map_or_else(|| "no more".to_owned(), |next| next.to_string());
        let (start, increment) = (s.start.to_string(), s.increment.to_string());
        table.add_row([printable(&s.name), next, start, increment]);
    }
    table.column_iter_mut().skip(1).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    Ok(writeln!(console.out, "{table}")?)
}

pub(crate) fn list_views(views: &[ViewInfo], console: &mut Console<'_>) -> Result<()> {
    let mut table = plain_table(["view", "columns", "reads"]);
    for view in views {
        let columns: Vec<&str> = view.columns.iter().map(|column| column.name.as_str()).collect();
        let (columns, reads) = (columns.join(", "), view.reads.join(", "));
        table.add_row([printable(&view.name), printable(&columns), printable(&reads)]);
    }
    Ok(writeln!(console.out, "{table}")?)
}

/// The columns of a view, what it was made with, and its query.
pub(crate) fn show_view(view: &ViewInfo, console: &mut Console<'_>) -> Result<()> {
    for column in &view.columns {
        writeln!(console.out, "  {} {}", printable(&column.name), column.data_type)?;
    }
    let settings = view.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    let settings: Vec<String> = settings.collect();
    let kind = if view.is_rollup { "\nkind      materialized view" } else { "" };
    let kept = view.retention.as_ref().map(|kept| format!("\nretention {kept}"));
    let kept = kept.unwrap_or_default(); // default: nothing is kept
    writeln!(console.out, "{kind}{kept}\nreads     {}", printable(&view.reads.join(", ")))?;
    writeln!(console.out, "settings  {}", settings.join(", "))?;
    Ok(writeln!(console.out, "query     {}", printable(&view.query))?)
}

pub(crate) fn show_table(table: &TableFigures, console: &mut Console<'_>) -> Result<()> {
    let t = &table.figures;
    writeln!(console.out, "  {}\n", table.schema.join(",\n  "))?;
    if !table.rules.is_empty() {
        let rules: Vec<String> = table.rules.iter().map(|rule| printable(rule)).collect();
        writeln!(console.out, "  {}\n", rules.join("\n  "))?;
    }
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
    if let Some(stream) = &table.stream {
        show_stream(stream, console)?;
    }
    for (i, index) in t.indexes.iter().enumerate() {
        let label = if i == 0 { "indexes" } else { "" };
        let (name, fields) = (printable(&index.name), printable(&parts_of(index)));
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

/// What is known of a stream besides: the options are among the rules.
fn show_stream(stream: &StreamInfo, console: &mut Console<'_>) -> Result<()> {
    let at = |time_us: Option<i64>| match time_us {
        Some(time_us) => Value::Timestamp(time_us).to_string(),
        None => "none".to_owned(),
    };
    let windows = units::counted(stream.windows, "window");
    let most = units::counted(stream.window_segments_max, "segment");
    let mixed = units::counted(stream.mixed_segments, "segment");
    let next = stream.next_end_us.map_or_else(|| "never".to_owned(), |_| at(stream.next_end_us));
    let parts = [
        ("events from", at(stream.oldest_us)),
        ("events to", at(stream.newest_us)),
        ("windows", format!("{windows} of {most} at most; {mixed} of several windows")),
        ("waiting", units::bytes(stream.waiting_bytes)),
        ("row ids given", units::count(stream.given_row_id)),
        ("row ids ended", units::count(stream.ended_row_id)),
        ("next window ends", next),
    ];
    for (name, value) in parts {
        writeln!(console.out, "{name:22}{value}")?;
    }
    Ok(())
}

/// What an index is on, and which rows it has: `lower(mail), id where active`.
pub(crate) fn parts_of(index: &IndexInfo) -> String {
    let filter = index.filter.as_ref().map(|filter| format!(" where {filter}"));
    index.fields.join(", ") + &filter.unwrap_or_default()
}

/// How much of an index is built.
pub(crate) fn state_of(index: &IndexInfo) -> String {
    let segments = units::counted(index.of as u64, "segment");
    let built = match (index.built, index.of) {
        (_, 0) => "nothing to build yet".to_owned(),
        (built, of) if built == of => format!("built for all of {segments}"),
        (built, _) => format!("built for {} of {segments}", units::count(built as u64)),
    };
    match index.too_many_values {
        0 => built,
        count if index.kind == IndexKind::Rollup => {
            format!("{built}; nearly as many groups as rows in {count}, scanned")
        }
        count => {
            let most = esker::BITMAP_VALUES_MAX;
            let count = units::count(count as u64);
            format!("{built}; too many values in {count} (more than {most}), scanned")
        }
    }
}
