//! Keys as Rust values.

use esker_format::Value;

use super::FieldType;
use crate::Result;

/// A key as Rust has it: the value of its field, a tuple of several, or values.
///
/// ```
/// use esker::{Options, Record};
///
/// #[derive(Record)]
/// struct Visit {
///     #[esker(key)]
///     user: String,
///     #[esker(key)]
///     number: u32,
/// }
///
/// let db = Options::new().memory()?;
/// let visits = db.create_table_of::<Visit>("visits")?;
/// visits.insert(&Visit { user: "Ada".into(), number: 1 })?;
/// assert!(visits.exists(("Ada", 1))?);
/// assert!(!visits.delete(("Ada", 2))?);
/// # Ok::<(), esker::Error>(())
/// ```
pub trait ToKey {
    /// The values of the key, in the order of its fields.
    ///
    /// # Errors
    /// `InvalidInput` when one has no value.
    fn to_key(&self) -> Result<Vec<Value>>;
}

impl<T: FieldType> ToKey for T {
    fn to_key(&self) -> Result<Vec<Value>> {
        Ok(vec![self.to_value()?])
    }
}

impl ToKey for &str {
    fn to_key(&self) -> Result<Vec<Value>> {
        Ok(vec![Value::from(*self)])
    }
}

impl ToKey for &[Value] {
    fn to_key(&self) -> Result<Vec<Value>> {
        Ok(self.to_vec())
    }
}

impl<const N: usize> ToKey for &[Value; N] {
    fn to_key(&self) -> Result<Vec<Value>> {
        Ok(self.to_vec())
    }
}

macro_rules! tuples {
    ($(($($name:ident),*))*) => {
        $(impl<$($name: ToKey),*> ToKey for ($($name,)*) {
            #[allow(non_snake_case, reason = "each part is called by its type")]
            fn to_key(&self) -> Result<Vec<Value>> {
                let ($($name,)*) = self;
                Ok([$($name.to_key()?),*].concat())
            }
        })*
    };
}

tuples! { (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
