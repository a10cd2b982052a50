//! The one table of what a field can be tested for: 38 operators, each with its name, the values it
//! takes, the types it means something on, its meaning, its spelling in SQL and its opposite.
//!
//! The JSON form of queries ([`crate::json`]), the methods of [`Expr`], errors
//! about unknown operators, `docs/reference/operators.md`: all from here. Each line says which
//! expression it stands for, so that SQL, JSON and Rust have one meaning, one binding and the same
//! kernels.

mod builder;
mod table;
#[cfg(test)]
mod tests;

use esker_format::DataType;
use esker_format::suggest::near_or_all;

pub use table::{FILTER_OPERATORS, FilterFamily};

use crate::model::{Expr, Function, Operator, Typing};
use crate::{Error, Result};

/// A test of a field.
#[derive(Clone, Copy, Debug)]
pub struct FilterOperator {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it is about.
    pub family: FilterFamily,
    /// What it takes beside the field.
    pub operands: Operands,
    /// The types of fields that it means something on.
    pub subjects: Subjects,
    /// What it is of a field that is NULL.
    pub of_null: OfNull,
    /// The operator that is true where this one is false, if it has a name.
    pub opposite: Option<&'static str>,
    /// How SQL spells it, with `x` for the field, `v` and `w` for values, `y` for another field.
    pub sql: &'static str,
    /// What it means, in a sentence.
    pub meaning: &'static str,
    /// Where values stand in a JSON query, an example on a field `name`, `age` or `rank`.
    pub example: &'static str,
    /// What it stands for.
    form: Form,
}

/// What an operator takes beside the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Nothing.
    None,
    /// One value.
    One,
    /// A least and a greatest value.
    Two,
    /// Any number of values.
    Many,
    /// The name of another field.
    Field,
}

impl Operands {
    /// What is expected, in words.
    #[must_use]
    pub const fn expected(self) -> &'static str {
        match self {
            Self::None => "no value",
            Self::One => "one value",
            Self::Two => "two values, the least and the greatest",
            Self::Many => "an array of values",
            Self::Field => "the name of another field",
        }
    }
}

/// The types of fields that an operator means something on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subjects {
    /// Every type.
    All,
    /// Text, the labels of an enum, and text within JSON.
    Text,
    /// Those, and bytes.
    TextOrBytes,
}

impl Subjects {
    /// Whether a type is among them.
    #[must_use]
    pub const fn has(self, data_type: DataType) -> bool {
        match self {
            Self::All => true,
            Self::Text => matches!(data_type, DataType::Text | DataType::Enum),
            Self::TextOrBytes => {
                matches!(data_type, DataType::Text | DataType::Enum | DataType::Bytes)
            }
        }
    }

    /// Their names.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::All => "every type",
            Self::Text => "text, enum, a path into json",
            Self::TextOrBytes => "text, enum, a path into json, bytes",
        }
    }
}

/// What an operator is of a field that is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfNull {
    /// Not known: neither it nor its opposite finds the row.
    Unknown,
    /// True.
    True,
    /// False.
    False,
}

impl OfNull {
    /// In words.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::True => "true",
            Self::False => "false",
        }
    }
}

/// The expression that an operator stands for.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// An operator on the field and the values.
    Of(Operator),
    /// An operator on the length of the field and the values.
    OfLength(Operator),
    /// A function of the field and the value.
    Call(Function),
    /// The opposite of one.
    NotCall(Function),
}

impl FilterOperator {
    /// The operator of a name.
    ///
    /// # Errors
    /// `InvalidQuery` with the name that is nearest.
    ///
    /// ```
    /// use esker_query::operator::FilterOperator;
    ///
    /// assert_eq!(FilterOperator::expect("nin")?.name, "not_in");
    /// let error = FilterOperator::expect("contians").unwrap_err();
    /// assert_eq!(error.to_string(), "unknown operator \"contians\"; did you mean \"contains\"?");
    /// # Ok::<(), esker_query::Error>(())
    /// ```
    pub fn expect(name: &str) -> Result<&'static Self> {
        let named = |entry: &&Self| entry.name == name || entry.aliases.contains(&name);
        FILTER_OPERATORS.iter().find(named).ok_or_else(|| {
            let names = FILTER_OPERATORS.iter().map(|entry| entry.name);
            let near = near_or_all(name, "operators", names);
            Error::invalid(format!("unknown operator {name:?}{near}"))
        })
    }

    /// The condition on a field, or any other expression, with what it takes beside it.
    ///
    /// # Errors
    /// `InvalidQuery` when that is too much or too little.
    ///
    /// ```
    /// use esker_query::model::Expr;
    /// use esker_query::operator::FilterOperator;
    ///
    /// let between = FilterOperator::expect("len_between")?;
    /// let condition = between.apply(Expr::field("name"), vec![2i64.into(), 5i64.into()])?;
    /// assert_eq!(condition.to_string(), "length(name) BETWEEN 2 AND 5");
    /// # Ok::<(), esker_query::Error>(())
    /// ```
    pub fn apply(&self, subject: Expr, operands: Vec<Expr>) -> Result<Expr> {
        let fits = match self.operands {
            Operands::None => operands.is_empty(),
            Operands::One if operands.len() == 2 => self.takes_escape(),
            Operands::One | Operands::Field => operands.len() == 1,
            Operands::Two => operands.len() == 2,
            Operands::Many => true,
        };
        if !fits {
            let (name, expected, found) = (self.name, self.operands.expected(), operands.len());
            return Err(Error::invalid(format!("{name} takes {expected}, found {found}")));
        }
        let with = |first: Expr| std::iter::once(first).chain(operands).collect::<Vec<_>>();
        Ok(match self.form {
            Form::Of(operator) => Expr::Apply(operator, with(subject)),
            Form::OfLength(operator) => {
                Expr::Apply(operator, with(Expr::call(Function::Length, [subject])))
            }
            Form::Call(function) => Expr::Call(function, with(subject)),
            Form::NotCall(function) => Expr::Call(function, with(subject)).negated(),
        })
    }

    /// Whether an escape character may follow its value.
    #[must_use]
    pub fn takes_escape(&self) -> bool {
        use Operator::{Ilike, Like, NotIlike, NotLike};
        matches!(self.form, Form::Of(Like | NotLike | Ilike | NotIlike))
    }

    /// Whether it compares the field with its values, so that both can be by a collation.
    #[must_use]
    pub fn compares(&self) -> bool {
        matches!(self.form, Form::Of(operator) if operator.entry().typing == Typing::Comparison)
    }

    /// Whether its values are lengths of texts, not of the field's type.
    #[must_use]
    pub fn takes_lengths(&self) -> bool {
        matches!(self.form, Form::OfLength(_))
    }
}
