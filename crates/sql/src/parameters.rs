//! What a statement is given for its parameters.

use esker::record::record_values;
use esker::{Record, Result, Value};

use crate::parameter::{expect_values, in_order};

/// The values of a statement's parameters.
///
/// | what is given | how it goes to the parameters |
/// |---|---|
/// | `()` | there are none |
/// | `("Ada", 36)`: a tuple of up to twelve of whatever a [`Value`] can be made of | by position |
/// | `["Ada".into(), 36.into()]`: an array, a slice or a `Vec` of [`Value`]s | by position |
/// | [`Named::new`]`([("name", "Ada".into())])`, [`Named::of`]`(&record)` | by name |
///
/// ```
/// use esker::Options;
/// use esker_sql::{Named, Sql};
///
/// let db = Options::new().memory()?;
/// db.sql("CREATE TABLE people (name text PRIMARY KEY, age u8)", ())?;
/// db.sql("INSERT INTO people VALUES (?, ?)", ("Ada", 36))?;
/// let ada = Named::new([("name", "Ada".into()), ("age", 37.into())]);
/// db.sql("UPDATE people SET age = :age WHERE name = :name", ada)?;
/// let text = "SELECT age FROM people WHERE name = ?";
/// assert_eq!(db.sql_as::<u8>(text, ("Ada",))?, [37]);
///
/// let error = db.sql(text, ()).unwrap_err().to_string();
/// assert_eq!(error, "expected 1 parameter (?1), found 0");
/// # Ok::<(), esker::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for parameters",
    note = "expected `()`, a tuple such as `(\"Ada\", 36)`, `Value`s, or `Named::new([…])`"
)]
pub trait Parameters {
    /// Hands the values to `run`, in the order of the parameters with these names.
    ///
    /// # Errors
    /// `InvalidInput` saying which parameters were expected; else what `run` fails with.
    fn bind<R>(self, names: &[String], run: impl FnOnce(&[Value]) -> Result<R>) -> Result<R>;
}

/// Values that are in their order already.
macro_rules! ordered {
    ($([$($generic:tt)*] $values:ty),* $(,)?) => {
        $(impl<$($generic)*> Parameters for $values {
            fn bind<R>(
                self,
                names: &[String],
                run: impl FnOnce(&[Value]) -> Result<R>,
            ) -> Result<R> {
                expect_values(names, &self)?;
                run(&self)
            }
        })*
    };
}

ordered! { [] &[Value], [] Vec<Value>, [] &Vec<Value> }
ordered! { [const N: usize] [Value; N] }

impl<const N: usize> Parameters for &[Value; N] {
    fn bind<R>(self, names: &[String], run: impl FnOnce(&[Value]) -> Result<R>) -> Result<R> {
        self.as_slice().bind(names, run)
    }
}

impl Parameters for () {
    fn bind<R>(self, names: &[String], run: impl FnOnce(&[Value]) -> Result<R>) -> Result<R> {
        [].bind(names, run)
    }
}

macro_rules! tuples {
    ($($name:ident)+; $($rest:tt)*) => {
        impl<$($name: Into<Value>),+> Parameters for ($($name,)+) {
            fn bind<R>(
                self,
                names: &[String],
                run: impl FnOnce(&[Value]) -> Result<R>,
            ) -> Result<R> {
                #[allow(non_snake_case, reason = "a value has the name of its type")]
                let ($($name,)+) = self;
                [$($name.into()),+].bind(names, run)
            }
        }

        tuples! { $($rest)* }
    };
    () => {};
}

tuples! {
    A;
    A B;
    A B C;
    A B C D;
    A B C D E;
    A B C D E F;
    A B C D E F G;
    A B C D E F G H;
    A B C D E F G H I;
    A B C D E F G H I J;
    A B C D E F G H I J K;
    A B C D E F G H I J K L;
}

/// Values by the names of parameters, with or without the colon.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Named {
    values: Vec<(String, Value)>,
    /// Values that no parameter asks for are left out, not refused.
    may_have_more: bool,
}

impl Named {
    /// Pairs of a name and a value: an array, or a map. Each parameter has to have one value, and
    /// each value a parameter.
    #[must_use]
    pub fn new<N: Into<String>>(values: impl IntoIterator<Item = (N, Value)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Self { values, may_have_more: false }
    }

    /// The fields of a struct by their names. It may have more fields than there are parameters.
    /// `None` is NULL, for a field with a default, too.
    ///
    /// ```
    /// use esker::{Options, Record};
    /// use esker_sql::{Named, Sql};
    ///
    /// #[derive(Debug, PartialEq, Record)]
    /// struct Person {
    ///     #[esker(key)]
    ///     name: String,
    ///     age: Option<u8>,
    /// }
    ///
    /// let db = Options::new().memory()?;
    /// db.create_table_of::<Person>("people")?;
    /// let ada = Person { name: "Ada".into(), age: Some(36) };
    /// db.sql("INSERT INTO people (name, age) VALUES (:name, :age)", Named::of(&ada)?)?;
    /// let found = db.sql_as::<Person>("SELECT * FROM people WHERE name = ?", ("Ada",))?;
    /// assert_eq!(found, [ada]);
    /// # Ok::<(), esker::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose value cannot be stored.
    pub fn of<T: Record>(record: &T) -> Result<Self> {
        Ok(Self { may_have_more: true, ..Self::new(record_values(record)?) })
    }
}

impl Parameters for Named {
    fn bind<R>(self, names: &[String], run: impl FnOnce(&[Value]) -> Result<R>) -> Result<R> {
        let full = |name: String| {
            let is_full = names.contains(&name);
            let with_colon = format!(":{name}");
            if !is_full && names.contains(&with_colon) { with_colon } else { name }
        };
        let values = self.values.into_iter().map(|(name, value)| (full(name), value));
        let is_wanted = |(name, _): &(String, Value)| !self.may_have_more || names.contains(name);
        let values: Vec<_> = values.filter(is_wanted).collect();
        run(&in_order(names, &values)?)
    }
}

#[cfg(test)]
mod tests {
    use esker::Value;

    use super::{Named, Parameters};

    #[test]
    fn what_does_not_fit_the_parameters_is_refused_with_what_was_expected() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (two, none) = (names(&[":a", ":b"]), names(&[]));
        let sum = |values: &[Value]| Ok(values.to_vec());
        assert_eq!((1i64, "x").bind(&two, sum).unwrap(), [1i64.into(), "x".into()]);
        assert_eq!([Value::Null, 2.into()].bind(&two, sum).unwrap(), [Value::Null, 2.into()]);
        assert!(().bind(&none, sum).unwrap().is_empty());
        let e = (1i64,).bind(&two, sum).unwrap_err().to_string();
        assert_eq!(e, "expected 2 parameters (:a, :b), found 1");
        let e = [1i64.into()].bind(&none, sum).unwrap_err().to_string();
        assert_eq!(e, "expected 0 parameters, found 1");

        let named = Named::new([("b", 2.into()), (":a", 1.into())]);
        assert_eq!(named.clone().bind(&two, sum).unwrap(), [1.into(), 2.into()]);
        let e = named.bind(&names(&[":a"]), sum).unwrap_err().to_string();
        assert_eq!(e, "unknown parameter b; expected :a");
        let e = Named::new([("a", 1.into())]).bind(&two, sum).unwrap_err().to_string();
        assert_eq!(e, "parameter :b has no value");
        let twice = Named::new([("a", 1.into()), (":a", 1.into())]);
        let e = twice.bind(&two, sum).unwrap_err().to_string();
        assert_eq!(e, "parameter :a is given twice");
    }
}
