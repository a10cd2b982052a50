//! The lines of the table.

use super::{Family, Function, FunctionEntry, Makes, OperandKind, Outcome};
use Function as F;
use OperandKind as P;

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
    name: &'static str,
    family: Family,
    operands: &'static str,
    parameters: &'static [OperandKind],
    outcome: Outcome,
    makes: Makes,
) -> FunctionEntry {
    FunctionEntry {
        function,
        name,
        aliases: &[],
        family,
        operands,
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

const fn text(
    function: Function,
    name: &'static str,
    operands: &'static str,
    parameters: &'static [OperandKind],
    outcome: Outcome,
    makes: Makes,
) -> FunctionEntry {
    line(function, name, Family::Text, operands, parameters, outcome, makes)
}

const fn number(
    function: Function,
    name: &'static str,
    operands: &'static str,
    parameters: &'static [OperandKind],
    outcome: Outcome,
) -> FunctionEntry {
    line(function, name, Family::Number, operands, parameters, outcome, FIXED)
}

const fn time(
    function: Function,
    name: &'static str,
    operands: &'static str,
    parameters: &'static [OperandKind],
    outcome: Outcome,
) -> FunctionEntry {
    line(function, name, Family::Time, operands, parameters, outcome, FIXED)
}

const fn json(
    function: Function,
    name: &'static str,
    operands: &'static str,
    parameters: &'static [OperandKind],
    outcome: Outcome,
    makes: Makes,
) -> FunctionEntry {
    line(function, name, Family::Json, operands, parameters, outcome, makes)
}

impl FunctionEntry {
    const fn says(
        mut self,
        meaning: &'static str,
        example: &'static str,
        value: &'static str,
    ) -> Self {
        self.meaning = meaning;
        self.example = (example, value);
        self
    }

    const fn also(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

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

pub(super) const FALLBACK: FunctionEntry =
    line(F::Coalesce, "unknown", Family::Choice, "", &[], Outcome::First, FIXED);

/// Every function.
pub const FUNCTIONS: &[FunctionEntry] = &[
    line(F::Coalesce, "coalesce", Family::Choice, "a, …", &[P::Common], Outcome::Common, UP_TO_ALL)
        .or_more()
        .seeing_nulls()
        .also(&["ifnull"])
        .says("The first operand that is not NULL.", "coalesce(NULL, 2, 3)", "2"),
    line(F::Nullif, "nullif", Family::Choice, "a, b", &[P::Any, P::Any], Outcome::First, UP_TO_ALL)
        .seeing_nulls()
        .says("NULL where `a = b`, else `a`.", "nullif('x', 'x')", "null"),
    line(F::Greatest, "greatest", Family::Choice, "a, …", &[P::Common], Outcome::Common, UP_TO_ALL)
        .or_more()
        .seeing_nulls()
        .says("The greatest operand; NULLs are left out.", "greatest(2, NULL, 7)", "7"),
    line(F::Least, "least", Family::Choice, "a, …", &[P::Common], Outcome::Common, UP_TO_ALL)
        .or_more()
        .seeing_nulls()
        .says("The least operand; NULLs are left out.", "least(2, NULL, 7)", "2"),
    line(
        F::Typeof,
        "typeof",
        Family::Choice,
        "a",
        &[P::Any],
        Outcome::Text,
        A_NAME,
    )
    .seeing_nulls()
    .says(
        "The name of the operand's type, whatever its value.",
        "typeof(1.5)",
        "decimal(2,1)",
    ),
    text(F::Lower, "lower", "text", &[P::Text], Outcome::Text, up_to(2)).says(
        "The text in lower case, by Unicode.",
        "lower('ÄB')",
        "äb",
    ),
    text(F::Upper, "upper", "text", &[P::Text], Outcome::Text, up_to(3)).says(
        "The text in upper case, by Unicode.",
        "upper('äb')",
        "ÄB",
    ),
    text(F::Length, "length", "text", &[P::TextOrBytes], Outcome::Integer, FIXED)
        .also(&["char_length", "character_length"])
        .says("Characters of a text, bytes of a byte string.", "length('äb')", "2"),
    text(F::OctetLength, "octet_length", "text", &[P::TextOrBytes], Outcome::Integer, FIXED).says(
        "Bytes of a text in UTF-8, or of a byte string.",
        "octet_length('äb')",
        "3",
    ),
    text(
        F::Substr,
        "substr",
        "text, start [, count]",
        &[P::TextOrBytes, P::Integer, P::Integer],
        Outcome::First, UP_TO_ALL,
    )
    .at_least(2)
    .failing()
    .also(&["substring"])
    .says(
        "The characters from `start` (1 is the first, -1 the last), `count` of them or all; a \
         negative count is an error.",
        "substr('esker', 2, 3)",
        "ske",
    ),
    text(F::Left, "left", "text, count", &[P::Text, P::Integer], Outcome::Text, UP_TO_ALL).says(
        "The first characters; of a negative count, all but the last so many.",
        "left('esker', -2)",
        "esk",
    ),
    text(F::Right, "right", "text, count", &[P::Text, P::Integer], Outcome::Text, UP_TO_ALL).says(
        "The last characters; of a negative count, all but the first so many.",
        "right('esker', 2)",
        "er",
    ),
    text(
        F::Replace,
        "replace",
        "text, part, by",
        &[P::Text, P::Text, P::Text],
        Outcome::Text,
        Makes::Replaced,
    )
        .failing()
        .says("The text with every `part` replaced.", "replace('a-b-c', '-', '+')", "a+b+c"),
    text(F::Trim, "trim", "text [, characters]", &[P::Text, P::Text], Outcome::Text, UP_TO_ALL)
        .at_least(1)
        .also(&["btrim"])
        .says(
            "Without any of the characters (spaces) at both ends; also `trim(LEADING 'x' FROM a)`.",
            "trim('  a b ')",
            "a b",
        ),
    text(F::Ltrim, "ltrim", "text [, characters]", &[P::Text, P::Text], Outcome::Text, UP_TO_ALL)
        .at_least(1)
        .says("Without any of the characters (spaces) in front.", "ltrim('xxa', 'x')", "a"),
    text(F::Rtrim, "rtrim", "text [, characters]", &[P::Text, P::Text], Outcome::Text, UP_TO_ALL)
        .at_least(1)
        .says("Without any of the characters (spaces) at the end.", "rtrim('abcb', 'bc')", "a"),
    text(
        F::Concat,
        "concat",
        "a, …",
        &[P::Any],
        Outcome::Text,
        UP_TO_ALL,
    )
    .or_more()
    .seeing_nulls()
    .says(
        "The operands as text, one after another; NULLs are left out (`a || b` is NULL instead).",
        "concat('a', NULL, 1)",
        "a1",
    ),
    text(
        F::Repeat,
        "repeat",
        "text, count",
        &[P::Text, P::Integer],
        Outcome::Text,
        Makes::Repeated,
    )
    .failing()
    .says(
        "The text so many times; at most 8 MiB.",
        "repeat('ab', 3)",
        "ababab",
    ),
    text(F::Reverse, "reverse", "text", &[P::Text], Outcome::Text, UP_TO_ALL).says(
        "The characters in the opposite order.",
        "reverse('äbc')",
        "cbä",
    ),
    text(
        F::StartsWith,
        "starts_with",
        "text, part",
        &[P::Text, P::Text],
        Outcome::Bool,
        FIXED,
    )
    .says(
        "Whether the text begins with the part.",
        "starts_with('esker', 'es')",
        "true",
    ),
    text(F::EndsWith, "ends_with", "text, part", &[P::Text, P::Text], Outcome::Bool, FIXED).says(
        "Whether the text ends with the part.",
        "ends_with('esker', 'es')",
        "false",
    ),
    text(F::Contains, "contains", "text, part", &[P::Text, P::Text], Outcome::Bool, FIXED).says(
        "Whether the part occurs in the text.",
        "contains('esker', 'ske')",
        "true",
    ),
    text(
        F::IstartsWith,
        "istarts_with",
        "text, part",
        &[P::Text, P::Text],
        Outcome::Bool,
        FIXED,
    )
    .says(
        "Whether the text begins with the part, whatever the case of letters.",
        "istarts_with('esker', 'ES')",
        "true",
    ),
    text(F::IendsWith, "iends_with", "text, part", &[P::Text, P::Text], Outcome::Bool, FIXED).says(
        "Whether the text ends with the part, whatever the case of letters.",
        "iends_with('esker', 'KER')",
        "true",
    ),
    text(F::Icontains, "icontains", "text, part", &[P::Text, P::Text], Outcome::Bool, FIXED).says(
        "Whether the part occurs in the text, whatever the case of letters.",
        "icontains('Äßc', 'äSS')",
        "false",
    ),
    text(
        F::RegexpLike,
        "regexp_like",
        "text, expression [, flags]",
        &[P::Text, P::Expression, P::Expression],
        Outcome::Bool, FIXED,
    )
    .at_least(2)
    .says(
        "Whether the regular expression, a constant, is found in the text; with the flags `'i'` \
         whatever the case of letters. `text ~ expression` is this, `~*` with `'i'`, `!~` and \
         `!~*` the opposites.",
        "regexp_like('esker', '^e.*[kr]$')",
        "true",
    ),
    text(F::Strpos, "strpos", "text, part", &[P::Text, P::Text], Outcome::Integer, FIXED)
        .also(&["instr"])
        .says(
            "The place of the part's first character, 1 for the first, 0 where it does not occur; \
             also `position(part IN text)`.",
            "strpos('esker', 'k')",
            "3",
        ),
    number(F::Abs, "abs", "x", &[P::Number], Outcome::First).failing().says(
        "The magnitude.",
        "abs(-3)",
        "3",
    ),
    number(F::Sign, "sign", "x", &[P::Number], Outcome::First).says(
        "-1, 0 or 1.",
        "sign(-2.5)",
        "-1",
    ),
    number(F::Round, "round", "x [, digits]", &[P::Number, P::Integer], Outcome::First)
        .at_least(1)
        .failing()
        .says(
            "Rounded half away from zero, to so many decimals (0); negative for tens.",
            "round(2.345, 2)",
            "2.35",
        ),
    number(F::Floor, "floor", "x", &[P::Number], Outcome::First).says(
        "The greatest whole number that is not greater.",
        "floor(-1.5)",
        "-2",
    ),
    number(F::Ceil, "ceil", "x", &[P::Number], Outcome::First).also(&["ceiling"]).says(
        "The least whole number that is not less.",
        "ceil(1.2)",
        "2",
    ),
    number(F::Mod, "mod", "a, b", &[P::Number, P::Number], Outcome::First).says(
        "The remainder of a / b, as `a % b`.",
        "mod(-7, 3)",
        "-1",
    ),
    number(F::Power, "power", "x, y", &[P::Float, P::Float], Outcome::Float).also(&["pow"]).says(
        "x to the power of y; NULL where that is no real number.",
        "power(2, 10)",
        "1024.0",
    ),
    number(F::Sqrt, "sqrt", "x", &[P::Float], Outcome::Float).says(
        "The square root; NULL of a negative number.",
        "sqrt(9)",
        "3.0",
    ),
    time(F::Now, "now", "", &[], Outcome::Timestamp).also(&["current_timestamp"]).says(
        "The time at which the statement began, the same everywhere in it.",
        "now() = now()",
        "true",
    ),
    time(F::CurrentDate, "current_date", "", &[], Outcome::Date).says(
        "The day at which the statement began, in UTC.",
        "current_date = now()::date",
        "true",
    ),
    time(F::DateTrunc, "date_trunc", "unit, moment", &[P::Unit, P::Moment], Outcome::First)
        .failing()
        .says(
            "The start of the unit a date or timestamp lies in: `microsecond`, `millisecond`, \
             `second`, `minute`, `hour`, `day`, `week` (from Monday), `month`, `quarter`, `year`.",
            "date_trunc('month', DATE '2024-02-29')",
            "2024-02-01",
        ),
    time(F::DatePart, "date_part", "unit, moment", &[P::Unit, P::MomentOrTime], Outcome::Integer)
        .says(
            "A part as an integer, also `extract(unit FROM moment)`: `year`, `isoyear`, `quarter`, \
             `month`, `week` (ISO), `day`, `doy`, `dow` (0 is Sunday), `isodow` (7 is Sunday), \
             `hour`, `minute`, `second`, `millisecond` and `microsecond` (of the minute), `epoch` \
             (seconds since 1970).",
            "date_part('doy', DATE '2024-12-31')",
            "366",
        ),
    time(
        F::DateAdd,
        "date_add",
        "moment, months, microseconds",
        &[P::Moment, P::Integer, P::Integer],
        Outcome::Timestamp,
    )
    .failing()
    .says(
        "Months (the day of the month cut to what there is), then microseconds later; \
         `moment + INTERVAL '1 month 3 days'` is this.",
        "date_add(DATE '2024-01-31', 1, 0)",
        "2024-02-29 00:00:00",
    ),
    line(
        F::JsonGet,
        "json_get",
        Family::Json,
        "json, step, …",
        &[P::Json, P::Step],
        Outcome::Json,
        document(2),
    )
        .or_more()
        .also(&["json_extract"])
        .says(
            "The part of a document at the end of a path of names and places (0 is the first, -1 \
             the last), NULL where there is none; `json -> step` is this with one step. A text \
             that begins with `$` is a whole path, such as `'$.a[0]'`.",
            "json_get('{\"a\": [1, {\"b\": 2.50}]}', 'a', -1, 'b')",
            "2.50",
        ),
    line(
        F::JsonText,
        "json_get_text",
        Family::Json,
        "json, step, …",
        &[P::Json, P::Step],
        Outcome::Text, document(1),
    )
    .or_more()
    .also(&["json_extract_text"])
    .says(
        "The same as text: a string without its quotes, NULL for `null`; `json ->> step` is this \
         with one step.",
        "json_get_text('{\"a\": [\"x\"]}', 'a', 0)",
        "x",
    ),
    line(
        F::JsonNumber,
        "json_get_number",
        Family::Json,
        "json, step, …",
        &[P::Json, P::Step],
        Outcome::Float, FIXED,
    )
    .or_more()
    .says(
        "The same as a 64-bit float, NULL for what is no number; `json ->> step` and `json.step` \
         are this where they are compared with a number.",
        "json_get_number('{\"a\": [1, 2.5]}', 'a', 1)",
        "2.5",
    ),
    json(F::JsonType, "json_type", "json, step, …", &[P::Json, P::Step], Outcome::Text, A_NAME)
        .at_least(1)
        .or_more()
        .also(&["json_typeof"])
        .says(
            "What the part at the end of a path is: `object`, `array`, `string`, `number`, `bool` \
             or `null`; NULL where there is none.",
            "json_type('{\"a\": [1]}', 'a', 0)",
            "number",
        ),
    json(
        F::JsonLength,
        "json_length",
        "json, step, …",
        &[P::Json, P::Step],
        Outcome::Integer,
        FIXED,
    )
        .at_least(1)
        .or_more()
        .also(&["json_array_length"])
        .says(
            "The number of elements of an array or of members of an object; NULL for anything \
             else.",
            "json_length('{\"a\": [1, 2]}', 'a')",
            "2",
        ),
    json(F::JsonKeys, "json_keys", "json, step, …", &[P::Json, P::Step], Outcome::Json, document(8))
        .at_least(1)
        .or_more()
        .says(
            "The names of the members of an object, in their order, as an array; NULL for anything \
             else.",
            "json_keys('{\"b\": 1, \"a\": 2}')",
            "[\"a\",\"b\"]",
        ),
    json(
        F::JsonContains,
        "json_contains",
        "json, part",
        &[P::Json, P::Json],
        Outcome::Bool,
        FIXED,
    )
    .says(
        "Whether a document has all that another one has: an object every member, an array every \
         element at any place, anything else the same value.",
        "json_contains('{\"a\": [1, 2, 3], \"b\": 0}', '{\"a\": [3, 1.0]}')",
        "true",
    ),
    json(
        F::JsonObject,
        "json_object",
        "name, value, …",
        &[P::Text, P::Value],
        Outcome::Json,
        document(4),
    )
        .at_least(0)
        .or_more()
        .seeing_nulls()
        .failing()
        .also(&["json_build_object"])
        .says(
            "An object of names and values; NULL becomes `null`. A text is a string even if it \
             looks like JSON: `'[1]'::json` is an array.",
            "json_object('a', 1, 'b', '[1]'::json)",
            "{\"a\":1,\"b\":[1]}",
        ),
    json(F::JsonArray, "json_array", "value, …", &[P::Value], Outcome::Json, document(4))
        .at_least(0)
        .or_more()
        .seeing_nulls()
        .failing()
        .also(&["json_build_array"])
        .says("An array of values, likewise.", "json_array(1, 'x', NULL)", "[1,\"x\",null]"),
    json(
        F::JsonSet,
        "json_set",
        "json, step, …, value",
        &[P::Json, P::Step, P::Value],
        Outcome::Json, document(4),
    )
    .or_more()
    .seeing_nulls()
    .failing()
    .says(
        "The document with a value at the end of a path of names and places; objects on the \
             way come to be, and arrays for a place `0`. `UPDATE t SET doc.a.b = value` is this.",
        "json_set('{\"a\": [1, 2]}', 'a', -1, 'x')",
        "{\"a\":[1,\"x\"]}",
    ),
    json(
        F::JsonPush,
        "json_push",
        "json, step, …, value",
        &[P::Json, P::Step, P::Value],
        Outcome::Json, document(4),
    )
    .at_least(2)
    .or_more()
    .seeing_nulls()
    .failing()
    .also(&["json_array_append"])
    .says(
        "The document with a value added to the end of an array, a new one where nothing is.",
        "json_push('{\"a\": [1]}', 'a', 2)",
        "{\"a\":[1,2]}",
    ),
    json(
        F::JsonRemove,
        "json_remove",
        "json, step, …",
        &[P::Json, P::Step],
        Outcome::Json,
        document(3),
    )
        .or_more()
        .failing()
        .says(
            "The document without what is at the end of a path, as it is where nothing is.",
            "json_remove('{\"a\": 1, \"b\": 2}', 'a')",
            "{\"b\":2}",
        ),
    json(F::JsonMerge, "json_merge", "json, patch", &[P::Json, P::Json], Outcome::Json, document(8))
        .failing()
        .also(&["json_patch", "json_merge_patch"])
        .says(
            "The document changed by another one, as RFC 7396 has it: members take the place of \
             those of the same name, objects are merged, `null` removes.",
            "json_merge('{\"a\": 1, \"b\": {\"c\": 2}}', \
             '{\"a\": null, \"b\": {\"d\": 3}}')",
            "{\"b\":{\"c\":2,\"d\":3}}",
        ),
    line(F::Nextval, "nextval", Family::Sequence, "sequence", &[P::Text], Outcome::Integer, FIXED)
        .failing()
        .says(
            "The next value of a named sequence, given out once: in `VALUES`, in a `SELECT` \
             without `FROM`, or as a default.",
            "nextval('orders')",
            "1",
        ),
];
