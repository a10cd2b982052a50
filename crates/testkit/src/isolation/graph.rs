//! Which transaction comes before which, as a graph; and ways to look at it.

use super::Dependency;

/// No key: real time has none.
pub(super) const NO_KEY: u32 = u32::MAX;

/// One dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    /// The node that comes first. Nodes are the transactions, then moments of real time.
    pub from: u32,
    /// The node that comes after it.
    pub to: u32,
    /// Why.
    pub dependency: Dependency,
    /// Of which key, as a place in the list of all keys.
    pub key: u32,
}

/// All dependencies, by the node that they leave.
#[derive(Debug, Default)]
pub(super) struct Graph {
    /// How many of the nodes are transactions.
    pub transactions: u32,
    /// Where the edges of a node begin; one more than there are nodes.
    starts: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    /// The graph of so many nodes, the first of them transactions.
    pub fn new(transactions: u32, nodes: u32, mut edges: Vec<Edge>) -> Self {
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to, edge.dependency, edge.key));
        edges.dedup_by_key(|edge| (edge.from, edge.to, edge.dependency));
        let mut starts = Vec::with_capacity(nodes as usize + 1);
        let mut at = 0;
        for node in 0..=nodes {
            while edges.get(at).is_some_and(|edge| edge.from < node) {
                at += 1;
            }
            starts.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        Self { transactions, starts, edges }
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.starts.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// The edges that leave a node.
    pub fn leaving(&self, node: u32) -> &[Edge] {
        let bound = |at: u32| self.starts.get(at as usize).map_or(0, |&start| start as usize);
        self.edges.get(bound(node)..bound(node + 1)).unwrap_or_default()
    }
}

/// Some kinds of dependencies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kinds(u8);

impl Kinds {
    /// Writes over writes.
    pub const WRITES: Self = Self::of(Dependency::Write);
    /// Reads of what was written.
    pub const READS: Self = Self::of(Dependency::Read).and(Self::of(Dependency::PredicateRead));
    /// Anti-dependencies.
    pub const ANTI: Self = Self::of(Dependency::Anti).and(Self::of(Dependency::PredicateAnti));
    /// Real time.
    pub const REAL_TIME: Self = Self::of(Dependency::RealTime);
    /// What data shows.
    pub const DATA: Self = Self::WRITES.and(Self::READS).and(Self::ANTI);
    /// Everything.
    pub const ALL: Self = Self::DATA.and(Self::REAL_TIME);

    const fn of(dependency: Dependency) -> Self {
        Self(1 << dependency as u8)
    }

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a kind is among them.
    pub fn has(self, dependency: Dependency) -> bool {
        self.0 & Self::of(dependency).0 != 0
    }
}

/// A graph as an algorithm walks it. Its places are nodes, or, where anti-dependencies may not
/// follow each other, nodes with how they were entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The dependencies that are walked.
    pub kinds: Kinds,
    /// Whether no anti-dependency follows another.
    pub apart: bool,
    /// Nodes that are left out.
    pub without: Option<&'a [bool]>,
}

impl<'a> View<'a> {
    /// All nodes, by some kinds of dependencies.
    pub fn of(graph: &'a Graph, kinds: Kinds) -> Self {
        Self { graph, kinds, apart: false, without: None }
    }

    /// The same, where no anti-dependency follows another.
    pub fn apart(graph: &'a Graph, kinds: Kinds) -> Self {
        Self { apart: true, ..Self::of(graph, kinds) }
    }

    /// How many places there are.
    pub fn places(&self) -> u32 {
        self.graph.nodes() * if self.apart { 2 } else { 1 }
    }

    /// The node of a place.
    pub fn node(&self, place: u32) -> u32 {
        if self.apart { place / 2 } else { place }
    }

    /// The place that an edge leads to.
    pub fn target(&self, edge: &Edge) -> u32 {
        if self.apart { edge.to * 2 + u32::from(edge.dependency.is_anti()) } else { edge.to }
    }

    /// The edges by which a walk may leave a place.
    pub fn leaving(&self, place: u32) -> impl Iterator<Item = &'a Edge> {
        let view = *self;
        self.graph.leaving(self.node(place)).iter().filter(move |edge| view.leads(place, edge))
    }

    /// Whether a walk may leave a place by an edge of its node.
    pub fn leads(&self, place: u32, edge: &Edge) -> bool {
        let again = self.apart && place % 2 == 1 && edge.dependency.is_anti();
        let out = |node: u32| self.without.is_some_and(|w| w.get(node as usize) == Some(&true));
        self.kinds.has(edge.dependency) && !again && !out(edge.from) && !out(edge.to)
    }
}
