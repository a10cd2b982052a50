//! A case: a table, its indexes, what happens to its rows, and what is asked.

use esker::{DataType, IndexKind, Labels, NewIndex, Schema, Value};
use esker_query::model::{Change, Delete, Expr, Function, Operator, Update};
use esker_vfs::sim::Generator;

use super::question::{self, Asked, Condition, Question};
use super::rollup::{self, KeptGroups};
use super::{Layout, value};

/// The table.
pub(super) const TABLE: &str = "t";
/// The field that tells rows apart.
pub(super) const ID: &str = "id";

/// A field and the values that it takes.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
    pub(super) pool: Vec<Value>,
    /// What is computed of the field, where it is not asked about itself.
    pub(super) computed: Option<Computed>,
}

/// What an index computes of a field.
#[derive(Clone, Debug)]
pub(super) enum Computed {
    Lower,
    Length,
    IsNull,
    /// The value, or another one for NULL.
    Coalesce(Value),
}

impl Field {
    /// What a question asks about.
    pub(super) fn operand(&self) -> Expr {
        let field = Expr::field(&self.name);
        match &self.computed {
            None => field,
            Some(Computed::Lower) => Expr::call(Function::Lower, [field]),
            Some(Computed::Length) => Expr::call(Function::Length, [field]),
            Some(Computed::IsNull) => Expr::Apply(Operator::IsNull, vec![field]),
            Some(Computed::Coalesce(other)) => {
                Expr::call(Function::Coalesce, [field, Expr::literal(other.clone())])
            }
        }
    }

    /// Whether it is a field of the table, not something computed of one.
    pub(super) fn is_plain(&self) -> bool {
        self.computed.is_none()
    }

    /// Something computed of the field, with the values that this may have.
    fn draw_computed(&self, generator: &mut Generator) -> Self {
        let texts = |change: fn(&str) -> Value| {
            let value = |value: &Value| match value {
                Value::Text(text) => change(text),
                other => other.clone(),
            };
            self.pool.iter().map(value).collect()
        };
        let is_text = self.data_type == DataType::Text;
        let (computed, data_type, pool) = match generator.below(4) {
            0 if is_text => {
                (Computed::Lower, DataType::Text, texts(|text| Value::Text(text.to_lowercase())))
            }
            1 if is_text => (Computed::Length, DataType::I64, (0..6).map(Value::Int).collect()),
            2 => {
                let other = value::draw(self.data_type, generator);
                (Computed::Coalesce(other), self.data_type, self.pool.clone())
            }
            _ => (Computed::IsNull, DataType::Bool, [true, false].map(Value::Bool).to_vec()),
        };
        let nullable = is_text && self.nullable;
        Self { name: self.name.clone(), data_type, nullable, pool, computed: Some(computed) }
    }

    /// What is asked about: the field, or the texts at the end of a path into its documents.
    fn asked(&self) -> Self {
        if self.data_type != DataType::Json {
            return self.clone();
        }
        let name = format!("{}.{}", self.name, value::PATH.join("."));
        let pool = self.pool.iter().map(value::text_at_path).collect();
        Self { name, data_type: DataType::Text, nullable: true, pool, computed: None }
    }
}

/// What happens to the rows.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Insert(Vec<Vec<Value>>),
    Change(Box<Change>),
    /// The older snapshot is taken.
    Remember,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    pub(super) seed: u64,
    of_rollups: bool,
    /// How many times more rows it has than the smallest: with few, no look-up is worth it.
    pub(super) scale: usize,
    /// The names of the key fields; none where the key is generated.
    key: Vec<String>,
    /// Whether rows lie by key when they are sealed.
    is_clustered: bool,
    /// The field with the times, where the table is a stream: rows lie by it when they are sealed.
    time: Option<String>,
    pub(super) fields: Vec<Field>,
    indexes: Vec<NewIndex>,
    /// Which rows the partial ones among them have.
    conditions: Vec<Condition>,
    pub(super) steps: Vec<Step>,
    pub(super) questions: Vec<Question>,
    pub(super) rollups: Vec<KeptGroups>,
    /// Groupings that these may answer.
    pub(super) groupings: Vec<Question>,
}

