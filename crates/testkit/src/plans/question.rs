//! Questions: a random predicate of one to five comparisons, asked in several ways.

use esker::{DataType, Value};
use esker_query::model::{Aggregate, Expr, Operator, OrderBy, Query, RowCount};
use esker_vfs::sim::Generator;

use super::case::{Field, ID, TABLE};
use super::{joined, value};

/// How many questions a predicate makes.
pub(super) const ASKED: usize = 14;

/// A question.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) query: Query,
    /// Whether the order of the answer is part of it.
    pub(super) is_ordered: bool,
}

/// What is asked about.
pub(super) struct Asked {
    /// The fields, those that have an index more than once.
    pub(super) fields: Vec<Field>,
    /// The fields of the key.
    pub(super) key: Vec<Field>,
    /// Which rows partial indexes have.
    pub(super) conditions: Vec<Condition>,
}

/// Which rows a partial index has.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Its name.
    pub(super) index: String,
    pub(super) condition: Expr,
    /// The field that it is about.
    pub(super) field: Field,
}

/// The questions about a predicate: where it is true, false and NULL, how many rows there are, the
/// first of them in two orders and by the key, the extremes of a field, groups by it, the extremes
/// of the key, two joins, what a subquery answers for some rows; the last counts the rows of the
/// table.
pub(super) fn draw(
    about: &Asked,
    generator: &mut Generator,
    joins: &mut Generator,
) -> [Question; ASKED] {
    let fields = about.fields.as_slice();
    let predicate = draw_predicate(about, generator);
    let field = any(fields, generator);
    let unordered = |query| Question { query, is_ordered: false };
    let ordered = |query| Question { query, is_ordered: true };
    let ids = |filter| {
        let mut query = asked(Some(filter));
        query.select(Expr::field(ID));
        query
    };
    let mut count = asked(Some(predicate.clone()));
    count.select(Expr::count());
    let mut extremes = asked(Some(predicate.clone()));
    for aggregate in [Aggregate::Min, Aggregate::Max] {
        extremes.select(Expr::aggregate(aggregate, field.operand()));
    }
    extremes.select(Expr::aggregate(Aggregate::Count, field.operand()));
    let mut groups = asked(generator.chance(500_000).then(|| predicate.clone()));
    groups.group_by = vec![field.operand()];
    groups.select(field.operand());
    groups.select(Expr::count());
    groups.select(Expr::aggregate(Aggregate::Max, Expr::field(ID)));
    let mut all = asked(None);
    all.select(Expr::count());
    [
        unordered(ids(predicate.clone())),
        unordered(ids(predicate.clone().negated())),
        unordered(ids(Expr::Apply(Operator::IsNull, vec![predicate.clone()]))),
        unordered(count),
        ordered(first(fields, Some(predicate.clone()), generator)),
        ordered(first(fields, None, generator)),
        ordered(first_by_key(about, predicate, generator)),
        unordered(extremes),
        unordered(groups),
        unordered(extremes_of_key(about)),
        joined::draw(about, joins),
        joined::draw(about, joins),
        unordered(for_each(fields, generator)),
        unordered(all),
    ]
}

fn asked(filter: Option<Expr>) -> Query {
    Query { filter, ..Query::table(TABLE) }
}

/// Some rows by a field or two, then by what tells them apart.
fn first(fields: &[Field], filter: Option<Expr>, generator: &mut Generator) -> Query {
    let mut query = asked(filter);
    query.select(Expr::field(ID));
    for _ in 0..1 + generator.index(2) {
        let field = any(fields, generator);
        let expr = field.operand();
        let nulls_first = generator.pick([None, None, Some(false), Some(true)]);
        let descending = generator.chance(400_000);
        query.order_by.push(OrderBy { expr, descending, nulls_first });
    }
    let (expr, descending) = (Expr::field(ID), generator.chance(300_000));
    query.order_by.push(OrderBy { expr, descending, nulls_first: None });
    query.limit = generator.chance(700_000).then(|| RowCount::Number(generator.below(20)));
    query.offset = RowCount::Number(generator.pick([0, 0, 1, 10]));
    query
}

