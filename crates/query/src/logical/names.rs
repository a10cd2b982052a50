//! What names mean where a query reads several tables.

use std::collections::BTreeSet;

use esker_format::{DataType, Field, Schema};
use esker_vfs::sabotage::Bug;

use crate::bind::scope::position;
use crate::model::{Expr, SelectItem};
use crate::{Error, Result};

/// The tables of a query, with their fields numbered one after another.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    members: Vec<Named>,
    /// Fields of `USING`: the name, and the member whose field is not shown by it.
    merged: Vec<(String, usize)>,
    /// From this member on, names are looked for first: those before are of the outer query.
    inner: usize,
    /// Whether fields go by `table.field` even where there is one table.
    is_full: bool,
}

/// One table.
#[derive(Clone, Debug)]
struct Named {
    name: String,
    /// What its fields are called.
    written: Vec<String>,
    /// Its fields, each by a name of its own: see [`without_twins`].
    schema: Schema,
    /// The number of its first field.
    first: usize,
    /// False for the right side of a semi or anti join, but for its own condition.
    is_shown: bool,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'n> {
    pub(crate) member: usize,
    /// The field's position in its table.
    position: usize,
    /// The path into a field of JSON, with its point; or nothing.
    path: &'n str,
}

impl Names {
    /// # Errors
    /// `InvalidQuery` when two tables have one name.
    pub(crate) fn new(members: Vec<(String, Schema, bool)>) -> Result<Self> {
        let mut named: Vec<Named> = Vec::with_capacity(members.len());
        let mut first = 0;
        for (name, schema, is_shown) in members {
            if named.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                return Err(Error::invalid(format!(
                    "FROM: two tables are called {name:?}; give one another name with AS"
                )));
            }
            let written: Vec<_> = schema.fields().iter().map(|f| f.name.clone()).collect();
            let (fields, schema) = (written.len(), without_twins(schema));
            named.push(Named { name, written, schema, first, is_shown });
            first += fields;
        }
        Ok(Self { members: named, merged: Vec::new(), inner: 0, is_full: false })
    }

    /// The names of a query within another: its own come first.
    pub(crate) fn within(&self, outer: &Self) -> Self {
        let mut members = outer.members.clone();
        let start = outer.field_count();
        for member in &mut members {
            let is_hidden = self.members.iter().any(|m| m.name.eq_ignore_ascii_case(&member.name));
            if is_hidden {
                member.name = format!("outer {}", member.name);
            }
        }
        let inner = members.len();
        members.extend(self.members.iter().cloned());
        members.iter_mut().skip(inner).for_each(|member| member.first += start);
        let merged = outer.merged.iter().cloned();
        let own = self.merged.iter().map(|(name, member)| (name.clone(), member + inner));
        Self { members, merged: merged.chain(own).collect(), inner, is_full: true }
    }

    /// Makes fields go by `table.field`, even where there is one table.
    pub(crate) fn make_full(&mut self) {
        self.is_full = true;
    }

    /// Whether two fields of a table are called the same.
    pub(crate) fn has_twins(&self) -> bool {
        let is_twin = |(written, field): (&String, &Field)| *written != field.name;
        let has_twins =
            |named: &Named| named.written.iter().zip(named.schema.fields()).any(is_twin);
        self.members.iter().any(has_twins)
    }

    /// How many tables there are.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn field_count(&self) -> usize {
        self.members.iter().map(|member| member.schema.fields().len()).sum()
    }

    /// The table of a field by its number.
    pub(crate) fn member_of(&self, field: usize) -> usize {
        self.members.partition_point(|member| member.first <= field).saturating_sub(1)
    }

    /// The number of a table's first field.
    pub(crate) fn first_of(&self, member: usize) -> usize {
        self.members.get(member).map_or(0, |member| member.first)
    }

    pub(crate) fn name_of(&self, member: usize) -> &str {
        self.members.get(member).map_or("", |member| &member.name)
    }

    /// All fields, by the names that qualified expressions have.
    pub(crate) fn schema(&self) -> Schema {
        Schema::of_fields((0..self.field_count()).filter_map(|field| self.field(field)).collect())
    }

    /// A field by its number, with its name in qualified expressions.
    pub(crate) fn field(&self, number: usize) -> Option<Field> {
        let member = self.member_of(number);
        let named = self.members.get(member)?;
        let position = number.checked_sub(named.first)?;
        let field = named.schema.fields().get(position)?;
        let name = self.qualified(Target { member, position, path: "" });
        Some(Field { name, ..field.clone() })
    }

    /// What a column is called that shows a field: the field's name, without its table's.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(crate) fn shown(&self, name: &str) -> Result<String> {
        let Some(target) = self.find(name, None)? else { return Ok(name.to_owned()) };
        let named = self.members.get(target.member);
        let written = named.and_then(|named| named.written.get(target.position));
        Ok(format!("{}{}", written.map_or("", String::as_str), target.path))
    }

    fn is_single(&self) -> bool {
        self.members.len() == 1 && !self.is_full
    }

    fn qualified(&self, target: Target<'_>) -> String {
        let Some(named) = self.members.get(target.member) else { return String::new() };
        let field = named.schema.fields().get(target.position).map_or("", |f| f.name.as_str());
        match self.is_single() {
            true => format!("{field}{}", target.path),
            false => format!("{}.{field}{}", named.name, target.path),
        }
    }

    /// The number of a field.
    fn number(&self, target: Target<'_>) -> usize {
        self.first_of(target.member) + target.position
    }

    /// What a name means. `also` is a table whose fields can be read here though they are not
    /// shown.
    ///
    /// # Errors
    /// `InvalidQuery` when it may mean several fields, or a table that is named has no such field.
    pub(crate) fn find<'n>(
        &self,
        name: &'n str,
        also: Option<usize>,
    ) -> Result<Option<Target<'n>>> {
        let all = 0..self.members.len();
        match self.find_in(name, self.inner..all.end, also)? {
            None if self.inner > 0 => self.find_in(name, 0..self.inner, also),
            found => Ok(found),
        }
    }

    /// What a name means in the query around.
    pub(crate) fn find_outer<'n>(&self, name: &'n str) -> Result<Option<Target<'n>>> {
        self.find_in(name, 0..self.inner, None)
    }

    fn find_in<'n>(
        &self,
        name: &'n str,
        members: std::ops::Range<usize>,
        also: Option<usize>,
    ) -> Result<Option<Target<'n>>> {
        let of_level = |(i, _): &(usize, &Named)| members.contains(i);
        let level: Vec<(usize, &Named)> =
            self.members.iter().enumerate().filter(of_level).collect();
        for (member, named) in &level {
            let Some(rest) = below(name, &named.name) else { continue };
            if !named.is_shown && also != Some(*member) {
                return Err(Error::invalid(format!(
                    "{name}: fields of {:?} are not shown after a semi or anti join",
                    named.name
                )));
            }
            if let Some((position, path)) = named.field(rest)? {
                return Ok(Some(Target { member: *member, position, path }));
            }
            // A field of JSON may have the table's name.
            let is_field = level.iter().any(|(_, n)| matches!(n.field(name), Ok(Some(_))));
            if !is_field {
                return Err(Error::from(named.schema.unknown_field(rest)).at(&named.name));
            }
        }
        let mut found: Vec<Target<'n>> = Vec::new();
        for (member, named) in &level {
            let is_merged = self
                .merged
                .iter()
                .any(|(merged, right)| right == member && merged.eq_ignore_ascii_case(name));
            if is_merged || (!named.is_shown && also != Some(*member)) {
                continue;
            }
            if let Some((position, path)) = named.field(name)? {
                found.push(Target { member: *member, position, path });
            }
        }
        match found.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => {
                let names: Vec<String> =
                    several.iter().map(|t| format!("{}.{name}", self.name_of(t.member))).collect();
                let names = names.join(", ");
                Err(Error::invalid(format!("field {name:?} is ambiguous: it may be {names}")))
            }
        }
    }

    /// The type of what a name means, `None` where it is a part of JSON; `None` for a name that is
    /// unknown.
    ///
    /// # Errors
    /// As [`Names::find`].
    #[allow(clippy::option_option, reason = "unknown, or of any type")]
    pub(crate) fn type_of(
        &self,
        name: &str,
        also: Option<usize>,
    ) -> Result<Option<Option<DataType>>> {
        let Some(target) = self.find(name, also)? else { return Ok(None) };
        let field = self.field(self.number(target));
        Ok(Some(field.filter(|_| target.path.is_empty()).map(|field| field.data_type)))
    }

    /// Makes an expression name fields in full, and notes their numbers. Names that no field has
    /// are left: they may be those of select items.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(crate) fn qualify(
        &self,
        expr: &mut Expr,
        also: Option<usize>,
        fields: &mut BTreeSet<usize>,
    ) -> Result<()> {
        if let Expr::Field(name) = expr {
            if let Some(target) = self.find(name, also)? {
                fields.insert(self.number(target));
                *name = self.qualified(target);
            }
            return Ok(());
        }
        expr.operands_mut().into_iter().try_for_each(|o| self.qualify(o, also, fields))
    }

    /// The same for the query around.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(crate) fn qualify_outer(&self, expr: &mut Expr) -> Result<()> {
        if let Expr::Field(name) = expr {
            if let Some(target) = self.find_outer(name)? {
                *name = self.qualified(target);
            }
            return Ok(());
        }
        expr.operands_mut().into_iter().try_for_each(|operand| self.qualify_outer(operand))
    }

    /// The fields of a table by its name, or of all tables, as select items.
    ///
    /// # Errors
    /// `InvalidQuery` when there is no such table.
    pub(crate) fn items(&self, table: &str) -> Result<Vec<SelectItem>> {
        let is_wanted = |named: &&Named| table.is_empty() || named.name.eq_ignore_ascii_case(table);
        if !self.members.iter().any(|named| is_wanted(&named) && named.is_shown) {
            let names: Vec<_> = self.members.iter().map(|m| m.name.as_str()).collect();
            let near = esker_format::suggest::near_or_all(table, "tables", names);
            return Err(Error::invalid(format!("{table}.*: no table {table:?} here{near}")));
        }
        let mut items = Vec::new();
        for (member, named) in self.members.iter().enumerate() {
            if !is_wanted(&named) || !named.is_shown {
                continue;
            }
            for (position, written) in named.written.iter().enumerate() {
                let first = named.written.iter().position(|other| other == written);
                let position = match Bug::EqualNamesRepeatTheFirst.is_planted() {
                    true => first.unwrap_or(position),
                    false => position,
                };
                let is_merged = |(name, right): &(String, usize)| {
                    *right == member && name.eq_ignore_ascii_case(written)
                };
                if table.is_empty() && self.merged.iter().any(is_merged) {
                    continue;
                }
                let name = self.qualified(Target { member, position, path: "" });
                let alias = (name != *written).then(|| written.clone());
                let expr = Expr::Field(name);
                items.push(SelectItem { expr, alias });
            }
        }
        Ok(items)
    }

    /// Items with the fields in place of `*` and `table.*`; every field where there are none.
    ///
    /// # Errors
    /// As for [`Self::items`].
    pub(crate) fn expanded(&self, select: &[SelectItem]) -> Result<Vec<SelectItem>> {
        let mut items = Vec::with_capacity(select.len());
        if select.is_empty() {
            items.extend(self.items("")?);
        }
        for item in select {
            match &item.expr {
                Expr::AllFields(table) => items.extend(self.items(table)?),
                _ => items.push(item.clone()),
            }
        }
        Ok(items)
    }

    /// Makes fields of a name equal in `right` and in the tables before it; returns the condition.
    ///
    /// # Errors
    /// `InvalidQuery` when either side has no such field, or the left has several.
    pub(crate) fn merge(&mut self, name: &str, right: usize) -> Result<Expr> {
        let at = |e: Error| e.at(format_args!("USING ({name})"));
        let missing = |names: &Self, member: usize| {
            let table = names.name_of(member);
            Error::invalid(format!("USING ({name}): no field {name:?} in {table:?}"))
        };
        let left = self.find_in(name, self.inner..right, None).map_err(at)?;
        let left = left.ok_or_else(|| missing(self, right.saturating_sub(1)))?;
        let own = self.members.get(right).map(|named| named.field(name)).transpose();
        let (position, path) = own.map_err(at)?.flatten().ok_or_else(|| missing(self, right))?;
        let own = Target { member: right, position, path };
        let (left, own) = (self.qualified(left), self.qualified(own));
        self.merged.push((name.to_owned(), right));
        Ok(Expr::Field(left).binary(crate::model::Operator::Eq, Expr::Field(own)))
    }
}

