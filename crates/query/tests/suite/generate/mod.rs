//! Random tables and random queries, from a seed.
#![allow(clippy::explicit_auto_deref, reason = "what it suggests does not compile")]

use esker_format::{Batch, DataType, Decimal, Labels, Schema, Value};
use esker_query::model::{Aggregate, Expr, Function, Operator, OrderBy, Query};

/// A stream of random numbers.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let len = u64::try_from(items.len()).unwrap();
        &items[usize::try_from(self.below(len)).unwrap()]
    }

    fn int(&mut self, least: i64, most: i64) -> i64 {
        let span = u64::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.below(span)).unwrap()
    }
}

/// The labels of the field `size`, in another order than as texts.
pub fn labels() -> Labels {
    Labels::new(["small", "medium", "very large"]).unwrap()
}

/// Documents of the field `doc`, two of them equal numbers.
const DOCUMENTS: [&str; 8] =
    ["null", "true", "1.0", "1", "\"a\"", "[1,[]]", "{\"a\":{\"b\":1}}", "{\"a\":2}"];

pub fn schema() -> Schema {
    Schema::builder()
        .nullable("flag", DataType::Bool)
        .nullable("big", DataType::I64)
        .field("step", DataType::I32)
        .nullable("tiny", DataType::U8)
        .nullable("wide", DataType::U64)
        .nullable("ratio", DataType::F64)
        .nullable("part", DataType::F32)
        .nullable("code", DataType::Text)
        .nullable("note", DataType::Text)
        .nullable("day", DataType::Date)
        .nullable("at", DataType::Timestamp)
        .nullable("raw", DataType::Bytes)
        .nullable("clock", DataType::Time)
        .nullable("id", DataType::Uuid)
        .nullable("v4", DataType::Ipv4)
        .nullable("v6", DataType::Ipv6)
        .nullable("price", DataType::Decimal { precision: 9, scale: 2 })
        .nullable("huge", DataType::Decimal { precision: 30, scale: 5 })
        .nullable("size", DataType::Enum)
        .labels(labels())
        .nullable("doc", DataType::Json)
        .field("same", DataType::I16)
        .build()
        .unwrap()
}

/// A value as the field of this type holds it. `at` is the row, for fields that rise with it.
fn value(dice: &mut Dice, field: &str, at: i64) -> Value {
    let rare = dice.chance(3);
    match field {
        "flag" => Value::Bool(dice.chance(40)),
        "big" if rare => Value::Int(*dice.pick(&[i64::MIN, i64::MAX, -1 << 53, (1 << 53) + 1])),
        "big" => Value::Int(dice.int(-20, 20)),
        "step" => Value::Int(at / 50 + dice.int(0, 3)),
        "tiny" => Value::Uint(dice.below(6)),
        "wide" if rare => Value::Uint(*dice.pick(&[u64::MAX, 1 << 63, (1 << 63) - 1])),
        "wide" => Value::Uint(dice.below(300)),
        "ratio" => Value::Float(match dice.below(12) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            3 if rare => f64::INFINITY,
            4 => 9_007_199_254_740_992.0,
            _ => dice.int(-40, 40) as f64 / 4.0,
        }),
        "part" => Value::Float32(*dice.pick(&[f32::NAN, -0.0, 0.0, 0.1, 0.5, 1.5, -2.0, 7.0])),
        "code" => Value::from(*dice.pick(&["AA", "UA", "DL", "B6", "aa", "éa"])),
        "note" => {
            let words = ["", "a", "ab", "b%", "a_b", "äb", "abab", "zebra", "Zebra"];
            Value::Text(format!("{}{}", dice.pick(&words), dice.pick(&words)))
        }
        "day" => Value::Date(i32::try_from(15_700 + at / 40 + dice.int(0, 2)).unwrap()),
        "at" => Value::Timestamp((15_700 + dice.int(0, 3)) * 86_400_000_000 + dice.int(0, 2)),
        "raw" => Value::Bytes(vec![7; usize::try_from(dice.below(3)).unwrap()]),
        "clock" => Value::Time(if rare { 86_399_999_999 } else { dice.int(0, 5) * 3_600_000_000 }),
        "id" => Value::Uuid([dice.pick(&[0, 7, 0x80, 0xff]).to_owned(); 16]),
        "v4" => {
            Value::Ipv4(if rare { u32::MAX } else { *dice.pick(&[0, 0x0a00_0001, 0x7f00_0001]) })
        }
        "v6" => Value::Ipv6([dice.pick(&[0, 1, 0xfe]).to_owned(); 16]),
        "price" if rare => decimal(*dice.pick(&[999_999_999, -999_999_999, 0]), 2),
        "price" => decimal(dice.int(-300, 300) * 5, 2),
        "huge" if rare => {
            let most = 10i128.pow(30) - 1;
            decimal(*dice.pick(&[most, -most, 1, -1, 1 << 64, 1 << 98]), 5)
        }
        "huge" => decimal(dice.int(-300, 300) * 5_000, 5),
        "size" => {
            let label = *dice.pick(&["small", "medium", "very large"]);
            labels().find(label).unwrap().to_owned()
        }
        "doc" => Value::json(*dice.pick(&DOCUMENTS)).unwrap(),
        _ => Value::Int(42),
    }
}

