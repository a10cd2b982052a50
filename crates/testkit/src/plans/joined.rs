//! Questions about two to eight tables, all of them the one that a case has, or queries of it: the
//! rows of a few ids, which most conditions connect, so that an answer is small.

use esker_query::model::{
    Expr, Join, JoinKind, Operator, Query, Relation, SetBranch, SetOperation, SetOperator,
};
use esker_vfs::sim::Generator;

use super::case::{Field, ID, TABLE};
use super::question::{Asked, Question, draw_leaf};

/// The most tables.
const TABLES_MAX: usize = 8;

/// The most joins on what several rows may have in common.
const WIDE_MAX: usize = 2;

/// The tables of a question.
struct Tables {
    names: Vec<String>,
    kinds: Vec<JoinKind>,
}

/// A question about joined tables.
pub(super) fn draw(about: &Asked, generator: &mut Generator) -> Question {
    let count = 2 + generator.index(TABLES_MAX - 1);
    let has_left = generator.chance(500_000);
    let kind = |i: usize, generator: &mut Generator| match has_left && i > 0 {
        true if generator.chance(400_000) => JoinKind::Left,
        _ => JoinKind::Inner,
    };
    let kinds = (0..count).map(|i| kind(i, generator)).collect();
    let tables = Tables { names: (0..count).map(|i| format!("r{i}")).collect(), kinds };
    let mut on = tables.draw_links(about, generator);
    let mut filter = Vec::new();
    for (i, name) in tables.names.iter().enumerate() {
        let least = i64::try_from(generator.below(8)).unwrap_or_default();
        let ends = [least, least + 12].map(Expr::literal);
        let operands = std::iter::once(of(name, ID)).chain(ends).collect();
        let few = Expr::Apply(Operator::Between, operands);
        match (tables.kinds.get(i), on.get_mut(i)) {
            (Some(JoinKind::Left), Some(on)) => {
                on.push(few);
                // Rows without a match.
                let is_null = Expr::Apply(Operator::IsNull, vec![of(name, ID)]);
                filter.extend(generator.chance(200_000).then_some(is_null));
            }
            _ => filter.push(few),
        }
    }
    // Conditions of inner joins stand in WHERE, mostly, in any order.
    for (i, on) in on.iter_mut().enumerate() {
        let is_inner = tables.kinds.get(i) == Some(&JoinKind::Inner);
        if is_inner && generator.chance(600_000) {
            filter.append(on);
        }
    }
    for _ in 0..generator.index(3) {
        filter.push(tables.draw_condition(about, generator));
    }
    if generator.chance(600_000) {
        filter.push(tables.draw_either(about, generator));
    }
    for at in (1..filter.len()).rev() {
        filter.swap(at, generator.index(at + 1));
    }
    let mut query = Query::table(TABLE).aliased("r0");
    for ((name, kind), on) in tables.names.iter().zip(&tables.kinds).zip(on).skip(1) {
        let relation = draw_relation(about, name, generator);
        query.joins.push(Join { kind: *kind, relation, on: all(on), ..Join::default() });
    }
    query.filter = all(filter);
    match generator.chance(200_000) {
        true => {
            query.select(Expr::count());
        }
        false => {
            for name in &tables.names {
                query.select(of(name, ID));
            }
        }
    }
    Question { query, is_ordered: false }
}

/// The table, or a query that shows its rows: all of them, some, each once, or each twice.
fn draw_relation(about: &Asked, name: &str, generator: &mut Generator) -> Relation {
    let rows = |generator: &mut Generator| {
        let mut query = Query::table(TABLE);
        let plain = about.fields.iter().filter(|field| field.is_plain());
        let fields = plain.map(|field| field.name.as_str());
        let others = fields.filter(|field| *field != ID);
        std::iter::once(ID).chain(others).for_each(|field| {
            query.select(Expr::field(field));
        });
        query.filter = generator.chance(500_000).then(|| draw_leaf(&about.fields, generator));
        query
    };
    let query = match generator.below(8) {
        0 => rows(generator),
        1 => Query { distinct: true, ..rows(generator) },
        2 => {
            let (operator, all) = (SetOperator::Union, true);
            let second = SetBranch { operator, all, query: rows(generator) };
            let set = SetOperation { first: rows(generator), rest: vec![second] };
            Query { set: Some(Box::new(set)), ..Query::default() }
        }
        _ => return Relation::table(TABLE).aliased(name),
    };
    Relation::query(query, name)
}

impl Tables {
    /// For each table what connects it: with one before it, or, of inner joins, with any.
    fn draw_links(&self, about: &Asked, generator: &mut Generator) -> Vec<Vec<Expr>> {
        let mut wide = 0;
        let mut links = vec![Vec::new(); self.names.len()];
        for (i, name) in self.names.iter().enumerate().skip(1) {
            let Some(other) = self.names.get(generator.index(i)) else { continue };
            let field = about.fields.get(generator.index(about.fields.len()));
            let link = match field.filter(|_| wide < WIDE_MAX && generator.chance(350_000)) {
                Some(field) => {
                    wide += usize::from(field.name != ID);
                    of(other, &field.name).binary(Operator::Eq, of(name, &field.name))
                }
                None if generator.chance(150_000) => {
                    let next = of(other, ID).binary(Operator::Add, Expr::literal(1i64));
                    next.binary(Operator::Eq, of(name, ID))
                }
                None => of(other, ID).binary(Operator::Eq, of(name, ID)),
            };
            links.get_mut(i).into_iter().for_each(|all: &mut Vec<Expr>| all.push(link.clone()));
        }
        links
    }

    fn any(&self, generator: &mut Generator) -> &str {
        self.names.get(generator.index(self.names.len())).map_or("", String::as_str)
    }

    /// A condition on one or two tables.
    fn draw_condition(&self, about: &Asked, generator: &mut Generator) -> Expr {
        let (a, b) = (self.any(generator), self.any(generator));
        match generator.below(5) {
            0 => of(a, ID).binary(Operator::Lte, of(b, ID)),
            1 => Expr::Apply(Operator::IsNull, vec![of(a, ID)]),
            _ => draw_leaf(&fields_of(about, a), generator),
        }
    }

    /// One of two conditions, which have something in common now and then.
    fn draw_either(&self, about: &Asked, generator: &mut Generator) -> Expr {
        let (a, b) = (self.any(generator), self.any(generator));
        let common = generator.chance(400_000).then(|| self.draw_condition(about, generator));
        let branch = |generator: &mut Generator| {
            let own = [a, b].map(|name| match generator.chance(300_000) {
                true => Expr::Apply(Operator::IsNull, vec![of(name, ID)]),
                false => draw_leaf(&fields_of(about, name), generator),
            });
            // default: it has two members at least
            all(common.iter().cloned().chain(own).collect()).unwrap_or(Expr::literal(true))
        };
        branch(generator).or(branch(generator))
    }
}

fn of(table: &str, field: &str) -> Expr {
    Expr::field(format!("{table}.{field}"))
}

fn fields_of(about: &Asked, table: &str) -> Vec<Field> {
    let of_table =
        |field: &Field| Field { name: format!("{table}.{}", field.name), ..field.clone() };
    about.fields.iter().map(of_table).collect()
}

fn all(mut conditions: Vec<Expr>) -> Option<Expr> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expr::Apply(Operator::And, conditions)),
    }
}
