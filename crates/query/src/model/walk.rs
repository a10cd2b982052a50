//! The fields that a query names, those of queries within it included.

use super::{Expr, Join, Parameter, Query, Relation, RowCount};

impl Query {
    /// Every expression in it, those of queries within it left out.
    pub(crate) fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let items = self.select.iter_mut().map(|item| &mut item.expr);
        let keys = self.order_by.iter_mut().map(|key| &mut key.expr);
        let on = self.joins.iter_mut().filter_map(|join| join.on.as_mut());
        let behind = self.group_by.iter_mut().chain(&mut self.having).chain(keys).chain(on);
        let written = self.values.iter_mut().flatten().chain(&mut self.distinct_on);
        let written = written.chain(&mut self.qualify);
        let operands = self.call.iter_mut().flat_map(|call| &mut call.operands);
        items.chain(&mut self.filter).chain(behind).chain(written).chain(operands)
    }

    /// Calls `visit` for each [`Expr::Field`].
    pub(crate) fn each_field_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.with.iter_mut().for_each(|with| with.query.each_field_mut(visit));
        let within = self.set.iter_mut().flat_map(|set| set.queries_mut());
        within.for_each(|query| query.each_field_mut(visit));
        self.derived.iter_mut().for_each(|query| query.each_field_mut(visit));
        self.joins.iter_mut().for_each(|join| join.relation.each_field_mut(visit));
        self.exprs_mut().for_each(|expr| expr.each_field_mut(visit));
    }

    /// Calls `visit` for the name of each [`Expr::Field`].
    pub(crate) fn each_field<'q>(&'q self, visit: &mut dyn FnMut(&'q str)) {
        self.with.iter().for_each(|with| with.query.each_field(visit));
        let within = self.set.iter().flat_map(|set| set.queries());
        within.for_each(|query| query.each_field(visit));
        self.derived.iter().for_each(|query| query.each_field(visit));
        self.joins.iter().for_each(|join| join.relation.each_field(visit));
        self.exprs().for_each(|expr| expr.each_field(visit));
    }
}

impl Query {
    /// Calls `visit` for itself and for every query within it.
    pub(crate) fn each_within<'q>(&'q self, visit: &mut dyn FnMut(&'q Self)) {
        visit(self);
        self.with.iter().for_each(|with| with.query.each_within(visit));
        self.set.iter().flat_map(|set| set.queries()).for_each(|query| query.each_within(visit));
        self.derived.iter().for_each(|query| query.each_within(visit));
        self.joins.iter().for_each(|join| join.relation.each_within(visit));
        self.exprs().for_each(|expr| expr.each_within(visit));
    }

    /// A parameter in it, if there is one.
    pub(crate) fn first_parameter(&self) -> Option<&Parameter> {
        let mut first = None;
        self.each_within(&mut |query| {
            for count in query.limit.iter().chain([&query.offset]) {
                if let RowCount::Parameter(parameter) = count {
                    first.get_or_insert(parameter);
                }
            }
            let on = query.joins.iter().flat_map(|join| join.relation.conditions());
            for expr in query.exprs().chain(on) {
                first = first.or_else(|| expr.first_parameter());
            }
        });
        first
    }

    /// Whether a query within it shows all fields of a table, in that order.
    pub(crate) fn shows_all_of(&self, table: &str) -> bool {
        let is_all = |expr: &Expr| matches!(expr, Expr::AllFields(_));
        let mut shows_all = false;
        self.each_within(&mut |query| {
            let is_shown = query.select.is_empty() || query.select.iter().any(|i| is_all(&i.expr));
            let relations = query.relations();
            shows_all |= is_shown && relations.iter().any(|relation| relation.has_table(table));
        });
        shows_all
    }
}

impl Relation {
    fn each_within<'q>(&'q self, visit: &mut dyn FnMut(&'q Query)) {
        self.query.iter().for_each(|query| query.each_within(visit));
        for Join { relation, on, .. } in &self.joins {
            relation.each_within(visit);
            on.iter().for_each(|on| on.each_within(visit));
        }
    }

    /// The conditions of the joins in it.
    fn conditions(&self) -> Vec<&Expr> {
        let within = self.joins.iter().flat_map(|join| join.relation.conditions());
        within.chain(self.joins.iter().filter_map(|join| join.on.as_ref())).collect()
    }

    /// Whether it is a table of this name, or a join with it.
    fn has_table(&self, table: &str) -> bool {
        let is_it = self.query.is_none() && self.table == table;
        is_it || self.joins.iter().any(|join| join.relation.has_table(table))
    }

    fn each_field_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        self.query.iter_mut().for_each(|query| query.each_field_mut(visit));
        for Join { relation, on, .. } in &mut self.joins {
            relation.each_field_mut(visit);
            on.iter_mut().for_each(|on| on.each_field_mut(visit));
        }
    }

    /// As [`Query::each_field`].
    pub(crate) fn each_field<'q>(&'q self, visit: &mut dyn FnMut(&'q str)) {
        self.query.iter().for_each(|query| query.each_field(visit));
        for Join { relation, on, .. } in &self.joins {
            relation.each_field(visit);
            on.iter().for_each(|on| on.each_field(visit));
        }
    }
}

impl Expr {
    fn each_within<'q>(&'q self, visit: &mut dyn FnMut(&'q Query)) {
        if let Self::Subquery { query, .. } = self {
            query.each_within(visit);
        }
        self.operands().into_iter().for_each(|operand| operand.each_within(visit));
    }

    /// A parameter in it, those of queries within it left out.
    fn first_parameter(&self) -> Option<&Parameter> {
        match self {
            Self::Parameter(parameter) => Some(parameter),
            _ => self.operands().into_iter().find_map(Self::first_parameter),
        }
    }

    /// As [`Query::each_field_mut`].
    pub(crate) fn each_field_mut(&mut self, visit: &mut dyn FnMut(&mut Self)) {
        match self {
            Self::Field(_) => return visit(self),
            Self::Subquery { query, .. } => query.each_field_mut(visit),
            _ => {}
        }
        self.operands_mut().into_iter().for_each(|operand| operand.each_field_mut(visit));
    }

    /// As [`Query::each_field`].
    pub(crate) fn each_field<'q>(&'q self, visit: &mut dyn FnMut(&'q str)) {
        match self {
            Self::Field(name) => visit(name),
            Self::Subquery { query, .. } => query.each_field(visit),
            _ => {}
        }
        self.operands().into_iter().for_each(|operand| operand.each_field(visit));
    }
}
