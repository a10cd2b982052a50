//! What functions make counts towards the memory of the query before it is made, and while they
//! work it is seen whether the statement is to end: for every function there is.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::looks::Looks;
use crate::memory_source::{Layout, MemorySource};
use esker_format::{Batch, DataType, Schema, Value, json};
use esker_query::model::{
    Aggregate, Expr, FUNCTIONS, Family, Function as F, FunctionEntry, Makes, OperandKind as P,
    Operator, Outcome, SelectItem,
};
use esker_query::{Error, ErrorKind, Options, Query, execute};
use esker_vfs::{Clock, Environment};

/// Bytes of the long text.
const LONG: usize = 6 << 20;

/// With what is free for evaluation less than that.
const LIMIT: usize = 1 << 20;

/// One row: a text, and a JSON document of one member `a`, both of about so many bytes.
fn source(bytes: usize) -> MemorySource {
    let schema = Schema::builder().field("t", DataType::Text).field("j", DataType::Json);
    let schema = schema.build().unwrap();
    let mut batch = Batch::empty(&schema);
    let elements = vec!["\"0123456789abcdef0123456789abc\""; bytes / 32].join(",");
    let document = json::parse(&format!("{{\"a\": [{elements}]}}")).unwrap();
    let row = ["ä b ".repeat(bytes / 5).into(), Value::Json(document)];
    batch.push_row(&schema, &row).unwrap();
    MemorySource::new(schema).with_part(&batch, &Layout::default())
}

fn answer(expr: &Expr, source: &MemorySource, options: &Options) -> Result<(), Error> {
    let mut query = Query::table("");
    query.select = vec![SelectItem { expr: expr.clone(), alias: None }];
    execute(&query, source, options).map(drop)
}

fn within(bytes: usize) -> Options {
    Options::new(&Environment::os()).with_memory(bytes)
}

fn t() -> Expr {
    Expr::field("t")
}

fn cast(expr: Expr, to: DataType) -> Expr {
    Expr::Cast(Box::new(expr), to)
}

/// A call of a function with operands as long as they may be.
fn call(entry: &FunctionEntry) -> Expr {
    let operand = |kind: &P| match kind {
        P::Any | P::Value | P::Common | P::Text | P::TextOrBytes => t(),
        P::Json => Expr::field("j"),
        P::TimeValue => Expr::literal("2024-01-31"),
        P::TextOrNumber => Expr::literal(1.5),
        P::Number | P::Float | P::Integer => Expr::literal(1i64),
        P::Moment | P::MomentOrTime | P::MomentOrInterval => {
            cast(Expr::literal("2024-01-31"), DataType::Timestamp)
        }
        P::Interval => Expr::literal("1 day"),
        P::Unit => Expr::literal("day"),
        P::Expression => Expr::literal("x"),
        P::Step => Expr::literal("a"),
        P::Item => t(),
        P::List => Expr::call(F::ListValue, [t()]),
    };
    let count = entry.operands_min.max(1).min(entry.parameters.len());
    let count = if entry.function == F::JsonObject { 2 } else { count };
    let mut operands: Vec<_> = entry.parameters.iter().take(count).map(operand).collect();
    if entry.function == F::JsonPush {
        // At the one place of the document where there is an array.
        operands.insert(1, Expr::literal("a"));
        operands.truncate(3);
    }
    match entry.function {
        F::Encode => operands[1] = Expr::literal("base64"),
        F::Decode => operands[1] = Expr::literal("escape"),
        F::ToDate => operands = vec![Expr::literal("2024-01-31"), Expr::literal("YYYY-MM-DD")],
        F::Strptime => operands = vec![Expr::literal("2024-01-31"), Expr::literal("%Y-%m-%d")],
        F::ListAny | F::ListAll => operands[1] = Expr::literal("="),
        F::ListSum | F::ListAvg => {
            operands[0] = Expr::call(F::ListValue, [Expr::literal(1i64)]);
        }
        F::TryCast => operands = vec![t(), Expr::literal("json")],
        F::CurrentSchemas => operands = vec![Expr::literal(true)],
        F::Timezone => operands[0] = Expr::literal("UTC"),
        F::ToUtc => operands[1] = Expr::literal("UTC"),
        F::MakeDate | F::MakeTimestamp => operands.fill(Expr::literal(1i64)),
        _ => {}
    }
    Expr::call(entry.function, operands)
}

/// How often a query looks at the time while it computes an expression.
fn looks_of(expr: &Expr, source: &MemorySource) -> u64 {
    let clock = Arc::new(Looks::default());
    let mut options = within(1 << 30);
    options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
    answer(expr, source, &options.with_timeout(Duration::from_secs(3_600))).unwrap();
    clock.count()
}

