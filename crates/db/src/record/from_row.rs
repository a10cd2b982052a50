//! What a row of an answer is read as.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use esker_format::{Decimal, Value, ValueRef};
use esker_query::ResultColumn;

use super::binding::places_in;
use super::{FieldType, Record, RecordReader};
use crate::{Error, Result, ResultRow};

/// What a row of an answer can be read as.
///
/// | type | what it takes of the row |
/// |---|---|
/// | a struct that derives [`Record`] | each field the column of its name; others are left out |
/// | a tuple of up to twelve [`FieldType`]s | all columns, in their order |
/// | one value: `i64`, `String`, `Option<f64>`, … | the only column |
/// | [`ResultRow`], `Vec<Value>` | all columns, as they are |
///
/// ```
/// use esker::{Options, Query, Record};
///
/// #[derive(Debug, PartialEq, Record)]
/// struct Person {
///     #[esker(key)]
///     name: String,
///     born: i32,
/// }
///
/// let db = Options::new().memory()?;
/// let people = db.create_table_of::<Person>("people")?;
/// people.insert(&Person { name: "Ada".into(), born: 1815 })?;
/// let all = Query::table("people");
/// assert_eq!(db.query_as::<Person>(&all)?, [Person { name: "Ada".into(), born: 1815 }]);
/// assert_eq!(db.query_as::<(String, i32)>(&all)?, [("Ada".to_owned(), 1815)]);
/// let error = db.query_as::<i32>(&all).unwrap_err().to_string();
/// assert_eq!(error, "expected an answer of one column, found 2: name, born");
/// # Ok::<(), esker::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "a row of an answer cannot be read as `{Self}`",
    note = "expected a struct that derives `esker::Record`, a tuple of fields such as \
            `(String, i64)`, or one value such as `i64`"
)]
pub trait FromRow: Sized {
    /// Where its values are among the columns.
    ///
    /// # Errors
    /// `InvalidInput` saying which columns were expected.
    fn places(columns: &[ResultColumn]) -> Result<Vec<usize>>;

    /// Reads a row of these columns, with what [`FromRow::places`] found.
    ///
    /// # Errors
    /// `InvalidInput` naming the column whose value does not fit.
    fn from_row(
        columns: &Arc<[ResultColumn]>,
        places: &[usize],
        row: &[ValueRef<'_>],
    ) -> Result<Self>;
}

impl<T: Record> FromRow for T {
    fn places(columns: &[ResultColumn]) -> Result<Vec<usize>> {
        places_in::<T>(columns)
    }

    fn from_row(
        _columns: &Arc<[ResultColumn]>,
        places: &[usize],
        row: &[ValueRef<'_>],
    ) -> Result<Self> {
        T::read(&mut RecordReader::new(T::FIELDS, places, row))
    }
}

impl FromRow for Vec<Value> {
    fn places(_columns: &[ResultColumn]) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    fn from_row(
        _columns: &Arc<[ResultColumn]>,
        _places: &[usize],
        row: &[ValueRef<'_>],
    ) -> Result<Self> {
        Ok(row.iter().copied().map(ValueRef::to_owned).collect())
    }
}

impl FromRow for ResultRow {
    fn places(_columns: &[ResultColumn]) -> Result<Vec<usize>> {
        Ok(Vec::new())
    }

    fn from_row(
        columns: &Arc<[ResultColumn]>,
        places: &[usize],
        row: &[ValueRef<'_>],
    ) -> Result<Self> {
        Ok(Self::new(columns, Vec::from_row(columns, places, row)?))
    }
}

/// Refuses an answer of more columns, or fewer.
fn expect_columns(want: usize, columns: &[ResultColumn]) -> Result<Vec<usize>> {
    if columns.len() == want {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let expected = match want {
        1 => "one column".to_owned(),
        want => format!("{want} columns"),
    };
    let (found, names) = (names.len(), names.join(", "));
    Err(Error::invalid(format!("expected an answer of {expected}, found {found}: {names}")))
}

/// The value of a column as a Rust type.
fn value<T: FieldType>(columns: &[ResultColumn], row: &[ValueRef<'_>], place: usize) -> Result<T> {
    let (Some(column), Some(value)) = (columns.get(place), row.get(place)) else {
        return Err(Error::invalid("fewer values than the answer has columns"));
    };
    T::from_value(*value).ok_or_else(|| {
        // default: a type without digits of its own is a decimal.
        let expected = T::DATA_TYPE.map_or("a decimal".to_owned(), |known| known.to_string());
        let found = match value.is_null() {
            true => "NULL, which an Option holds".to_owned(),
            false => format!("{} {value}", value.kind_name()),
        };
        Error::invalid(format!("column {:?}: expected {expected}, found {found}", column.name))
    })
}

macro_rules! tuples {
    ($count:literal: $($name:ident $place:literal)+; $($rest:tt)*) => {
        impl<$($name: FieldType),+> FromRow for ($($name,)+) {
            fn places(columns: &[ResultColumn]) -> Result<Vec<usize>> {
                expect_columns($count, columns)
            }

            fn from_row(
                columns: &Arc<[ResultColumn]>,
                _places: &[usize],
                row: &[ValueRef<'_>],
            ) -> Result<Self> {
                Ok(($(value::<$name>(columns, row, $place)?,)+))
            }
        }

        tuples! { $($rest)* }
    };
    () => {};
}

tuples! {
    1: A 0;
    2: A 0 B 1;
    3: A 0 B 1 C 2;
    4: A 0 B 1 C 2 D 3;
    5: A 0 B 1 C 2 D 3 E 4;
    6: A 0 B 1 C 2 D 3 E 4 F 5;
    7: A 0 B 1 C 2 D 3 E 4 F 5 G 6;
    8: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7;
    9: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8;
    10: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9;
    11: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10;
    12: A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11;
}

macro_rules! single_values {
    ($([$($generic:tt)*] $one:ty),* $(,)?) => {
        $(impl<$($generic)*> FromRow for $one {
            fn places(columns: &[ResultColumn]) -> Result<Vec<usize>> {
                expect_columns(1, columns)
            }

            fn from_row(
                columns: &Arc<[ResultColumn]>,
                _places: &[usize],
                row: &[ValueRef<'_>],
            ) -> Result<Self> {
                value(columns, row, 0)
            }
        })*
    };
}

single_values! {
    [] bool, [] i8, [] i16, [] i32, [] i64, [] u8, [] u16, [] u32, [] u64, [] f32, [] f64,
    [] String, [] Vec<u8>, [] [u8; 16], [] Ipv4Addr, [] Ipv6Addr, [] Decimal,
    [] serde_json::Value, [T: FieldType] Option<T>,
}