fn decimal(mantissa: impl Into<i128>, scale: u8) -> Value {
    Value::Decimal(Decimal::new(mantissa.into(), scale).unwrap())
}

pub fn rows(dice: &mut Dice, schema: &Schema, count: i64) -> Vec<Vec<Value>> {
    let nulls = *dice.pick(&[0, 10, 60]);
    let row = |at| {
        let field = |field: &esker_format::Field| {
            if field.nullable && dice.chance(nulls) {
                Value::Null
            } else {
                value(dice, &field.name, at)
            }
        };
        schema.fields().iter().map(field).collect()
    };
    (0..count).map(row).collect()
}

pub fn batch(schema: &Schema, rows: &[Vec<Value>]) -> Batch {
    let mut batch = Batch::empty(schema);
    rows.iter().for_each(|row| batch.push_row(schema, row).unwrap());
    batch
}

const NUMBERS: [&str; 9] =
    ["big", "step", "tiny", "wide", "ratio", "part", "same", "price", "huge"];
const SMALL: [&str; 3] = ["step", "tiny", "same"];
const ALL: [&str; 21] = [
    "flag", "big", "step", "tiny", "wide", "ratio", "part", "code", "note", "day", "at", "raw",
    "same", "clock", "id", "v4", "v6", "price", "huge", "size", "doc",
];

fn field(name: &str) -> Expr {
    Expr::field(name)
}

fn constant(dice: &mut Dice, name: &str) -> Expr {
    if dice.chance(4) {
        return Expr::Literal(Value::Null);
    }
    let at = dice.int(0, 400);
    if NUMBERS.contains(&name) && dice.chance(30) {
        // A number of another type than the field's.
        let other = *dice.pick(&NUMBERS);
        return Expr::Literal(value(dice, other, at));
    }
    match value(dice, name, at) {
        // Written as text, which is taken for what it stands beside.
        value @ (Value::Date(_)
        | Value::Time(_)
        | Value::Uuid(_)
        | Value::Ipv4(_)
        | Value::Ipv6(_)
        | Value::Enum(_)
        | Value::Json(_))
            if dice.chance(50) =>
        {
            Expr::literal(value.to_string().as_str())
        }
        value => Expr::Literal(value),
    }
}

fn leaf(dice: &mut Dice) -> Expr {
    use Operator as O;
    let name = *dice.pick(&ALL);
    let compare = *dice.pick(&[O::Eq, O::Neq, O::Lt, O::Lte, O::Gt, O::Gte]);
    match dice.below(13) {
        12 => {
            let function = *dice.pick(&[
                Function::Length,
                Function::Ascii,
                Function::BitLength,
                Function::Upper,
                Function::Initcap,
                Function::Reverse,
            ]);
            let text = field(*dice.pick(&["code", "note"]));
            let call = Expr::call(function, [text]);
            match function {
                Function::Length => call.binary(compare, Expr::literal(dice.int(0, 5))),
                Function::Ascii => call.binary(compare, Expr::literal(dice.int(90, 110))),
                Function::BitLength => call.binary(compare, Expr::literal(dice.int(0, 5) * 8)),
                _ => call.binary(compare, constant(dice, "note")),
            }
        }
        0 => Expr::Apply(*dice.pick(&[O::IsNull, O::IsNotNull]), vec![field(name)]),
        1 => field("flag"),
        2 | 3 => {
            let pattern =
                *dice.pick(&["a%", "%b", "%eb%", "_", "__", "a_b", "%a%b%", "", "ab", "é%"]);
            let operator = *dice.pick(&[O::Like, O::NotLike, O::Ilike, O::NotIlike]);
            let text = field(*dice.pick(&["code", "note"]));
            text.binary(operator, Expr::literal(pattern))
        }
        4 | 5 => {
            let mut operands = vec![field(name)];
            (0..dice.below(6)).for_each(|_| operands.push(constant(dice, name)));
            Expr::Apply(*dice.pick(&[O::In, O::NotIn]), operands)
        }
        6 => {
            let operands = vec![field(name), constant(dice, name), constant(dice, name)];
            Expr::Apply(*dice.pick(&[O::Between, O::NotBetween]), operands)
        }
        7 => field(*dice.pick(&NUMBERS)).binary(compare, field(*dice.pick(&NUMBERS))),
        8 => number(dice).binary(compare, number(dice)),
        9 => constant(dice, name).binary(compare, field(name)),
        _ => field(name).binary(compare, constant(dice, name)),
    }
}

