//! `esker_*`: tables, columns and indexes with what the standard has no columns for, and figures.
//!
//! What a table is, the snapshot of the statement tells; figures are those of this moment, and
//! leave out what a transaction has not committed.

use esker_format::DataType::{Bool, I64, Text, Timestamp};
use esker_format::ValueRef::{Bool as B, Null, Text as T, Timestamp as At};
use esker_format::{Field, FieldId, ValueRef};
use esker_query::{RowCollector, Semantics};
use esker_table::view::RowGroup;

use super::facts::{Facts, TableFacts, ViewFacts, in_schema, number, optional, optional_text};
use super::{SystemTable, all, definition};
use crate::Result;
use crate::catalog::names::{MAIN_SCHEMA, TEMPORARY_SCHEMA};
use crate::maintenance::count_runs;

/// How their names begin.
pub(super) const PREFIX: &str = "esker_";

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        name: "esker_tables",
        columns: &[
            ("table_name", Text),
            ("kind", Text),
            ("column_count", I64),
            ("rows", I64),
            ("dead_versions", I64),
            ("segments", I64),
            ("open_groups", I64),
            ("segment_bytes", I64),
            ("group_bytes", I64),
            ("key_index_bytes", I64),
            ("expires_by", Text),
            ("schema_version", I64),
            ("sql", Text),
            ("comment", Text),
            ("table_schema", Text),
        ],
        rows: tables,
    },
    SystemTable {
        name: "esker_columns",
        columns: &[
            ("table_schema", Text),
            ("table_name", Text),
            ("position", I64),
            ("column_name", Text),
            ("type", Text),
            ("is_nullable", Bool),
            ("default", Text),
            ("key_position", I64),
            ("generated", Text),
            ("extra", Text),
            ("comment", Text),
        ],
        rows: columns,
    },
    SystemTable {
        name: "esker_indexes",
        columns: &[
            ("table_name", Text),
            ("index_name", Text),
            ("columns", Text),
            ("kind", Text),
            ("is_unique", Bool),
            ("segments_built", I64),
            ("segments", I64),
            ("memory_bytes", I64),
            ("condition", Text),
            ("sql", Text),
            ("table_schema", Text),
            ("comment", Text),
        ],
        rows: indexes,
    },
    SystemTable {
        name: "esker_index_columns",
        columns: &[
            ("table_name", Text),
            ("index_name", Text),
            ("position", I64),
            ("column_name", Text),
            ("path", Text),
            ("expression", Text),
            ("is_descending", Bool),
            ("table_schema", Text),
        ],
        rows: index_columns,
    },
    SystemTable {
        name: "esker_references",
        columns: &[
            ("table_name", Text),
            ("reference_name", Text),
            ("reference_number", I64),
            ("position", I64),
            ("column_name", Text),
            ("referenced_table", Text),
            ("referenced_column", Text),
            ("on_update", Text),
            ("on_delete", Text),
            ("table_schema", Text),
        ],
        rows: reference_columns,
    },
    SystemTable {
        name: "esker_sequences",
        columns: &[
            ("sequence_name", Text),
            ("start", I64),
            ("increment", I64),
            ("next", I64),
            ("comment", Text),
        ],
        rows: sequences,
    },
    SystemTable {
        name: "esker_segments",
        columns: &[
            ("table_name", Text),
            ("segment", I64),
            ("rows", I64),
            ("dead_versions", I64),
            ("bytes", I64),
            ("table_schema", Text),
        ],
        rows: segments,
    },
    SystemTable {
        name: "esker_streams",
        columns: &[
            ("table_schema", Text),
            ("table_name", Text),
            ("time_column", Text),
            ("late", Text),
            ("ahead", Text),
            ("rest", Text),
            ("retention", Text),
            ("retention_by", Text),
            ("window", Text),
            ("window_seconds", I64),
            ("events", I64),
            ("oldest", Timestamp),
            ("newest", Timestamp),
            ("windows", I64),
            ("window_segments_max", I64),
            ("mixed_segments", I64),
            ("waiting_bytes", I64),
            ("row_ids_given", I64),
            ("row_ids_ended", I64),
            ("next_end", Timestamp),
        ],
        rows: streams,
    },
    SystemTable {
        name: "esker_settings",
        columns: &[("name", Text), ("setting", Text)],
        rows: settings,
    },
    SystemTable { name: "esker_memory", columns: &[("area", Text), ("bytes", I64)], rows: memory },
    SystemTable {
        name: "esker_sessions",
        columns: &[
            ("id", I64),
            ("protocol", Text),
            ("token", Text),
            ("started", Timestamp),
            ("statement", Text),
            ("statement_since", Timestamp),
            ("transaction_since", Timestamp),
        ],
        rows: sessions,
    },
    SystemTable {
        name: "esker_slow_statements",
        columns: &[
            ("ended", Timestamp),
            ("elapsed_ms", I64),
            ("statement", Text),
            ("plan", Text),
            ("completed", Bool),
        ],
        rows: slow_statements,
    },
    SystemTable {
        name: "esker_erasures",
        columns: &[
            ("erasure", I64),
            ("table_name", Text),
            ("begun_at", Timestamp),
            ("rows", I64),
            ("bytes_left", I64),
            ("waits_for", Text),
            ("finished_at", Timestamp),
        ],
        rows: erasures,
    },
    SystemTable {
        name: "esker_snapshots",
        columns: &[("commit", I64), ("age_ms", I64)],
        rows: snapshots,
    },
];

