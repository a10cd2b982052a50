//! The other side: SQLite, in memory, with a few functions that it lacks.

use esker::{DataType, Value};
use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::Value as SqliteValue;

use crate::value::{LABELS, from_sqlite};

/// An outcome of SQLite.
pub(crate) type Result<T> = std::result::Result<T, rusqlite::Error>;

/// What a statement came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) changed: u64,
    rows: Vec<Vec<SqliteValue>>,
}

impl Outcome {
    /// The rows as values of Esker's columns.
    pub(crate) fn rows(&self, types: &[DataType]) -> Vec<Vec<Value>> {
        let row = |row: &Vec<SqliteValue>| {
            let values = row.iter().zip(types);
            values.map(|(value, data_type)| from_sqlite(value.clone(), *data_type)).collect()
        };
        self.rows.iter().map(row).collect()
    }
}

/// A database of SQLite.
pub(crate) struct Sqlite(Connection);

impl Sqlite {
    pub(crate) fn new() -> Result<Self> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch("PRAGMA case_sensitive_like = ON; PRAGMA foreign_keys = ON")?;
        add_functions(&connection)?;
        Ok(Self(connection))
    }

    /// Runs a statement and keeps what it did.
    pub(crate) fn run(&self, text: &str) -> Result<Outcome> {
        let mut statement = self.0.prepare(text)?;
        let columns = statement.column_count();
        let mut found = statement.query([])?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push((0..columns).map(|i| row.get(i)).collect::<Result<_>>()?);
        }
        drop(found);
        // What references do is not counted.
        let changed = if statement.readonly() { 0 } else { self.0.changes() };
        Ok(Outcome { changed, rows })
    }

    /// Runs a statement that Esker refused, to see whether it is refused here, and undoes it.
    pub(crate) fn attempt(&self, text: &str) -> Result<Outcome> {
        self.0.execute_batch("SAVEPOINT attempt")?;
        let outcome = self.run(text);
        self.0.execute_batch("ROLLBACK TO attempt; RELEASE attempt")?;
        outcome
    }
}

/// Why SQLite refuses a decimal.
pub(crate) const LONG_DECIMAL: &str = "a decimal of more than 18 digits";

fn refuse(message: &str) -> rusqlite::Error {
    rusqlite::Error::UserFunctionError(message.into())
}

type Checked = fn(i64, i64) -> Option<i64>;
type TextMap = fn(&str) -> String;
type FloatMap = fn(f64) -> f64;

fn add_functions(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let checked: [(&str, Checked); 4] = [
        ("chk_add", i64::checked_add),
        ("chk_sub", i64::checked_sub),
        ("chk_mul", i64::checked_mul),
        ("chk_div", |a, b| if b == 0 { Some(0) } else { a.checked_div(b) }),
    ];
    for (name, operation) in checked {
        connection.create_scalar_function(name, 2, flags, move |c: &Context<'_>| {
            let (a, b) = (c.get::<Option<i64>>(0)?, c.get::<Option<i64>>(1)?);
            let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
            if name == "chk_div" && b == 0 {
                return Ok(None);
            }
            operation(a, b).map(Some).ok_or_else(|| refuse("does not fit"))
        })?;
    }
    connection.create_scalar_function("chk_int", 1, flags, |c: &Context<'_>| {
        let Some(v) = c.get::<Option<f64>>(0)? else { return Ok(None) };
        let fits = (-(2f64.powi(63))..2f64.powi(63)).contains(&v.trunc());
        #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
        if fits { Ok(Some(v.trunc() as i64)) } else { Err(refuse("does not fit")) }
    })?;
    let texts: [(&str, TextMap); 3] = [
        ("u_lower", str::to_lowercase),
        ("u_upper", str::to_uppercase),
        ("u_reverse", |text| text.chars().rev().collect()),
    ];
    for (name, map) in texts {
        connection.create_scalar_function(name, 1, flags, move |c: &Context<'_>| {
            Ok(c.get::<Option<String>>(0)?.map(|text| map(&text)))
        })?;
    }
    let floats: [(&str, FloatMap); 3] =
        [("r_floor", f64::floor), ("r_ceil", f64::ceil), ("r_sqrt", f64::sqrt)];
    for (name, map) in floats {
        connection.create_scalar_function(name, 1, flags, move |c: &Context<'_>| {
            Ok(c.get::<Option<f64>>(0)?.map(map))
        })?;
    }
    connection.create_scalar_function("r_round", 2, flags, |c: &Context<'_>| {
        let (x, digits) = (c.get::<Option<f64>>(0)?, c.get::<Option<i64>>(1)?);
        Ok(x.zip(digits).map(|(x, digits)| rounded(x, digits)))
    })?;
    add_exact_functions(connection, flags)?;
    connection.create_scalar_function("r_power", 2, flags, |c: &Context<'_>| {
        let (x, y) = (c.get::<Option<f64>>(0)?, c.get::<Option<f64>>(1)?);
        Ok(x.zip(y).map(|(x, y)| x.powf(y)))
    })
}

