//! Changes of a row that say what to do with a value, not which value it gets.
//!
//! An [`Update`] is a list of operators, each with a path. Before anything is locked it is bound to
//! a schema: paths are taken apart, operands become what the fields take, and what can never be
//! done is refused. Then, where a row is changed, whether under the commit lock or in a
//! transaction, the bound update makes the new row of the old one in memory: nothing comes between
//! reading and writing, and a failure leaves nothing behind. What is logged is the row that came of
//! it.

mod apply;
mod bound;
mod json;
mod matched;
mod operator;
mod path;
mod serial;
mod typed;

use esker_format::Value;

pub(crate) use bound::Bound;
pub use operator::{OPERATORS, Operand, Operator, OperatorEntry};
pub(crate) use path::Path;

/// What to do with a row: operators on fields and on places inside `json` fields, in order.
///
/// A path is the name of a field and, in a `json` one, names of members and places of elements,
/// with dots between: `doc.items.0.price`, -1 for the last element. `\.` is a dot in a name.
///
/// ```
/// use esker::{DataType, Modified, Options, Schema, Update, Value};
///
/// let db = Options::new().memory()?;
/// let schema = Schema::builder()
///     .field("id", DataType::I64)
///     .field("visits", DataType::U32)
///     .field("doc", DataType::Json)
///     .primary_key(["id"])
///     .build()?;
/// let pages = db.create_table("pages", schema)?;
/// pages.insert(&[1.into(), 7.into(), Value::json(r#"{"tags": ["a"]}"#)?])?;
///
/// let visit = Update::new()
///     .increment("visits", 1)
///     .increment("doc.by.ada", 1)
///     .add_to_set("doc.tags", "b");
/// let Modified::Changed { new: Some(row), .. } = pages.apply(&[1.into()], &visit)? else {
///     unreachable!("there is a row with key 1");
/// };
/// assert_eq!(row.get("visits"), Some(&Value::Uint(8)));
/// assert_eq!(row.get("doc").unwrap().to_string(), r#"{"by":{"ada":1},"tags":["a","b"]}"#);
/// # Ok::<(), esker::Error>(())
/// ```
///
/// It has a form as JSON, too: an object of operators, each with an object of paths and operands,
/// or a list of paths where there are none.
///
/// ```
/// use esker::Update;
///
/// let text = r#"{"increment": {"doc.visits": 1}, "unset": ["doc.draft"]}"#;
/// let update: Update = serde_json::from_str(text).unwrap();
/// assert_eq!(update, Update::new().increment("doc.visits", 1).unset("doc.draft"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    steps: Vec<Step>,
}

/// One operator at one path.
#[derive(Clone, Debug, PartialEq)]
struct Step {
    operator: Operator,
    path: String,
    /// NULL where the operator has none; a path as text.
    operand: Value,
}

impl Update {
    /// One that changes nothing, to begin with.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more operator. What it takes is in its [`entry`](Operator::entry).
    #[must_use]
    pub fn with(
        mut self,
        operator: Operator,
        path: impl Into<String>,
        operand: impl Into<Value>,
    ) -> Self {
        self.steps.push(Step { operator, path: path.into(), operand: operand.into() });
        self
    }

    /// Sets a value. NULL within a `json` field is `null`.
    #[must_use]
    pub fn set(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::Set, path, value)
    }

    /// Removes a member or an element; a field becomes NULL.
    #[must_use]
    pub fn unset(self, path: impl Into<String>) -> Self {
        self.with(Operator::Unset, path, Value::Null)
    }

    /// Adds to a number. What is missing or NULL starts at 0.
    #[must_use]
    pub fn increment(self, path: impl Into<String>, by: impl Into<Value>) -> Self {
        self.with(Operator::Increment, path, by)
    }

    /// Multiplies a number. What is missing or NULL becomes 0.
    #[must_use]
    pub fn multiply(self, path: impl Into<String>, by: impl Into<Value>) -> Self {
        self.with(Operator::Multiply, path, by)
    }

    /// Sets a value where that is less than what is there, or nothing is.
    #[must_use]
    pub fn min(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::Min, path, value)
    }

    /// Sets a value where that is greater than what is there, or nothing is.
    #[must_use]
    pub fn max(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::Max, path, value)
    }

    /// Moves a value to another path of the same `json` field, over what is there.
    #[must_use]
    pub fn rename(self, path: impl Into<String>, to: impl Into<String>) -> Self {
        self.with(Operator::Rename, path, Value::Text(to.into()))
    }

    /// Adds an element after the last of an array.
    #[must_use]
    pub fn push(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::Push, path, value)
    }

    /// Adds an element before the first of an array.
    #[must_use]
    pub fn push_front(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::PushFront, path, value)
    }

    /// Removes the last element of an array.
    #[must_use]
    pub fn pop(self, path: impl Into<String>) -> Self {
        self.with(Operator::Pop, path, Value::Null)
    }

    /// Removes the first element of an array.
    #[must_use]
    pub fn pop_front(self, path: impl Into<String>) -> Self {
        self.with(Operator::PopFront, path, Value::Null)
    }

    /// Removes the elements of an array that are equal to a value: 1 and 1.0 are.
    #[must_use]
    pub fn pull(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::Pull, path, value)
    }

    /// Adds an element after the last of an array that has none equal to it.
    #[must_use]
    pub fn add_to_set(self, path: impl Into<String>, value: impl Into<Value>) -> Self {
        self.with(Operator::AddToSet, path, value)
    }

    /// Sets the time, in UTC.
    #[must_use]
    pub fn current_time(self, path: impl Into<String>) -> Self {
        self.with(Operator::CurrentTime, path, Value::Null)
    }

    /// True when it has no operator.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}
