//! Tables by other names: what a statement reads gets the names that lead to it from where the
//! statement runs.
//!
//! A table is still called what it was called before, so that fields are found by `t.x`. What WITH
//! names is no table, and stays.

use esker_format::Value;

use super::{
    Change, Delete, Expr, Function, Insert, InsertRows, Join, Merge, MergeAction, OnConflict,
    Query, Relation, SelectItem, Update,
};

/// The new name of a table; `None` where it stays.
pub type NewName<'r> = dyn FnMut(&str) -> Option<String> + 'r;

/// The tables of a statement on the way to other names.
struct Renaming<'r, 'f, 's> {
    rename: &'r mut NewName<'f>,
    /// What WITH has named so far.
    known: Vec<String>,
    /// Where names are looked for, where that is to be said.
    path: Option<&'r mut Searched<'s>>,
}

/// Where a session looks for names that say no schema.
pub struct Searched<'p> {
    /// What `current_schema()` is.
    pub current: &'p str,
    /// What `current_schemas(false)` is.
    pub schemas: &'p [String],
    /// The whole name of a sequence.
    pub sequence: &'p mut NewName<'p>,
}

impl Query {
    /// Gives the tables that it reads other names, those of queries within it included.
    ///
    /// ```
    /// use esker_query::model::Query;
    ///
    /// let mut query = Query::table("t");
    /// query.rename_tables(&mut |name| Some(format!("temp.{name}")));
    /// assert_eq!((query.table.as_str(), query.alias.as_deref()), ("temp.t", Some("t")));
    /// query.rename_tables(&mut |name| name.strip_prefix("temp.").map(str::to_owned));
    /// assert_eq!(query, Query::table("t"));
    /// ```
    pub fn rename_tables(&mut self, rename: &mut NewName<'_>) {
        Renaming { rename, known: Vec::new(), path: None }.query(self);
    }

    /// Says where names are looked for: what `current_schema()` is, and the sequences of
    /// `nextval`, also in queries within it.
    pub fn search(&mut self, path: &mut Searched<'_>) {
        Renaming { rename: &mut |_| None, known: Vec::new(), path: Some(path) }.query(self);
    }
}

impl Change {
    /// The table that it changes.
    #[must_use]
    pub fn table(&self) -> &str {
        match self {
            Self::Insert(insert) => &insert.table,
            Self::Update(update) => &update.table,
            Self::Delete(delete) => &delete.table,
            Self::Merge(merge) => &merge.table,
        }
    }

    /// Gives the table that it changes another name. It is still called what it was.
    pub fn rename_target(&mut self, name: String) {
        let (table, alias) = match self {
            Self::Insert(Insert { table, .. }) => {
                *table = name;
                return;
            }
            Self::Update(Update { table, alias, .. }) => (table, alias),
            Self::Delete(Delete { table, alias, .. }) => (table, alias),
            Self::Merge(merge) => (&mut merge.table, &mut merge.alias),
        };
        name_table(table, alias, name);
    }

    /// Gives the tables that it reads beside the one that it changes other names.
    pub fn rename_sources(&mut self, rename: &mut NewName<'_>) {
        self.visit(&mut Renaming { rename, known: Vec::new(), path: None });
    }

    /// Says where names are looked for: see [`Query::search`].
    pub fn search(&mut self, path: &mut Searched<'_>) {
        self.visit(&mut Renaming { rename: &mut |_| None, known: Vec::new(), path: Some(path) });
    }

    fn visit(&mut self, names: &mut Renaming<'_, '_, '_>) {
        match self {
            Self::Insert(insert) => names.insert(insert),
            Self::Update(Update { set, joins, filter, order_by, returning, .. }) => {
                set.iter_mut().for_each(|(_, expr)| names.expr(expr));
                names.joins(joins);
                filter.iter_mut().for_each(|expr| names.expr(expr));
                order_by.iter_mut().for_each(|key| names.expr(&mut key.expr));
                names.items(returning);
            }
            Self::Delete(Delete { joins, filter, order_by, returning, .. }) => {
                names.joins(joins);
                filter.iter_mut().for_each(|expr| names.expr(expr));
                order_by.iter_mut().for_each(|key| names.expr(&mut key.expr));
                names.items(returning);
            }
            Self::Merge(merge) => names.merge(merge),
        }
    }
}

