//! The lines of the table: the function with its name and other names, its operands as users read
//! them and their kinds, what comes out, the most bytes that it makes, and what it does that most
//! functions do not; then what it means, and an example with its value.

use serde::{Deserialize, Serialize};

use super::{FunctionEntry, Makes, OperandKind, Outcome};

const MANY: usize = 65_536;

const FIXED: Makes = Makes::Fixed;

/// The operands, one after another or a part of them.
const UP_TO_ALL: Makes = up_to(1);

/// The name of a type or a kind.
const A_NAME: Makes = Makes::Operands { times: 0, more: 64 };

/// So many times the operands.
const fn up_to(times: usize) -> Makes {
    Makes::Operands { times, more: 0 }
}

/// The same with tables of ends, and numbers as they are written.
const fn document(times: usize) -> Makes {
    Makes::Operands { times, more: 512 }
}

/// A line with what most functions have: all operands needed, NULL when one is, never failing.
const fn line(
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
    const fn at_least(mut self, operands_min: usize) -> Self {
        self.operands_min = operands_min;
        self
    }

    const fn or_more(mut self) -> Self {
        self.operands_max = MANY;
        self
    }

    const fn seeing_nulls(mut self) -> Self {
        self.is_strict = false;
        self
    }

    const fn failing(mut self) -> Self {
        self.may_fail = true;
        self
    }
}

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