fn tables(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        let (core, schema, view) = (&table.core, &table.schema, table.core.view());
        let dead: u64 = view.row_groups.iter().map(RowGroup::dead_count).sum();
        let segment_bytes: u64 = view.segments().map(|segment| segment.file_bytes()).sum();
        let group_bytes: u64 = view.groups().map(|group| group.byte_count()).sum();
        let (sql, expiry) = (table.sql()?, schema.expiry_field().map(|field| field.name.as_str()));
        rows.push(&[
            T(&table.name),
            T(table.kind()),
            number(schema.fields().len())?,
            number(core.live_rows())?,
            number(dead)?,
            number(view.segments().count())?,
            number(view.groups().count())?,
            number(segment_bytes)?,
            number(group_bytes)?,
            number(core.index().memory_bytes())?,
            optional_text(expiry),
            number(schema.version())?,
            optional_text(sql.as_deref()),
            optional_text(schema.comment()),
            T(&table.place),
        ])?;
    }
    for ViewFacts { place, name, view, retention } in &facts.views()? {
        let full = full_name(place, name);
        let sql = definition::create_view(&full, &view.stored, retention.as_deref());
        let count = view.stored.columns.len();
        let sql = in_schema(place, sql);
        let kind = view.kind().to_string();
        let (name, kind, count) = (T(name), T(&kind), number(count)?);
        // A view has no rows of its own.
        let none = Null;
        rows.push(&[
            name,
            kind,
            count,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            none,
            T(&sql),
            optional_text(view.stored.comment.as_deref()),
            T(place),
        ])?;
    }
    Ok(())
}

/// The one name by which what is in a schema is known.
fn full_name(place: &str, name: &str) -> String {
    match place {
        MAIN_SCHEMA | TEMPORARY_SCHEMA => name.to_owned(),
        namespace => format!("{namespace}.{name}"),
    }
}

fn columns(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let mut add = |place: (&str, &str), (at, field): (usize, &Field), key: Option<usize>| {
        let (default, whole) = (definition::default_text(field), definition::type_text(field));
        let key = key.map(number).transpose()?;
        Ok::<_, crate::Error>(rows.push(&[
            T(place.0),
            T(place.1),
            number(at + 1)?,
            T(&field.name),
            T(&whole),
            B(field.nullable),
            optional_text(default.as_deref()),
            key.unwrap_or(Null), // default: it is no part of the key
            optional_text(definition::generated_text(field)?.as_deref()),
            optional_text(definition::extra_text(field)?.as_deref()),
            optional_text(field.comment.as_deref()),
        ])?)
    };
    for table in &facts.tables()? {
        for (at, field) in table.schema.fields().iter().enumerate() {
            add((&table.place, &table.name), (at, field), table.key_position(at))?;
        }
    }
    for ViewFacts { place, name, view, .. } in &facts.views()? {
        for (at, column) in view.stored.columns.iter().enumerate() {
            let field = Field::new(FieldId(1), column.name.clone(), column.data_type, true);
            add((place, name.as_str()), (at, &field), None)?;
        }
    }
    for table in all() {
        for (at, field) in table.schema().fields().iter().enumerate() {
            add(table.place(), (at, field), None)?;
        }
    }
    Ok(())
}

fn indexes(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for TableFacts { place, name: table, full, schema, core } in &facts.tables()? {
        let uniques = core.uniques();
        for index in schema.row_indexes() {
            let runs = count_runs(core, index);
            let keys = uniques.iter().find(|keys| keys.index().id == index.id);
            // default: an index that is not unique has no entries in memory
            let memory = keys.map_or(0, |keys| keys.entries().memory_bytes());
            rows.push(&[
                T(table),
                T(&index.name),
                T(&definition::parts_text(schema, index).join(", ")),
                T(index.kind.name()),
                B(index.unique),
                number(runs.built)?,
                number(runs.of)?,
                number(memory)?,
                optional_text(definition::filter_text(schema, index).as_deref()),
                T(&definition::create_index(full, schema, index)),
                T(place),
                optional_text(index.comment.as_deref()),
            ])?;
        }
    }
    Ok(())
}

