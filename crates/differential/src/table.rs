//! Random tables.

use crate::dice::{Beside, Dice};
use crate::value::Kind;

/// A table that both have.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// How many of the first columns are the primary key.
    pub(crate) key: usize,
    /// The statements that create its indexes.
    pub(crate) indexes: Vec<String>,
    /// The reference of its last column.
    reference: Option<Reference>,
    /// Whether rows of others refer to its rows.
    pub(crate) is_referenced: bool,
}

/// A reference of the last column of a table to the key of another.
#[derive(Clone, Debug)]
struct Reference {
    table: String,
    key: String,
    on_delete: &'static str,
}

const ON_DELETE: [&str; 5] = ["", "", "CASCADE", "SET NULL", "RESTRICT"];

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    type_name: &'static str,
    check: &'static str,
    pub(crate) nullable: bool,
    /// What computes it from the others of its row.
    pub(crate) generated: Option<String>,
}

/// Kinds, Esker's types, SQLite's, and what SQLite has to check so that it holds the same.
const TYPES: [(Kind, &str, &str, &str); 16] = [
    (Kind::Int, "i64", "INT", ""),
    (Kind::Int, "i16", "INT", "{} BETWEEN -32768 AND 32767"),
    (Kind::Int, "u8", "INT", "{} BETWEEN 0 AND 255"),
    (Kind::Int, "u32", "INT", "{} BETWEEN 0 AND 4294967295"),
    (Kind::Int, "u64", "INT", "{} >= 0"),
    (Kind::Float, "f64", "REAL", ""),
    (Kind::Text, "text", "TEXT", ""),
    (Kind::Text, "text(4)", "TEXT", "length({}) <= 4"),
    (Kind::Bool, "bool", "INT", ""),
    (Kind::Bytes, "bytes", "BLOB", ""),
    (Kind::Date, "date", "TEXT", ""),
    (Kind::Stamp, "timestamp", "TEXT", ""),
    (Kind::Decimal, "decimal(9,2)", "INT", "{} BETWEEN -999999999 AND 999999999"),
    (Kind::Decimal, "decimal(30,2)", "INT", ""),
    (Kind::Label, "enum('small', 'medium', 'Large', 'x%l', 'äb')", "INT", ""),
    (Kind::Json, "json", "TEXT", ""),
];

impl Table {
    /// A table with a key of one or two columns and some others.
    pub(crate) fn random(dice: &mut Dice, number: usize) -> Self {
        let keys: &[&[usize]] = &[&[0], &[6], &[0, 6], &[10, 0], &[1], &[12, 0], &[14, 13, 0]];
        let key = keys.get(dice.below(keys.len())).copied().unwrap_or(&[0]);
        let mut columns: Vec<Column> =
            key.iter().enumerate().map(|(i, t)| column(&format!("k{i}"), *t, false)).collect();
        for i in 0..dice.int(3, 8) {
            let nullable = dice.chance(80);
            // JSON is last.
            let types = TYPES.len() - usize::from(dice.beside == Beside::DuckDb);
            columns.push(column(&format!("c{i}"), dice.below(types), nullable));
        }
        if dice.beside == Beside::Sqlite && dice.chance(50) {
            let of = columns.clone();
            let computed = (0..=dice.below(2)).filter_map(|i| computed(dice, &of, i));
            columns.extend(computed.collect::<Vec<_>>());
        }
        let name = format!("t{number}");
        let count = dice.below(5);
        let indexes = (0..count).map(|i| index(dice, &name, &columns, i)).collect();
        let (reference, is_referenced) = (None, false);
        Self { name, key: key.len(), columns, indexes, reference, is_referenced }
    }

    /// The rows of a series: one column of integers, called `g`.
    pub(crate) fn of_series() -> Self {
        Self::of_columns(vec![column("g", 0, false)])
    }

    /// Columns without a table.
    pub(crate) fn of_columns(columns: Vec<Column>) -> Self {
        let (name, indexes) = (String::new(), Vec::new());
        Self { name, columns, key: 0, indexes, reference: None, is_referenced: false }
    }