/// A float rounded, halves away from zero: as SQLite does it, but by all digits of the number, and
/// also to tens and hundreds.
fn rounded(x: f64, digits: i64) -> f64 {
    // No float has more digits behind the point.
    let text = format!("{:.1074}", x.abs());
    let Some((whole, fraction)) = text.split_once('.') else { return x };
    let digits = digits.clamp(-330, 1074);
    let kept = i64::try_from(whole.len()).unwrap_or_default() + digits;
    let all: String = [whole, fraction].concat();
    let Ok(kept) = usize::try_from(kept) else { return 0.0 };
    let (kept, rest) = all.split_at_checked(kept).unwrap_or((&all, ""));
    let is_up = rest.starts_with(['5', '6', '7', '8', '9']);
    let mut carry = is_up;
    let mut sum: Vec<char> = Vec::new();
    for digit in kept.chars().rev() {
        let digit = digit.to_digit(10).unwrap_or_default() + u32::from(carry);
        carry = digit > 9;
        sum.push(char::from_digit(digit % 10, 10).unwrap_or('0'));
    }
    sum.extend(carry.then_some('1'));
    sum.push('0');
    let number: String = sum.into_iter().rev().collect();
    format!("{number}e{}", -digits).parse::<f64>().unwrap_or(x).copysign(x)
}

/// Decimals, which are hundredths here, and labels, which are places.
fn add_exact_functions(connection: &Connection, flags: FunctionFlags) -> Result<()> {
    let mul = |a: i64, b: i64| {
        let product = i128::from(a) * i128::from(b);
        i64::try_from((product + 50 * product.signum()) / 100).ok()
    };
    let round = |x: i64, unit: i64| Some((x + unit / 2 * x.signum()) / unit * unit);
    let floor = |x: i64, unit: i64| Some(x.div_euclid(unit) * unit);
    let pairs: [(&str, Checked); 3] =
        [("dec_mul", mul), ("dec_round", round), ("dec_floor", floor)];
    for (name, operation) in pairs {
        connection.create_scalar_function(name, 2, flags, move |c: &Context<'_>| {
            let (a, b) = (c.get::<Option<i64>>(0)?, c.get::<Option<i64>>(1)?);
            let Some((a, b)) = a.zip(b) else { return Ok(None) };
            operation(a, b).map(Some).ok_or_else(|| refuse(LONG_DECIMAL))
        })?;
    }
    let text = |x: i64| {
        let sign = if x < 0 { "-" } else { "" };
        format!("{sign}{}.{:02}", x.unsigned_abs() / 100, x.unsigned_abs() % 100)
    };
    connection.create_scalar_function("dec_text", 1, flags, move |c: &Context<'_>| {
        Ok(c.get::<Option<i64>>(0)?.map(text))
    })?;
    connection.create_scalar_function("dec_float", 1, flags, move |c: &Context<'_>| {
        Ok(c.get::<Option<i64>>(0)?.and_then(|x| text(x).parse::<f64>().ok()))
    })?;
    connection.create_scalar_function("label", 1, flags, |c: &Context<'_>| {
        let place = c.get::<Option<i64>>(0)?.and_then(|place| usize::try_from(place).ok());
        Ok(place.and_then(|place| LABELS.get(place)).copied())
    })
}