/// Arithmetic that seldom overflows.
fn number(dice: &mut Dice) -> Expr {
    use Operator as O;
    let small = |dice: &mut Dice| field(*dice.pick(&SMALL));
    let operator = *dice.pick(&[O::Add, O::Subtract, O::Multiply, O::Divide, O::Remainder]);
    match dice.below(9) {
        6 => {
            field("price").binary(operator, field(*dice.pick(&["price", "step", "ratio", "huge"])))
        }
        7 => field(*dice.pick(&["huge", "big"])).binary(operator, field("price")),
        8 => field("huge").binary(operator, field("huge")),
        0 => small(dice).binary(operator, small(dice)),
        1 => small(dice).binary(operator, Expr::literal(dice.int(-3, 3))),
        2 => field("ratio").binary(operator, small(dice)),
        3 => Expr::Apply(O::Negate, vec![small(dice)]),
        4 => Expr::call(
            Function::Coalesce,
            [field("tiny"), field("tiny").binary(operator, small(dice)), Expr::literal(9i64)],
        ),
        _ => field("big").binary(operator, small(dice)),
    }
}

pub fn condition(dice: &mut Dice, depth: u64) -> Expr {
    let again = |dice: &mut Dice, count| (0..count).map(|_| condition(dice, depth - 1)).collect();
    let count = 2 + dice.below(3);
    match dice.below(6) {
        0 if depth > 0 => Expr::Apply(Operator::And, again(dice, count)),
        1 if depth > 0 => Expr::Apply(Operator::Or, again(dice, count)),
        2 if depth > 0 => Expr::Apply(Operator::Not, again(dice, 1)),
        _ => leaf(dice),
    }
}

fn aggregate(dice: &mut Dice) -> Expr {
    let function = *dice.pick(&Aggregate::ALL[..5]);
    match function {
        Aggregate::Count if dice.chance(50) => Expr::count(),
        Aggregate::Count => Expr::Aggregate {
            function,
            operand: Some(Box::new(field(*dice.pick(&ALL)))),
            distinct: dice.chance(50),
            order: Vec::new(),
        },
        Aggregate::Sum | Aggregate::Avg if dice.chance(25) => {
            Expr::aggregate(function, number(dice))
        }
        Aggregate::Sum | Aggregate::Avg => Expr::aggregate(function, field(*dice.pick(&NUMBERS))),
        _ => Expr::aggregate(function, field(*dice.pick(&ALL))),
    }
}

pub fn query(dice: &mut Dice) -> Query {
    let mut query = Query::table("t");
    let mut conditions: Vec<_> = (0..dice.below(5)).map(|_| condition(dice, 2)).collect();
    query.filter = match conditions.len() {
        0 => None,
        1 => conditions.pop(),
        _ => Some(Expr::Apply(Operator::And, conditions)),
    };
    let grouped = dice.chance(50);
    if grouped {
        for _ in 0..dice.below(3) {
            let key = if dice.chance(15) { number(dice) } else { field(*dice.pick(&ALL)) };
            query.select(key.clone());
            query.group_by.push(key);
        }
        (0..=dice.below(3)).for_each(|_| {
            query.select(aggregate(dice));
        });
        if dice.chance(20) {
            let least = Expr::literal(dice.int(1, 4));
            query.having = Some(Expr::count().binary(Operator::Gte, least));
        }
    } else {
        for _ in 0..=dice.below(3) {
            let shown = match dice.below(4) {
                0 => number(dice),
                1 => Expr::Apply(
                    Operator::Case,
                    vec![condition(dice, 1), field("code"), Expr::literal("none")],
                ),
                2 => Expr::call(Function::Reverse, [Expr::call(Function::Upper, [field("code")])]),
                _ => field(*dice.pick(&ALL)),
            };
            query.select(shown);
        }
    }
    query.distinct = dice.chance(15);
    finish(dice, &mut query, grouped);
    query
}

/// An order and a limit.
fn finish(dice: &mut Dice, query: &mut Query, grouped: bool) {
    for _ in 0..dice.below(3) {
        let shown = query.select.iter().map(|item| item.expr.clone()).collect::<Vec<_>>();
        let is_float = |e: &Expr| {
            matches!(e, Expr::Aggregate { function: Aggregate::Sum | Aggregate::Avg, .. })
        };
        let exact: Vec<_> = shown.into_iter().filter(|e| !is_float(e)).collect();
        let expr = if grouped || query.distinct {
            if exact.is_empty() {
                continue;
            }
            dice.pick(&exact).clone()
        } else {
            field(*dice.pick(&ALL))
        };
        let nulls_first = *dice.pick(&[None, Some(true), Some(false)]);
        query.order_by.push(OrderBy { expr, descending: dice.chance(50), nulls_first });
    }
    if dice.chance(40) {
        query.limit = Some(dice.below(20).into());
        query.offset = dice.below(5).into();
    }
}
