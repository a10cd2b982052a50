//! The one table of scalar functions: names, operands, types, meanings and an example of each.
//! Binding, every query language and the reference of functions read it; nothing else lists them.

use esker_vfs::sabotage::Bug;

mod entry;
mod table;

pub use table::{FUNCTIONS, Family, Function};

/// What an operand of a function may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// Anything, taken as text.
    Any,
    /// Anything, as it is.
    Value,
    /// Anything that has a common type with the other operands of this kind.
    Common,
    /// A number of any type.
    Number,
    /// A number, taken as a 64-bit float.
    Float,
    /// An integer.
    Integer,
    /// Text.
    Text,
    /// Text or bytes.
    TextOrBytes,
    /// A date or a timestamp.
    Moment,
    /// A date, a timestamp, a time or an interval.
    MomentOrTime,
    /// A date, a timestamp or an interval.
    MomentOrInterval,
    /// An interval, or a constant text that is one.
    Interval,
    /// The name of a part of a date or time, as a constant.
    Unit,
    /// A date, a timestamp or a time; text or a number that is taken for one; a format.
    TimeValue,
    /// Text or a number.
    TextOrNumber,
    /// JSON, or a constant text that is JSON.
    Json,
    /// A regular expression or its flags, as a constant text.
    Expression,
    /// The name of a member, or the place of an element.
    Step,
    /// A list.
    List,
    /// A value that could be an item of the list beside it.
    Item,
}

/// What comes out of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The type of the first operand that is not a [`OperandKind::Unit`].
    First,
    /// The common type of the operands.
    Common,
    /// A bool.
    Bool,
    /// An i64.
    Integer,
    /// An f64.
    Float,
    /// Text.
    Text,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// A timestamp.
    Timestamp,
    /// An interval.
    Interval,
    /// Bytes.
    Bytes,
    /// A UUID.
    Uuid,
    /// JSON.
    Json,
    /// A list, of the type of the lists and the items that the function takes.
    List,
    /// An item of the list.
    Item,
}

/// The most bytes that a function makes of the operands of a row, while it does so included. The
/// evaluator asks for room for them before it calls the function: there is no function without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Makes {
    /// A number, a truth value, a time: nothing beside what every row has.
    Fixed,
    /// At most so many times the bytes of all operands, and so many more for each operand.
    Operands {
        /// How many times.
        times: usize,
        /// How many more.
        more: usize,
    },
    /// The first operand, as often as the second one says.
    Repeated,
    /// The first operand, with the third in place of each of the second.
    Replaced,
    /// As many as the function counts for the operands.
    Counted,
    /// A template: each of its bytes may become a name or a number.
    Templated,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct FunctionEntry {
    /// The function.
    pub function: Function,
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is about.
    pub family: Family,
    /// The operands' names, as the reference shows them.
    pub operands: &'static str,
    /// What each operand may be; the last stands for all that follow where they may be many.
    pub parameters: &'static [OperandKind],
    /// The fewest operands.
    pub operands_min: usize,
    /// The most operands.
    pub operands_max: usize,
    /// What comes out.
    pub outcome: Outcome,
    /// How large what comes out may be.
    pub makes: Makes,
    /// Whether it is NULL when an operand is.
    pub is_strict: bool,
    /// Whether it may fail for some values.
    pub may_fail: bool,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// An example in SQL, and its value as text.
    pub example: (&'static str, &'static str),
}

impl FunctionEntry {
    /// What an operand may be, of a call with so many.
    #[must_use]
    pub fn kind(&self, i: usize, count: usize) -> OperandKind {
        let at = match (self.function, self.parameters) {
            // One more value behind the steps.
            (Function::JsonSet | Function::JsonPush, [.., _]) if i + 1 == count => 2,
            (Function::JsonSet | Function::JsonPush, _) => i.min(1),
            (Function::JsonObject, _) => i % 2,
            (_, parameters) => i.min(parameters.len().saturating_sub(1)),
        };
        self.parameters.get(at).copied().unwrap_or(OperandKind::Any)
    }
}

impl Function {
    /// The function of a name (in any case), if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let mut named =
            FUNCTIONS.iter().filter(|e| is_it(e.name) || e.aliases.iter().any(|a| is_it(a)));
        named.next().map(|e| e.function)
    }

    /// Whether it is another value each time that it is computed.
    #[must_use]
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::RandomUuid | Self::ClockTimestamp)
    }

    /// Every name and other name of a function.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().flat_map(|e| std::iter::once(e.name).chain(e.aliases.iter().copied()))
    }
}

/// True for a step of a function that is a whole path, such as `$.a[0]`.
pub(crate) fn is_path(step: &str) -> bool {
    esker_format::json::is_path(step) && !Bug::JsonPathIsAName.is_planted()
}