functions! {
    /// Choosing between values.
    Choice "Choosing" {
        Coalesce = "coalesce" | "ifnull" ("a, …": Common)
            -> Common, UP_TO_ALL, .or_more().seeing_nulls();
            "The first operand that is not NULL.", "coalesce(NULL, 2, 3)" => "2";
        Nullif = "nullif" ("a, b": Any Any) -> First, UP_TO_ALL, .seeing_nulls();
            "NULL where `a = b`, else `a`.", "nullif('x', 'x')" => "null";
        Greatest = "greatest" ("a, …": Common) -> Common, UP_TO_ALL, .or_more().seeing_nulls();
            "The greatest operand; NULLs are left out.", "greatest(2, NULL, 7)" => "7";
        Least = "least" ("a, …": Common) -> Common, UP_TO_ALL, .or_more().seeing_nulls();
            "The least operand; NULLs are left out.", "least(2, NULL, 7)" => "2";
        Typeof = "typeof" ("a": Any) -> Text, A_NAME, .seeing_nulls();
            "The name of the operand's type, whatever its value.", "typeof(1.5)" => "decimal(2,1)";
    }
    /// Text and bytes.
    Text "Text and bytes" {
        Lower = "lower" ("text": Text) -> Text, up_to(2);
            "The text in lower case, by Unicode.", "lower('ÄB')" => "äb";
        Upper = "upper" ("text": Text) -> Text, up_to(3);
            "The text in upper case, by Unicode.", "upper('äb')" => "ÄB";
        Length = "length" | "char_length" | "character_length" ("text": TextOrBytes)
            -> Integer, FIXED;
            "Characters of a text, bytes of a byte string.", "length('äb')" => "2";
        OctetLength = "octet_length" ("text": TextOrBytes) -> Integer, FIXED;
            "Bytes of a text in UTF-8, or of a byte string.", "octet_length('äb')" => "3";
        Substr = "substr" | "substring" ("text, start [, count]": TextOrBytes Integer Integer)
            -> First, UP_TO_ALL, .at_least(2).failing();
            "The characters from `start` (1 is the first, -1 the last), `count` of them or all; a \
             negative count is an error.", "substr('esker', 2, 3)" => "ske";
        Left = "left" ("text, count": Text Integer) -> Text, UP_TO_ALL;
            "The first characters; of a negative count, all but the last so many.",
            "left('esker', -2)" => "esk";
        Right = "right" ("text, count": Text Integer) -> Text, UP_TO_ALL;
            "The last characters; of a negative count, all but the first so many.",
            "right('esker', 2)" => "er";
        Replace = "replace" ("text, part, by": Text Text Text) -> Text, Makes::Replaced, .failing();
            "The text with every `part` replaced.", "replace('a-b-c', '-', '+')" => "a+b+c";
        Trim = "trim" | "btrim" ("text [, characters]": Text Text) -> Text, UP_TO_ALL, .at_least(1);
            "Without any of the characters (spaces) at both ends; also `trim(LEADING 'x' FROM a)`.",
            "trim('  a b ')" => "a b";
        Ltrim = "ltrim" ("text [, characters]": Text Text) -> Text, UP_TO_ALL, .at_least(1);
            "Without any of the characters (spaces) in front.", "ltrim('xxa', 'x')" => "a";
        Rtrim = "rtrim" ("text [, characters]": Text Text) -> Text, UP_TO_ALL, .at_least(1);
            "Without any of the characters (spaces) at the end.", "rtrim('abcb', 'bc')" => "a";
        Concat = "concat" ("a, …": Any) -> Text, UP_TO_ALL, .or_more().seeing_nulls();
            "The operands as text, one after another; NULLs are left out (`a || b` is NULL \
             instead).", "concat('a', NULL, 1)" => "a1";
        Repeat = "repeat" ("text, count": Text Integer) -> Text, Makes::Repeated, .failing();
            "The text so many times; at most 8 MiB.", "repeat('ab', 3)" => "ababab";
        Reverse = "reverse" ("text": Text) -> Text, UP_TO_ALL;
            "The characters in the opposite order.", "reverse('äbc')" => "cbä";
        StartsWith = "starts_with" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the text begins with the part.", "starts_with('esker', 'es')" => "true";
        EndsWith = "ends_with" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the text ends with the part.", "ends_with('esker', 'es')" => "false";
        Contains = "contains" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the part occurs in the text.", "contains('esker', 'ske')" => "true";
        IstartsWith = "istarts_with" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the text begins with the part, whatever the case of letters.",
            "istarts_with('esker', 'ES')" => "true";
        IendsWith = "iends_with" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the text ends with the part, whatever the case of letters.",
            "iends_with('esker', 'KER')" => "true";
        Icontains = "icontains" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the part occurs in the text, whatever the case of letters.",
            "icontains('Äßc', 'äSS')" => "false";
        RegexpLike = "regexp_like" ("text, expression [, flags]": Text Expression Expression)
            -> Bool, FIXED, .at_least(2);
            "Whether the regular expression, a constant, is found in the text; with the flags \
             `'i'` whatever the case of letters. `text ~ expression` is this, `~*` with `'i'`, \
             `!~` and `!~*` the opposites.", "regexp_like('esker', '^e.*[kr]$')" => "true";
        Strpos = "strpos" | "instr" ("text, part": Text Text) -> Integer, FIXED;
            "The place of the part's first character, 1 for the first, 0 where it does not occur; \
             also `position(part IN text)`.", "strpos('esker', 'k')" => "3";
    }
    /// Numbers.
    Number "Numbers" {
        Abs = "abs" ("x": Number) -> First, FIXED, .failing();
            "The magnitude.", "abs(-3)" => "3";
        Sign = "sign" ("x": Number) -> First, FIXED;
            "-1, 0 or 1.", "sign(-2.5)" => "-1";
        Round = "round" ("x [, digits]": Number Integer) -> First, FIXED, .at_least(1).failing();
            "Rounded half away from zero, to so many decimals (0); negative for tens.",
            "round(2.345, 2)" => "2.35";
        Floor = "floor" ("x": Number) -> First, FIXED;
            "The greatest whole number that is not greater.", "floor(-1.5)" => "-2";
        Ceil = "ceil" | "ceiling" ("x": Number) -> First, FIXED;
            "The least whole number that is not less.", "ceil(1.2)" => "2";
        Mod = "mod" ("a, b": Number Number) -> First, FIXED;
            "The remainder of a / b, as `a % b`.", "mod(-7, 3)" => "-1";
        Power = "power" | "pow" ("x, y": Float Float) -> Float, FIXED;
            "x to the power of y; NULL where that is no real number.", "power(2, 10)" => "1024.0";
        Sqrt = "sqrt" ("x": Float) -> Float, FIXED;
            "The square root; NULL of a negative number.", "sqrt(9)" => "3.0";
    }
    /// Dates and times.
    Time "Dates and times" {
        Now = "now" | "current_timestamp" ("":) -> Timestamp, FIXED;
            "The time at which the statement began, the same everywhere in it.",
            "now() = now()" => "true";
        CurrentDate = "current_date" ("":) -> Date, FIXED;
            "The day at which the statement began, in UTC.", "current_date = now()::date" => "true";
        DateTrunc = "date_trunc" ("unit, moment": Unit Moment) -> First, FIXED, .failing();
            "The start of the unit a date or timestamp lies in: `microsecond`, `millisecond`, \
             `second`, `minute`, `hour`, `day`, `week` (from Monday), `month`, `quarter`, \
             `year`.", "date_trunc('month', DATE '2024-02-29')" => "2024-02-01";
        DatePart = "date_part" ("unit, moment": Unit MomentOrTime) -> Integer, FIXED;
            "A part as an integer, also `extract(unit FROM moment)`: `year`, `isoyear`, \
             `quarter`, `month`, `week` (ISO), `day`, `doy`, `dow` (0 is Sunday), `isodow` (7 is \
             Sunday), `hour`, `minute`, `second`, `millisecond` and `microsecond` (of the \
             minute), `epoch` (seconds since 1970).",
            "date_part('doy', DATE '2024-12-31')" => "366";
        DateAdd = "date_add" ("moment, months, microseconds": Moment Integer Integer)
            -> Timestamp, FIXED, .failing();
            "Months (the day of the month cut to what there is), then microseconds later; `moment \
             + INTERVAL '1 month 3 days'` is this.",
            "date_add(DATE '2024-01-31', 1, 0)" => "2024-02-29 00:00:00";
    }
    /// JSON.
    Json "JSON" {
        JsonGet = "json_get" | "json_extract" ("json, step, …": Json Step)
            -> Json, document(2), .or_more();
            "The part of a document at the end of a path of names and places (0 is the first, -1 \
             the last), NULL where there is none; `json -> step` is this with one step. A text \
             that begins with `$` is a whole path, such as `'$.a[0]'`.",
            "json_get('{\"a\": [1, {\"b\": 2.50}]}', 'a', -1, 'b')" => "2.50";
        JsonText = "json_get_text" | "json_extract_text" ("json, step, …": Json Step)
            -> Text, document(1), .or_more();
            "The same as text: a string without its quotes, NULL for `null`; `json ->> step` is \
             this with one step.", "json_get_text('{\"a\": [\"x\"]}', 'a', 0)" => "x";
        JsonNumber = "json_get_number" ("json, step, …": Json Step) -> Float, FIXED, .or_more();
            "The same as a 64-bit float, NULL for what is no number; `json ->> step` and \
             `json.step` are this where they are compared with a number.",
            "json_get_number('{\"a\": [1, 2.5]}', 'a', 1)" => "2.5";
        JsonType = "json_type" | "json_typeof" ("json, step, …": Json Step)
            -> Text, A_NAME, .at_least(1).or_more();
            "What the part at the end of a path is: `object`, `array`, `string`, `number`, `bool` \
             or `null`; NULL where there is none.", "json_type('{\"a\": [1]}', 'a', 0)" => "number";
        JsonLength = "json_length" | "json_array_length" ("json, step, …": Json Step)
            -> Integer, FIXED, .at_least(1).or_more();
            "The number of elements of an array or of members of an object; NULL for anything \
             else.", "json_length('{\"a\": [1, 2]}', 'a')" => "2";
        JsonKeys = "json_keys" ("json, step, …": Json Step)
            -> Json, document(8), .at_least(1).or_more();
            "The names of the members of an object, in their order, as an array; NULL for \
             anything else.", "json_keys('{\"b\": 1, \"a\": 2}')" => "[\"a\",\"b\"]";
        JsonContains = "json_contains" ("json, part": Json Json) -> Bool, FIXED;
            "Whether a document has all that another one has: an object every member, an array \
             every element at any place, anything else the same value.",
            "json_contains('{\"a\": [1, 2, 3], \"b\": 0}', '{\"a\": [3, 1.0]}')" => "true";
        JsonObject = "json_object" | "json_build_object" ("name, value, …": Text Value)
            -> Json, document(4), .at_least(0).or_more().seeing_nulls().failing();
            "An object of names and values; NULL becomes `null`. A text is a string even if it \
             looks like JSON: `'[1]'::json` is an array.",
            "json_object('a', 1, 'b', '[1]'::json)" => "{\"a\":1,\"b\":[1]}";
        JsonArray = "json_array" | "json_build_array" ("value, …": Value)
            -> Json, document(4), .at_least(0).or_more().seeing_nulls().failing();
            "An array of values, likewise.", "json_array(1, 'x', NULL)" => "[1,\"x\",null]";
        JsonSet = "json_set" ("json, step, …, value": Json Step Value)
            -> Json, document(4), .or_more().seeing_nulls().failing();
            "The document with a value at the end of a path of names and places; objects on the \
             way come to be, and arrays for a place `0`. `UPDATE t SET doc.a.b = value` is this.",
            "json_set('{\"a\": [1, 2]}', 'a', -1, 'x')" => "{\"a\":[1,\"x\"]}";
        JsonPush = "json_push" | "json_array_append" ("json, step, …, value": Json Step Value)
            -> Json, document(4), .at_least(2).or_more().seeing_nulls().failing();
            "The document with a value added to the end of an array, a new one where nothing is.",
            "json_push('{\"a\": [1]}', 'a', 2)" => "{\"a\":[1,2]}";
        JsonRemove = "json_remove" ("json, step, …": Json Step)
            -> Json, document(3), .or_more().failing();
            "The document without what is at the end of a path, as it is where nothing is.",
            "json_remove('{\"a\": 1, \"b\": 2}', 'a')" => "{\"b\":2}";
        JsonMerge = "json_merge" | "json_patch" | "json_merge_patch" ("json, patch": Json Json)
            -> Json, document(8), .failing();
            "The document changed by another one, as RFC 7396 has it: members take the place of \
             those of the same name, objects are merged, `null` removes.",
            "json_merge('{\"a\": 1, \"b\": {\"c\": 2}}', '{\"a\": null, \"b\": {\"d\": 3}}')"
                => "{\"b\":{\"c\":2,\"d\":3}}";
    }
    /// Named sequences.
    Sequence "Sequences" {
        Nextval = "nextval" ("sequence": Text) -> Integer, FIXED, .failing();
            "The next value of a named sequence, given out once: in `VALUES`, in a `SELECT` \
             without `FROM`, or as a default.", "nextval('orders')" => "1";
    }
}