#[test]
fn every_function_of_the_table_asks_for_memory_before_it_makes_a_value() {
    let source = source(LONG);
    for entry in FUNCTIONS {
        let name = entry.name;
        let makes_bytes = matches!(
            entry.outcome,
            Outcome::Text | Outcome::Bytes | Outcome::Json | Outcome::Interval | Outcome::List
        ) || (entry.outcome == Outcome::Item && entry.function != F::ListSum)
            || matches!(entry.parameters, [P::Text | P::TextOrBytes | P::Any | P::Common, ..])
                && matches!(entry.outcome, Outcome::First | Outcome::Common);
        assert_eq!(makes_bytes, entry.makes != Makes::Fixed, "{name}: how much does it make?");
        let outcome = answer(&call(entry), &source, &within(LIMIT));
        let is_large = match entry.makes {
            Makes::Fixed => false,
            Makes::Operands { times, .. } => times > 0,
            Makes::Repeated | Makes::Replaced | Makes::Counted => true,
            // The template is long, not the moment.
            Makes::Templated => call(entry).reads_field("t"),
        };
        // Those of this family that answer one of their operands need not copy a stored one.
        if !is_large || entry.family == Family::Choice {
            continue;
        }
        let error = outcome.err().unwrap_or_else(|| panic!("{name} needs no memory"));
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{name}: {error}");
        let error = error.to_string();
        // The list that a function is called with is made before.
        let maker = if entry.parameters.contains(&P::List) { "list_value" } else { name };
        let is_named = |name| error.contains(&format!("{name}: the query needs more than"));
        assert!(is_named(name) || is_named(maker), "{error}");
        assert!(error.contains(&format!("its budget is {LIMIT}")), "{error}");
    }
}

#[test]
fn every_function_of_the_table_looks_at_the_time_when_operands_are_long() {
    let (long, short) = (source(LONG), source(8));
    for entry in FUNCTIONS {
        let call = call(entry);
        let reads_bytes = call.reads_field("t") || call.reads_field("j");
        // These answer a stored operand as it is, or its type.
        let is_constant_time = entry.family == Family::Choice;
        // The text is none in base 64.
        let is_refused = entry.function == F::FromBase64;
        if !reads_bytes || is_constant_time || is_refused || entry.function == F::Nextval {
            continue;
        }
        let (before, now) = (looks_of(&call, &short), looks_of(&call, &long));
        assert!(now > before, "{}: {before} looks, then {now}", entry.name);
    }
}

/// What works on each byte of a long text or document, with what it is called.
fn long_work() -> Vec<(&'static str, Expr)> {
    let call = |function: F, operands: Vec<Expr>| Expr::call(function, operands);
    let like = |pattern: &str| t().binary(Operator::Like, Expr::literal(pattern));
    let ilike = |pattern: &str| t().binary(Operator::Ilike, Expr::literal(pattern));
    let no = || Expr::literal("no such part");
    let (bs, sigma) = (|| Expr::literal("b"), || Expr::literal("Σ"));
    let regular = |e: &str| call(F::RegexpLike, vec![t(), Expr::literal(e)]);
    vec![
        ("lower", call(F::Lower, vec![t()])),
        ("ascii_lower", call(F::AsciiLower, vec![t()])),
        ("casefold", call(F::Casefold, vec![t()])),
        ("upper", call(F::Upper, vec![t()])),
        ("length", call(F::Length, vec![t()])),
        ("reverse", call(F::Reverse, vec![t()])),
        ("strpos", call(F::Strpos, vec![t(), no()])),
        ("contains", call(F::Contains, vec![t(), no()])),
        ("icontains", call(F::Icontains, vec![t(), no()])),
        ("replace", call(F::Replace, vec![t(), Expr::literal("b"), Expr::literal("c")])),
        ("lower of sigmas", call(F::Lower, vec![call(F::Replace, vec![t(), bs(), sigma()])])),
        ("trim", call(F::Trim, vec![t(), Expr::literal("ä b")])),
        ("trim of many", call(F::Trim, vec![t(), t()])),
        ("left", call(F::Left, vec![t(), Expr::literal(-1i64)])),
        ("substr", call(F::Substr, vec![t(), Expr::literal(1_000_000i64)])),
        ("regexp_like", regular("(a|b|ä| ){200}no$")),
        ("regexp_like of words", regular("(\\bno\\b.{100}){4}no")),
        ("like", like("%no such part%")),
        ("like of pieces", like("%_no_such%_part%")),
        ("ilike", ilike("%no such part%")),
        ("json to text", cast(Expr::field("j"), DataType::Text)),
        ("text to json", cast(cast(Expr::field("j"), DataType::Text), DataType::Json)),
        ("json_contains", call(F::JsonContains, vec![Expr::field("j"), Expr::field("j")])),
        ("||", t().binary(Operator::Concat, t()).binary(Operator::Concat, t())),
        ("concat", call(F::Concat, vec![t(); 64])),
    ]
}

