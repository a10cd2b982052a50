//! In which order inner joins run: the tree that is thought to take the least time.
//!
//! ```text
//! relations 0 1 2 3, edges 0–3 1–3 2–3         ((0 ⋈ 3) ⋈ 1) ⋈ 2
//! sets of relations, the smaller first:        best of {0, 3}, {1, 3}, {2, 3}, {0, 1, 3}, …
//! ```
//!
//! Up to [`EXHAUSTIVE_MAX`] relations every tree without a cross product is looked at, by dynamic
//! programming over the connected sets of relations (DPsub: Moerkotte and Neumann, 2006). Beyond,
//! the two relations that have the smallest join are joined first, again and again (GOO: Fegaras,
//! 1998). Where no key connects what is left, a condition does, and where none does, a product.
//!
//! A join takes what it reads of both sides, building the smaller one, and what it makes. The
//! rows of a set of relations are as many whatever tree makes it: the product of the rows of each,
//! and of the share of them that pass each condition. Of fields that are all equal the one with the
//! fewest values counts once.

use std::collections::BTreeMap;

use esker_vfs::sim::Generator;

/// As many relations are ordered by looking at all trees.
const EXHAUSTIVE_MAX: usize = 10;

/// A set of relations by their numbers.
pub(super) type Set = u128;

/// The most relations of a block: there are no sets of more.
pub(super) const RELATIONS_MAX: usize = 128;

/// What a row of a side costs that an index is made of, and one that is looked up.
const BUILD_COST: f64 = 2.0;
const PROBE_COST: f64 = 1.0;
/// What a row costs that comes out.
const OUTPUT_COST: f64 = 2.0;
/// What a row of a table costs that is read, and one that is found by an index.
const SCAN_COST: f64 = 0.3;
const SEEK_COST: f64 = 8.0;
/// With as many keys at most the other side is searched for these alone, by an index or without.
const SOUGHT_MAX: f64 = 2_048.0;

/// What connects two sets of relations, the best first.
const KEY: u8 = 0;
const CONDITION: u8 = 1;
const NOTHING: u8 = 2;

/// What is joined.
#[derive(Debug, Default)]
pub(super) struct JoinGraph {
    pub(super) relations: Vec<RelationEstimate>,
    pub(super) edges: Vec<Edge>,
    pub(super) classes: Vec<Class>,
}

/// Fields that are all equal, each of another relation: two sets with one each have a key.
#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) relations: Set,
    /// The relation of each, and about how many values it has.
    pub(super) values: Vec<(usize, f64)>,
    /// The relations whose rows an index finds by it.
    pub(super) sought: Set,
}

/// A relation, before it is joined.
#[derive(Clone, Debug, Default)]
pub(super) struct RelationEstimate {
    /// About how many rows there are, and pass its own conditions.
    pub(super) rows: f64,
    pub(super) passing: f64,
}

/// Any other condition on several relations.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub(super) relations: Set,
    /// Of an equality: the relations of both sides, where no relation is on both.
    pub(super) sides: Option<(Set, Set)>,
    /// The share of rows that pass.
    pub(super) share: f64,
    /// Of an equality: the relations whose rows an index finds by it.
    pub(super) sought: Set,
}

/// An order of joins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JoinTree {
    Relation(usize),
    /// Left, right, and about how many rows come out.
    Join(Box<Self>, Box<Self>, f64),
}

/// The best tree of a set.
#[derive(Clone, Copy, Debug)]
struct Best {
    cost: f64,
    rows: f64,
    /// The two sets that are joined, of the first relations; 0 for one relation.
    sides: (usize, usize),
}

impl JoinTree {
    /// The relations from left to right: rows come in the order of the first, then of the next.
    pub(super) fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.push_leaves(&mut leaves);
        leaves
    }

    fn push_leaves(&self, leaves: &mut Vec<usize>) {
        match self {
            Self::Relation(number) => leaves.push(*number),
            Self::Join(left, right, _) => {
                left.push_leaves(leaves);
                right.push_leaves(leaves);
            }
        }
    }

    /// Whether rows come in the order of the relations as they are written.
    pub(super) fn is_as_written(&self) -> bool {
        self.leaves().is_sorted()
    }

    pub(super) fn set(&self) -> Set {
        match self {
            Self::Relation(number) => bit(*number),
            Self::Join(left, right, _) => left.set() | right.set(),
        }
    }
}

pub(super) fn bit(relation: usize) -> Set {
    1 << relation
}

fn is_within(part: Set, whole: Set) -> bool {
    part & !whole == 0
}

