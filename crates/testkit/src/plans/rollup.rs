//! Rollups of the table of a case, and groupings that they may answer.

use esker::DataType;
use esker_query::model::{Aggregate, Expr, Function, Operator, Query};
use esker_vfs::sim::Generator;

use super::case::{Field, ID, TABLE};
use super::question::{Question, draw_leaf};

/// The units to which times are cut, each made of whole steps of the one before.
const UNITS: [&str; 5] = ["minute", "hour", "day", "month", "year"];

/// A rollup of the table.
#[derive(Clone, Debug)]
pub(super) struct KeptGroups {
    pub(super) name: String,
    keys: Vec<Key>,
    operands: Vec<Field>,
    filter: Option<Expr>,
}

/// What rows are grouped by.
#[derive(Clone, Debug)]
struct Key {
    field: Field,
    /// The place of the unit to which a time is cut.
    unit: Option<usize>,
}

impl Key {
    fn expr(&self) -> Expr {
        let field = Expr::field(&self.field.name);
        let unit = self.unit.and_then(|unit| UNITS.get(unit));
        match unit {
            None => field,
            Some(unit) => Expr::call(Function::DateTrunc, [Expr::literal(*unit), field]),
        }
    }

    /// The same, or the time cut to longer steps.
    fn asked(&self, generator: &mut Generator) -> Self {
        let longer = |unit: usize| unit + generator.index(UNITS.len() - unit);
        Self { unit: self.unit.map(longer), ..self.clone() }
    }
}

/// A few rollups.
pub(super) fn draw(
    fields: &[Field],
    at_least_one: bool,
    generator: &mut Generator,
) -> Vec<KeptGroups> {
    let count = generator.pick([0, 1, 1, 2]).max(usize::from(at_least_one));
    (0..count).map(|number| draw_one(number, fields, generator)).collect()
}

fn draw_one(number: usize, fields: &[Field], generator: &mut Generator) -> KeptGroups {
    let has_order = |field: &&Field| {
        let data_type = field.data_type;
        let is_other = matches!(data_type, DataType::Json | DataType::Interval | DataType::List(_));
        field.is_plain() && !is_other
    };
    let may_be: Vec<&Field> = fields.iter().filter(has_order).collect();
    let mut keys: Vec<Key> = Vec::new();
    for _ in 0..1 + generator.index(3) {
        let Some(field) = may_be.get(generator.index(may_be.len())) else { continue };
        if keys.iter().any(|key| key.field.name == field.name) {
            continue;
        }
        let is_time = field.data_type == DataType::Timestamp && generator.chance(700_000);
        let unit = is_time.then(|| generator.index(UNITS.len()));
        keys.push(Key { field: (*field).clone(), unit });
    }
    let mut operands: Vec<Field> = Vec::new();
    for _ in 0..generator.index(4) {
        let Some(field) = may_be.get(generator.index(may_be.len())) else { continue };
        if operands.iter().all(|known| known.name != field.name) {
            operands.push((*field).clone());
        }
    }
    let plain: Vec<Field> = may_be.iter().map(|field| (*field).clone()).collect();
    let filter = generator.chance(300_000).then(|| draw_leaf(&plain, generator));
    KeptGroups { name: format!("r{number}"), keys, operands, filter }
}

fn aggregates(field: &Field) -> Vec<Aggregate> {
    let is_summed = field.data_type.is_numeric() && !field.data_type.is_float();
    let sums = [Aggregate::Sum, Aggregate::Avg];
    let all = [Aggregate::Count, Aggregate::Min, Aggregate::Max];
    all.into_iter().chain(sums.into_iter().filter(|_| is_summed)).collect()
}

impl KeptGroups {
    /// The query of its view.
    pub(super) fn query(&self) -> Query {
        let mut query = Query::table(TABLE);
        query.filter.clone_from(&self.filter);
        query.group_by = self.keys.iter().map(Key::expr).collect();
        self.keys.iter().for_each(|key| _ = query.select(key.expr()));
        query.select(Expr::count());
        for field in &self.operands {
            for function in aggregates(field) {
                query.select(Expr::aggregate(function, Expr::field(&field.name)));
            }
        }
        query
    }

    /// Groupings by some of its keys.
    pub(super) fn questions(&self, count: usize, generator: &mut Generator) -> Vec<Question> {
        (0..count).map(|_| self.question(generator)).collect()
    }

    fn question(&self, generator: &mut Generator) -> Question {
        let mut query = Query::table(TABLE);
        for key in &self.keys {
            if generator.chance(650_000) {
                let key = key.asked(generator).expr();
                query.select(key.clone());
                query.group_by.push(key);
            }
        }
        query.select(Expr::count());
        for field in &self.operands {
            for function in aggregates(field) {
                if generator.chance(400_000) {
                    query.select(Expr::aggregate(function, Expr::field(&field.name)));
                }
            }
        }
        if let Some(key) = self.keys.first().filter(|_| generator.chance(200_000)) {
            query.select(Expr::aggregate(Aggregate::Max, key.expr()));
        }
        if generator.chance(50_000) {
            query.select(Expr::aggregate(Aggregate::Max, Expr::field(ID)));
        }
        let fields: Vec<Field> = self.keys.iter().map(|key| key.field.clone()).collect();
        let mut filter = self.filter.clone();
        for _ in 0..generator.pick([0, 0, 1, 2]) {
            let leaf = self.condition(&fields, generator);
            filter = Some(match filter {
                None => leaf,
                Some(filter) => filter.and(leaf),
            });
        }
        query.filter = filter;
        Question { query, is_ordered: false }
    }

    /// A condition on a field of a key: where it is a time, often a bound that a step has, too.
    fn condition(&self, fields: &[Field], generator: &mut Generator) -> Expr {
        let Some(key) = self.keys.get(generator.index(self.keys.len())) else {
            return Expr::literal(true);
        };
        let value = key.field.pool.get(generator.index(key.field.pool.len())).cloned();
        match (key.unit, value) {
            (Some(_), Some(value)) if generator.chance(700_000) => {
                let of = Key { field: key.field.clone(), unit: key.unit };
                let unit = of.unit.and_then(|unit| UNITS.get(unit)).copied().unwrap_or("day");
                let operands = [Expr::literal(unit), Expr::literal(value)];
                let bound = Expr::call(Function::DateTrunc, operands);
                let operator = generator.pick([
                    Operator::Gte,
                    Operator::Lt,
                    Operator::Gt,
                    Operator::Lte,
                    Operator::Eq,
                ]);
                Expr::field(&key.field.name).binary(operator, bound)
            }
            _ => draw_leaf(fields, generator),
        }
    }
}