#[test]
fn long_work_of_one_value_ends_with_the_time_and_with_a_cancel() {
    let source = source(LONG);
    for (name, expr) in long_work() {
        let looks = looks_of(&expr, &source);
        // Once for each piece of 64 KiB, or nearly so.
        assert!(looks >= (LONG as u64 >> 16) / 2, "{name}: {looks} looks");
        let clock = Arc::new(Looks::default());
        let mut options = within(1 << 30);
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let short = options.clone().with_timeout(Duration::from_micros(looks / 2));
        let error = answer(&expr, &source, &short).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{name}: {error}");
        assert!(clock.count() <= looks / 2 + 8, "{name}: {} of {looks} looks", clock.count());

        let cancel = Arc::new(AtomicBool::new(false));
        let clock = Arc::new(Looks::cancelling(looks / 2, &cancel));
        options.inputs.limits.cancel = cancel;
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        let long = options.with_timeout(Duration::from_secs(3_600));
        let error = answer(&expr, &source, &long).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{name}: {error}");
        assert!(clock.count() <= looks / 2 + 8, "{name}: {} of {looks} looks", clock.count());
    }
}

#[test]
fn what_no_machine_holds_is_refused_before_it_is_made() {
    let source = source(LONG);
    // 384 GiB, twice over the memory of the query for each of the 65,536 operands.
    let concat = Expr::call(F::Concat, vec![t(); 65_536]);
    let error = answer(&concat, &source, &within(1 << 30)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("concat: the query needs more than"), "{error}");
    let repeat = |count: i64| Expr::call(F::Repeat, vec![t(), Expr::literal(count)]);
    let error = answer(&repeat(1 << 40), &source, &within(1 << 30)).unwrap_err().to_string();
    assert!(error.contains("repeat: ") && error.contains("at most 8388608"), "{error}");
}

#[test]
fn operators_and_casts_that_make_much_are_refused_by_name() {
    let source = source(LONG);
    let both = t().binary(Operator::Concat, t());
    let document = cast(Expr::field("j"), DataType::Text);
    let read = cast(cast(Expr::field("j"), DataType::Text), DataType::Json);
    let ilike = t().binary(Operator::Ilike, Expr::literal("%no such part%"));
    let is_first = Expr::field("t").binary(Operator::Eq, Expr::literal("x"));
    let case = Expr::Apply(Operator::Case, vec![is_first, t(), both.clone()]);
    // Two copies at once are what this has no memory for.
    let chosen = Expr::call(F::Coalesce, vec![both.clone(), t()]);
    for (maker, limit, expr) in [
        ("||", LIMIT, both),
        ("||", LIMIT, case.clone()),
        ("CASE", 20 << 20, case),
        ("coalesce", 20 << 20, chosen),
        ("a cast", LIMIT, document),
        ("a cast", 24 << 20, read),
        ("a pattern", LIMIT, ilike),
    ] {
        let error = answer(&expr, &source, &within(limit)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{maker}: {error}");
        let error = error.to_string();
        assert!(error.contains(&format!("{maker}: the query needs more than")), "{error}");
        assert!(error.contains(&format!("its budget is {limit}")), "{error}");
        answer(&expr, &source, &within(1 << 30)).unwrap();
    }
}

#[test]
fn values_that_are_made_row_by_row_need_the_memory_of_a_few_rows() {
    let schema = Schema::builder().field("a", DataType::Text).build().unwrap();
    let mut batch = Batch::empty(&schema);
    (0..500i64).for_each(|i| batch.push_row(&schema, &[format!("{i:04}").into()]).unwrap());
    let source = MemorySource::new(schema).with_part(&batch, &Layout::default());
    // A gigabyte in all, of which the length is asked for.
    let long = Expr::call(F::Repeat, vec![Expr::field("a"), Expr::literal(1i64 << 19)]);
    let length = Expr::call(F::Length, vec![long.clone()]);
    answer(&length, &source, &within(32 << 20)).unwrap();
    let error = answer(&long, &source, &within(32 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
}

#[test]
fn constants_are_refused_before_they_are_made() {
    let source = source(8);
    let eight = || Expr::call(F::Repeat, vec![Expr::literal("a"), Expr::literal(8i64 << 20)]);
    let all = (1..8).fold(eight(), |all, _| all.binary(Operator::Concat, eight()));
    let length = Expr::call(F::Length, vec![all]);
    // The operands have 64 MiB, and all of them together as many.
    let error = answer(&length, &source, &within(128 << 20)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    assert!(error.to_string().contains("||: the query needs more than"), "{error}");
    answer(&length, &source, &within(136 << 20)).unwrap();
}

#[test]
fn aggregates_of_text_count_what_they_keep() {
    let source = source(LONG);
    let both = t().binary(Operator::Concat, t());
    for function in [Aggregate::Min, Aggregate::Max, Aggregate::First, Aggregate::Last] {
        let kept = Expr::aggregate(function, both.clone());
        let error = answer(&kept, &source, &within(14 << 20)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{function:?}: {error}");
        answer(&kept, &source, &within(1 << 30)).unwrap();
    }
}