fn relations_of(set: Set) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let relation = (left != 0).then(|| left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(relation)
    })
}

impl Class {
    /// Whether two sets have a field each.
    pub(super) fn is_key(&self, left: Set, right: Set) -> bool {
        self.relations & left != 0 && self.relations & right != 0
    }
}

impl Edge {
    /// Whether rows of two sets that belong together are found by it.
    pub(super) fn is_key(&self, left: Set, right: Set) -> bool {
        self.sides.is_some_and(|(a, b)| {
            is_within(a, left) && is_within(b, right) || is_within(b, left) && is_within(a, right)
        })
    }

    /// Whether it is tested when two sets are joined.
    pub(super) fn is_tested(&self, left: Set, right: Set) -> bool {
        is_within(self.relations, left | right)
            && !is_within(self.relations, left)
            && !is_within(self.relations, right)
    }
}

impl JoinGraph {
    /// As it is written, from the left.
    pub(super) fn as_written(&self) -> JoinTree {
        let mut tree = JoinTree::Relation(0);
        for relation in 1..self.relations.len() {
            tree = self.joined(tree, JoinTree::Relation(relation));
        }
        tree
    }

    /// The tree that is thought to be the cheapest.
    pub(super) fn cheapest(&self) -> JoinTree {
        let mut forest = match self.relations.len() <= EXHAUSTIVE_MAX {
            true => self.by_component(),
            false => (0..self.relations.len()).map(JoinTree::Relation).collect(),
        };
        // What connects two of them, by their places in `forest`, and how many rows that makes.
        let mut pairs: BTreeMap<(usize, usize), (u8, f64)> = BTreeMap::new();
        let mut alive: Vec<Option<(JoinTree, Set)>> = Vec::new();
        for tree in forest.drain(..) {
            self.add_tree(tree, &mut alive, &mut pairs);
        }
        loop {
            let by_rank = |a: &(u8, f64), b: &(u8, f64)| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1));
            let best = pairs.iter().min_by(|(_, a), (_, b)| by_rank(a, b)).map(|(pair, _)| *pair);
            let Some((i, j)) = best.or_else(|| self.smallest_product(&alive)) else { break };
            pairs.retain(|(a, b), _| ![i, j].contains(a) && ![i, j].contains(b));
            let taken = [i, j].map(|at| alive.get_mut(at).and_then(Option::take));
            if let [Some((left, _)), Some((right, _))] = taken {
                self.add_tree(self.joined(left, right), &mut alive, &mut pairs);
            }
        }
        // default: there is one relation at least
        let last = alive.into_iter().flatten().next();
        last.map_or(JoinTree::Relation(0), |(tree, _)| tree)
    }

    /// The two trees that have the smallest product.
    fn smallest_product(&self, alive: &[Option<(JoinTree, Set)>]) -> Option<(usize, usize)> {
        let sets =
            || alive.iter().enumerate().filter_map(|(at, tree)| Some((at, tree.as_ref()?.1)));
        let pairs = sets().flat_map(|(i, a)| {
            sets().filter(move |(j, _)| i < *j).map(move |(j, b)| ((i, j), self.rows(a | b)))
        });
        pairs.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(pair, _)| pair)
    }

    /// Adds a tree, and what connects it to each other one, where that is a condition.
    fn add_tree(
        &self,
        tree: JoinTree,
        alive: &mut Vec<Option<(JoinTree, Set)>>,
        pairs: &mut BTreeMap<(usize, usize), (u8, f64)>,
    ) {
        let (set, own) = (tree.set(), alive.len());
        for (at, other) in alive.iter().enumerate() {
            let Some((_, other)) = other else { continue };
            let connection = self.connection(*other, set);
            if connection != NOTHING {
                pairs.insert((at, own), (connection, self.rows(other | set)));
            }
        }
        alive.push(Some((tree, set)));
    }

    /// Any tree, for tests.
    pub(super) fn random(&self, seed: u64) -> JoinTree {
        let generator = &mut Generator::new(seed, 71);
        let mut forest: Vec<_> = (0..self.relations.len()).map(JoinTree::Relation).collect();
        while forest.len() > 1 {
            let left = forest.swap_remove(generator.index(forest.len()));
            let is_near = |right: &JoinTree| self.connection(left.set(), right.set()) == KEY;
            let near: Vec<usize> =
                (0..forest.len()).filter(|at| forest.get(*at).is_some_and(is_near)).collect();
            let any = generator.index(forest.len());
            let at = near.get(generator.index(near.len().max(1))).copied().unwrap_or(any);
            let right = forest.swap_remove(at);
            let rows = self.rows(left.set() | right.set());
            forest.push(JoinTree::Join(Box::new(left), Box::new(right), rows));
        }
        // default: there is one relation at least
        forest.pop().unwrap_or(JoinTree::Relation(0))
    }

    /// What connects two sets: [`KEY`], [`CONDITION`] or [`NOTHING`].
    fn connection(&self, left: Set, right: Set) -> u8 {
        if self.has_key(left, right) {
            return KEY;
        }
        let is_tested = self.edges.iter().any(|edge| edge.is_tested(left, right));
        if is_tested { CONDITION } else { NOTHING }
    }

    fn has_key(&self, left: Set, right: Set) -> bool {
        self.classes.iter().any(|class| class.is_key(left, right))
            || self.edges.iter().any(|edge| edge.is_key(left, right))
    }

    /// How many joins of a tree have no condition though a key leads on from one of their sides.
    pub(super) fn early_products(&self, tree: &JoinTree, all: Set) -> usize {
        let JoinTree::Join(left, right, _) = tree else { return 0 };
        let (left_set, right_set) = (left.set(), right.set());
        let both = left_set | right_set;
        let is_early =
            self.connection(left_set, right_set) == NOTHING && self.has_key(both, all & !both);
        usize::from(is_early) + self.early_products(left, all) + self.early_products(right, all)
    }

    /// A join of two trees, that with the first relation on the left.
    fn joined(&self, a: JoinTree, b: JoinTree) -> JoinTree {
        let (a_set, b_set) = (a.set(), b.set());
        let is_first = a_set.trailing_zeros() < b_set.trailing_zeros();
        let (left, right) = if is_first { (a, b) } else { (b, a) };
        JoinTree::Join(Box::new(left), Box::new(right), self.rows(a_set | b_set))
    }

    /// About how many rows a set of relations has, joined.
    pub(super) fn rows(&self, set: Set) -> f64 {
        let mut rows = 1.0;
        for relation in relations_of(set) {
            rows *= self.relations.get(relation).map_or(1.0, |r| r.passing.max(1.0));
        }
        for class in &self.classes {
            let (mut product, mut least) = (1.0, f64::INFINITY);
            for (relation, values) in &class.values {
                if set & bit(*relation) != 0 {
                    let values = values.max(1.0);
                    (product, least) = (product * values, values.min(least));
                }
            }
            if least.is_finite() {
                rows *= least / product;
            }
        }
        let tested = |edge: &&Edge| is_within(edge.relations, set);
        rows *= self.edges.iter().filter(tested).map(|edge| edge.share).product::<f64>();
        rows.max(1.0)
    }

    /// What joining two sets takes, beside what making them takes.
    fn cost(
        &self,
        (left, left_rows): (Set, f64),
        (right, right_rows): (Set, f64),
        out: f64,
    ) -> f64 {
        let is_left_built = left_rows * 2.0 < right_rows;
        let (build, probe) = match is_left_built {
            true => ((left, left_rows), (right, right_rows)),
            false => ((right, right_rows), (left, left_rows)),
        };
        self.reading(build.0, None)
            + self.reading(probe.0, Some(build))
            + BUILD_COST * build.1
            + PROBE_COST * probe.1
            + OUTPUT_COST * out
    }

    /// What reading a relation takes; what has been joined lies in memory. Few rows that are sought
    /// are found by an index.
    fn reading(&self, set: Set, sought: Option<(Set, f64)>) -> f64 {
        if set & set.wrapping_sub(1) != 0 {
            return 0.0;
        }
        let Some(relation) = self.relations.get(set.trailing_zeros() as usize) else { return 0.0 };
        let scan = relation.rows * SCAN_COST;
        let Some((by, rows)) = sought.filter(|(_, rows)| *rows <= SOUGHT_MAX) else { return scan };
        let is_found = |edge: &Edge| edge.sought & set != 0 && edge.is_key(by, set);
        let is_class = |class: &Class| class.sought & set != 0 && class.relations & by != 0;
        match self.edges.iter().any(is_found) || self.classes.iter().any(is_class) {
            true => scan.min(rows * SEEK_COST),
            false => scan,
        }
    }

    /// The best tree of each set of relations that keys connect, of those that no other holds.
    fn by_component(&self) -> Vec<JoinTree> {
        let all = (1usize << self.relations.len()) - 1;
        let mut best: Vec<Option<Best>> = Vec::new();
        best.resize_with(all + 1, || None);
        let near = self.neighbours();
        let key = |edge: &&Edge| edge.sides.is_some() && edge.relations.count_ones() > 2;
        let wide: Vec<&Edge> = self.edges.iter().filter(key).collect();
        for set in 1..=all {
            let found = match set.is_power_of_two() {
                true => Some(Best { cost: 0.0, rows: self.rows(set as Set), sides: (0, 0) }),
                false => self.best_of(set, &best, (&near, &wide)),
            };
            best.get_mut(set).into_iter().for_each(|slot| *slot = found);
        }
        if let Some(Some(_)) = best.last() {
            return vec![self.tree(all, &best)];
        }
        let (mut forest, mut left) = (Vec::new(), all);
        let mut sets: Vec<usize> =
            (1..=all).filter(|set| matches!(best.get(*set), Some(Some(_)))).collect();
        sets.sort_by_key(|set| std::cmp::Reverse(set.count_ones()));
        for set in sets {
            if set & !left == 0 {
                left &= !set;
                forest.push(self.tree(set, &best));
            }
        }
        forest
    }

    /// For each set of few relations, those that a key of two relations leads to.
    fn neighbours(&self) -> Vec<usize> {
        let keys = self.edges.iter().filter_map(|edge| edge.sides);
        let pairs: Vec<_> =
            keys.filter(|(a, b)| a.count_ones() == 1 && b.count_ones() == 1).collect();
        let all = (1usize << self.relations.len()) - 1;
        let mut near: Vec<usize> = vec![0; all + 1];
        for set in 1..near.len() {
            let first = set & set.wrapping_neg();
            let relation = first as Set;
            let mut own: Set = 0;
            for (a, b) in &pairs {
                own |= if *a == relation { *b } else { 0 } | if *b == relation { *a } else { 0 };
            }
            for class in self.classes.iter().filter(|class| class.relations & relation != 0) {
                own |= class.relations;
            }
            let others = near.get(set & !first).copied().unwrap_or_default();
            #[allow(clippy::cast_possible_truncation, reason = "a set of few relations")]
            let own = own as usize & all;
            near.get_mut(set).into_iter().for_each(|near| *near = own | others);
        }
        near
    }

    /// The best way to split a set into two that a key connects. A split of which the two sides
    /// alone take more than another in whole is left out at once: where all relations are connected
    /// with all, as in a star whose keys are equal, there are 3ⁿ splits.
    fn best_of(
        &self,
        set: usize,
        best: &[Option<Best>],
        (near, wide): (&[usize], &[&Edge]),
    ) -> Option<Best> {
        let first = set & set.wrapping_neg();
        let others = set & !first;
        let (mut found, mut rows): (Option<Best>, Option<f64>) = (None, None);
        // Every part with the first relation in it, the others being its rest.
        let mut beside_first = others;
        while beside_first > 0 {
            beside_first = (beside_first - 1) & others;
            let (left, right) = (first | beside_first, others & !beside_first);
            let (Some(Some(l)), Some(Some(r))) = (best.get(left), best.get(right)) else {
                continue;
            };
            let of_sides = l.cost + r.cost;
            if found.is_some_and(|known| of_sides >= known.cost) {
                continue;
            }
            let (left_set, right_set) = (left as Set, right as Set);
            let is_near = near.get(left).is_some_and(|near| near & right != 0);
            if !is_near && !wide.iter().any(|edge| edge.is_key(left_set, right_set)) {
                continue;
            }
            let out = *rows.get_or_insert_with(|| self.rows(set as Set));
            let cost = of_sides + self.cost((left_set, l.rows), (right_set, r.rows), out);
            if found.is_none_or(|known| cost < known.cost) {
                found = Some(Best { cost, rows: out, sides: (left, right) });
            }
        }
        found
    }

    fn tree(&self, set: usize, best: &[Option<Best>]) -> JoinTree {
        match best.get(set) {
            Some(Some(Best { sides: (left, right), .. })) if *left != 0 => {
                self.joined(self.tree(*left, best), self.tree(*right, best))
            }
            _ => JoinTree::Relation(set.trailing_zeros() as usize),
        }
    }

    /// What a tree takes.
    pub(super) fn cost_of(&self, tree: &JoinTree) -> f64 {
        let JoinTree::Join(left, right, rows) = tree else { return 0.0 };
        let side = |tree: &JoinTree| (tree.set(), self.rows(tree.set()));
        let is_key = self.connection(left.set(), right.set()) == KEY;
        let (l, r) = (side(left), side(right));
        let pairs = if is_key { 0.0 } else { l.1 * r.1 };
        self.cost_of(left) + self.cost_of(right) + self.cost(l, r, *rows) + pairs
    }
}

#[cfg(test)]
mod tests;