/// Some rows by the key or its first fields: of all, of those behind a key, or of a predicate.
fn first_by_key(about: &Asked, predicate: Expr, generator: &mut Generator) -> Query {
    let key = key_of(about);
    let filter = match (generator.below(3), key.first()) {
        (0, _) => None,
        (1, Some(leading)) => {
            let operator = generator.pick([Operator::Gt, Operator::Gte, Operator::Lt]);
            let value = Expr::literal(draw_value(leading, generator));
            Some(Expr::field(&leading.name).binary(operator, value))
        }
        _ => Some(predicate),
    };
    let mut query = asked(filter);
    query.select(Expr::field(ID));
    let is_mixed = generator.chance(200_000);
    let descending = generator.chance(500_000);
    for (number, field) in key.iter().take(1 + generator.index(key.len())).enumerate() {
        let descending = descending != (is_mixed && number == 1);
        let expr = Expr::field(&field.name);
        query.order_by.push(OrderBy { expr, descending, nulls_first: None });
    }
    query.order_by.push(OrderBy { expr: Expr::field(ID), descending, nulls_first: None });
    query.limit = generator.chance(900_000).then(|| RowCount::Number(1 + generator.below(20)));
    query.offset = RowCount::Number(generator.pick([0, 0, 1, 40]));
    query
}

/// The least and the greatest of the key's first field.
fn extremes_of_key(about: &Asked) -> Query {
    let mut query = asked(None);
    for field in key_of(about).iter().take(1) {
        for aggregate in [Aggregate::Min, Aggregate::Max] {
            query.select(Expr::aggregate(aggregate, Expr::field(&field.name)));
        }
    }
    query
}

/// What a query that names fields of the one around it answers for a few rows.
fn for_each(fields: &[Field], generator: &mut Generator) -> Query {
    let of = |table: &str, field: &Field| Expr::field(format!("{table}.{}", field.name));
    let (by, about) = (any(fields, generator), any(fields, generator));
    let same = generator.pick([Operator::Eq, Operator::Eq, Operator::Lte, Operator::Neq]);
    let mut within = Query::table(TABLE).aliased("u");
    within.filter = Some(of("u", by).binary(same, of(TABLE, by)));
    let value = of("u", about);
    let answer = match generator.below(7) {
        0 => {
            within.select(Expr::count());
            Expr::value_of(within)
        }
        1 => {
            within.select(Expr::aggregate(Aggregate::Max, value));
            Expr::value_of(within)
        }
        2 => {
            within.select(value);
            let (expr, descending) = (Expr::field("u.id"), generator.chance(500_000));
            within.order_by.push(OrderBy { expr, descending, nulls_first: None });
            within.limit = Some(RowCount::Number(1));
            within.offset = RowCount::Number(generator.below(3));
            Expr::value_of(within)
        }
        3 => {
            within.select(value);
            Expr::has_rows(within).or(Expr::field("t.id").binary(Operator::Eq, Expr::literal(3i64)))
        }
        4 => {
            within.select(value);
            of(TABLE, about).among(within)
        }
        5 => {
            within.select(value);
            of(TABLE, about)
                .compared_with_all(generator.pick([Operator::Gte, Operator::Eq]), within)
        }
        _ => {
            within.select(value);
            within.group_by = vec![of("u", about)];
            of(TABLE, about).compared_with_any(Operator::Lt, within)
        }
    };
    let few = Expr::field("t.id").binary(Operator::Lt, Expr::literal(30i64));
    let mut query = asked(Some(few));
    query.select(Expr::field("t.id")).select(answer);
    query
}

/// The fields of the key; where it is generated, the one that tells rows apart.
fn key_of(about: &Asked) -> &[Field] {
    match about.key.as_slice() {
        [] => about.fields.get(..1).unwrap_or_default(),
        key => key,
    }
}

fn any<'a>(fields: &'a [Field], generator: &mut Generator) -> &'a Field {
    #[allow(clippy::indexing_slicing, reason = "there is at least the field of the ids")]
    &fields[generator.index(fields.len())]
}