/// What follows a table's name and a point.
fn below<'n>(name: &'n str, table: &str) -> Option<&'n str> {
    let (first, rest) = name.split_at_checked(table.len())?;
    rest.strip_prefix('.').filter(|_| first.eq_ignore_ascii_case(table))
}

impl Named {
    /// The field that a name means, and the path into it.
    fn field<'n>(&self, name: &'n str) -> Result<Option<(usize, &'n str)>> {
        if let Some(at) = self.position(name)? {
            return Ok(Some((at, "")));
        }
        for (point, _) in name.match_indices('.') {
            let Some((field, path)) = name.split_at_checked(point) else { continue };
            let Some(at) = self.position(field)? else { continue };
            if self.schema.fields().get(at).is_some_and(|f| f.data_type == DataType::Json) {
                return Ok(Some((at, path)));
            }
        }
        Ok(None)
    }

    /// The position of the field of a name.
    fn position(&self, name: &str) -> Result<Option<usize>> {
        let called = |is_same: &dyn Fn(&str) -> bool| {
            self.written.iter().filter(|written| is_same(written)).count()
        };
        let exactly = called(&|written| written == name);
        let twins = match exactly {
            0 => called(&|written| written.eq_ignore_ascii_case(name)),
            _ => exactly,
        };
        if twins > 1 {
            let table = &self.name;
            return Err(Error::invalid(format!(
                "field {name:?} is ambiguous: {table:?} has {twins} of this name; give others \
                 other names with AS"
            )));
        }
        Ok(position(&self.schema, name))
    }
}

/// The fields of an answer, in which several may have one name, each by a name of its own: of two
/// that are called `a` the first is `a (1)` and the second `a (2)`.
pub(super) fn without_twins(schema: Schema) -> Schema {
    let fields = schema.fields();
    let mut names = BTreeSet::new();
    if fields.iter().all(|field| names.insert(&field.name)) {
        return schema;
    }
    let is_twin = |name: &str| fields.iter().filter(|field| field.name == name).count() > 1;
    let mut single: Vec<Field> = Vec::with_capacity(fields.len());
    for (i, field) in fields.iter().enumerate() {
        let mut field = field.clone();
        if is_twin(&field.name) {
            let before = fields.iter().take(i).filter(|other| other.name == field.name).count();
            let name = format!("{} ({})", field.name, before + 1);
            let is_taken = |name: &str| {
                fields.iter().chain(&single).any(|other| other.name.eq_ignore_ascii_case(name))
            };
            field.name = name;
            while is_taken(&field.name) {
                field.name.push('\'');
            }
        }
        single.push(field);
    }
    Schema::of_fields(single)
}
