//! Secondary indexes, as a schema declares them.
//!
//! A *trigram* index finds the texts that have some part (see [`crate::grams`]). A *bitmap* index
//! has, for each of the few values of a field, the rows that have it.
//!
//! A *unique* index is a constraint, too: no two rows have the same values in its fields, unless
//! one of these is NULL.
//!
//! A part of an ordered index may be an expression over the row in place of a field, and it may
//! have the rows only for which a condition is true: see [`RowExpression`].
//!
//! An index is part of the schema, so that creating and dropping one is a change of the schema: one
//! commit, logged, recovered, and seen by snapshots as of their commit. What makes it fast, the
//! sorted runs beside each segment, is derived from the segments: a run that is missing is built
//! again, and a reader that finds none scans.

use std::sync::Arc;

use super::{Field, FieldId, RollupOperand, RowExpression, Schema, validate_name};
use crate::codec::{Reader, Writer};
use crate::comment::expect_short;
use crate::json::{DEPTH_MAX, Json, Kind};
use crate::suggest::near_or_all;
use crate::{DataType, Error, Result, ValueRef, with_article};

/// The most indexes of a table.
pub const INDEXES_MAX: usize = 256;

/// The most fields of an index.
pub const INDEX_FIELDS_MAX: usize = 16;

/// The greatest number of an index: a table may have had so many, the dropped ones included.
pub const INDEX_IDS_MAX: u32 = (1 << 15) - 1;

/// How an index finds rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexKind {
    /// The rows in the order of the fields.
    #[default]
    Ordered,
    /// The rows that have some three bytes next to each other in a text: what contains a part.
    Trigram,
    /// The rows of each value of a field that has few.
    Bitmap,
    /// No rows: partial aggregates of their groups, which answer what a rollup shows.
    Rollup,
}

impl IndexKind {
    const fn code(self) -> u8 {
        match self {
            Self::Ordered => 0,
            Self::Trigram => 1,
            Self::Bitmap => 2,
            Self::Rollup => 3,
        }
    }

    /// Every kind that finds rows, which users create as indexes.
    pub const ALL: [Self; 3] = [Self::Ordered, Self::Trigram, Self::Bitmap];

    fn of_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().chain([Self::Rollup]).find(|known| known.code() == code)
    }

    /// The name by which SQL has it: `USING trigram`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::Trigram => "trigram",
            Self::Bitmap => "bitmap",
            Self::Rollup => "rollup",
        }
    }

    /// The kind of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name))
    }
}

/// The bit of an index that is a constraint, and of one that has some rows only.
const FLAG_UNIQUE: u8 = 1;
const FLAG_FILTERED: u8 = 2;
/// Its comment follows: from version 16 of the log on.
const FLAG_COMMENTED: u8 = 4;

/// The bits of a field of an index.
const FIELD_DESCENDING: u8 = 1;
const FIELD_HAS_PATH: u8 = 2;
const FIELD_IS_COMPUTED: u8 = 4;

/// The number of an index within its table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

/// What an index orders by: a field, a part of its documents, or an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexField {
    /// The field; of an expression [`Index::computed_id`], which no field has.
    pub field: FieldId,
    /// Names that lead into its documents, to a text; none for the field itself.
    pub path: Vec<String>,
    /// What is computed of the row in place of a field.
    pub expression: Option<Arc<RowExpression>>,
    /// The greatest value comes first.
    pub descending: bool,
}

impl IndexField {
    /// True when it is a field: no path into one, and no expression.
    #[must_use]
    pub fn is_field(&self) -> bool {
        self.path.is_empty() && self.expression.is_none()
    }

    /// What a unique index compares of a value of the field: the value, or what the path leads to
    /// in it. Of JSON that is the text of a string, a number as it is written, `true` or `false`,
    /// and the stored form of anything that has parts; NULL where there is nothing, or null.
    #[must_use]
    pub fn compared<'a>(&self, value: ValueRef<'a>) -> ValueRef<'a> {
        let document = match value.as_bytes() {
            _ if self.path.is_empty() => return value,
            None => return ValueRef::Null,
            Some(bytes) => Json::document(bytes),
        };
        match self.path.iter().try_fold(document, |json, name| json.get(name)) {
            None => ValueRef::Null,
            Some(found) => match found.kind() {
                Kind::Null => ValueRef::Null,
                Kind::Bool(true) => ValueRef::Text("true"),
                Kind::Bool(false) => ValueRef::Text("false"),
                Kind::Number(written) => ValueRef::Text(written),
                Kind::String(text) => ValueRef::Text(text),
                Kind::Array(_) | Kind::Object(_) => ValueRef::Bytes(found.stored()),
            },
        }
    }
}

