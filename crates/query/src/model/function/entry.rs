//! What a line of the table of functions is made with: its usual parts, and the macro that makes
//! the enum, the families and the entries of all lines.

use super::{Family, Function, FunctionEntry, Makes, OperandKind, Outcome};

const MANY: usize = 65_536;

pub(super) const FIXED: Makes = Makes::Fixed;

/// The operands, one after another or a part of them.
pub(super) const UP_TO_ALL: Makes = up_to(1);

/// The name of a type or a kind.
pub(super) const A_NAME: Makes = Makes::Operands { times: 0, more: 64 };

/// A character of each operand.
pub(super) const CHARACTERS: Makes = Makes::Operands { times: 0, more: 4 };

/// Twice the operands, and what stands around them.
pub(super) const fn quoted() -> Makes {
    Makes::Operands { times: 2, more: 64 }
}

/// Four characters for each three bytes, or part of them.
pub(super) const fn base64() -> Makes {
    Makes::Operands { times: 2, more: 4 }
}

/// So many times the operands.
pub(super) const fn up_to(times: usize) -> Makes {
    Makes::Operands { times, more: 0 }
}

/// The same with tables of ends, and numbers as they are written.
pub(super) const fn document(times: usize) -> Makes {
    Makes::Operands { times, more: 512 }
}

/// A line with what most functions have: all operands needed, NULL when one is, never failing.
pub(super) const fn line(
    function: Function,
    family: Family,
    parameters: &'static [OperandKind],
    outcome: Outcome,
    makes: Makes,
) -> FunctionEntry {
    FunctionEntry {
        function,
        name: "",
        aliases: &[],
        family,
        operands: "",
        parameters,
        operands_min: parameters.len(),
        operands_max: parameters.len(),
        outcome,
        makes,
        is_strict: true,
        may_fail: false,
        meaning: "",
        example: ("", ""),
    }
}

impl FunctionEntry {
    pub(super) const fn at_least(mut self, operands_min: usize) -> Self {
        self.operands_min = operands_min;
        self
    }

    pub(super) const fn or_more(mut self) -> Self {
        self.operands_max = MANY;
        self
    }

    pub(super) const fn seeing_nulls(mut self) -> Self {
        self.is_strict = false;
        self
    }

    pub(super) const fn failing(mut self) -> Self {
        self.may_fail = true;
        self
    }
}

/// All items, one after another, each with what stands before and behind it: a zero in a text takes
/// two bytes.
pub(super) const ITEMS: Makes = Makes::Operands { times: 2, more: 32 };

/// A number of 9 bytes for each item, which has one at least.
pub(super) const ITEM_NUMBERS: Makes = Makes::Operands { times: 9, more: 32 };

/// An item for each character of a text.
pub(super) const TEXT_ITEMS: Makes = Makes::Operands { times: 4, more: 32 };

macro_rules! functions {
    ($($(#[$about:meta])* $family:ident $title:literal {$(
        $function:ident = $name:literal $(| $alias:literal)* ($operands:literal: $($kind:ident)*)
            -> $outcome:ident, $makes:expr $(, $(.$change:ident $arguments:tt)+)?;
            $meaning:literal, $example:literal => $value:literal;
    )*})*) => {
        /// A function of the values of one row.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Function {
            $($(#[doc = $meaning] $function,)*)*
        }

        /// What a function is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Family {
            $($(#[$about])* $family,)*
        }

        impl Family {
            /// Every family, in the order of the reference.
            pub const ALL: [Self; [$($title),*].len()] = [$(Self::$family),*];

            /// Its heading.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self {
                    $(Self::$family => $title,)*
                }
            }
        }

        impl Function {
            /// The function's line in the table.
            #[must_use]
            pub const fn entry(self) -> &'static FunctionEntry {
                match self {$($(
                    Self::$function => {
                        const ENTRY: &FunctionEntry = &FunctionEntry {
                            name: $name,
                            aliases: &[$($alias),*],
                            operands: $operands,
                            meaning: $meaning,
                            example: ($example, $value),
                            ..line(
                                Function::$function,
                                Family::$family,
                                &[$(OperandKind::$kind),*],
                                Outcome::$outcome,
                                $makes,
                            )
                        }$($(.$change $arguments)+)?;
                        ENTRY
                    }
                )*)*}
            }
        }

        /// Every function.
        pub const FUNCTIONS: &[FunctionEntry] = &[$($(*Function::$function.entry(),)*)*];
    };
}

pub(super) use functions;