fn index_columns(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for TableFacts { place, name: table, schema, .. } in &facts.tables()? {
        for index in schema.row_indexes() {
            for (at, part) in index.fields.iter().enumerate() {
                let field = schema.field_of(part.field).map(|field| field.name.as_str());
                let path = (!part.path.is_empty()).then(|| part.path.join("."));
                let expression = definition::expression_text(schema, part);
                rows.push(&[
                    T(table),
                    T(&index.name),
                    number(at + 1)?,
                    optional_text(field),
                    optional_text(path.as_deref()),
                    optional_text(expression.as_deref()),
                    B(part.descending),
                    T(place),
                ])?;
            }
        }
    }
    Ok(())
}

fn sequences(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let infos = facts.engines().into_iter().map(|(_, engine)| engine.sequence_infos());
    for sequence in infos.flatten() {
        rows.push(&[
            T(&sequence.name),
            ValueRef::Int(sequence.start),
            ValueRef::Int(sequence.increment),
            optional(sequence.next),
            optional_text(sequence.comment.as_deref()),
        ])?;
    }
    Ok(())
}

fn segments(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for segment in table.core.view().segments() {
            rows.push(&[
                T(&table.name),
                number(segment.id())?,
                number(segment.row_count())?,
                number(segment.dead_count())?,
                number(segment.file_bytes())?,
                T(&table.place),
            ])?;
        }
    }
    Ok(())
}

fn streams(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let time = |time_us: Option<i64>| time_us.map_or(Null, At); // default: there is none
    for table in facts.tables()?.iter().filter(|table| table.schema.stream().is_some()) {
        let info = facts.engine_of(table).stream_info(&table.core, &table.schema)?;
        let option = |name: &str| optional_text(info.options.get(name).map(String::as_str));
        rows.push(&[
            T(&table.place),
            T(&table.name),
            T(&info.time),
            option("late"),
            option("ahead"),
            option("rest"),
            option("retention"),
            option("retention_by"),
            option("window"),
            number(info.window_us / 1_000_000)?,
            number(info.events)?,
            time(info.oldest_us),
            time(info.newest_us),
            number(info.windows)?,
            number(info.window_segments_max)?,
            number(info.mixed_segments)?,
            number(info.waiting_bytes)?,
            number(info.given_row_id)?,
            number(info.ended_row_id)?,
            time(info.next_end_us),
        ])?;
    }
    Ok(())
}

fn settings(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for name in Semantics::SETTINGS {
        rows.push(&[T(name), T(facts.semantics.value_of(name)?)])?;
    }
    Ok(())
}

fn memory(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let memory = facts.engine().memory_info();
    let areas = [
        ("groups", memory.groups),
        ("indexes", memory.indexes),
        ("visibility", memory.visibility),
        ("loads", memory.loads),
        ("blocks", memory.blocks),
        ("forwarding", memory.forwarding),
        ("total", memory.total),
        ("limit", memory.limit),
    ];
    for (area, bytes) in areas {
        rows.push(&[T(area), number(bytes)?])?;
    }
    Ok(())
}

fn snapshots(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for held in facts.engine().snapshot_infos() {
        rows.push(&[number(held.commit)?, number(held.age.as_millis())?])?;
    }
    Ok(())
}

fn erasures(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for erasure in facts.erasures()? {
        rows.push(&[
            number(erasure.number)?,
            T(&erasure.table),
            At(erasure.begun_us),
            number(erasure.rows)?,
            number(erasure.bytes_left)?,
            optional_text(erasure.waits_for),
            erasure.finished_us.map_or(Null, At), // default: it is not done
        ])?;
    }
    Ok(())
}

fn sessions(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let Some(activity) = facts.activity("esker_sessions")? else { return Ok(()) };
    for session in activity.sessions() {
        let token = Some(session.token.as_str()).filter(|token| !token.is_empty());
        rows.push(&[
            number(session.id)?,
            T(session.protocol),
            optional_text(token),
            At(session.started_us),
            optional_text(session.statement.as_deref()),
            session.statement_since_us.map_or(Null, At), // default: nothing runs
            session.transaction_since_us.map_or(Null, At), // default: it has none
        ])?;
    }
    Ok(())
}

fn slow_statements(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let Some(activity) = facts.activity("esker_slow_statements")? else { return Ok(()) };
    for slow in activity.slow_statements() {
        rows.push(&[
            At(slow.ended_us),
            number(slow.elapsed_ms)?,
            T(&slow.statement),
            optional_text(slow.plan.as_deref()),
            B(slow.completed),
        ])?;
    }
    Ok(())
}

/// The fields of references, one a row.
fn reference_columns(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for (at, reference) in table.schema.references().iter().enumerate() {
            let fields = table.schema.names_of(&reference.fields);
            for (position, (field, column)) in fields.iter().zip(&reference.columns).enumerate() {
                rows.push(&[
                    T(&table.name),
                    T(&reference.name),
                    number(at + 1)?,
                    number(position + 1)?,
                    T(field),
                    T(&reference.table),
                    T(column),
                    T(reference.on_update.name()),
                    T(reference.on_delete.name()),
                    T(&table.place),
                ])?;
            }
        }
    }
    Ok(())
}