    /// The same with columns named as those of the old row and of the new one.
    pub(crate) fn with_excluded(&self) -> Self {
        let mut both = self.clone();
        for column in &self.columns {
            let name = format!("excluded.{}", column.name);
            both.columns.push(Column { name, ..column.clone() });
            let name = format!("{}.{}", self.name, column.name);
            both.columns.push(Column { name, ..column.clone() });
        }
        both
    }

    /// The same with its columns named in full.
    pub(crate) fn aliased(&self, alias: &str) -> Self {
        let name = |column: &Column| format!("{alias}.{}", column.name);
        let columns = self.columns.iter().map(|c| Column { name: name(c), ..c.clone() }).collect();
        let (name, indexes) = (alias.to_owned(), Vec::new());
        Self { name, columns, key: self.key, indexes, reference: None, is_referenced: false }
    }

    pub(crate) fn columns_of(&self, kind: Kind) -> Vec<&str> {
        let fits = self.columns.iter().filter(|c| c.kind == kind);
        fits.map(|c| c.name.as_str()).collect()
    }

    /// The columns that rows are given values for.
    pub(crate) fn given(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.generated.is_none())
    }

    pub(crate) fn key_names(&self) -> Vec<&str> {
        self.columns.iter().take(self.key).map(|c| c.name.as_str()).collect()
    }

    pub(crate) fn create(&self, in_esker: bool) -> String {
        let mut parts = Vec::new();
        for column in &self.columns {
            let Column { name, type_name, check, nullable, generated, .. } = column;
            let entry = TYPES.iter().find(|t| t.1 == *type_name);
            let sqlite = entry.map_or("ANY", |t| t.2);
            let null = if *nullable { "" } else { " NOT NULL" };
            if let Some(generated) = generated {
                let type_name = if in_esker { type_name } else { sqlite };
                parts.push(format!("{name} {type_name}{null} {generated}"));
                continue;
            }
            parts.push(match in_esker {
                true => format!("{name} {type_name}{null}"),
                false if check.is_empty() => format!("{name} {sqlite}{null}"),
                false => format!("{name} {sqlite}{null} CHECK ({})", check.replace("{}", name)),
            });
        }
        let strict = if in_esker { "" } else { " STRICT" };
        parts.push(format!("PRIMARY KEY ({})", self.key_names().join(", ")));
        if let (Some(Reference { table, key, on_delete }), Some(last)) =
            (&self.reference, self.columns.last())
        {
            let action = if on_delete.is_empty() { "" } else { " ON DELETE " };
            let field = &last.name;
            parts.push(format!(
                "FOREIGN KEY ({field}) REFERENCES {table} ({key}){action}{on_delete}"
            ));
        }
        format!("CREATE TABLE {} ({}){strict}", self.name, parts.join(", "))
    }
}

/// Lets some tables refer to one before them, or to themselves.
pub(crate) fn refer(dice: &mut Dice, tables: &mut [Table]) {
    for at in 0..tables.len() {
        let to = dice.below(at + 1);
        let Some(other) = tables.get(to).filter(|other| other.key == 1 && dice.chance(60)) else {
            continue;
        };
        let Some(key) = other.columns.first().cloned() else { continue };
        // What goes by a reference to its own table is counted by SQLite, or not, as it comes.
        let actions = if to == at { 2 } else { ON_DELETE.len() };
        let on_delete = ON_DELETE.get(dice.below(actions)).copied().unwrap_or_default();
        let reference = Reference { table: other.name.clone(), key: key.name.clone(), on_delete };
        if let Some(other) = tables.get_mut(to) {
            other.is_referenced = true;
        }
        if let Some(table) = tables.get_mut(at) {
            table.columns.push(Column { name: "f".to_owned(), nullable: true, ..key });
            table.reference = Some(reference);
        }
    }
}

