//! What names mean where a query reads several tables.

use std::collections::BTreeSet;

use esker_format::schema::EVENT_ID_NAME;
use esker_format::{DataType, Field, Schema};
use esker_vfs::sabotage::Bug;

use crate::bind::scope::position;
use crate::model::{Expr, SelectItem};
use crate::{Error, Result};

/// The tables of a query, with their fields numbered one after another.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    tables: Vec<Named>,
    /// Fields of `USING`: the name, and the table whose field is not shown by it.
    merged: Vec<(String, usize)>,
    /// From this table on, names are looked for first: those before are of the outer query.
    inner: usize,
    /// In which order `*` shows the tables, behind merged fields, where that is not theirs.
    star: Option<Vec<usize>>,
    /// The member that `*` does not show.
    unstarred: Option<usize>,
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
    /// Which of what is joined it is in: several of a join in parentheses are in one.
    member: usize,
}

/// A table, with what its fields are called.
#[derive(Clone, Debug)]
pub(crate) struct TableNames {
    pub(crate) name: String,
    pub(crate) schema: Schema,
    /// False where its fields are not shown.
    pub(crate) is_shown: bool,
    /// Fields that go by their names with the table's only: others show them, too.
    pub(crate) hidden: Vec<String>,
}

/// What a name leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'n> {
    table: usize,
    /// The field's position in its table.
    position: usize,
    /// The path into a field of JSON, with its point; or nothing.
    path: &'n str,
}

impl Names {
    /// # Errors
    /// `InvalidQuery` when two tables have one name.
    pub(crate) fn new(members: Vec<(String, Schema, bool)>) -> Result<Self> {
        let one = |(name, schema, is_shown)| {
            vec![TableNames { name, schema, is_shown, hidden: Vec::new() }]
        };
        Self::of(members.into_iter().map(one).collect())
    }

    /// The same where a member may be of several tables.
    ///
    /// # Errors
    /// As [`Names::new`].
    pub(crate) fn of(members: Vec<Vec<TableNames>>) -> Result<Self> {
        let (mut tables, mut merged): (Vec<Named>, Vec<_>) = (Vec::new(), Vec::new());
        let mut first = 0;
        for (member, names) in members.into_iter().enumerate() {
            for TableNames { name, schema, is_shown, hidden } in names {
                if tables.iter().any(|known| known.name.eq_ignore_ascii_case(&name)) {
                    return Err(Error::invalid(format!(
                        "FROM: two tables are called {name:?}; give one another name with AS"
                    )));
                }
                let written: Vec<_> = schema.fields().iter().map(|f| f.name.clone()).collect();
                let (fields, schema) = (written.len(), without_twins(schema));
                merged.extend(hidden.into_iter().map(|name| (name, tables.len())));
                tables.push(Named { name, written, schema, first, is_shown, member });
                first += fields;
            }
        }
        Ok(Self { tables, merged, inner: 0, star: None, unstarred: None, is_full: false })
    }

    /// The same where `*` shows members in another order.
    pub(super) fn shown_in(mut self, members: Option<Vec<usize>>) -> Self {
        let of = |member: usize| {
            let tables = self.tables.iter().enumerate();
            tables.filter(move |(_, named)| named.member == member).map(|(at, _)| at)
        };
        let star = members.map(|members| members.into_iter().flat_map(of).collect());
        self.star = star;
        self
    }

    /// Leaves the last member out of what `*` shows.
    pub(super) fn hide_last_from_star(&mut self) {
        self.unstarred = self.tables.last().map(|last| last.member);
    }

    /// The tables whose fields are shown, in the order of `*`, with those that are read, and those
    /// that go by their full names only.
    pub(super) fn tables_shown(&self, reads: &dyn Fn(&str) -> bool) -> Vec<TableNames> {
        let fields = self.fields_shown(reads);
        let table = |at: usize| {
            let named = self.tables.get(at).filter(|named| named.is_shown)?;
            let own = named.schema.fields().iter().zip(&named.written).zip(named.first..);
            let own = own
                .filter(|(_, number)| fields.contains(number))
                .map(|((field, written), _)| Field { name: written.clone(), ..field.clone() });
            let hidden = self.merged.iter().filter(|(_, table)| *table == at);
            Some(TableNames {
                name: named.name.clone(),
                schema: Schema::of_fields(own.collect()),
                is_shown: true,
                hidden: hidden.map(|(name, _)| name.clone()).collect(),
            })
        };
        self.in_star_order().into_iter().filter_map(table).collect()
    }

