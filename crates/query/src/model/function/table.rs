//! The lines of the table: the function with its name and other names, its operands as users read
//! them and their kinds, what comes out, the most bytes that it makes, and what it does that most
//! functions do not; then what it means, and an example with its value.

use serde::{Deserialize, Serialize};

use super::entry::{
    A_NAME, CHARACTERS, FIXED, ITEM_NUMBERS, ITEMS, TEXT_ITEMS, UP_TO_ALL, base64, document,
    functions, line, quoted, up_to,
};
use super::{FunctionEntry, Makes, OperandKind, Outcome};

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
        Typeof = "typeof" | "pg_typeof" ("a": Any) -> Text, A_NAME, .seeing_nulls();
            "The name of the operand's type, whatever its value.", "typeof(1.5)" => "decimal(2,1)";
        TryCast = "try_cast" ("a AS type": Any Text) -> First, UP_TO_ALL, .seeing_nulls();
            "The operand as a value of the type, as CAST makes it; NULL where CAST fails.",
            "TRY_CAST('12x' AS i64)" => "null";
    }
    /// Text and bytes.
    Text "Text and bytes" {
        Lower = "lower" | "lcase" ("text": Text) -> Text, up_to(2);
            "The text in lower case, by Unicode.", "lower('ÄB')" => "äb";
        AsciiLower = "ascii_lower" ("text": Text) -> Text, UP_TO_ALL;
            "The text with a to z for A to Z, and all else as it is: what `COLLATE nocase` \
             compares.",
            "ascii_lower('ÄB')" => "Äb";
        Casefold = "casefold" ("text": Text) -> Text, up_to(2);
            "The text with its letters in one case, by Unicode's simple case folding: what `ILIKE` \
             and `COLLATE unicode` compare.", "casefold('ΣΑΣ')" => "σασ";
        Upper = "upper" | "ucase" ("text": Text) -> Text, up_to(3);
            "The text in upper case, by Unicode.", "upper('äb')" => "ÄB";
        Length = "length" | "len" | "char_length" | "character_length" ("text": TextOrBytes)
            -> Integer, FIXED;
            "Characters of a text, bytes of a byte string.", "length('äb')" => "2";
        OctetLength = "octet_length" | "strlen" ("text": TextOrBytes) -> Integer, FIXED;
            "Bytes of a text in UTF-8, or of a byte string.", "octet_length('äb')" => "3";
        BitLength = "bit_length" ("text": TextOrBytes) -> Integer, FIXED;
            "Bits of a text in UTF-8, or of a byte string.", "bit_length('äb')" => "24";
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
        StartsWith = "starts_with" | "prefix" ("text, part": Text Text) -> Bool, FIXED;
            "Whether the text begins with the part.", "starts_with('esker', 'es')" => "true";
        EndsWith = "ends_with" | "suffix" ("text, part": Text Text) -> Bool, FIXED;
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
        RegexpLike = "regexp_like" | "regexp_matches" ("text, expression [, flags]":
            Text Expression Expression) -> Bool, FIXED, .at_least(2);
            "Whether the regular expression, a constant, is found in the text; with the flags \
             `'i'` whatever the case of letters. `text ~ expression` is this, `~*` with `'i'`, \
             `!~` and `!~*` the opposites.", "regexp_like('esker', '^e.*[kr]$')" => "true";
        Strpos = "strpos" | "instr" ("text, part": Text Text) -> Integer, FIXED;
            "The place of the part's first character, 1 for the first, 0 where it does not occur; \
             also `position(part IN text)`.", "strpos('esker', 'k')" => "3";
        SplitPart = "split_part" ("text, separator, n": Text Text Integer)
            -> Text, UP_TO_ALL, .failing();
            "Part n of those between the separators, 1 for the first, -1 for the last; empty where \
             there is none.", "split_part('a-b-c', '-', 2)" => "b";
        Lpad = "lpad" ("text, length [, fill]": Text Integer Text)
            -> Text, Makes::Counted, .at_least(2).failing();
            "The text with characters of the fill (spaces) in front, up to the length; of a longer \
             text its first characters.", "lpad('7', 3, '0')" => "007";
        Rpad = "rpad" ("text, length [, fill]": Text Integer Text)
            -> Text, Makes::Counted, .at_least(2).failing();
            "The same with the fill at the end.", "rpad('a', 4, 'xy')" => "axyx";
        Translate = "translate" ("text, from, to": Text Text Text) -> Text, up_to(4);
            "Each character that is in `from` replaced by that at its place in `to`, or left out \
             where `to` has none.", "translate('12345', '143', 'ax')" => "a2x5";
        Initcap = "initcap" ("text": Text) -> Text, up_to(3);
            "The first letter of each word in upper case, the others in lower.",
            "initcap('äB cd-e')" => "Äb Cd-E";
        Ascii = "ascii" | "unicode" | "ord" ("text": Text) -> Integer, FIXED;
            "The Unicode number of the first character; 0 of an empty text.",
            "ascii('äb')" => "228";
        Chr = "chr" | "char" ("number, …": Integer) -> Text, CHARACTERS, .or_more().failing();
            "The characters with these Unicode numbers, of which 0 is none.",
            "chr(228, 98)" => "äb";
        ConcatWs = "concat_ws" ("separator, a, …": Text Any)
            -> Text, Makes::Counted, .or_more().seeing_nulls().failing();
            "The operands as text with the separator in between; NULLs are left out, and NULL is \
             what comes of a separator that is.", "concat_ws(', ', 'a', NULL, 1)" => "a, 1";
        Format = "format" | "printf" ("format, a, …": Text Value)
            -> Text, UP_TO_ALL, .at_least(1).or_more().seeing_nulls().failing();
            "The format with operands in place of its parts: `%s` text, `%d` integer, `%f` `%e` \
             `%g` float, `%x` `%X` `%o` hexadecimal and octal, `%c` first character, `%q` with \
             quotes doubled, `%Q` `%L` as a literal, `%w` with double quotes doubled, `%I` as a \
             name, `%%` a percent sign; between `%` and the letter `2$` for the second operand, \
             flags of `-+ 0,#!`, a width and a precision, as numbers or `*`.",
            "format('%s is %05.2f%%', 'x', 2.5)" => "x is 02.50%";
        ToHex = "to_hex" ("x": Integer) -> Text, A_NAME;
            "The integer in hexadecimal digits; of a negative one, its 64 bits.",
            "to_hex(255)" => "ff";
        Hex = "hex" ("text": TextOrBytes) -> Text, up_to(2);
            "The bytes as hexadecimal digits in upper case.", "hex('äb')" => "C3A462";
        Unhex = "unhex" | "from_hex" ("digits": Text) -> Bytes, UP_TO_ALL;
            "The bytes that hexadecimal digits stand for; NULL of anything else.",
            "unhex('C3a4')" => "c3a4";
        Encode = "encode" ("bytes, form": TextOrBytes Text) -> Text, up_to(4), .failing();
            "The bytes as text: `hex`, `base64` (in lines of 76 characters) or `escape`.",
            "encode(X'0102', 'base64')" => "AQI=";
        Decode = "decode" ("text, form": Text Text) -> Bytes, UP_TO_ALL, .failing();
            "The bytes of a text that `encode` makes.", "decode('AQI=', 'base64')" => "0102";
        Base64 = "to_base64" | "base64" ("bytes": TextOrBytes) -> Text, base64();
            "The bytes in base 64, in one line.", "to_base64('äb')" => "w6Ri";
        FromBase64 = "from_base64" ("text": Text) -> Bytes, UP_TO_ALL, .failing();
            "The bytes of a text in base 64.", "from_base64('w6Ri')" => "c3a462";
        Md5 = "md5" ("text": TextOrBytes) -> Text, A_NAME;
            "The MD5 hash as hexadecimal digits: for comparing, not for secrets.",
            "md5('esker')" => "7eeaa7342e8da1a265c961cf96ea4811";
        Sha256 = "sha256" ("text": TextOrBytes) -> Bytes, A_NAME;
            "The SHA-256 hash.",
            "sha256('esker')"
                => "175f9cbcb2b43c2c20fe494db64e9ab46a821e53d2cdbf30b18799a9b2df94c7";
        QuoteLiteral = "quote_literal" ("a": Any) -> Text, quoted();
            "The operand as a literal of SQL.", "quote_literal('it''s')" => "'it''s'";
        QuoteNullable = "quote_nullable" | "quote" ("a": Any) -> Text, quoted(), .seeing_nulls();
            "The same, and the text `NULL` for NULL.", "quote_nullable(NULL)" => "NULL";
        QuoteIdent = "quote_ident" ("name": Text) -> Text, quoted();
            "The name as SQL takes it: in double quotes where it needs them.",
            "quote_ident('Order no')" => "\"Order no\"";
    }
    /// Regular expressions.
    Regular "Regular expressions" {
        RegexpReplace = "regexp_replace" ("text, expression, by [, flags]":
            Text Expression Text Expression) -> Text, UP_TO_ALL, .at_least(3).failing();
            "The text with the first match replaced, with the flag `g` every one. In `by`, `\\1` \
             to `\\9` stand for what the parts in parentheses matched, `\\0` and `\\&` for all. \
             Flags are `i` (whatever the case of letters), `g`, `s` (`.` matches line ends), `m` \
             (`^` and `$` match at each line) and `x` (spaces do not count).",
            "regexp_replace('2024-02-29', '(\\d+)-(\\d+)', '\\2/\\1')" => "02/2024-29";
        RegexpExtract = "regexp_extract" ("text, expression [, part [, flags]]":
            Text Expression Integer Expression) -> Text, UP_TO_ALL, .at_least(2).failing();
            "What the first match has, or its part in the parentheses of a number; empty where \
             nothing matches.", "regexp_extract('a=1, b=22', '(\\w)=(\\d\\d)', 2)" => "22";
        RegexpSubstr = "regexp_substr" ("text, expression [, start [, n]]":
            Text Expression Integer Integer) -> Text, UP_TO_ALL, .at_least(2).failing();
            "What match n (the first) has, from the character `start`; NULL where there is none.",
            "regexp_substr('a=1, b=22', '\\d+', 1, 2)" => "22";
        RegexpCount = "regexp_count" ("text, expression [, start [, flags]]":
            Text Expression Integer Expression) -> Integer, FIXED, .at_least(2).failing();
            "How often it matches, from the character `start`.",
            "regexp_count('a=1, b=22', '\\d')" => "3";
        RegexpInstr = "regexp_instr" ("text, expression [, start [, n]]":
            Text Expression Integer Integer) -> Integer, FIXED, .at_least(2).failing();
            "The place of the first character of match n (the first), from the character `start`; \
             0 where there is none.", "regexp_instr('a=1, b=22', '\\d+', 1, 2)" => "8";
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
        Cbrt = "cbrt" ("x": Float) -> Float, FIXED;
            "The cube root.", "cbrt(-27)" => "-3.0";
        Trunc = "trunc" | "truncate" ("x [, digits]": Number Integer)
            -> First, FIXED, .at_least(1).failing();
            "Cut to so many decimals (0), towards zero; negative for tens.",
            "trunc(-2.345, 2)" => "-2.34";
        Exp = "exp" ("x": Float) -> Float, FIXED;
            "e to the power of x.", "exp(0)" => "1.0";
        Ln = "ln" ("x": Float) -> Float, FIXED;
            "The natural logarithm; NULL where there is none.", "ln(1)" => "0.0";
        Log = "log" ("[base,] x": Float Float) -> Float, FIXED, .at_least(1);
            "The logarithm to base 10, or to the base; NULL where there is none.",
            "log(2, 8)" => "3.0";
        Log10 = "log10" ("x": Float) -> Float, FIXED;
            "The logarithm to base 10; NULL where there is none.", "log10(1000)" => "3.0";
        Log2 = "log2" ("x": Float) -> Float, FIXED;
            "The logarithm to base 2; NULL where there is none.", "log2(8)" => "3.0";
        Gcd = "gcd" | "greatest_common_divisor" ("a, b": Integer Integer)
            -> Integer, FIXED, .failing();
            "The greatest integer that divides both; 0 of two zeros.", "gcd(12, -18)" => "6";
        Lcm = "lcm" | "least_common_multiple" ("a, b": Integer Integer)
            -> Integer, FIXED, .failing();
            "The least positive integer that both divide; 0 where one is 0.", "lcm(4, 6)" => "12";
        BitAnd = "bitand" ("a, b": Integer Integer) -> Integer, FIXED;
            "The bits that both have, as `a & b`.", "bitand(12, 10)" => "8";
        BitOr = "bitor" ("a, b": Integer Integer) -> Integer, FIXED;
            "The bits that one of them has, as `a | b`.", "bitor(12, 10)" => "14";
        BitXor = "bitxor" | "xor" ("a, b": Integer Integer) -> Integer, FIXED;
            "The bits that only one of them has, as `a # b`.", "bitxor(12, 10)" => "6";
        BitNot = "bitnot" ("a": Integer) -> Integer, FIXED;
            "The bits that it has not, as `~a`.", "bitnot(5)" => "-6";
        BitShiftLeft = "bitshiftleft" ("a, count": Integer Integer) -> Integer, FIXED, .failing();
            "The 64 bits moved up, as `a << count`; the count is 0 to 63.",
            "bitshiftleft(1, 4)" => "16";
        BitShiftRight = "bitshiftright" ("a, count": Integer Integer)
            -> Integer, FIXED, .failing();
            "The bits moved down, the sign kept, as `a >> count`; the count is 0 to 63.",
            "bitshiftright(-16, 2)" => "-4";
        Pi = "pi" ("":) -> Float, FIXED;
            "The ratio of a circle's circumference to its diameter.",
            "pi()" => "3.141592653589793";
        Sin = "sin" ("x": Float) -> Float, FIXED;
            "The sine of an angle in radians.", "sin(0)" => "0.0";
        Cos = "cos" ("x": Float) -> Float, FIXED;
            "The cosine of an angle in radians.", "cos(0)" => "1.0";
        Tan = "tan" ("x": Float) -> Float, FIXED;
            "The tangent of an angle in radians.", "tan(0)" => "0.0";
        Cot = "cot" ("x": Float) -> Float, FIXED;
            "The cotangent of an angle in radians.", "round(cot(0.5), 4)" => "1.8305";
        Asin = "asin" ("x": Float) -> Float, FIXED;
            "The angle of a sine, in radians; NULL where there is none.", "asin(0)" => "0.0";
        Acos = "acos" ("x": Float) -> Float, FIXED;
            "The angle of a cosine, in radians; NULL where there is none.", "acos(1)" => "0.0";
        Atan = "atan" ("x": Float) -> Float, FIXED;
            "The angle of a tangent, in radians.", "atan(0)" => "0.0";
        Atan2 = "atan2" ("y, x": Float Float) -> Float, FIXED;
            "The angle of the point (x, y), in radians.", "atan2(0, 1)" => "0.0";
        Sinh = "sinh" ("x": Float) -> Float, FIXED;
            "The hyperbolic sine.", "sinh(0)" => "0.0";
        Cosh = "cosh" ("x": Float) -> Float, FIXED;
            "The hyperbolic cosine.", "cosh(0)" => "1.0";
        Tanh = "tanh" ("x": Float) -> Float, FIXED;
            "The hyperbolic tangent.", "tanh(0)" => "0.0";
        Asinh = "asinh" ("x": Float) -> Float, FIXED;
            "The number with this hyperbolic sine.", "asinh(0)" => "0.0";
        Acosh = "acosh" ("x": Float) -> Float, FIXED;
            "The number with this hyperbolic cosine; NULL where there is none.",
            "acosh(1)" => "0.0";
        Atanh = "atanh" ("x": Float) -> Float, FIXED;
            "The number with this hyperbolic tangent; NULL where there is none.",
            "atanh(0)" => "0.0";
        Degrees = "degrees" ("x": Float) -> Float, FIXED;
            "An angle in radians as degrees.", "degrees(pi())" => "180.0";
        Radians = "radians" ("x": Float) -> Float, FIXED;
            "An angle in degrees as radians.", "radians(180)" => "3.141592653589793";
    }
    /// Dates and times.
    Time "Dates and times" {
        Now = "now" | "current_timestamp" | "localtimestamp" | "transaction_timestamp"
            | "statement_timestamp" | "get_current_timestamp" ("":) -> Timestamp, FIXED;
            "The time at which the statement began, the same everywhere in it.",
            "now() = now()" => "true";
        CurrentDate = "current_date" | "today" ("":) -> Date, FIXED;
            "The day at which the statement began, in UTC.", "current_date = now()::date" => "true";
        DateTrunc = "date_trunc" | "datetrunc" ("unit, moment [, zone]": Unit MomentOrInterval Text)
            -> First, FIXED, .at_least(2).failing();
            "The start of the unit a date or timestamp lies in: `microsecond`, `millisecond`, \
             `second`, `minute`, `hour`, `day`, `week` (from Monday), `month`, `quarter`, \
             `year`, `isoyear`, `decade`, `century`, `millennium`. With a time zone, of the unit \
             there, as a timestamp of UTC. Of an interval, what it has of the unit and larger \
             ones.",
            "date_trunc('month', DATE '2024-02-29')" => "2024-02-01";
        DatePart = "date_part" | "datepart" ("unit, moment": Unit MomentOrTime) -> Integer, FIXED;
            "A part as an integer, also `extract(unit FROM moment)`: `year`, `isoyear`, \
             `quarter`, `month`, `week` (ISO), `day`, `doy`, `dow` (0 is Sunday), `isodow` (7 is \
             Sunday), `hour`, `minute`, `second`, `millisecond` and `microsecond` (of the \
             minute), `epoch` (seconds since 1970), `julian` (the day), `decade`, `century`, \
             `millennium`. Of an interval they are those of its own months, days and time, which \
             do not become each other, and none that a calendar numbers.",
            "date_part('doy', DATE '2024-12-31')" => "366";
        DateAdd = "date_add" ("moment, months, microseconds": Moment Integer Integer)
            -> Timestamp, FIXED, .failing();
            "Months (the day of the month cut to what there is), then microseconds later; `moment \
             + INTERVAL '1 month 3 days'` is this.",
            "date_add(DATE '2024-01-31', 1, 0)" => "2024-02-29 00:00:00";
        Timezone = "timezone" ("zone, moment": Text Moment) -> Timestamp, FIXED, .failing();
            "The local time in a time zone at a timestamp of UTC, as a timestamp; also `moment AT \
             TIME ZONE zone`. A zone is a name of the IANA database in any case, which is built \
             in, or an offset like `+02:00`, positive east of Greenwich.",
            "timezone('Europe/Berlin', TIMESTAMP '2024-07-01 12:00')" => "2024-07-01 14:00:00";
        ToUtc = "to_utc" | "to_utc_timestamp" ("moment, zone": Moment Text)
            -> Timestamp, FIXED, .failing();
            "The timestamp of UTC of a local time in a time zone. A time that the clocks left out \
             counts by the offset before, one that they showed twice is the later.",
            "to_utc(TIMESTAMP '2024-07-01 14:00', 'Europe/Berlin')" => "2024-07-01 12:00:00";
        DateBin = "date_bin" | "time_bucket" ("microseconds, moment [, origin]":
            Integer Moment Moment) -> Timestamp, FIXED, .at_least(2).failing();
            "The start of the step a moment lies in, of steps of so many microseconds, or of an \
             interval without months, from an origin (Monday, 3 January 2000).",
            "date_bin(INTERVAL '15 minutes', TIMESTAMP '2024-02-29 13:44')"
                => "2024-02-29 13:30:00";
        MakeInterval = "make_interval" ("years, months, weeks, days, hours, minutes, seconds":
            Integer Integer Integer Integer Integer Integer Float)
            -> Interval, A_NAME, .at_least(0).failing();
            "The interval of these numbers, 0 where they are left out; also by their names, as in \
             `make_interval(days => 10)`.",
            "make_interval(1, 2, 0, 3, 4, 5, 6.7)" => "1 year 2 mons 3 days 04:05:06.7";
        JustifyHours = "justify_hours" ("interval": Interval) -> Interval, A_NAME, .failing();
            "The interval with days for each 24 hours.",
            "justify_hours(INTERVAL '50 hours')" => "2 days 02:00:00";
        JustifyDays = "justify_days" ("interval": Interval) -> Interval, A_NAME, .failing();
            "The interval with months for each 30 days.",
            "justify_days(INTERVAL '65 days')" => "2 mons 5 days";
        JustifyInterval = "justify_interval" ("interval": Interval)
            -> Interval, A_NAME, .failing();
            "The interval with both, and all its parts of one sign.",
            "justify_interval(INTERVAL '1 month -1 hour')" => "29 days 23:00:00";
        Age = "age" ("later [, earlier]": Moment Moment)
            -> Interval, A_NAME, .at_least(1).failing();
            "Years, months, days and the time between two moments, as a calendar counts them; with \
             one, from it to the start of this day.",
            "age(DATE '2024-03-01', DATE '2022-12-31')" => "1 year 2 mons 1 day";
        Timediff = "timediff" ("later, earlier": TimeValue TimeValue) -> Text, A_NAME;
            "SQLite's: what is added to the earlier time to get the later, as text. Times are as \
             for `datetime`; NULL of anything else.",
            "timediff('2024-03-01', '2022-12-31 12:00')" => "+0001-01-29 12:00:00.000";
        Isfinite = "isfinite" ("moment": MomentOrInterval) -> Bool, FIXED;
            "True: no date, timestamp or interval is infinite.",
            "isfinite(DATE '2024-02-29')" => "true";
        ClockTimestamp = "clock_timestamp" ("":) -> Timestamp, FIXED, .seeing_nulls();
            "The time at which it is computed, which goes on within a statement.",
            "clock_timestamp() >= now()" => "true";
        Year = "year" ("moment": Moment) -> Integer, FIXED;
            "`date_part('year', moment)`.", "year(DATE '2024-02-29')" => "2024";
        Quarter = "quarter" ("moment": Moment) -> Integer, FIXED;
            "`date_part('quarter', moment)`.", "quarter(DATE '2024-02-29')" => "1";
        Month = "month" ("moment": Moment) -> Integer, FIXED;
            "`date_part('month', moment)`.", "month(DATE '2024-02-29')" => "2";
        Week = "week" | "weekofyear" ("moment": Moment) -> Integer, FIXED;
            "`date_part('week', moment)`.", "week(DATE '2024-02-29')" => "9";
        Day = "day" | "dayofmonth" ("moment": Moment) -> Integer, FIXED;
            "`date_part('day', moment)`.", "day(DATE '2024-02-29')" => "29";
        DayOfYear = "dayofyear" ("moment": Moment) -> Integer, FIXED;
            "`date_part('doy', moment)`.", "dayofyear(DATE '2024-02-29')" => "60";
        DayOfWeek = "dayofweek" | "weekday" ("moment": Moment) -> Integer, FIXED;
            "`date_part('dow', moment)`.", "dayofweek(DATE '2024-02-29')" => "4";
        Isodow = "isodow" ("moment": Moment) -> Integer, FIXED;
            "`date_part('isodow', moment)`.", "isodow(DATE '2024-02-29')" => "4";
        Isoyear = "isoyear" ("moment": Moment) -> Integer, FIXED;
            "`date_part('isoyear', moment)`.", "isoyear(DATE '2024-02-29')" => "2024";
        Hour = "hour" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('hour', moment)`.", "hour(TIME '13:14:15.678')" => "13";
        Minute = "minute" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('minute', moment)`.", "minute(TIME '13:14:15.678')" => "14";
        Second = "second" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('second', moment)`.", "second(TIME '13:14:15.678')" => "15";
        Millisecond = "millisecond" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('millisecond', moment)`.", "millisecond(TIME '13:14:15.678')" => "15678";
        Microsecond = "microsecond" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('microsecond', moment)`.", "microsecond(TIME '13:14:15.678')" => "15678000";
        Epoch = "epoch" ("moment": MomentOrTime) -> Integer, FIXED;
            "`date_part('epoch', moment)`.", "epoch(TIME '13:14:15.678')" => "47655";
        DateDiff = "date_diff" | "datediff" ("unit, from, to": Unit Moment Moment)
            -> Integer, FIXED;
            "How many starts of the unit lie between two moments.",
            "date_diff('month', DATE '2024-01-31', DATE '2024-03-01')" => "2";
        DateSub = "date_sub" | "datesub" ("unit, from, to": Unit Moment Moment)
            -> Integer, FIXED;
            "How many whole units lie between two moments. With a moment and an interval, \
             `moment - INTERVAL …`.",
            "date_sub('month', DATE '2024-01-31', DATE '2024-03-01')" => "1";
        EventId = "event_id" ("time, row_id": Moment Integer) -> Text, A_NAME, .failing();
            "The id of the event of a stream with that time and row id; `id(table)` is this of \
             each event.",
            "event_id(TIMESTAMP '2026-01-02 03:04:05.123456', 7)" => "01KDYAK3830000000000000007";
        LastDay = "last_day" ("moment": Moment) -> Date, FIXED, .failing();
            "The last day of the month.", "last_day(DATE '2024-02-03')" => "2024-02-29";
        DayName = "dayname" ("moment": Moment) -> Text, A_NAME;
            "The day of the week in English.", "dayname(DATE '2024-02-29')" => "Thursday";
        MonthName = "monthname" ("moment": Moment) -> Text, A_NAME;
            "The month in English.", "monthname(DATE '2024-02-29')" => "February";
        MakeDate = "make_date" ("year, month, day": Integer Integer Integer)
            -> Date, FIXED, .failing();
            "The date of these numbers.", "make_date(2024, 2, 29)" => "2024-02-29";
        MakeTime = "make_time" ("hour, minute, second": Integer Integer Float)
            -> Time, FIXED, .failing();
            "The time of these numbers.", "make_time(13, 14, 15.5)" => "13:14:15.500000";
        MakeTimestamp = "make_timestamp" ("year, month, day, hour, minute, second":
            Integer Integer Integer Integer Integer Float) -> Timestamp, FIXED, .failing();
            "The timestamp of these numbers.",
            "make_timestamp(2024, 2, 29, 13, 14, 15.5)" => "2024-02-29 13:14:15.500000";
        ToTimestamp = "to_timestamp" ("seconds, or text, template": TextOrNumber Text)
            -> Timestamp, FIXED, .at_least(1).failing();
            "So many seconds after 1970, or the timestamp that a text is by a template of \
             `to_char`.", "to_timestamp(1709210055.5)" => "2024-02-29 12:34:15.500000";
        ToDate = "to_date" ("text, template": Text Text) -> Date, FIXED, .failing();
            "The date that a text is by a template of `to_char`.",
            "to_date('29 Feb 2024', 'DD Mon YYYY')" => "2024-02-29";
        ToChar = "to_char" ("moment, template": MomentOrTime Text)
            -> Text, Makes::Templated, .failing();
            "The moment as text. In the template `YYYY`, `YYY`, `YY`, `Y`, `IYYY`, `IY`, `Q`, \
             `MM`, `MONTH`, `Mon`, `WW`, `IW`, `W`, `DDD`, `DD`, `DAY`, `Dy`, `D`, `ID`, `J`, \
             `CC`, `HH24`, `HH12`, `MI`, `SS`, `SSSS`, `MS`, `US`, `FF1` to `FF6`, `AM`, `a.m.`, \
             `BC`, `TZ` and `OF` stand for parts, `FM` before one leaves out zeros and spaces, \
             `TH` behind one is its ending; the letters' case is that of names. What is in double \
             quotes, and anything else, is as it is.",
            "to_char(TIMESTAMP '2024-02-29 13:04:05', 'Dy, FMDDth FMMonth YYYY, HH12:MI am')"
                => "Thu, 29th February 2024, 01:04 pm";
        Strftime = "strftime" ("format, time, modifier, … or moment, format":
            TimeValue TimeValue Text) -> Text, Makes::Templated, .at_least(1).or_more().failing();
            "The time as text, by a format of C: `%Y-%m-%d %H:%M:%S` and the other letters. With \
             the format in front it is SQLite's function: the time is as for `datetime`, `%f` is \
             seconds with three decimals; with a moment in front DuckDB's: `%f` is microseconds, \
             `%-d` has no zero in front.",
            "strftime(DATE '2024-02-29', '%a %-d.%-m.%y')" => "Thu 29.2.24";
        Strptime = "strptime" ("text, format": Text Text) -> Timestamp, FIXED, .failing();
            "The timestamp that a text is by a format of `strftime`.",
            "strptime('29.2.2024 7:05', '%d.%m.%Y %H:%M')" => "2024-02-29 07:05:00";
        TryStrptime = "try_strptime" ("text, format": Text Text) -> Timestamp, FIXED;
            "The same, and NULL where the text is none.", "try_strptime('x', '%Y')" => "null";
        SqliteDate = "date" ("time, modifier, …": TimeValue Text)
            -> Date, FIXED, .at_least(0).or_more();
            "The day of a time: a date or timestamp, a text like `2024-02-29 13:04`, `'now'` (also \
             without operands), or a Julian day. Modifiers change it, one after another, as \
             SQLite has them: `+3 days`, `-1.5 hours`, `+01:30`, `start of month`, `weekday 0`, \
             `unixepoch`, `ceiling`, `subsec`. NULL of anything else.",
            "date('2024-02-29', '+1 month', 'start of month', '-1 day')" => "2024-02-29";
        SqliteTime = "time" ("time, modifier, …": TimeValue Text)
            -> Time, FIXED, .at_least(0).or_more();
            "The time of day, likewise.", "time('2024-02-29 13:04', '-90 minutes')" => "11:34:00";
        SqliteDatetime = "datetime" ("time, modifier, …": TimeValue Text)
            -> Timestamp, FIXED, .at_least(0).or_more();
            "The timestamp, likewise, in whole seconds unless `subsec` is a modifier.",
            "datetime(1709210055, 'unixepoch')" => "2024-02-29 12:34:15";
        Julianday = "julianday" ("time, modifier, …": TimeValue Text)
            -> Float, FIXED, .at_least(0).or_more();
            "The days since noon in Greenwich on 24 November 4714 BC, likewise.",
            "julianday('2000-01-01 12:00')" => "2451545.0";
        Unixepoch = "unixepoch" ("time, modifier, …": TimeValue Text)
            -> Integer, FIXED, .at_least(0).or_more();
            "The seconds since 1970, likewise.", "unixepoch('1970-01-02')" => "86400";
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
    /// Lists.
    List "Lists" {
        ListValue = "list_value" | "list_pack" ("a, …": Item)
            -> List, ITEMS, .at_least(0).or_more().seeing_nulls();
            "A list of the operands; `ARRAY[a, …]` is this.", "ARRAY[1, NULL, 2]" => "{1,NULL,2}";
        ListExtract = "list_extract" | "list_element" | "array_extract" ("list, n": List Integer)
            -> Item, UP_TO_ALL;
            "Item `n`, 1 for the first; NULL where there is none. `list[n]` is this.",
            "(ARRAY['a', 'b'])[2]" => "b";
        ListSlice = "list_slice" | "array_slice" ("list, from, to": List Integer Integer)
            -> List, ITEMS;
            "The items from one place to another, with both; those that there are. `list[from:to]` \
             is this, where either may be left out.", "(ARRAY[1, 2, 3])[2:]" => "{2,3}";
        Cardinality = "cardinality" ("list": List) -> Integer, FIXED;
            "The number of items; `len` and `length` of a list are this.",
            "cardinality(ARRAY[4, NULL])" => "2";
        ArrayLength = "array_length" | "array_upper" ("list [, dimension]": List Integer)
            -> Integer, FIXED, .at_least(1);
            "The number of items; NULL of an empty list, and in another dimension than 1.",
            "array_length(ARRAY[4, 5], 1)" => "2";
        ArrayLower = "array_lower" ("list, dimension": List Integer) -> Integer, FIXED;
            "The place of the first item, 1; NULL of an empty list, and in another dimension than \
             1.",
            "array_lower(ARRAY[4, 5], 1)" => "1";
        ArrayNdims = "array_ndims" ("list": List) -> Integer, FIXED;
            "The number of dimensions, 1; NULL of an empty list.",
            "array_ndims(ARRAY[4, 5])" => "1";
        ListAppend = "array_append" | "list_append" | "array_push_back" ("list, a": List Item)
            -> List, ITEMS, .seeing_nulls();
            "The list with an item behind it, which may be NULL; `list || a` is this.",
            "array_append(ARRAY[1], 2)" => "{1,2}";
        ListPrepend = "array_prepend" | "list_prepend" ("a, list": Item List)
            -> List, ITEMS, .seeing_nulls();
            "The list with an item before it; `a || list` is this.",
            "array_prepend(0, ARRAY[1])" => "{0,1}";
        ListConcat = "array_cat" | "list_concat" | "list_cat" | "array_concat" ("a, b": List List)
            -> List, ITEMS, .seeing_nulls();
            "The items of both lists; of NULL and a list, that list. `a || b` is this.",
            "array_cat(ARRAY[1], ARRAY[2, 3])" => "{1,2,3}";
        ListPosition = "array_position" | "list_position" | "list_indexof"
            ("list, a [, start]": List Item Integer) -> Integer, FIXED, .at_least(2).seeing_nulls();
            "The place of the first item that is `a`, from the place `start` on; NULL where there \
             is none. NULL is found, too.", "array_position(ARRAY['a', 'b'], 'b')" => "2";
        ListPositions = "array_positions" ("list, a": List Item)
            -> List, ITEM_NUMBERS, .seeing_nulls();
            "The places of all items that are `a`.",
            "array_positions(ARRAY[7, 8, 7], 7)" => "{1,3}";
        ListRemove = "array_remove" | "list_remove" ("list, a": List Item)
            -> List, ITEMS, .seeing_nulls();
            "The list without the items that are `a`.", "array_remove(ARRAY[1, 2, 1], 1)" => "{2}";
        ListReplace = "array_replace" ("list, a, b": List Item Item)
            -> List, Makes::Counted, .seeing_nulls();
            "The list with `b` for each item that is `a`.",
            "array_replace(ARRAY[1, 2, 1], 1, 9)" => "{9,2,9}";
        TrimArray = "trim_array" ("list, n": List Integer) -> List, ITEMS, .failing();
            "The list without its last `n` items.", "trim_array(ARRAY[1, 2, 3], 2)" => "{1}";
        ArrayToString = "array_to_string" | "list_to_string" | "array_join"
            ("list, separator [, null]": List Text Text)
            -> Text, Makes::Counted, .at_least(2).seeing_nulls();
            "The items as text with the separator in between; NULLs as the text for them, or left \
             out.",
            "array_to_string(ARRAY[1, NULL, 2], '-', '?')" => "1-?-2";
        StringToArray = "string_to_array" ("text, separator [, null]": Text Text Text)
            -> List, TEXT_ITEMS, .at_least(2).seeing_nulls();
            "The parts of the text between the separators; its characters where the separator is \
             NULL. A part that is the third operand becomes NULL.",
            "string_to_array('a,b,', ',', '')" => "{a,b,NULL}";
        ListContains = "list_contains" | "list_has" | "array_contains" | "array_has"
            ("list, a": List Item) -> Bool, FIXED;
            "Whether an item is `a`.", "list_contains(ARRAY[1, 2], 2)" => "true";
        ListHasAll = "list_has_all" | "array_has_all" | "array_contains_all" ("a, b": List List)
            -> Bool, FIXED;
            "Whether each item of `b` is one of `a`, NULL never; `a @> b` and `b <@ a` are this.",
            "ARRAY[1, 2, 3] @> ARRAY[3, 1]" => "true";
        ListHasAny = "list_has_any" | "array_has_any" | "arrays_overlap" ("a, b": List List)
            -> Bool, FIXED;
            "Whether an item of `b` is one of `a`, NULL never; `a && b` is this.",
            "ARRAY[1, 2] && ARRAY[2, 3]" => "true";
        ListSort = "list_sort" | "array_sort" ("list [, descending]": List Value)
            -> List, ITEMS, .at_least(1);
            "The items in their order, NULLs last; the other way round where the second operand is \
             true.", "array_sort(ARRAY[3, NULL, 1])" => "{1,3,NULL}";
        ListDistinct = "list_distinct" | "array_distinct" ("list": List) -> List, ITEMS;
            "Each item once, where it comes first, without NULLs.",
            "list_distinct(ARRAY[2, 1, 2, NULL])" => "{2,1}";
        ListReverse = "list_reverse" | "array_reverse" ("list": List) -> List, ITEMS;
            "The items in the opposite order.", "list_reverse(ARRAY[1, 2])" => "{2,1}";
        ListSum = "list_sum" | "array_sum" ("list": List) -> Item, FIXED, .failing();
            "The sum of the items that are not NULL, of which there is one at least.",
            "list_sum(ARRAY[1, 2, NULL])" => "3";
        ListAvg = "list_avg" | "array_avg" ("list": List) -> Float, FIXED;
            "Their mean.", "list_avg(ARRAY[1, 2, NULL])" => "1.5";
        ListMin = "list_min" | "array_min" ("list": List) -> Item, UP_TO_ALL;
            "The least item that is not NULL.", "list_min(ARRAY[2, 1, NULL])" => "1";
        ListMax = "list_max" | "array_max" ("list": List) -> Item, UP_TO_ALL;
            "The greatest item that is not NULL.", "list_max(ARRAY[2, 1, NULL])" => "2";
        ListAny = "list_any" ("a, operator, list": Item Text List)
            -> Bool, FIXED, .seeing_nulls();
            "Whether a comparison by `=`, `<>`, `<`, `<=`, `>` or `>=` is true of an item; `a = \
             ANY (list)` is this.", "2 < ANY (ARRAY[1, 3])" => "true";
        ListAll = "list_all" ("a, operator, list": Item Text List)
            -> Bool, FIXED, .seeing_nulls();
            "Whether it is true of all items; `a < ALL (list)` is this.",
            "2 < ALL (ARRAY[1, 3])" => "false";
    }
    /// Random numbers.
    Random "Random numbers" {
        Random = "random" ("":) -> Float, FIXED, .seeing_nulls();
            "A number from 0 up to and not including 1, another one for each row.",
            "random() < 1" => "true";
        RandomUuid = "gen_random_uuid" | "uuid" | "uuidv4" ("":) -> Uuid, FIXED, .seeing_nulls();
            "A random UUID (version 4), another one for each row.",
            "gen_random_uuid() IS NULL" => "false";
    }
    /// What is asked.
    System "About the system" {
        Version = "version" ("":) -> Text, A_NAME;
            "The name and the version of the program.", "version() LIKE 'Esker %'" => "true";
        CurrentDatabase = "current_database" | "current_catalog" ("":) -> Text, A_NAME;
            "What `information_schema` calls the catalog: always `esker`.",
            "current_database()" => "esker";
        CurrentSchema = "current_schema" ("":) -> Text, A_NAME;
            "The schema in which a session makes what is new: `main`, or the first of its \
             `search_path`.",
            "current_schema()" => "main";
        CurrentSchemas = "current_schemas" ("implicit": Value) -> List, A_NAME;
            "The schemas in which a session looks for names, in order; `temp` before them where \
             the operand is true.",
            "current_schemas(true)" => "{temp,main}";
    }
    /// Named sequences.
    Sequence "Sequences" {
        Nextval = "nextval" ("sequence": Text) -> Integer, FIXED, .failing();
            "The next value of a named sequence, given out once: in `VALUES`, in a `SELECT` \
             without `FROM`, or as a default.", "nextval('orders')" => "1";
    }
}
