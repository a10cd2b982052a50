//! The tables of `information_schema`, with the columns of the standard.
//!
//! A database has one catalogue. What is in a schema that users have made is known by one name with
//! that schema before it, which `placed` takes apart.

use esker_format::DataType::{I64, Text};
use esker_format::ValueRef::{Int, Null, Text as T};
use esker_format::schema::Reference;
use esker_format::{Field, FieldId, Schema, ValueRef};
use esker_query::RowCollector;
use esker_query::model::{Aggregate, FUNCTIONS, TableFunction, WindowFunction};

use super::facts::{
    Digits, Facts, Placed, TableFacts, ViewFacts, number, optional, optional_text, placed,
    type_name, yes_or_no,
};
use super::{SystemTable, all, definition};
use crate::catalog::names::{INFORMATION_SCHEMA, MAIN_SCHEMA};
use crate::catalog::reference_target::{TargetKey, key_of};
use crate::{Error, Result};

/// The name of the one catalogue.
const CATALOG: ValueRef<'static> = T("esker");
const MAIN: ValueRef<'static> = T(MAIN_SCHEMA);

pub(super) const TABLES: &[SystemTable] = &[
    SystemTable {
        name: "information_schema.schemata",
        columns: &[
            ("catalog_name", Text),
            ("schema_name", Text),
            ("schema_owner", Text),
            ("default_character_set_name", Text),
        ],
        rows: schemata,
    },
    SystemTable {
        name: "information_schema.tables",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("table_type", Text),
            ("is_insertable_into", Text),
            ("is_typed", Text),
            ("commit_action", Text),
        ],
        rows: tables,
    },
    SystemTable {
        name: "information_schema.columns",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("column_name", Text),
            ("ordinal_position", I64),
            ("column_default", Text),
            ("is_nullable", Text),
            ("data_type", Text),
            ("character_maximum_length", I64),
            ("character_octet_length", I64),
            ("numeric_precision", I64),
            ("numeric_precision_radix", I64),
            ("numeric_scale", I64),
            ("datetime_precision", I64),
            ("collation_name", Text),
            ("udt_name", Text),
            ("is_identity", Text),
            ("identity_generation", Text),
            ("identity_start", Text),
            ("identity_increment", Text),
            ("is_generated", Text),
            ("generation_expression", Text),
            ("is_updatable", Text),
        ],
        rows: columns,
    },
    SystemTable {
        name: "information_schema.views",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("view_definition", Text),
            ("check_option", Text),
            ("is_updatable", Text),
            ("is_insertable_into", Text),
        ],
        rows: views,
    },
    SystemTable {
        name: "information_schema.table_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("constraint_type", Text),
            ("is_deferrable", Text),
            ("initially_deferred", Text),
            ("enforced", Text),
        ],
        rows: table_constraints,
    },
    SystemTable {
        name: "information_schema.key_column_usage",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("column_name", Text),
            ("ordinal_position", I64),
            ("position_in_unique_constraint", I64),
        ],
        rows: key_column_usage,
    },
    SystemTable {
        name: "information_schema.check_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("check_clause", Text),
        ],
        rows: check_constraints,
    },
    SystemTable {
        name: "information_schema.referential_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("unique_constraint_catalog", Text),
            ("unique_constraint_schema", Text),
            ("unique_constraint_name", Text),
            ("match_option", Text),
            ("update_rule", Text),
            ("delete_rule", Text),
        ],
        rows: referential_constraints,
    },
    SystemTable {
        name: "information_schema.routines",
        columns: &[
            ("specific_catalog", Text),
            ("specific_schema", Text),
            ("specific_name", Text),
            ("routine_catalog", Text),
            ("routine_schema", Text),
            ("routine_name", Text),
            ("routine_type", Text),
            ("data_type", Text),
            ("routine_body", Text),
            ("routine_definition", Text),
        ],
        rows: routines,
    },
    SystemTable {
        name: "information_schema.sequences",
        columns: &[
            ("sequence_catalog", Text),
            ("sequence_schema", Text),
            ("sequence_name", Text),
            ("data_type", Text),
            ("numeric_precision", I64),
            ("numeric_precision_radix", I64),
            ("numeric_scale", I64),
            ("start_value", Text),
            ("minimum_value", Text),
            ("maximum_value", Text),
            ("increment", Text),
            ("cycle_option", Text),
        ],
        rows: sequences,
    },
];

fn schemata(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let others = [INFORMATION_SCHEMA.to_owned()];
    for schema in facts.schemas().into_iter().chain(others) {
        rows.push(&[CATALOG, T(&schema), Null, T("UTF8")])?;
    }
    Ok(())
}