impl Case {
    /// The case of a seed; `of_rollups`: about those, mostly.
    #[must_use]
    pub fn draw(seed: u64, of_rollups: bool) -> Self {
        let generator = &mut Generator::new(seed, 30);
        let scale = generator.pick([1, 8, 60, 300]);
        let id = Field {
            name: ID.to_owned(),
            data_type: DataType::I64,
            nullable: false,
            pool: (0..40 * i64::try_from(scale).unwrap_or(1)).map(Value::Int).collect(),
            computed: None,
        };
        let mut fields = vec![id];
        for number in 0..1 + generator.index(5) {
            fields.push(draw_field(number, scale, generator));
        }
        let key = draw_key(&fields, generator);
        let is_clustered = !key.is_empty() && generator.chance(300_000);
        let time = draw_time(&mut fields, &key, &mut Generator::new(seed, 32));
        let fixed: Vec<String> = key.iter().chain(&time).cloned().collect();
        let steps = draw_steps(&fields, &fixed, scale, generator);
        let indexes = (0..1 + generator.index(4)).map(|_| draw_index(&fields, generator));
        let mut indexes: Vec<NewIndex> = indexes.collect();
        let mut more = More::default();
        for (number, index) in indexes.iter_mut().enumerate() {
            index.name = format!("i{number}");
            index.unique &= time.is_none();
            more.add_to(index, &fields, generator);
        }
        // Questions are about what has an index, mostly.
        let first = |index: &NewIndex| index.fields.first().map(|(name, _)| name.clone());
        let indexed: Vec<String> = indexes.iter().filter_map(first).collect();
        let is_indexed = |field: &&Field| indexed.contains(&field.name);
        let mut asked: Vec<Field> = fields.iter().map(Field::asked).collect();
        let is_often = |field: &&Field| is_indexed(field) || Some(&field.name) == time.as_ref();
        let often: Vec<Field> = asked.iter().filter(is_often).cloned().collect();
        (0..8).for_each(|_| asked.extend_from_slice(&often));
        (0..6).for_each(|_| asked.extend_from_slice(&more.computed));
        let predicates = if of_rollups {
            1
        } else if scale < 100 {
            6
        } else {
            3
        };
        let keyed = fields.iter().filter(|field| key.contains(&field.name)).cloned().collect();
        let conditions = more.conditions;
        let asked = Asked { fields: asked, key: keyed, conditions: conditions.clone() };
        let joins = &mut Generator::new(seed, 31);
        let questions = (0..predicates).flat_map(|_| question::draw(&asked, generator, joins));
        let questions = questions.collect();
        let kept = &mut Generator::new(seed, 33);
        let rollups = rollup::draw(&fields, of_rollups, kept);
        let each = if of_rollups { 12 } else { 4 };
        let groupings = rollups.iter().flat_map(|rollup| rollup.questions(each, kept)).collect();
        Self {
            seed,
            of_rollups,
            scale,
            key,
            is_clustered,
            time,
            fields,
            indexes,
            conditions,
            steps,
            questions,
            rollups,
            groupings,
        }
    }