impl Renaming<'_, '_, '_> {
    fn name(&mut self, table: &mut String, alias: &mut Option<String>) {
        if table.is_empty() || self.known.iter().any(|with| with.eq_ignore_ascii_case(table)) {
            return;
        }
        if let Some(name) = (self.rename)(table) {
            name_table(table, alias, name);
        }
    }

    fn query(&mut self, query: &mut Query) {
        let outer = self.known.len();
        for with in &mut query.with {
            let own = self.known.len();
            self.known.extend(with.recursive.then(|| with.name.clone()));
            self.query(&mut with.query);
            self.known.truncate(own);
            self.known.push(with.name.clone());
        }
        if query.derived.is_none() {
            self.name(&mut query.table, &mut query.alias);
        }
        query.derived.iter_mut().for_each(|derived| self.query(derived));
        query.set.iter_mut().flat_map(|set| set.queries_mut()).for_each(|one| self.query(one));
        query.joins.iter_mut().for_each(|join| self.relation(&mut join.relation));
        if self.path.is_some() {
            // A column keeps its name.
            let unnamed = query.select.iter_mut().filter(|item| item.alias.is_none());
            for item in unnamed.filter(|item| is_searched(&item.expr)) {
                item.alias = Some(item.expr.to_string());
            }
        }
        query.exprs_mut().for_each(|expr| self.expr(expr));
        self.known.truncate(outer);
    }

    fn joins(&mut self, joins: &mut [Join]) {
        for join in joins {
            self.relation(&mut join.relation);
            join.on.iter_mut().for_each(|on| self.expr(on));
        }
    }

    fn relation(&mut self, relation: &mut Relation) {
        match &mut relation.query {
            Some(query) => self.query(query),
            None => self.name(&mut relation.table, &mut relation.alias),
        }
        self.joins(&mut relation.joins);
    }

    fn expr(&mut self, expr: &mut Expr) {
        if let Expr::Subquery { query, .. } = expr {
            self.query(query);
        }
        if let Expr::Lookup(lookup) = expr
            && let Some(name) = (self.rename)(&lookup.table)
        {
            lookup.table = name;
        }
        if let Some(path) = &mut self.path {
            path.say(expr);
        }
        expr.operands_mut().into_iter().for_each(|operand| self.expr(operand));
    }

    fn items(&mut self, items: &mut Option<Vec<SelectItem>>) {
        items.iter_mut().flatten().for_each(|item| self.expr(&mut item.expr));
    }

    fn insert(&mut self, insert: &mut Insert) {
        match &mut insert.rows {
            InsertRows::Values(rows) => rows.iter_mut().flatten().for_each(|expr| self.expr(expr)),
            InsertRows::Query(query) => self.query(query),
        }
        if let OnConflict::Update(update) = &mut insert.on_conflict {
            update.set.iter_mut().for_each(|(_, expr)| self.expr(expr));
            update.filter.iter_mut().for_each(|expr| self.expr(expr));
        }
        self.items(&mut insert.returning);
    }

    fn merge(&mut self, merge: &mut Merge) {
        self.relation(&mut merge.source);
        self.expr(&mut merge.on);
        for clause in &mut merge.clauses {
            clause.filter.iter_mut().for_each(|expr| self.expr(expr));
            match &mut clause.action {
                MergeAction::Update(set) => set.iter_mut().for_each(|(_, expr)| self.expr(expr)),
                MergeAction::Insert { values, .. } => {
                    values.iter_mut().for_each(|expr| self.expr(expr));
                }
                MergeAction::Nothing | MergeAction::Delete => {}
            }
        }
        self.items(&mut merge.returning);
    }
}

impl Searched<'_> {
    /// Puts what it is in the place of an expression that asks for it.
    fn say(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Call(Function::CurrentSchema, _) => *expr = Expr::literal(self.current),
            Expr::Call(Function::CurrentSchemas, operands) => {
                let implicit = match operands.as_slice() {
                    [Expr::Literal(Value::Bool(implicit))] => *implicit,
                    _ => return,
                };
                let implicit = implicit.then_some("temp").into_iter();
                let schemas = implicit.chain(self.schemas.iter().map(String::as_str));
                *expr =
                    Expr::call(Function::ListValue, schemas.map(Expr::literal).collect::<Vec<_>>());
            }
            Expr::Call(Function::Nextval, operands) => {
                if let [Expr::Literal(Value::Text(name))] = operands.as_mut_slice()
                    && let Some(whole) = (self.sequence)(name)
                {
                    *name = whole;
                }
            }
            _ => {}
        }
    }
}

fn is_searched(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Call(Function::CurrentSchema | Function::CurrentSchemas | Function::Nextval, _)
    )
}

/// Gives a table a name, by which it is not called where it was called otherwise.
fn name_table(table: &mut String, alias: &mut Option<String>, name: String) {
    let called = alias.take().unwrap_or_else(|| std::mem::take(table));
    *alias = Some(called).filter(|called| *called != name);
    *table = name;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_with_and_of_columns_stay() {
        let mut query = Query::table("t");
        query.with.push(super::super::With::new("T", Query::table("t")));
        query.joins.push(Join::cross(Relation::table("u").aliased("v")));
        query.rename_tables(&mut |name| Some(format!("temp.{name}")));
        assert_eq!(query.table, "t");
        let within = &query.with[0].query;
        assert_eq!((within.table.as_str(), within.alias.as_deref()), ("temp.t", Some("t")));
        let joined = &query.joins[0].relation;
        assert_eq!((joined.table.as_str(), joined.alias.as_deref()), ("temp.u", Some("v")));
    }

    #[test]
    fn a_change_reads_by_other_names_and_changes_its_own() {
        let mut change = Change::Update(Update {
            table: "t".into(),
            joins: vec![Join::cross(Relation::table("u"))],
            ..Update::default()
        });
        change.rename_sources(&mut |name| Some(format!("main.{name}")));
        assert_eq!(change.table(), "t");
        change.rename_target("w".into());
        let Change::Update(update) = change else { panic!("{change:?}") };
        assert_eq!((update.table.as_str(), update.alias.as_deref()), ("w", Some("t")));
        assert_eq!(update.joins[0].relation.table, "main.u");
    }
}