    /// The numbers of the fields of these tables that are read, in their order: of all, the first
    /// where none is.
    pub(super) fn fields_shown(&self, reads: &dyn Fn(&str) -> bool) -> Vec<usize> {
        let tables = self.in_star_order().into_iter().filter_map(|at| self.tables.get(at));
        let shown = tables.filter(|named| named.is_shown);
        let all: Vec<(usize, &String)> =
            shown.flat_map(|named| (named.first..).zip(&named.written)).collect();
        let read = all.iter().filter(|(_, name)| reads(name)).map(|(number, _)| *number);
        let read: Vec<usize> = read.collect();
        match read.is_empty() {
            true => all.first().map(|(number, _)| *number).into_iter().collect(),
            false => read,
        }
    }

    /// The names of the fields that were merged last.
    pub(super) fn merged_last(&self, count: usize) -> Vec<String> {
        let rest = self.merged.len().saturating_sub(count);
        self.merged.iter().skip(rest).map(|(name, _)| name.clone()).collect()
    }

    /// The table of the field that a name means.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(super) fn table_with(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.find(name, None)?.map(|target| target.table))
    }

    fn in_star_order(&self) -> Vec<usize> {
        self.star.clone().unwrap_or_else(|| (self.inner..self.tables.len()).collect())
    }

    /// The names of a query within another: its own come first.
    pub(crate) fn within(&self, outer: &Self) -> Self {
        let mut tables = outer.tables.clone();
        let start = outer.field_count();
        for table in &mut tables {
            let is_hidden = self.tables.iter().any(|t| t.name.eq_ignore_ascii_case(&table.name));
            if is_hidden {
                table.name = format!("outer {}", table.name);
            }
        }
        let (inner, members) = (tables.len(), outer.len());
        tables.extend(self.tables.iter().cloned());
        for table in tables.iter_mut().skip(inner) {
            table.first += start;
            table.member += members;
        }
        let merged = outer.merged.iter().cloned();
        let own = self.merged.iter().map(|(name, table)| (name.clone(), table + inner));
        let star = self.star.as_ref().map(|star| star.iter().map(|table| table + inner).collect());
        let merged = merged.chain(own).collect();
        let unstarred = self.unstarred.map(|member| member + members);
        Self { tables, merged, inner, star, unstarred, is_full: true }
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
        self.tables.iter().any(has_twins)
    }

    /// Whether there is one table.
    pub(crate) fn is_of_one_table(&self) -> bool {
        self.tables.len() == 1
    }

    /// How many members there are.
    pub(crate) fn len(&self) -> usize {
        self.tables.last().map_or(0, |last| last.member + 1)
    }

    pub(crate) fn field_count(&self) -> usize {
        self.tables.iter().map(|table| table.schema.fields().len()).sum()
    }

    /// The table of a field by its number.
    fn table_of(&self, field: usize) -> usize {
        self.tables.partition_point(|table| table.first <= field).saturating_sub(1)
    }

    /// The member of a field by its number.
    pub(crate) fn member_of(&self, field: usize) -> usize {
        self.tables.get(self.table_of(field)).map_or(0, |table| table.member)
    }

    /// The first table of a member.
    fn first_table(&self, member: usize) -> usize {
        self.tables.partition_point(|table| table.member < member)
    }

    /// The number of a member's first field.
    pub(crate) fn first_of(&self, member: usize) -> usize {
        self.tables.get(self.first_table(member)).map_or(0, |table| table.first)
    }

    /// What a member, or the first table of it, is called.
    pub(crate) fn name_of(&self, member: usize) -> &str {
        self.name_at(self.first_table(member))
    }

    fn name_at(&self, table: usize) -> &str {
        self.tables.get(table).map_or("", |table| &table.name)
    }

    /// All fields, by the names that qualified expressions have.
    pub(crate) fn schema(&self) -> Schema {
        Schema::of_fields((0..self.field_count()).filter_map(|field| self.field(field)).collect())
    }

    /// A field by its number, with its name in qualified expressions.
    pub(crate) fn field(&self, number: usize) -> Option<Field> {
        let table = self.table_of(number);
        let named = self.tables.get(table)?;
        let position = number.checked_sub(named.first)?;
        let field = named.schema.fields().get(position)?;
        let name = self.qualified(Target { table, position, path: "" });
        Some(Field { name, ..field.clone() })
    }

    /// What a column is called that shows a field: the field's name, without its table's.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(crate) fn shown(&self, name: &str) -> Result<String> {
        let Some(target) = self.find(name, None)? else { return Ok(name.to_owned()) };
        let named = self.tables.get(target.table);
        let written = named.and_then(|named| named.written.get(target.position));
        Ok(format!("{}{}", written.map_or("", String::as_str), target.path))
    }

    fn is_single(&self) -> bool {
        self.tables.len() == 1 && !self.is_full
    }

    fn qualified(&self, target: Target<'_>) -> String {
        let Some(named) = self.tables.get(target.table) else { return String::new() };
        let field = named.schema.fields().get(target.position).map_or("", |f| f.name.as_str());
        match self.is_single() {
            true => format!("{field}{}", target.path),
            false => format!("{}.{field}{}", named.name, target.path),
        }
    }

    /// The number of a field.
    fn number(&self, target: Target<'_>) -> usize {
        self.tables.get(target.table).map_or(0, |table| table.first) + target.position
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
        let all = 0..self.tables.len();
        match self.find_in(name, self.inner..all.end, also)? {
            None if self.inner > 0 => self.find_in(name, 0..self.inner, also),
            found => Ok(found),
        }
    }

    /// The number of the field that a name means, and the path into it, with its point.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(crate) fn place_of<'n>(&self, name: &'n str) -> Result<Option<(usize, &'n str)>> {
        let found = self.find(name, None)?;
        Ok(found.map(|target| (self.number(target), target.path)))
    }

    /// What a name means in the query around.
    pub(crate) fn find_outer<'n>(&self, name: &'n str) -> Result<Option<Target<'n>>> {
        self.find_in(name, 0..self.inner, None)
    }

    fn find_in<'n>(
        &self,
        name: &'n str,
        tables: std::ops::Range<usize>,
        also: Option<usize>,
    ) -> Result<Option<Target<'n>>> {
        if name.ends_with(EVENT_ID_NAME) {
            let is_of = |table: &Named| {
                name == EVENT_ID_NAME || below(name, &table.name) == Some(EVENT_ID_NAME)
            };
            if let [only] = self.tables.as_slice()
                && is_of(only)
            {
                // Its rows tell.
                return Ok(None);
            }
            return Err(Error::invalid(
                "id(): expected a query of one stream alone; beside other tables and subqueries: \
                 FROM (SELECT id(e) AS event, e.* FROM events e) e",
            ));
        }
        let of_level = |(i, _): &(usize, &Named)| tables.contains(i);
        let level: Vec<(usize, &Named)> = self.tables.iter().enumerate().filter(of_level).collect();
        for (table, named) in &level {
            let Some(rest) = below(name, &named.name) else { continue };
            if !named.is_shown && also != Some(named.member) {
                return Err(Error::invalid(format!(
                    "{name}: fields of {:?} are not shown after a semi or anti join",
                    named.name
                )));
            }
            if let Some((position, path)) = named.field(rest)? {
                return Ok(Some(Target { table: *table, position, path }));
            }
            // A field of JSON may have the table's name.
            let is_field = level.iter().any(|(_, n)| matches!(n.field(name), Ok(Some(_))));
            if !is_field {
                return Err(Error::from(named.schema.unknown_field(rest)).at(&named.name));
            }
        }
        let mut found: Vec<Target<'n>> = Vec::new();
        for (table, named) in &level {
            let is_merged = self.is_merged(name, *table);
            if is_merged || (!named.is_shown && also != Some(named.member)) {
                continue;
            }
            if let Some((position, path)) = named.field(name)? {
                found.push(Target { table: *table, position, path });
            }
        }
        match found.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => {
                let names: Vec<String> =
                    several.iter().map(|t| format!("{}.{name}", self.name_at(t.table))).collect();
                let names = names.join(", ");
                Err(Error::invalid(format!("field {name:?} is ambiguous: it may be {names}")))
            }
        }
    }

    /// Whether another field is shown by the name of a table's.
    fn is_merged(&self, name: &str, table: usize) -> bool {
        let is_it =
            |(merged, of): &(String, usize)| *of == table && merged.eq_ignore_ascii_case(name);
        self.merged.iter().any(is_it)
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

    /// The number of the field that a name means, and the name in full with a path behind it.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(super) fn in_full(&self, name: &str) -> Result<Option<(usize, String)>> {
        let found = self.find(name, None)?;
        Ok(found.map(|target| (self.number(target), self.qualified(target))))
    }

    /// A value that is not known yet, of the type of what a name means.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub(super) fn typed(&self, name: &str) -> Result<Option<Expr>> {
        let Some(target) = self.find(name, None)? else { return Ok(None) };
        let Some(field) = self.field(self.number(target)) else { return Ok(None) };
        Ok(Some(super::outer::unknown(&field, target.path)))
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
        if !self.tables.iter().any(|named| is_wanted(&named) && named.is_shown) {
            let names: Vec<_> = self.tables.iter().map(|t| t.name.as_str()).collect();
            let near = esker_format::suggest::near_or_all(table, "tables", names);
            return Err(Error::invalid(format!("{table}.*: no table {table:?} here{near}")));
        }
        let (mut items, mut first) = (Vec::new(), Vec::new());
        if table.is_empty() && self.star.is_some() {
            for (name, _) in self.merged.iter().filter(|(_, table)| *table >= self.inner) {
                let Some(target) = self.find(name, None)? else { continue };
                if !first.contains(&(target.table, target.position)) {
                    first.push((target.table, target.position));
                    items.push(self.item(target));
                }
            }
        }
        // Of one level, or, where a table is named, of any.
        let order = match table.is_empty() {
            true => self.in_star_order(),
            false => (0..self.tables.len()).collect(),
        };
        for at in order {
            let Some(named) = self.tables.get(at) else { continue };
            let is_left_out = table.is_empty() && self.unstarred == Some(named.member);
            if !is_wanted(&named) || !named.is_shown || is_left_out {
                continue;
            }
            for (position, written) in named.written.iter().enumerate() {
                let is_elsewhere = self.is_merged(written, at) || first.contains(&(at, position));
                if table.is_empty() && is_elsewhere {
                    continue;
                }
                let twin = named.written.iter().position(|other| other == written);
                let position = match Bug::EqualNamesRepeatTheFirst.is_planted() {
                    true => twin.unwrap_or(position),
                    false => position,
                };
                items.push(self.item(Target { table: at, position, path: "" }));
            }
        }
        Ok(items)
    }

    /// A field as a select item, by its own name.
    fn item(&self, target: Target<'_>) -> SelectItem {
        let name = self.qualified(target);
        let named = self.tables.get(target.table);
        let written = named.and_then(|named| named.written.get(target.position));
        let alias = written.filter(|written| **written != name).cloned();
        SelectItem { expr: Expr::Field(name), alias }
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
        let (start, end) = (self.first_table(right), self.first_table(right + 1));
        let left = self.find_in(name, self.inner..start, None).map_err(at)?;
        let left = left.ok_or_else(|| missing(self, right.saturating_sub(1)))?;
        let own = self.find_in(name, start..end, Some(right)).map_err(at)?;
        let own = own.ok_or_else(|| missing(self, right))?;
        let (left, field) = (self.qualified(left), self.qualified(own));
        self.merged.push((name.to_owned(), own.table));
        Ok(Expr::Field(left).binary(crate::model::Operator::Eq, Expr::Field(field)))
    }

    /// The names that fields of member number `right` and of those before it have in common.
    ///
    /// # Errors
    /// `InvalidQuery` when several fields on one side have such a name.
    pub(crate) fn common(&self, right: usize) -> Result<Vec<String>> {
        let (start, end) = (self.first_table(right), self.first_table(right + 1));
        let mut common: Vec<String> = Vec::new();
        for at in start..end {
            let Some(named) = self.tables.get(at) else { continue };
            for name in named.written.iter().filter(|name| !self.is_merged(name, at)) {
                let is_known = common.iter().any(|known| known.eq_ignore_ascii_case(name));
                let left = self.find_in(name, self.inner..start, None);
                if !is_known && left.map_err(|e| e.at("NATURAL JOIN"))?.is_some() {
                    common.push(name.clone());
                }
            }
        }
        Ok(common)
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

/// Fields, of which the first are called otherwise.
///
/// # Errors
/// `InvalidQuery` when there are fewer.
pub(super) fn called(schema: Schema, names: &[String], table: &str) -> Result<Schema> {
    let (count, wanted) = (schema.fields().len(), names.len());
    if wanted > count {
        return Err(Error::invalid(format!(
            "{table}: names for {wanted} columns, of which there are {count}"
        )));
    }
    let mut names = names.iter();
    let field = |field: &Field| match names.next() {
        Some(name) => Field { name: name.clone(), ..field.clone() },
        None => field.clone(),
    };
    Ok(Schema::of_fields(schema.fields().iter().map(field).collect()))
}