/// An ordered index: the rows of a table in the order of some fields, NULL after every value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its number; given out.
    pub id: IndexId,
    /// Its name, unique in the table.
    pub name: String,
    /// How it finds rows.
    pub kind: IndexKind,
    /// No two rows have the same values in its fields, unless one of these is NULL.
    pub unique: bool,
    /// By what rows are ordered: 1 to [`INDEX_FIELDS_MAX`] fields.
    pub fields: Vec<IndexField>,
    /// Rows for which this is not true have no entries.
    pub filter: Option<Arc<RowExpression>>,
    /// Of a rollup: the fields that are aggregated, each once.
    pub operands: Vec<RollupOperand>,
    /// What its users say of it.
    pub comment: Option<Arc<str>>,
}

/// An index to be: fields by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIndex {
    /// Its name.
    pub name: String,
    /// How it finds rows.
    pub kind: IndexKind,
    /// Whether no two rows may have the same values in its fields, unless one of these is NULL.
    pub unique: bool,
    /// By what rows are ordered: names, and whether the greatest value comes first. What follows
    /// the name of a JSON field and a point is a path into its documents: `doc.customer.city`.
    pub fields: Vec<(String, bool)>,
    /// What is computed in place of some of the fields, whose names are how it is written then.
    pub expressions: Vec<PlacedExpression>,
    /// Rows for which this is not true are not in it.
    pub filter: Option<RowExpression>,
}

/// What an index to be computes in the place of one of its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedExpression {
    /// The place among the fields, from 0.
    pub place: usize,
    /// The expression.
    pub expression: RowExpression,
}

impl NewIndex {
    /// An index on some fields, the least value first.
    ///
    /// ```
    /// let by_city = esker_format::schema::NewIndex::new("by_city", ["city", "name"]);
    /// assert_eq!(by_city.fields[1], ("name".to_owned(), false));
    /// ```
    #[must_use]
    pub fn new<S: Into<String>>(
        name: impl Into<String>,
        fields: impl IntoIterator<Item = S>,
    ) -> Self {
        let fields = fields.into_iter().map(|field| (field.into(), false)).collect();
        Self { name: name.into(), ..Self::on(fields) }
    }

    /// An index on some fields, named after them: `by_city_name`.
    ///
    /// ```
    /// use esker_format::schema::NewIndex;
    ///
    /// let fields = vec![("city".to_owned(), false), ("age".to_owned(), true)];
    /// assert_eq!(NewIndex::on(fields).name, "by_city_age");
    /// ```
    #[must_use]
    pub fn on(fields: Vec<(String, bool)>) -> Self {
        let names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let name = format!("by_{}", names.join("_").replace('.', "_"));
        let (kind, expressions) = (IndexKind::Ordered, Vec::new());
        Self { name, kind, unique: false, fields, expressions, filter: None }
    }

    /// The same by another name.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The same with an expression behind its fields, as it is written, the least value first.
    #[must_use]
    pub fn expression(mut self, written: impl Into<String>, expression: RowExpression) -> Self {
        let place = self.fields.len();
        self.fields.push((written.into(), false));
        self.expressions.push(PlacedExpression { place, expression });
        self
    }

    /// The same with the rows only for which a condition is true. Where it is unique, no two of
    /// these have the same values.
    #[must_use]
    pub fn filter(self, condition: RowExpression) -> Self {
        Self { filter: Some(condition), ..self }
    }

    /// Whether it computes anything, or leaves rows out.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.filter.is_some() || !self.expressions.is_empty()
    }

    /// Its expressions, and its condition.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut RowExpression> {
        let parts = self.expressions.iter_mut().map(|placed| &mut placed.expression);
        parts.chain(self.filter.as_mut())
    }

    /// The same, as a constraint: no two rows have the same values in its fields.
    ///
    /// ```
    /// use esker_format::schema::NewIndex;
    ///
    /// assert!(NewIndex::new("by_email", ["email"]).unique().unique);
    /// ```
    #[must_use]
    pub fn unique(self) -> Self {
        Self { unique: true, ..self }
    }

    /// The same, of another kind.
    ///
    /// ```
    /// use esker_format::schema::{IndexKind, NewIndex};
    ///
    /// let words = NewIndex::new("words", ["title"]).using(IndexKind::Trigram);
    /// assert_eq!(words.kind.name(), "trigram");
    /// ```
    #[must_use]
    pub fn using(self, kind: IndexKind) -> Self {
        Self { kind, ..self }
    }
}