fn draw_predicate(about: &Asked, generator: &mut Generator) -> Expr {
    let leaves = generator.pick([1, 1, 1, 2, 2, 3, 4, 5]);
    let leaf = |_| match about.key.is_empty() || !generator.chance(200_000) {
        true => draw_leaf(&about.fields, generator),
        false => draw_keys(&about.key, generator),
    };
    let mut parts: Vec<Expr> = (0..leaves).map(leaf).collect();
    while parts.len() > 1 {
        let left = parts.swap_remove(generator.index(parts.len()));
        let right = parts.swap_remove(generator.index(parts.len()));
        let both = if generator.chance(700_000) { left.and(right) } else { left.or(right) };
        let both = if generator.chance(150_000) { both.negated() } else { both };
        parts.push(both);
    }
    let mut predicate = parts.pop().unwrap_or_else(|| Expr::literal(true));
    if !about.conditions.is_empty() && generator.chance(500_000) {
        // Rows that a partial index has, all or some of them, or others of the same field.
        let partial = about.conditions.get(generator.index(about.conditions.len()));
        predicate = partial.into_iter().fold(predicate, |predicate, partial| {
            let other = draw_leaf(std::slice::from_ref(&partial.field), generator);
            let same = partial.condition.clone();
            let more = match generator.below(4) {
                0 | 1 => same,
                2 => same.and(other),
                _ => other,
            };
            more.and(predicate)
        });
    }
    if generator.chance(150_000) { predicate.negated() } else { predicate }
}

/// A condition that gives one or several values of each field of the key.
fn draw_keys(key: &[Field], generator: &mut Generator) -> Expr {
    let mut all = Expr::literal(true);
    for field in key {
        let operand = Expr::field(&field.name);
        let count = generator.pick([1, 1, 2, 5, 20]);
        let values: Vec<Expr> =
            (0..count).map(|_| Expr::literal(draw_value(field, generator))).collect();
        let one = match values.first().filter(|_| count == 1) {
            Some(only) => operand.binary(Operator::Eq, only.clone()),
            None => Expr::Apply(Operator::In, std::iter::once(operand).chain(values).collect()),
        };
        all = all.and(one);
    }
    all
}

pub(super) fn draw_leaf(fields: &[Field], generator: &mut Generator) -> Expr {
    use Operator as O;
    let field = any(fields, generator);
    let operand = field.operand();
    let mut value = || Expr::literal(draw_value(field, generator));
    let (a, b) = (value(), value());
    let comparison = generator.pick([O::Eq, O::Neq, O::Lt, O::Lte, O::Gt, O::Gte]);
    match generator.below(100) {
        0..45 => operand.binary(comparison, a),
        45..60 => {
            let operator = generator.pick([O::Between, O::Between, O::NotBetween]);
            Expr::Apply(operator, vec![operand, a, b])
        }
        60..75 => {
            let more = 1 + generator.index(5);
            let values = (0..more).map(|_| Expr::literal(draw_value(field, generator)));
            let operands = std::iter::once(operand).chain(values.collect::<Vec<_>>());
            Expr::Apply(generator.pick([O::In, O::In, O::NotIn]), operands.collect())
        }
        75..83 => {
            let operator = generator.pick([O::IsNull, O::IsNotNull]);
            Expr::Apply(operator, vec![operand])
        }
        83..88 => {
            let alike = |other: &&Field| other.data_type == field.data_type;
            let others: Vec<&Field> = fields.iter().filter(alike).collect();
            let other = others.get(generator.index(others.len()));
            operand.binary(comparison, other.map_or(b, |other| other.operand()))
        }
        _ => match fields.iter().find(|field| field.data_type == DataType::Text) {
            None => operand.binary(comparison, b),
            Some(text) => {
                let operator =
                    generator.pick([O::Like, O::Like, O::Ilike, O::NotLike, O::NotIlike]);
                let pattern = Expr::literal(draw_pattern(generator));
                text.operand().binary(operator, pattern)
            }
        },
    }
}

/// One of the field's own values, mostly; or another, of its type or near it, or NULL.
fn draw_value(field: &Field, generator: &mut Generator) -> Value {
    let own = field.pool.get(generator.index(field.pool.len())).cloned().unwrap_or_default();
    match (generator.below(100), &own) {
        (0..3, _) => Value::Null,
        (3..30, _) => value::draw(field.data_type, generator),
        // A number of another type, where one is compared with it.
        (30..40, Value::Int(n)) if n.unsigned_abs() < 1 << 40 => {
            Value::Float(i32::try_from(*n).map_or(0.5, f64::from) + 0.5)
        }
        (30..40, Value::Uint(n)) => i64::try_from(*n).map_or(own, Value::Int),
        (30..40, Value::Float(x)) if x.abs() < 100.0 => Value::Int(1),
        _ => own,
    }
}

fn draw_pattern(generator: &mut Generator) -> String {
    let piece = value::text(generator);
    match generator.below(6) {
        0 => piece,
        1 | 2 => format!("{piece}%"),
        3 => format!("%{piece}%"),
        4 => format!("%{piece}"),
        _ => format!("{piece}_"),
    }
}