    /// All that is asked.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().chain(&self.groupings)
    }

    pub(super) fn schema(&self) -> esker::Result<Schema> {
        let mut builder = Schema::builder();
        for field in &self.fields {
            builder = match field.nullable {
                true => builder.nullable(&field.name, field.data_type),
                false => builder.field(&field.name, field.data_type),
            };
            if field.data_type == DataType::Enum {
                builder = builder.labels(Labels::new(value::LABELS)?);
            }
        }
        builder = builder.primary_key(&self.key);
        if self.is_clustered {
            builder = builder.ordered_by_key();
        }
        if let Some(time) = &self.time {
            builder = builder.stream(time, []);
        }
        Ok(builder.build()?)
    }

    /// All, most of them alone, and sometimes none, in an order that is drawn. Open rows, which no
    /// index holds, come without any, and sometimes with all, too.
    pub(super) fn index_sets(&self, layout: Layout, generator: &mut Generator) -> Vec<Vec<usize>> {
        let count = self.indexes.len();
        let all: Vec<usize> = (0..count).collect();
        if layout == Layout::Scanned {
            return vec![Vec::new()];
        }
        if layout == Layout::Open {
            let more = generator.chance(300_000).then_some(all);
            return std::iter::once(Vec::new()).chain(more).collect();
        }
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for one in 0..count {
            sets.extend(generator.chance(600_000).then(|| vec![one]));
        }
        sets.push(all);
        sets.extend(generator.chance(150_000).then(Vec::new));
        for at in (1..sets.len()).rev() {
            sets.swap(at, generator.index(at + 1));
        }
        sets
    }

    pub(super) fn index(&self, number: usize) -> Option<&NewIndex> {
        self.indexes.get(number)
    }

    pub(super) fn index_count(&self) -> usize {
        self.indexes.len()
    }

    pub(super) fn index_names(&self, numbers: &[usize]) -> String {
        let text = |number: &usize| {
            let index = self.indexes.get(*number)?;
            let field = |(name, descending): &(String, bool)| {
                format!("{name}{}", if *descending { " desc" } else { "" })
            };
            let kind = match index.kind {
                IndexKind::Ordered => String::new(),
                kind => format!("{} ", kind.name()),
            };
            let unique = if index.unique { "unique " } else { "" };
            let filter = self.conditions.iter().find(|partial| partial.index == index.name);
            let filter = filter.map(|partial| format!(" where {}", partial.condition));
            let filter = filter.unwrap_or_default();
            Some(format!(
                "{kind}{unique}({}){filter}",
                index.fields.iter().map(field).collect::<Vec<_>>().join(", ")
            ))
        };
        let names: Vec<String> = numbers.iter().filter_map(text).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    }

    /// An error with where it was, and how to see it again.
    pub(super) fn at(&self, layout: Layout, what: &impl std::fmt::Display) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|f| format!("{} {}", f.name, f.data_type)).collect();
        let key = match self.key.join(", ") {
            key if key.is_empty() && self.time.is_some() => "that of a stream".to_owned(),
            key if key.is_empty() => "generated".to_owned(),
            key if self.is_clustered => format!("{key}, in its order"),
            key => key,
        };
        let (seed, fields) = (self.seed, fields.join(", "));
        let rollups = if self.of_rollups { "--rollups " } else { "" };
        format!(
            "seed {seed}, rows {layout:?}, fields {fields}, key {key}; {what}\n\
             again: cargo xtask plans {rollups}--cases 1 --seed {seed}"
        )
    }
}

fn draw_field(number: usize, scale: usize, generator: &mut Generator) -> Field {
    let data_type = generator.pick(value::TYPES);
    let more = if generator.chance(750_000) { scale } else { 1 };
    let values = 1 + generator.index(14 * more);
    Field {
        name: format!("f{number}"),
        data_type,
        nullable: generator.chance(750_000),
        pool: (0..values).map(|_| value::draw(data_type, generator)).collect(),
        computed: None,
    }
}

/// No field, the one that tells rows apart, or that and another before or behind it.
fn draw_key(fields: &[Field], generator: &mut Generator) -> Vec<String> {
    if !generator.chance(700_000) {
        return Vec::new();
    }
    let mut key = vec![ID.to_owned()];
    let may_be = |field: &&Field| {
        !field.nullable && !matches!(field.data_type, DataType::Json | DataType::Interval)
    };
    let other = fields.iter().skip(1).find(may_be);
    if let Some(other) = other.filter(|_| generator.chance(600_000)) {
        key.insert(generator.index(2), other.name.clone());
    }
    key
}

/// A field with the times of a stream, where the key is generated.
fn draw_time(fields: &mut [Field], key: &[String], generator: &mut Generator) -> Option<String> {
    let field = fields.get_mut(1).filter(|_| key.is_empty() && generator.chance(600_000))?;
    (field.data_type, field.nullable) = (DataType::Timestamp, false);
    let values = field.pool.len();
    field.pool = (0..values).map(|_| value::draw(DataType::Timestamp, generator)).collect();
    Some(field.name.clone())
}

fn draw_index(fields: &[Field], generator: &mut Generator) -> NewIndex {
    let mut chosen: Vec<(String, bool)> = Vec::new();
    for _ in 0..1 + generator.index(3) {
        let field = fields.get(generator.index(fields.len()));
        let field = field.filter(|field| field.data_type != DataType::Interval);
        let Some(name) = field.map(|field| field.asked().name) else { continue };
        if chosen.iter().all(|(known, _)| *known != name) {
            chosen.push((name, generator.chance(300_000)));
        }
    }
    if chosen.is_empty() {
        chosen.push((ID.to_owned(), false));
    }
    let is_text = |name: &str| {
        fields.iter().any(|field| field.name == name && field.data_type == DataType::Text)
    };
    let is_field = |name: &str| fields.iter().any(|field| field.name == name);
    match chosen.first_mut() {
        Some((name, descending)) if is_text(name) && generator.chance(600_000) => {
            *descending = false;
            chosen.truncate(1);
            NewIndex::on(chosen).using(IndexKind::Trigram)
        }
        Some((name, descending)) if is_field(name) && generator.chance(250_000) => {
            *descending = false;
            chosen.truncate(1);
            NewIndex::on(chosen).using(IndexKind::Bitmap)
        }
        // The field tells rows apart, and a unique index has no paths.
        Some((name, _)) if name == ID && generator.chance(500_000) => {
            chosen.retain(|(name, _)| is_field(name));
            NewIndex::on(chosen).unique()
        }
        _ => NewIndex::on(chosen),
    }
}