/// Why no index orders rows by values of a type; `None` where one does.
pub(super) fn refused_order(data_type: DataType) -> Option<String> {
    let why = match data_type {
        DataType::Interval => "equal intervals need not be the same, so that no index is of them",
        DataType::Json => "json has no order",
        _ => return None,
    };
    Some(why.to_owned())
}

impl Index {
    /// Whether it is on a field, or reads one to compute something.
    #[must_use]
    pub fn needs(&self, field: FieldId) -> bool {
        self.fields.iter().any(|part| part.field == field)
            || self.operands.iter().any(|operand| operand.field == field)
            || self.expressions().any(|expression| expression.reads.contains(&field))
    }

    /// A path leads into JSON, and has an order only.
    fn refuse_path(&self, field: &Field, path: &[String]) -> Result<()> {
        let (name, field_name, data_type) = (&self.name, &field.name, field.data_type);
        let refused = match self.kind {
            _ if data_type != DataType::Json => {
                format!("a path leads into json, and field {field_name:?} is {data_type}")
            }
            _ if path.len() > DEPTH_MAX => {
                format!("a path of at most {DEPTH_MAX} names, found {}", path.len())
            }
            _ if path.iter().any(|step| step.contains('.')) => {
                format!("a path of names without points, found {path:?}")
            }
            IndexKind::Ordered => return Ok(()),
            kind => format!(
                "{} index is on a field, not on a path into json, {field_name}.{}; an ordered \
                 index can be on it",
                with_article(kind.name()),
                path.join(".")
            ),
        };
        Err(Error::invalid(format!("index {name:?}: {refused}")))
    }

    /// Trigrams are those of one text, bitmaps those of one field, and neither has an order.
    fn refuse_ordered(&self, field: &Field) -> Result<()> {
        let (name, field_name, data_type) = (&self.name, &field.name, field.data_type);
        let (is_type, expected) = match self.kind {
            IndexKind::Trigram => (data_type == DataType::Text, "one field of text"),
            _ => (data_type != DataType::Json, "one field that is not json"),
        };
        let is_plain = self.fields.iter().all(|field| !field.descending) && !self.unique;
        if is_type && self.fields.len() == 1 && is_plain {
            return Ok(());
        }
        let found = match self.fields.len() {
            1 if !is_type => format!("{field_name:?}, which is {data_type}"),
            1 if self.unique => "a unique one".to_owned(),
            1 => format!("{field_name:?} descending"),
            count => format!("{count} fields"),
        };
        let kind = self.kind.name();
        let message = format!("{kind} index {name:?}: expected {expected}, found {found}");
        Err(Error::invalid(message))
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        out.u32(self.id.0);
        out.text(&self.name);
        out.u8(self.kind.code());
        let filtered = if self.filter.is_some() { FLAG_FILTERED } else { 0 };
        let commented = if self.comment.is_some() { FLAG_COMMENTED } else { 0 };
        out.u8(filtered | commented | if self.unique { FLAG_UNIQUE } else { 0 });
        out.count(self.fields.len());
        for field in &self.fields {
            let has_path = if field.path.is_empty() { 0 } else { FIELD_HAS_PATH };
            let computed = if field.expression.is_some() { FIELD_IS_COMPUTED } else { 0 };
            out.u16(field.field.0);
            out.u8(u8::from(field.descending) | has_path | computed);
            if has_path != 0 {
                out.count(field.path.len());
                field.path.iter().for_each(|step| out.text(step));
            }
            field.expression.iter().for_each(|expression| expression.encode(out));
        }
        self.filter.iter().for_each(|filter| filter.encode(out));
        self.comment.iter().for_each(|comment| out.text(comment));
        if self.is_rollup() {
            RollupOperand::encode_all(&self.operands, out);
        }
    }

