//! How texts compare: by the key that a function makes of each.

use esker_format::suggest::near_or_all;

use super::{Expr, Function};
use crate::{Error, Result};

/// How texts compare. What is compared, ordered or grouped by is the key of a text in its place:
/// nothing behind this knows of collations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collation {
    /// By their bytes, which is the order of their characters: as without it.
    Binary,
    /// The letters A to Z are those from a to z.
    Nocase,
    /// Letters are the same in any case, by Unicode's simple case folding.
    Unicode,
}

impl Collation {
    /// Every collation.
    pub const ALL: [Self; 3] = [Self::Binary, Self::Nocase, Self::Unicode];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Nocase => "nocase",
            Self::Unicode => "unicode",
        }
    }

    /// The collation of a name, in any case.
    ///
    /// # Errors
    /// `InvalidQuery` for a name that none has, with those that there are.
    pub fn expect(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let near = near_or_all(name, "collations", Self::ALL.into_iter().map(Self::name));
            Error::invalid(format!("unknown collation {name:?}{near}"))
        })
    }

    /// What is compared of a text.
    #[must_use]
    pub fn key(self, text: Expr) -> Expr {
        match self {
            Self::Binary => text,
            Self::Nocase => Expr::call(Function::AsciiLower, [text]),
            Self::Unicode => Expr::call(Function::Casefold, [text]),
        }
    }
}

impl Expr {
    /// The key of a text by a collation, to be compared, ordered or grouped by:
    /// `Expr::field("name").collated(Collation::Nocase)`. Both sides of a comparison need it.
    #[must_use]
    pub fn collated(self, by: Collation) -> Self {
        by.key(self)
    }
}