fn tables(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let (known, views) = (facts.tables()?, facts.views()?);
    let mut add = |schema, name, kind, is_written| {
        let (written, no) = (yes_or_no(is_written), yes_or_no(false));
        rows.push(&[CATALOG, T(schema), T(name), T(kind), written, no, Null])
    };
    for table in &known {
        let kind = match table.schema.is_bucket() {
            true => "BUCKET",
            false if table.is_temporary() => "LOCAL TEMPORARY",
            false => "BASE TABLE",
        };
        add(&table.place, &table.name, kind, true)?;
    }
    for view in &views {
        let kind = if view.view.stored.is_rollup { "MATERIALIZED VIEW" } else { "VIEW" };
        add(&view.place, &view.name, kind, false)?;
    }
    for table in all() {
        let (schema, name) = table.place();
        add(schema, name, "SYSTEM VIEW", false)?;
    }
    Ok(())
}

/// A column, of whatever it is.
struct ColumnFacts<'f> {
    schema: &'f str,
    table: &'f str,
    field: &'f Field,
    position: usize,
    is_written: bool,
}

fn columns(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for (position, field) in table.schema.fields().iter().enumerate() {
            let (schema, table) = (table.place.as_str(), table.name.as_str());
            push_column(rows, &ColumnFacts { schema, table, field, position, is_written: true })?;
        }
    }
    for ViewFacts { place, name: table, view, .. } in &facts.views()? {
        for (position, column) in view.stored.columns.iter().enumerate() {
            let field = Field::new(FieldId(1), column.name.clone(), column.data_type, true);
            let (schema, field) = (place.as_str(), &field);
            push_column(rows, &ColumnFacts { schema, table, field, position, is_written: false })?;
        }
    }
    for table in all() {
        let (schema, name) = table.place();
        for (position, field) in table.schema().fields().iter().enumerate() {
            let column = ColumnFacts { schema, table: name, field, position, is_written: false };
            push_column(rows, &column)?;
        }
    }
    Ok(())
}

fn push_column(rows: &mut RowCollector<'_>, column: &ColumnFacts<'_>) -> Result<()> {
    let ColumnFacts { schema, table, field, position, is_written } = *column;
    let (default, whole) = (definition::default_text(field), definition::type_text(field));
    let generated = definition::generated_text(field)?;
    let identity = field.identity;
    let start = identity.map(|identity| identity.start.to_string());
    let increment = identity.map(|identity| identity.increment.to_string());
    let digits = Digits::of(field.data_type);
    let is_text = field.data_type == Text;
    let length = field.length_max.map(i64::from);
    let has_time =
        matches!(field.data_type, esker_format::DataType::Timestamp | esker_format::DataType::Time);
    Ok(rows.push(&[
        CATALOG,
        T(schema),
        T(table),
        T(&field.name),
        number(position + 1)?,
        optional_text(default.as_deref()),
        yes_or_no(field.nullable),
        T(&type_name(field)),
        optional(length.filter(|_| is_text)),
        optional(length.filter(|_| !is_text)),
        optional(digits.precision),
        optional(digits.radix),
        optional(digits.scale),
        optional(has_time.then_some(6)),
        Null,
        T(&whole),
        yes_or_no(identity.is_some()),
        // default: what is no identity has none
        identity.map_or(Null, |i| T(if i.is_always { "ALWAYS" } else { "BY DEFAULT" })),
        optional_text(start.as_deref()),
        optional_text(increment.as_deref()),
        T(if generated.is_some() { "ALWAYS" } else { "NEVER" }),
        optional_text(generated.as_deref()),
        yes_or_no(is_written),
    ])?)
}

fn views(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let no = yes_or_no(false);
    let views = facts.views()?;
    for ViewFacts { place, name, view, .. } in views.iter().filter(|of| !of.view.stored.is_rollup) {
        rows.push(&[CATALOG, T(place), T(name), T(&view.stored.text), T("NONE"), no, no])?;
    }
    Ok(())
}

fn table_constraints(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        let name = T(&table.name);
        let mut add = |constraint: &str, kind| {
            let (no, yes) = (yes_or_no(false), yes_or_no(true));
            let (constraint, place) = (T(constraint), T(&table.place));
            rows.push(&[CATALOG, place, constraint, CATALOG, place, name, T(kind), no, no, yes])
        };
        if !table.schema.key_positions().is_empty() {
            add(&table.key_name(), "PRIMARY KEY")?;
        }
        for index in table.uniques() {
            add(&index.name, "UNIQUE")?;
        }
        for check in table.schema.checks() {
            add(&check.name, "CHECK")?;
        }
        for reference in table.schema.references() {
            add(&reference.name, "FOREIGN KEY")?;
        }
    }
    Ok(())
}

fn key_column_usage(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let mut add = |table: &TableFacts, constraint: &str, (field, at, of): (&str, usize, _)| {
        let (name, constraint) = (T(&table.name), T(constraint));
        let (field, at, place) = (T(field), number(at + 1)?, T(&table.place));
        let row = [CATALOG, place, constraint, CATALOG, place, name, field, at, of];
        Ok::<_, Error>(rows.push(&row)?)
    };
    for table in &facts.tables()? {
        for (at, field) in table.schema.key_fields().enumerate() {
            add(table, &table.key_name(), (&field.name, at, Null))?;
        }
        for index in table.uniques() {
            for (at, part) in index.fields.iter().enumerate() {
                add(table, &index.name, (&table.schema.place_of(part), at, Null))?;
            }
        }
        for named in named(facts, table)? {
            for (at, (field, of)) in named.fields.iter().zip(&named.places).enumerate() {
                add(table, &named.reference.name, (field, at, number(of + 1)?))?;
            }
        }
    }
    Ok(())
}