    pub(super) fn decode(input: &mut Reader<'_>) -> Result<Self> {
        let (id, name) = (IndexId(input.u32()?), input.text()?.to_owned());
        let (kind, flags) = (input.u8()?, input.u8()?);
        let unknown = || Error::corrupt(format!("index {name:?}: kind {kind}, flags {flags}"));
        let found = IndexKind::of_code(kind);
        let known = FLAG_UNIQUE | FLAG_FILTERED | FLAG_COMMENTED;
        let kind = found.filter(|_| flags & !known == 0).ok_or_else(unknown)?;
        let unique = flags & FLAG_UNIQUE != 0;
        let mut fields = Vec::new();
        for _ in 0..input.count(INDEX_FIELDS_MAX)? {
            let (field, flags) = (FieldId(input.u16()?), input.u8()?);
            if flags & !(FIELD_DESCENDING | FIELD_HAS_PATH | FIELD_IS_COMPUTED) != 0 {
                return Err(Error::corrupt(format!("index {name:?}: field flags {flags}")));
            }
            let (mut path, descending) = (Vec::new(), flags & FIELD_DESCENDING != 0);
            if flags & FIELD_HAS_PATH != 0 {
                for _ in 0..input.count(DEPTH_MAX)? {
                    path.push(input.text()?.to_owned());
                }
            }
            let expression = match flags & FIELD_IS_COMPUTED != 0 {
                true => Some(Arc::new(RowExpression::decode(input)?)),
                false => None,
            };
            fields.push(IndexField { field, path, expression, descending });
        }
        let filter = match flags & FLAG_FILTERED != 0 {
            true => Some(Arc::new(RowExpression::decode(input)?)),
            false => None,
        };
        let comment = match flags & FLAG_COMMENTED != 0 {
            true => Some(input.text()?.into()),
            false => None,
        };
        let operands = match kind {
            IndexKind::Rollup => RollupOperand::decode_all(input)?,
            _ => Vec::new(),
        };
        Ok(Self { id, name, kind, unique, fields, filter, operands, comment })
    }
}

