//! Names resolve, types are checked, and errors say where and what was expected.

use esker_format::{DataType, Schema, Value};

use super::bind_query;
use crate::model::{Aggregate, EXPR_DEPTH_MAX, Expr, Function, Operator, OrderBy};
use crate::{Inputs, Query};

fn schema() -> Schema {
    Schema::builder()
        .field("Name", DataType::Text)
        .field("age", DataType::U8)
        .nullable("born", DataType::Date)
        .nullable("seen", DataType::Timestamp)
        .nullable("score", DataType::F32)
        .build()
        .unwrap()
}

fn error(query: &Query) -> String {
    bind_query(query, &schema(), &Inputs::default()).unwrap_err().to_string()
}

fn select(expr: Expr) -> Query {
    let mut query = Query::table("t");
    query.select(expr);
    query
}

fn types(query: &Query) -> Vec<DataType> {
    let program = bind_query(query, &schema(), &Inputs::default()).unwrap();
    program.projection.outputs.iter().map(crate::bound::Bound::data_type).collect()
}

fn field(name: &str) -> Expr {
    Expr::field(name)
}

#[test]
fn results_have_the_types_of_the_rules() {
    let cases = [
        (field("age"), DataType::U8),
        (field("age").binary(Operator::Add, Expr::literal(1i64)), DataType::I64),
        (field("age").binary(Operator::Divide, field("score")), DataType::F64),
        (field("born").binary(Operator::Subtract, Expr::literal(1i64)), DataType::Date),
        (field("born").binary(Operator::Subtract, field("born")), DataType::I64),
        (Expr::call(Function::Coalesce, [field("born"), field("seen")]), DataType::Timestamp),
        (Expr::call(Function::Length, [field("name")]), DataType::I64),
        (Expr::aggregate(Aggregate::Sum, field("age")), DataType::U64),
        (Expr::aggregate(Aggregate::Sum, field("score")), DataType::F64),
        (Expr::aggregate(Aggregate::Avg, field("age")), DataType::F64),
        (Expr::aggregate(Aggregate::Max, field("score")), DataType::F32),
        (Expr::Literal(Value::Null), DataType::Text),
    ];
    for (expr, expected) in cases {
        assert_eq!(types(&select(expr.clone())), [expected], "{expr}");
    }
}

#[test]
fn names_may_differ_in_case_when_one_is_meant() {
    assert_eq!(types(&select(field("NAME"))), [DataType::Text]);
    let mut query = select(field("nmae"));
    assert!(
        error(&query).contains("unknown field \"nmae\"; did you mean \"Name\"?"),
        "{}",
        error(&query)
    );
    query = select(Expr::count());
    query.order_by = vec![OrderBy { expr: field("age"), descending: false, nulls_first: None }];
    assert!(error(&query).starts_with("ORDER BY: field \"age\" is neither"), "{}", error(&query));
}

#[test]
fn operands_of_wrong_types_are_refused() {
    let cases = [
        (field("name").binary(Operator::Multiply, field("age")), "expected a number, found text"),
        (field("name").binary(Operator::Eq, field("age")), "cannot compare text with u8"),
        (field("born").binary(Operator::Lt, Expr::literal("soon")), "expected date (like"),
        (Expr::Apply(Operator::Not, vec![field("age")]), "expected a condition, found u8"),
        (field("age").binary(Operator::Like, Expr::literal("x")), "expected text, found u8"),
        (field("name").binary(Operator::Like, field("name")), "a pattern must be a constant"),
        (Expr::Apply(Operator::Between, vec![field("age")]), "BETWEEN takes 3 operands, found 1"),
        (Expr::Cast(Box::new(field("born")), DataType::I8), "cannot cast date to i8"),
        (Expr::aggregate(Aggregate::Sum, Expr::count()), "an aggregate cannot be inside another"),
        (
            Expr::literal(i64::MAX).binary(Operator::Add, Expr::literal(1i64)),
            "9223372036854775807 + 1 does not fit i64",
        ),
    ];
    for (expr, expected) in cases {
        let message = error(&select(expr));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn expressions_that_nest_too_deep_are_refused() {
    let mut expr = field("age");
    for _ in 0..EXPR_DEPTH_MAX {
        expr = Expr::Apply(Operator::Negate, vec![expr]);
    }
    assert_eq!(error(&select(expr)), "an expression nests too deep: 129 levels, at most 128");
}
