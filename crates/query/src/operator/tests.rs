//! The table of operators: complete, and each line true of what it says.

use esker_format::{Batch, DataType, Schema, Value};

use super::*;
use crate::json::JsonQuery;
use crate::testing::{Encoding, Layout, MemorySource};
use crate::{Options, Query, execute};

const NAMES: [&str; 38] = [
    "eq",
    "neq",
    "lt",
    "gt",
    "lte",
    "gte",
    "between",
    "in",
    "not_in",
    "exists",
    "not_exists",
    "like",
    "not_like",
    "ilike",
    "not_ilike",
    "contains",
    "not_contains",
    "icontains",
    "not_icontains",
    "starts",
    "ends",
    "istarts",
    "iends",
    "len_eq",
    "len_neq",
    "len_lt",
    "len_gt",
    "len_lte",
    "len_gte",
    "len_between",
    "eq_field",
    "neq_field",
    "lt_field",
    "gt_field",
    "lte_field",
    "gte_field",
    "regex",
    "not_regex",
];

fn schema() -> Schema {
    let builder = Schema::builder().nullable("name", DataType::Text);
    builder.nullable("age", DataType::I16).nullable("rank", DataType::I64).build().unwrap()
}

fn source(encoding: Encoding) -> MemorySource {
    let schema = schema();
    let names = ["alice.smith0", "Alice Smith 7", "bob", "100!5", "100%", "straße", "STRASSE", ""];
    let mut batch = Batch::empty(&schema);
    for i in 0..500i64 {
        let name = names[usize::try_from(i * 7 % 8).unwrap()];
        let row = [
            if i % 11 == 3 { Value::Null } else { name.into() },
            if i % 13 == 5 { Value::Null } else { Value::Int(i % 60) },
            if i % 17 == 2 { Value::Null } else { Value::Int(i % 45) },
        ];
        batch.push_row(&schema, &row).unwrap();
    }
    MemorySource::new(schema).with_part(&batch, &Layout { encoding, ..Layout::default() })
}

fn count(condition: Option<Expr>) -> i64 {
    let mut query = Query::table("t");
    query.select(Expr::count());
    query.filter = condition;
    let encodings = [Encoding::Plain, Encoding::Compact, Encoding::Scattered];
    let counts = encodings.map(|encoding| {
        let options = Options::new(&esker_vfs::Environment::os());
        let rows = execute(&query, &source(encoding), &options).unwrap().to_rows();
        match rows[0][0] {
            Value::Int(count) => count,
            _ => panic!("no count"),
        }
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{query}: {counts:?}");
    counts[0]
}

fn example(entry: &FilterOperator) -> Expr {
    let text = format!(r#"{{"table": "t", "where": {}}}"#, entry.example);
    JsonQuery::parse(&text).unwrap().bind(&schema()).unwrap().filter.unwrap()
}

#[test]
fn there_are_all_38_in_order() {
    let names: Vec<_> = FILTER_OPERATORS.iter().map(|entry| entry.name).collect();
    let mut wanted = NAMES.to_vec();
    wanted.sort_by_key(|name| names.iter().position(|known| known == name));
    assert_eq!(names, wanted);
    for entry in FILTER_OPERATORS {
        assert!(!entry.meaning.is_empty() && !entry.sql.is_empty(), "{}", entry.name);
        for name in std::iter::once(&entry.name).chain(entry.aliases) {
            assert_eq!(FilterOperator::expect(name).unwrap().name, entry.name);
        }
    }
}

/// True, false and unknown rows add up to all, and NULL is what the table says.
#[test]
fn every_operator_its_opposite_and_null_add_up() {
    let all = count(None);
    for entry in FILTER_OPERATORS {
        let condition = example(entry);
        let found = count(Some(condition.clone()));
        let not = count(Some(condition.clone().negated()));
        let unknown = count(Some(condition.clone().not_exists()));
        assert_eq!(found + not + unknown, all, "{condition}");
        assert!(entry.name == "iends" || entry.name == "in" || found > 0, "{condition}");
        assert_eq!(unknown > 0, entry.of_null == OfNull::Unknown, "{condition}");
        if let Some(opposite) = entry.opposite {
            let opposite = FilterOperator::expect(opposite).unwrap();
            assert_eq!(opposite.opposite, Some(entry.name));
            let field = Expr::field(if entry.subjects == Subjects::All { "age" } else { "name" });
            let values = || match entry.operands {
                Operands::None => vec![],
                Operands::One if entry.takes_lengths() => vec![3i64.into()],
                Operands::One if entry.subjects == Subjects::All => vec![30i64.into()],
                Operands::One => vec!["s".into()],
                Operands::Two | Operands::Many => vec![10i64.into(), 30i64.into()],
                Operands::Field => vec![Expr::field("rank")],
            };
            let one = entry.apply(field.clone(), values()).unwrap();
            let other = opposite.apply(field, values()).unwrap();
            assert_eq!(count(Some(one.negated())), count(Some(other)), "{}", entry.name);
        }
    }
}

#[test]
fn methods_make_what_the_table_makes() {
    let x = || Expr::field("name");
    let made = [
        ("neq", x().neq("a")),
        ("not_like", x().not_like("a")),
        ("not_ilike", x().not_ilike("a")),
        ("icontains", x().icontains("a")),
        ("not_icontains", x().not_icontains("a")),
        ("starts", x().starts("a")),
        ("iends", x().iends("a")),
        ("not_regex", x().not_regex("a")),
        ("gte_field", x().gte(Expr::field("rank"))),
    ];
    for (name, condition) in made {
        let value = if name.ends_with("field") { Expr::field("rank") } else { "a".into() };
        assert_eq!(x().test(name, vec![value]).unwrap(), condition, "{name}");
    }
    let lengths = [("len_lt", x().len_lt(3i64)), ("len_gte", x().len_gte(3i64))];
    for (name, condition) in lengths {
        assert_eq!(x().test(name, vec![3i64.into()]).unwrap(), condition, "{name}");
    }
    let several = || vec![1i64.into(), 2i64.into()];
    assert_eq!(x().test("len_between", several()).unwrap(), x().len_between(1i64, 2i64));
    assert_eq!(x().test("in", several()).unwrap(), x().is_in([1i64, 2]));
    assert_eq!(x().test("exists", vec![]).unwrap(), x().exists());
    let error = x().test("between", vec![1i64.into()]).unwrap_err().to_string();
    assert_eq!(error, "between takes two values, the least and the greatest, found 1");
}

#[test]
fn bad_expressions_say_where() {
    let mut query = Query::table("t");
    for (expression, wanted) in [
        ("(a", "regular expression '(a': unclosed group (at character 1)"),
        ("ä[z-a]", "invalid character class range, the start must be <= the end (at character 3)"),
        ("(x{1000}){1000}", "size limit"),
        ("(a)\\1", "backreferences are not supported (at character 4)"),
    ] {
        query.filter = Some(Expr::field("name").regex(expression));
        let options = Options::new(&esker_vfs::Environment::os());
        let error = execute(&query, &source(Encoding::Plain), &options).unwrap_err().to_string();
        assert!(error.contains(wanted) && error.starts_with("WHERE: "), "{error}");
    }
}