impl Schema {
    /// The indexes, in the order in which they were created, and what is kept of rollups.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    /// The indexes that find rows: those that were created as such.
    pub fn row_indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(|index| !index.is_rollup())
    }

    /// The index of a name.
    ///
    /// # Errors
    /// `InvalidInput` naming the indexes there are.
    pub fn index(&self, name: &str) -> Result<&Index> {
        self.row_indexes().find(|index| index.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.row_indexes().map(|index| index.name.as_str()).collect();
            let near = near_or_all(name, "indexes", names);
            Error::invalid(format!("unknown index {name:?}{near}"))
        })
    }

    /// The indexes that are constraints, in the order in which they were created.
    pub fn unique_indexes(&self) -> impl Iterator<Item = &Index> {
        self.indexes.iter().filter(|index| index.unique)
    }

    /// Whether rows are computed to be tested before they are written: there are checks, or an
    /// index of which something is computed.
    #[must_use]
    pub fn tests_rows(&self) -> bool {
        !self.checks.is_empty() || self.row_indexes().any(Index::is_computed)
    }

    /// True when rows are looked up before they are written: the key is declared, or some index is
    /// unique.
    #[must_use]
    pub fn has_unique_values(&self) -> bool {
        !self.key_positions().is_empty() || self.unique_indexes().next().is_some()
    }

    /// Whether a field is part of a unique index.
    #[must_use]
    pub fn is_unique_field(&self, field: FieldId) -> bool {
        self.unique_indexes().flat_map(|index| &index.fields).any(|part| part.field == field)
    }

    /// May values of a field lie in value files? Those of the key and of unique indexes never do:
    /// they are read to compare them.
    #[must_use]
    pub fn may_have_long_values(&self, field: &Field) -> bool {
        field.data_type.may_be_long()
            && self.key_fields().all(|key| key.id != field.id)
            && !self.is_unique_field(field.id)
    }

    /// The fields of an index as texts: `name`, `name desc`, or `name.step.step`.
    #[must_use]
    pub fn index_fields(&self, index: &Index) -> Vec<String> {
        let text = |field: &IndexField| {
            format!("{}{}", self.place_of(field), if field.descending { " desc" } else { "" })
        };
        index.fields.iter().map(text).collect()
    }

    /// What a part of an index is on: `name`, or `name.step.step`. What is computed has no name.
    #[must_use]
    pub fn place_of(&self, part: &IndexField) -> String {
        // default: `validate_indexes` has refused what is on no field.
        let name = self.field_of(part.field).map_or("?", |field| field.name.as_str());
        let steps = part.path.iter().map(|step| format!(".{step}"));
        format!("{name}{}", steps.collect::<String>())
    }

    /// True when only indexes were changed between two versions of a table's schema: a row of the
    /// one is a row of the other.
    ///
    /// ```
    /// use esker_format::schema::{Alteration, NewIndex};
    /// use esker_format::{DataType, Schema};
    ///
    /// let schema = Schema::builder().field("n", DataType::I32).build()?;
    /// let indexed = schema.alter(&[Alteration::AddIndex(NewIndex::new("by_n", ["n"]))])?;
    /// assert!(indexed.has_same_rows_as(&schema));
    /// # Ok::<(), esker_format::Error>(())
    /// ```
    #[must_use]
    pub fn has_same_rows_as(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || (self.rows_since == other.rows_since && self.rows() == other.rows())
    }

    /// All but the numbers and the indexes. Numbers alone do not tell: of one schema two may be
    /// made with the same version, where a transaction takes back what it made.
    fn rows(&self) -> impl PartialEq + '_ {
        let Self { fields, primary_key, checks, next_field, profile, row_order, expiry, .. } = self;
        let rows = (fields, primary_key, checks, next_field, profile, row_order);
        let others = (&self.references, &self.referrers, self.changes, self.feed);
        (rows, expiry, self.expiry_clock, others)
    }

    pub(super) fn add_index(&mut self, new: &NewIndex) -> Result<()> {
        let mut fields = Vec::new();
        for (place, (name, descending)) in new.fields.iter().enumerate() {
            let computed = new.expressions.iter().find(|placed| placed.place == place);
            let expression = computed.map(|placed| Arc::new(placed.expression.clone()));
            let (field, path) = match expression {
                Some(_) => (Index::computed_id(place), Vec::new()),
                None => self.resolve_path(name)?,
            };
            fields.push(IndexField { field, path, expression, descending: *descending });
        }
        if let Some(lost) = new.expressions.iter().find(|placed| placed.place >= fields.len()) {
            let (name, place) = (&new.name, lost.place);
            let message = format!("index {name:?}: an expression in place {place} of fewer");
            return Err(Error::invalid(message));
        }
        if new.kind == IndexKind::Rollup {
            let message =
                format!("index {:?}: a materialized view makes what is kept of it", new.name);
            return Err(Error::invalid(message));
        }
        let id = self.next_index_id()?;
        let (name, kind, unique) = (new.name.clone(), new.kind, new.unique);
        let (filter, operands) = (new.filter.clone().map(Arc::new), Vec::new());
        self.indexes.push(Index {
            id,
            name,
            kind,
            unique,
            fields,
            filter,
            operands,
            comment: None,
        });
        Ok(())
    }

    /// A number that no index has had.
    pub(super) fn next_index_id(&mut self) -> Result<IndexId> {
        let id = IndexId(self.next_index);
        if self.next_index > INDEX_IDS_MAX {
            let message =
                format!("a table has had at most {INDEX_IDS_MAX} indexes, dropped ones too");
            return Err(Error::invalid(message));
        }
        self.next_index += 1;
        Ok(id)
    }

    /// The field of a name, and the path behind it: a name may have points itself.
    fn resolve_path(&self, name: &str) -> Result<(FieldId, Vec<String>)> {
        let id = |position: usize| match self.fields.get(position) {
            Some(field) => Ok(field.id),
            None => Err(Error::invalid(format!("field {name:?} is number {position} of fewer"))),
        };
        let failed = match self.resolve(name) {
            Ok(position) => return Ok((id(position)?, Vec::new())),
            Err(failed) => failed,
        };
        for (at, point) in name.match_indices('.') {
            let (before, behind) = name.split_at(at);
            if let (Ok(position), Some(path)) = (self.resolve(before), behind.strip_prefix(point)) {
                return Ok((id(position)?, path.split('.').map(str::to_owned).collect()));
            }
        }
        Err(failed)
    }

    pub(super) fn drop_index(&mut self, name: &str) -> Result<()> {
        let id = self.index(name)?.id;
        self.indexes.retain(|index| index.id != id);
        Ok(())
    }

    pub(super) fn comment_on_index(&mut self, name: &str, comment: Option<&str>) -> Result<()> {
        let id = self.index(name)?.id;
        let index = self.indexes.iter_mut().find(|index| index.id == id);
        index.into_iter().for_each(|index| index.comment = comment.map(Arc::from));
        Ok(())
    }

    /// Indexes go with their fields, and with what is read to compute them.
    pub(super) fn drop_indexes_of(&mut self, field: FieldId) {
        self.indexes.retain(|index| !index.needs(field));
    }

    /// Puts what a table has taken in the place of the expressions of an index.
    /// `by` also gets whether it is the filter.
    ///
    /// # Errors
    /// What `by` says.
    pub fn settle_index<E>(
        &mut self,
        id: IndexId,
        by: &dyn Fn(&RowExpression, bool) -> std::result::Result<RowExpression, E>,
    ) -> std::result::Result<(), E> {
        for index in self.indexes.iter_mut().filter(|index| index.id == id) {
            for part in &mut index.fields {
                let settled = part.expression.as_deref().map(|of| by(of, false)).transpose()?;
                part.expression = settled.map(Arc::new);
            }
            let settled = index.filter.as_deref().map(|of| by(of, true)).transpose()?;
            index.filter = settled.map(Arc::new);
        }
        Ok(())
    }

    pub(super) fn validate_indexes(&self) -> Result<()> {
        let count = self.indexes.len();
        if count > INDEXES_MAX {
            return Err(Error::invalid(format!("at most {INDEXES_MAX} indexes, found {count}")));
        }
        let mut names = std::collections::BTreeSet::new();
        for index in &self.indexes {
            let name = &index.name;
            validate_name("index", name)?;
            expect_short(&format!("index {name:?}"), index.comment.as_deref())?;
            // Rollups have the names of their views, which are others than those of indexes.
            if !names.insert((index.is_rollup(), name)) {
                return Err(Error::invalid(format!("index {name:?} exists already")));
            }
            let count = index.fields.len();
            if !(1..=INDEX_FIELDS_MAX).contains(&count) {
                let most = INDEX_FIELDS_MAX;
                let message = format!("index {name:?}: 1 to {most} fields, found {count}");
                return Err(Error::invalid(message));
            }
            index.validate_computed(self)?;
            index.validate_rollup(self)?;
            let mut used = std::collections::BTreeSet::new();
            for field in index.fields.iter().filter(|part| part.expression.is_none()) {
                let Some(found) = self.field_of(field.field) else {
                    let id = field.field.0;
                    return Err(Error::invalid(format!("index {name:?}: no field number {id}")));
                };
                if !used.insert((field.field, &field.path)) {
                    let field = &found.name;
                    let message = format!("field {field:?} is named twice in index {name:?}");
                    return Err(Error::invalid(message));
                }
                refuse_interval(&format_args!("index {name:?}"), found)?;
                match index.kind {
                    _ if !field.path.is_empty() => index.refuse_path(found, &field.path)?,
                    IndexKind::Ordered => refuse_unordered(name, found)?,
                    IndexKind::Trigram | IndexKind::Bitmap => index.refuse_ordered(found)?,
                    IndexKind::Rollup => refuse_unordered(name, found)?,
                }
            }
            if index.id.0 >= self.next_index || index.id.0 > INDEX_IDS_MAX {
                let (id, next) = (index.id.0, self.next_index);
                return Err(Error::invalid(format!("index number {id}, the next is {next}")));
            }
        }
        Ok(())
    }
}

/// Equal intervals need not be the same, so that no key or index is made of them.
pub(super) fn refuse_interval(of: &dyn std::fmt::Display, field: &Field) -> Result<()> {
    if field.data_type == DataType::Interval {
        let name = &field.name;
        let message = format!(
            "field {name:?} of {of} is an interval: no primary key, unique constraint or index \
             has one"
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// JSON has no order that a question could use.
fn refuse_unordered(index: &str, field: &Field) -> Result<()> {
    if field.data_type == DataType::Json {
        let name = &field.name;
        let message = format!(
            "field {name:?} of index {index:?} is json, which has no order; \
             a path into it has: {name}.name"
        );
        return Err(Error::invalid(message));
    }
    Ok(())
}