/// What indexes have beside fields.
#[derive(Default)]
struct More {
    computed: Vec<Field>,
    /// Those of the rows that partial indexes have, with the field of each.
    conditions: Vec<Condition>,
}

impl More {
    /// Some ordered indexes order by something computed, too, and some have a part of the rows.
    fn add_to(&mut self, index: &mut NewIndex, fields: &[Field], generator: &mut Generator) {
        let plain = |field: &&Field| {
            !matches!(field.data_type, DataType::Json | DataType::Interval | DataType::Enum)
        };
        let plain: Vec<Field> = fields.iter().filter(plain).cloned().collect();
        let is_ordered = index.kind == IndexKind::Ordered;
        if is_ordered && !index.unique && generator.chance(350_000) {
            let of = plain.get(generator.index(plain.len()));
            let computed = of.map(|field| field.draw_computed(generator));
            let expression = computed.as_ref().map(|c| esker::index_expression(&c.operand()));
            if let (Some(computed), Some(Ok(expression))) = (computed, expression) {
                if generator.chance(500_000) {
                    index.fields.clear();
                }
                let written = computed.operand().to_string();
                *index = index.clone().expression(written, expression);
                self.computed.push(computed);
            }
        }
        if is_ordered && generator.chance(350_000) {
            let of = plain.get(generator.index(plain.len())).cloned();
            if let Some(field) = of {
                let condition = question::draw_leaf(std::slice::from_ref(&field), generator);
                let Ok(filter) = esker::index_expression(&condition) else { return };
                *index = index.clone().filter(filter);
                let index = index.name.clone();
                self.conditions.push(Condition { index, condition, field });
            }
        }
    }
}

/// A value of a field: one of its own, or NULL.
fn draw_value(field: &Field, generator: &mut Generator) -> Value {
    if field.nullable && generator.chance(150_000) {
        return Value::Null;
    }
    field.pool.get(generator.index(field.pool.len())).cloned().unwrap_or_default()
}

fn draw_steps(
    fields: &[Field],
    key: &[String],
    scale: usize,
    generator: &mut Generator,
) -> Vec<Step> {
    let mut next = 0;
    let mut steps = Vec::new();
    let count = 3 + generator.index(5);
    let remember = 1 + generator.index(count - 1);
    for number in 0..count {
        if number == remember {
            steps.push(Step::Remember);
        }
        if number == 0 || generator.chance(500_000) {
            let rows = 5 + generator.index(40 * scale);
            let row = |_| {
                next += 1;
                let others = fields.iter().skip(1).map(|field| draw_value(field, generator));
                std::iter::once(Value::Int(next)).chain(others).collect()
            };
            steps.push(Step::Insert((0..rows).map(row).collect()));
        } else {
            steps.push(Step::Change(Box::new(draw_change(fields, key, next, generator))));
        }
    }
    steps
}

/// An update or a delete of a range of rows.
fn draw_change(fields: &[Field], key: &[String], newest: i64, generator: &mut Generator) -> Change {
    let most = newest.unsigned_abs();
    let from = i64::try_from(generator.below(most)).unwrap_or_default();
    let until = from + i64::try_from(generator.below(most / 3 + 2)).unwrap_or_default();
    let at_least = Expr::field(ID).binary(Operator::Gte, Expr::literal(from));
    let below = Expr::field(ID).binary(Operator::Lt, Expr::literal(until));
    let (table, filter) = (TABLE.to_owned(), Some(at_least.and(below)));
    let field = fields.iter().skip(1).nth(generator.index(fields.len() - 1));
    match field.filter(|field| !key.contains(&field.name)) {
        Some(field) if generator.chance(550_000) => {
            let value = Expr::literal(draw_value(field, generator));
            let set = vec![(field.name.clone(), value)];
            Change::Update(Update { table, set, filter, ..Update::default() })
        }
        _ => Change::Delete(Delete { table, filter, ..Delete::default() }),
    }
}
