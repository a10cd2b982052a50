//! The operators, all that is known of each of them in one table.

use std::fmt;

/// What an [`Update`](crate::Update) does at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the table says what each does")]
pub enum Operator {
    Set,
    Unset,
    Increment,
    Multiply,
    Min,
    Max,
    Rename,
    Push,
    PushFront,
    Pop,
    PopFront,
    Pull,
    AddToSet,
    CurrentTime,
}

/// What an operator is given beside the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Nothing: in JSON, a list of paths.
    None,
    /// A value.
    Value,
    /// A number.
    Number,
    /// Another path.
    Path,
}

/// A row of the table of operators.
#[derive(Clone, Copy, Debug)]
pub struct OperatorEntry {
    /// The operator.
    pub operator: Operator,
    /// Its name in JSON and in errors.
    pub name: &'static str,
    /// What it is given.
    pub operand: Operand,
    /// The types of fields that take it, as documented; inside `json`, all do.
    pub fields: &'static str,
    /// What it does.
    pub does: &'static str,
    /// What it does where nothing is.
    pub missing: &'static str,
}

macro_rules! operators {
    ($($operator:ident $name:literal $operand:ident, $fields:literal, $does:literal,
       $missing:literal;)*) => {
        /// Every operator.
        pub const OPERATORS: &[OperatorEntry] = &[$(OperatorEntry {
            operator: Operator::$operator,
            name: $name,
            operand: Operand::$operand,
            fields: $fields,
            does: $does,
            missing: $missing,
        }),*];

        impl Operator {
            /// Its row of the table.
            #[must_use]
            pub const fn entry(self) -> &'static OperatorEntry {
                match self {
                    $(Self::$operator => &const { OperatorEntry {
                        operator: Operator::$operator,
                        name: $name,
                        operand: Operand::$operand,
                        fields: $fields,
                        does: $does,
                        missing: $missing,
                    } },)*
                }
            }
        }
    };
}

operators! {
    Set "set" Value, "all", "the value is this one", "is set";
    Unset "unset" None, "that may be NULL", "a member or an element goes, a field becomes NULL",
        "nothing";
    Increment "increment" Number, "numbers", "adds the number", "starts at 0";
    Multiply "multiply" Number, "numbers", "multiplies by the number", "becomes 0";
    Min "min" Value, "all but `json`", "the lesser of what is there and this", "is set";
    Max "max" Value, "all but `json`", "the greater of what is there and this", "is set";
    Rename "rename" Path, "none", "the value moves to the other path of the same field", "nothing";
    Push "push" Value, "none", "one more element after the last", "an array of it";
    PushFront "push_front" Value, "none", "one more element before the first", "an array of it";
    Pop "pop" None, "none", "the last element goes", "nothing";
    PopFront "pop_front" None, "none", "the first element goes", "nothing";
    Pull "pull" Value, "none", "all elements equal to the value go", "nothing";
    AddToSet "add_to_set" Value, "none", "one more element, unless one is equal", "an array of it";
    CurrentTime "current_time" None, "`timestamp`, `date`, `time`",
        "the time; in `json` a text like `2026-01-31T12:00:00Z`", "is set";
}

impl Operator {
    /// The operator of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        OPERATORS.iter().find(|entry| entry.name == name).map(|entry| entry.operator)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)
    }
}
