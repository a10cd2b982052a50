//! The tables of users that are asked: without indexes, with twelve, with rows deleted, and with a
//! million emails however many rows there are.

use std::time::Instant;

use crate::user_rows as users;
use esker::{BackupOptions, Batch, DataType, Database, NewIndex, Options, Schema, Snapshot, Value};

use super::question::Expected;
use crate::Result;
use crate::bench::Bench;

const BATCH_ROWS: u64 = 10_000;

/// The indexed fields: all but `bio`.
pub(crate) const INDEXED: [&str; 12] = [
    "username",
    "email",
    "age",
    "user_id",
    "rank",
    "score",
    "active",
    "level",
    "birthday",
    "created_at",
    "balance",
    "hourly_rate",
];

pub(super) const USERNAME: usize = 0;
pub(super) const EMAIL: usize = 1;
pub(super) const BIO: usize = 2;
pub(super) const AGE: usize = 3;
pub(super) const USER_ID: usize = 4;
pub(super) const RANK: usize = 5;
pub(super) const SCORE: usize = 6;
const ACTIVE: usize = 7;
pub(super) const LEVEL: usize = 8;
pub(super) const BIRTHDAY: usize = 9;
pub(super) const CREATED_AT: usize = 10;
pub(super) const BALANCE: usize = 11;
pub(super) const HOURLY_RATE: usize = 12;

/// Which table is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Plain,
    Indexed,
    /// Of the indexed ones a thirty-third is deleted, and a snapshot from before is open.
    Deleted,
    /// Emails of the first [`EMAILS`] users, in turn, and the balances of all.
    Emails,
}

/// How many emails there are at the most where it is [`Which::Emails`].
pub(super) const EMAILS: u64 = 1_000_000;

/// The tables, each made when first asked for, and the answers.
#[derive(Default)]
pub(crate) struct Users {
    plain: Option<Database>,
    indexed: Option<Database>,
    emails: Option<Database>,
    deleted: Option<(Database, Snapshot)>,
    pub(super) expected: Option<Expected>,
}

/// The indexes, as they are made.
pub(crate) fn indexes() -> Vec<NewIndex> {
    INDEXED.iter().map(|field| NewIndex::new(format!("by_{field}"), [*field])).collect()
}

impl Users {
    /// A table.
    pub(super) fn table(&mut self, bench: &Bench, which: Which) -> Result<Database> {
        match which {
            Which::Emails if bench.rows > EMAILS => {
                if self.emails.is_none() {
                    let row =
                        |i| Ok(vec![User::of(i % EMAILS).take(EMAIL), User::of(i).take(BALANCE)]);
                    let balance = DataType::Decimal { precision: 12, scale: 2 };
                    let schema = Schema::builder().field("email", DataType::Text);
                    let schema = schema.field("balance", balance);
                    self.emails = Some(make(bench, "users-emails", schema.build()?, row)?);
                }
                Ok(self.emails.clone().ok_or("no users")?)
            }
            Which::Plain | Which::Emails => {
                if self.plain.is_none() {
                    self.plain = Some(make(bench, "users-plain", users::schema()?, whole)?);
                }
                Ok(self.plain.clone().ok_or("no users")?)
            }
            Which::Indexed => {
                if self.indexed.is_none() {
                    let database = make(bench, "users-indexed", users::schema()?, whole)?;
                    database.create_indexes("users", &indexes())?;
                    database.wait_idle()?;
                    self.indexed = Some(database);
                }
                Ok(self.indexed.clone().ok_or("no users")?)
            }
            Which::Deleted => {
                if self.deleted.is_none() {
                    let indexed = self.table(bench, Which::Indexed)?;
                    let dir = bench.place("users-deleted")?;
                    indexed.backup(&dir, &BackupOptions::default(), &mut |_, _| ())?;
                    let database = Options::new().create(false).open(&dir)?;
                    let before = database.snapshot()?;
                    // The scores say nothing of the order of the rows, nor of other fields.
                    let statement = esker_sql::parse_statement(DELETION)?;
                    let esker_sql::Statement::Change(change) = statement else {
                        return Err("no deletion".into());
                    };
                    database.change(&change)?;
                    database.wait_idle()?;
                    self.deleted = Some((database, before));
                }
                Ok(self.deleted.as_ref().ok_or("no users")?.0.clone())
            }
        }
    }
}

const DELETION: &str = "DELETE FROM users WHERE score < 3";

fn whole(i: u64) -> Result<Vec<Value>> {
    Ok(users::row(i64::try_from(i)?))
}

/// Loads a table of users, of which each has a row.
fn make(
    bench: &Bench,
    name: &str,
    schema: Schema,
    row: impl Fn(u64) -> Result<Vec<Value>>,
) -> Result<Database> {
    let database = Options::new().open(bench.place(name)?)?;
    let table = database.create_table("users", schema)?;
    let mut load = table.load()?;
    let mut first = 0;
    let start = Instant::now();
    while first < bench.rows {
        let end = bench.rows.min(first + BATCH_ROWS);
        let mut batch = Batch::empty(&table.schema());
        for i in first..end {
            batch.push_row(&table.schema(), &row(i)?)?;
        }
        load.push(batch)?;
        first = end;
    }
    load.finish()?;
    database.wait_idle()?;
    eprint!("({name} made in {:.1} s) ", start.elapsed().as_secs_f64());
    Ok(database)
}

/// One user.
pub(super) struct User(Vec<Value>);

impl User {
    pub fn of(i: u64) -> Self {
        Self(users::row(i64::try_from(i).unwrap_or_default()))
    }

    /// One of its values.
    fn take(mut self, field: usize) -> Value {
        self.0.get_mut(field).map(std::mem::take).unwrap_or_default()
    }

    pub fn text(&self, field: usize) -> &str {
        match self.0.get(field) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    /// A number; of a date its days, of a timestamp its seconds.
    pub fn number(&self, field: usize) -> f64 {
        match self.0.get(field) {
            Some(Value::Int(v)) => *v as f64,
            Some(Value::Uint(v)) => *v as f64,
            Some(Value::Float(v)) => *v,
            Some(Value::Decimal(v)) => v.to_f64(),
            Some(Value::Date(v)) => f64::from(*v),
            Some(Value::Timestamp(v)) => (*v / 1_000_000) as f64,
            _ => f64::NAN,
        }
    }

    /// An integer, or the mantissa of a decimal.
    pub fn whole(&self, field: usize) -> i128 {
        match self.0.get(field) {
            Some(Value::Int(v)) => (*v).into(),
            Some(Value::Decimal(v)) => v.mantissa(),
            _ => 0,
        }
    }

    pub fn is_active(&self) -> bool {
        self.0.get(ACTIVE) == Some(&Value::Bool(true))
    }

    /// Is the row there in the table of which some are deleted?
    pub fn is_kept(&self) -> bool {
        self.number(SCORE) >= 3.0
    }
}
