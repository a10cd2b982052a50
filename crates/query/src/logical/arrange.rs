//! The joins of a query in the order in which they run, none of them a right or full one.
//!
//! ```text
//! a RIGHT JOIN b ON …            b LEFT JOIN a ON …, shown as a, b
//! a JOIN b … RIGHT JOIN c ON …   c LEFT JOIN (a JOIN b …) ON …
//! a FULL JOIN b ON …             (a FULL JOIN b ON …), one member: see `grouped`
//! a JOIN (b JOIN c ON x) ON y    a CROSS JOIN b JOIN c ON x AND y
//! ```

use crate::Query;
use crate::model::{Expr, Join, JoinKind, Operator, Relation};

/// What a query reads.
pub(super) struct Arranged {
    /// Each is joined to those before it; a join in parentheses is one.
    pub(super) relations: Vec<Relation>,
    /// How: one less.
    pub(super) joins: Vec<Join>,
    /// In which order `*` shows the relations, where that is another.
    pub(super) star: Option<Vec<usize>>,
}

pub(super) fn arrange(query: &Query) -> Arranged {
    let mut arranged = Arranged {
        relations: query.first_relation().into_iter().collect(),
        joins: Vec::new(),
        star: None,
    };
    for (i, join) in query.joins.iter().enumerate() {
        match join.kind {
            JoinKind::Right => {
                let left = before(query, i);
                let (kind, relation) = (JoinKind::Left, left.clone());
                arranged.joins = vec![Join { kind, relation, ..join.clone() }];
                arranged.relations = vec![join.relation.clone(), left];
                arranged.star = Some(vec![1, 0]);
            }
            JoinKind::Full => {
                let mut both = before(query, i);
                both.joins.push(join.clone());
                (arranged.joins, arranged.star) = (Vec::new(), None);
                arranged.relations = vec![both];
            }
            _ if is_flat(join) => arranged.push_flat(join),
            _ => arranged.push(join.clone()),
        }
    }
    arranged
}

impl Arranged {
    fn push(&mut self, join: Join) {
        self.star.iter_mut().for_each(|star| star.push(self.relations.len()));
        self.relations.push(join.relation.clone());
        self.joins.push(join);
    }

    /// Adds the relations of an inner join in parentheses, and last its condition.
    fn push_flat(&mut self, join: &Join) {
        let mut relation = join.relation.clone();
        let within = std::mem::take(&mut relation.joins);
        self.push(Join::cross(relation));
        within.into_iter().for_each(|join| self.push(join));
        let Some(last) = self.joins.last_mut() else { return };
        last.on = match (last.on.take(), join.on.clone()) {
            (Some(own), Some(on)) => Some(Expr::Apply(Operator::And, vec![own, on])),
            (own, on) => own.or(on),
        };
    }
}

/// All that stands before a join, as one.
fn before(query: &Query, i: usize) -> Relation {
    // default: there is one, unless it reads nothing, and then it has no joins
    let mut first = query.first_relation().unwrap_or_default();
    first.joins.extend(query.joins.iter().take(i).cloned());
    first
}

/// Whether a join of a join in parentheses is the same without them.
fn is_flat(join: &Join) -> bool {
    let is_plain =
        |join: &Join| join.kind == JoinKind::Inner && join.using.is_empty() && !join.natural;
    let within = &join.relation.joins;
    !within.is_empty()
        && is_plain(join)
        && within.iter().all(|join| is_plain(join) && join.relation.joins.is_empty())
}