impl Table {
    /// The statement that creates it in DuckDB: without what keeps rows out, which come from Esker.
    pub(crate) fn create_in_duckdb(&self) -> String {
        let column = |column: &Column| {
            let type_name = match column.kind {
                Kind::Int => "BIGINT",
                Kind::Float => "DOUBLE",
                Kind::Bool => "BOOLEAN",
                Kind::Bytes => "BLOB",
                Kind::Date => "DATE",
                Kind::Stamp => "TIMESTAMP",
                Kind::Decimal => column.type_name,
                Kind::Label => "label",
                _ => "VARCHAR",
            };
            format!("{} {type_name}", column.name)
        };
        let columns: Vec<_> = self.columns.iter().map(column).collect();
        format!("CREATE TABLE {} ({})", self.name, columns.join(", "))
    }
}

/// An index on one to three columns, some of them descending, or of what is computed of them; some
/// have some rows only.
fn index(dice: &mut Dice, table: &str, columns: &[Column], number: usize) -> String {
    let mut chosen: Vec<&Column> = Vec::new();
    for _ in 0..=dice.below(3) {
        let column = columns.get(dice.below(columns.len()));
        let is_new = |c: &&Column| c.kind != Kind::Json && chosen.iter().all(|x| x.name != c.name);
        chosen.extend(column.filter(is_new));
    }
    if chosen.is_empty() {
        chosen.extend(columns.first());
    }
    let is_beside_sqlite = dice.beside == Beside::Sqlite;
    let mut part = |column: &&Column| {
        let computed = (is_beside_sqlite && dice.chance(30)).then(|| computed_part(dice, column));
        let part = computed.flatten().unwrap_or_else(|| column.name.clone());
        format!("{part}{}", if dice.chance(30) { " DESC" } else { "" })
    };
    let parts: Vec<_> = chosen.iter().map(&mut part).collect();
    let filter = columns.get(dice.below(columns.len())).filter(|_| dice.chance(30));
    let filter = filter.filter(|_| is_beside_sqlite).and_then(|column| filter_of(dice, column));
    let filter = filter.map_or(String::new(), |filter| format!(" WHERE {filter}"));
    format!("CREATE INDEX i{number} ON {table} ({}){filter}", parts.join(", "))
}

/// What an index may be on that is computed of a column.
fn computed_part(dice: &mut Dice, column: &Column) -> Option<String> {
    let of = &column.name;
    Some(match column.kind {
        Kind::Int if dice.chance(50) => format!("({of} % 7)"),
        Kind::Int => format!("coalesce({of}, 3)"),
        Kind::Text if dice.chance(50) => format!("length({of})"),
        Kind::Text => format!("({of} || '!')"),
        _ => return None,
    })
}

/// Which rows an index may have, by a column.
fn filter_of(dice: &mut Dice, column: &Column) -> Option<String> {
    let of = &column.name;
    Some(match column.kind {
        _ if dice.chance(40) => format!("{of} IS NOT NULL"),
        Kind::Int if dice.chance(50) => format!("{of} > {}", dice.int(-3, 6)),
        Kind::Int => format!("{of} % 2 = 0"),
        Kind::Text => format!("length({of}) > {}", dice.int(0, 3)),
        _ => format!("{of} IS NULL"),
    })
}

fn column(name: &str, type_number: usize, nullable: bool) -> Column {
    let (kind, type_name, _, check) =
        TYPES.get(type_number).copied().unwrap_or((Kind::Int, "i64", "INT", ""));
    Column { name: name.into(), kind, type_name, check, nullable, generated: None }
}

/// A column that is computed from another one, of integers or texts.
fn computed(dice: &mut Dice, columns: &[Column], number: usize) -> Option<Column> {
    let read = columns.get(dice.below(columns.len()))?;
    let (name, of) = (format!("g{number}"), &read.name);
    let (type_number, expression) = match read.kind {
        Kind::Int if dice.chance(50) => (0, format!("{of} % 7")),
        Kind::Int => (0, format!("coalesce({of}, 3) % 100 - 50")),
        Kind::Text if dice.chance(50) => (0, format!("length({of})")),
        Kind::Text => (6, format!("{of} || '!'")),
        _ => return None,
    };
    let how = dice.pick(&["STORED", "VIRTUAL", ""]);
    let always = if dice.chance(50) { "GENERATED ALWAYS " } else { "" };
    let generated = Some(format!("{always}AS ({expression}) {how}"));
    Some(Column { generated, ..column(&name, type_number, true) })
}