fn check_constraints(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for (name, condition) in definition::checks(&table.schema)? {
            rows.push(&[CATALOG, T(&table.place), T(&name), T(&condition)])?;
        }
    }
    Ok(())
}

fn routines(_: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let mut add = |name: &str, kind| {
        let (name, kind) = (T(name), T(kind));
        rows.push(&[CATALOG, MAIN, name, CATALOG, MAIN, name, kind, Null, T("EXTERNAL"), Null])
    };
    for function in FUNCTIONS {
        add(function.name, "FUNCTION")?;
    }
    for aggregate in Aggregate::ALL {
        add(aggregate.name(), "AGGREGATE")?;
    }
    for name in WindowFunction::names() {
        add(name, "WINDOW")?;
    }
    for function in TableFunction::ALL {
        add(function.name(), "TABLE")?;
    }
    Ok(())
}

fn sequences(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    let infos = facts.engines().into_iter();
    let infos = infos.flat_map(|(place, engine)| {
        let names = engine.names_now();
        let sequences = engine.sequence_infos().into_iter();
        sequences.map(move |sequence| (placed(&names, place, &sequence.name), sequence))
    });
    for (Placed { place, name }, sequence) in infos {
        let (start, increment) = (sequence.start.to_string(), sequence.increment.to_string());
        // A sequence goes on from its start, to the end of the integers.
        let (least, most) = match sequence.increment < 0 {
            true => (i64::MIN.to_string(), start.clone()),
            false => (start.clone(), i64::MAX.to_string()),
        };
        rows.push(&[
            CATALOG,
            T(&place),
            T(&name),
            T("i64"),
            Int(64),
            Int(2),
            Int(0),
            T(&start),
            T(&least),
            T(&most),
            T(&increment),
            yes_or_no(false),
        ])?;
    }
    Ok(())
}

/// A reference, and the constraint of the other table that it names.
struct NamedConstraint<'t> {
    reference: &'t Reference,
    /// The names of its fields.
    fields: Vec<&'t str>,
    /// The constraint.
    constraint: String,
    /// The place of the column of each field in the constraint.
    places: Vec<usize>,
}

/// The references of a table.
///
/// # Errors
/// `Corrupt` when one names what is not there.
fn named<'t>(facts: &Facts<'_>, table: &'t TableFacts) -> Result<Vec<NamedConstraint<'t>>> {
    let references = table.schema.references();
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let tables = facts.tables()?;
    references.iter().map(|reference| constraint(&tables, table, reference)).collect()
}

fn constraint<'t>(
    tables: &[TableFacts],
    table: &'t TableFacts,
    reference: &'t Reference,
) -> Result<NamedConstraint<'t>> {
    let gone = || {
        let name = &reference.name;
        Error::corrupt(format!("reference {name:?} names what is not there"))
    };
    let is_named = |other: &&TableFacts| is_beside(other, table) && other.full == reference.table;
    let other = tables.iter().find(is_named).ok_or_else(gone)?;
    let schema: &Schema = &other.schema;
    let position = |column: &String| schema.position(column).ok_or_else(gone);
    let positions = reference.columns.iter().map(position).collect::<Result<Vec<_>>>()?;
    let (key, order) = key_of(schema, &positions).ok_or_else(gone)?;
    let constraint = match key {
        TargetKey::Primary => other.key_name(),
        TargetKey::Unique(id) => {
            let index = schema.indexes().iter().find(|index| index.id == id).ok_or_else(gone)?;
            index.name.clone()
        }
    };
    let place = |at: usize| order.iter().position(|column| *column == at).ok_or_else(gone);
    let places = (0..positions.len()).map(place).collect::<Result<_>>()?;
    let fields = table.schema.names_of(&reference.fields);
    Ok(NamedConstraint { reference, fields, constraint, places })
}

/// Whether two tables are those of all, or both a session's.
fn is_beside(one: &TableFacts, other: &TableFacts) -> bool {
    one.is_temporary() == other.is_temporary()
}

fn referential_constraints(facts: &Facts<'_>, rows: &mut RowCollector<'_>) -> Result<()> {
    for table in &facts.tables()? {
        for NamedConstraint { reference, constraint, .. } in named(facts, table)? {
            let (name, of) = (T(&reference.name), T(&constraint));
            let (update, delete) = (reference.on_update.name(), reference.on_delete.name());
            let (place, update, delete) = (T(&table.place), T(update), T(delete));
            rows.push(&[CATALOG, place, name, CATALOG, place, of, T("NONE"), update, delete])?;
        }
    }
    Ok(())
}
