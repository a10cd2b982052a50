//! Cycles of dependencies, found in components and named.
//!
//! ```text
//! components where no two anti-dependencies follow each other, real time included
//!     writes alone                          G0
//!     writes and reads                      G1c
//!     one anti-dependency                   G-single
//!     several                               long fork
//!     none without real time                stale read
//! components of what data shows             with two anti-dependencies in a row
//!     two transactions                      write skew
//!     by a predicate                        G2
//!     no component but for one that reads   read-only anomaly
//!     others                                G2-item
//! components with real time, too            real-time skew
//! ```
//!
//! From some dependencies of a component the shortest way back is searched, and each cycle counts
//! once. A component has some at least, so none goes unnamed; that many are searched at most keeps
//! all of it linear.

use std::collections::BTreeSet;

use super::components::Components;
use super::graph::{Edge, Graph, Kinds, View};
use super::{Anomaly, Dependency, Finding, History, Key, Step, Verdict};

/// From how many dependencies of a component a cycle of each kind is searched.
const STARTS_MAX: usize = 48;

/// Adds all cycles to what was found.
pub(super) fn find(history: &History, graph: &Graph, keys: &[Key], verdict: Verdict) -> Verdict {
    let nodes = graph.nodes() as usize;
    let mut search = Search {
        history,
        graph,
        keys,
        seen: vec![0; nodes * 2],
        round: 0,
        within: vec![0; nodes],
        component: 0,
        known: BTreeSet::new(),
        verdict,
    };
    search.apart();
    let data = View::of(graph, Kinds::DATA);
    let components = Components::find(&data);
    if !components.members.is_empty() {
        search.in_a_row(&data, &components);
    }
    search.by_real_time(&components);
    search.verdict
}

struct Search<'a> {
    history: &'a History,
    graph: &'a Graph,
    keys: &'a [Key],
    /// For each place, in which round a search last came to it.
    seen: Vec<u32>,
    round: u32,
    /// For each node, the last component that it was in.
    within: Vec<u32>,
    component: u32,
    /// The cycles that were found, as their transactions in order of number.
    known: BTreeSet<Vec<u32>>,
    verdict: Verdict,
}

impl Search<'_> {
    /// The violations of snapshot isolation, and of what is weaker.
    fn apart(&mut self) {
        let graph = self.graph;
        let all = View::apart(graph, Kinds::ALL);
        let components = Components::find(&all);
        let writes = View::of(graph, Kinds::WRITES);
        let writes_and_reads = View::of(graph, Kinds::WRITES.and(Kinds::READS));
        let data = View::apart(graph, Kinds::DATA);
        // Which dependency a cycle begins with, and by which it goes on; the plainest first.
        let kinds = [
            (Kinds::WRITES, writes),
            (Kinds::READS, writes_and_reads),
            (Kinds::ANTI, writes_and_reads),
            (Kinds::ANTI, data),
        ];
        for members in &components.members {
            let inside = self.enter(&all, &components, members);
            let mut found = false;
            for (first, view) in &kinds {
                let starts = inside.iter().filter(|edge| first.has(edge.dependency));
                for edge in spread(&starts.copied().collect::<Vec<_>>()) {
                    found |= self.name_apart(view, &edge);
                }
            }
            if !found {
                for edge in spread(&inside) {
                    self.name_apart(&all, &edge);
                }
            }
        }
    }

    /// Names a cycle where no anti-dependency follows another; false when there is none.
    fn name_apart(&mut self, view: &View<'_>, first: &Edge) -> bool {
        let Some(cycle) = self.way_back(view, first) else { return false };
        let any = |kinds: Kinds| cycle.iter().any(|edge| kinds.has(edge.dependency));
        let anomaly = match cycle.iter().filter(|edge| edge.dependency.is_anti()).count() {
            _ if any(Kinds::REAL_TIME) => Anomaly::StaleRead,
            0 if any(Kinds::READS) => Anomaly::G1c,
            0 => Anomaly::G0,
            1 => Anomaly::GSingle,
            _ => Anomaly::LongFork,
        };
        // Of one key it is a lost update or a read that is not repeatable, and has been counted.
        let one_key = matches!(cycle.as_slice(), [one, other] if one.key == other.key);
        if anomaly != Anomaly::GSingle || !one_key {
            self.add(anomaly, &cycle);
        }
        true
    }

    /// The violations of serializability alone.
    fn in_a_row(&mut self, data: &View<'_>, components: &Components) {
        let reads_only: Vec<bool> =
            self.history.transactions.iter().map(|made| !made.is_write()).collect();
        let of_writers = Components::find(&View { without: Some(&reads_only), ..*data });
        for members in &components.members {
            let mut inside = self.enter(data, components, members);
            inside.retain(|edge| edge.dependency.is_anti());
            for edge in spread(&inside) {
                let Some(cycle) = self.way_back(data, &edge).filter(|cycle| has_row(cycle)) else {
                    continue;
                };
                let reads = cycle.iter().any(|e| reads_only.get(e.from as usize) == Some(&true));
                let together = cycle.iter().enumerate().any(|(at, one)| {
                    let others = cycle.iter().skip(at + 1);
                    others.into_iter().any(|other| of_writers.together(one.from, other.from))
                });
                let anomaly = if reads && !together {
                    Anomaly::ReadOnly
                } else if cycle.iter().any(|edge| edge.dependency == Dependency::PredicateAnti) {
                    Anomaly::G2
                } else if cycle.len() == 2 {
                    Anomaly::WriteSkew
                } else {
                    Anomaly::G2Item
                };
                self.add(anomaly, &cycle);
            }
        }
    }

    /// What is serializable, but not in the order of real time.
    fn by_real_time(&mut self, of_data: &Components) {
        let all = View::of(self.graph, Kinds::ALL);
        let components = Components::find(&all);
        for members in &components.members {
            let mut inside = self.enter(&all, &components, members);
            inside
                .retain(|edge| edge.dependency.is_anti() && !of_data.together(edge.from, edge.to));
            for edge in spread(&inside) {
                if let Some(cycle) = self.way_back(&all, &edge).filter(|cycle| has_row(cycle)) {
                    self.add(Anomaly::RealTimeSkew, &cycle);
                }
            }
        }
    }

    /// Looks at one component from now on. The edges within it.
    fn enter(&mut self, view: &View<'_>, components: &Components, members: &[u32]) -> Vec<Edge> {
        self.component += 1;
        let mut inside = Vec::new();
        for &place in members {
            if let Some(within) = self.within.get_mut(view.node(place) as usize) {
                *within = self.component;
            }
            let leaving = view.leaving(place);
            inside.extend(leaving.filter(|edge| components.together(place, view.target(edge))));
        }
        inside
    }

    /// A shortest cycle of the component that begins with an edge.
    fn way_back(&mut self, view: &View<'_>, first: &Edge) -> Option<Vec<Edge>> {
        self.round += 1;
        let is_goal = |edge: &Edge| {
            let again = view.apart && first.dependency.is_anti() && edge.dependency.is_anti();
            edge.to == first.from && !again
        };
        // Each place with the one before it in this list, and the edge between them.
        let mut reached = vec![(view.target(first), 0, *first)];
        let mut next = 0;
        while let Some((place, _, _)) = reached.get(next).copied() {
            for edge in view.leaving(place) {
                if is_goal(edge) {
                    return Some(traced(&reached, next, edge));
                }
                if self.within.get(edge.to as usize) != Some(&self.component) {
                    continue;
                }
                let target = view.target(edge);
                let Some(seen) = self.seen.get_mut(target as usize) else { continue };
                if *seen != self.round {
                    *seen = self.round;
                    reached.push((target, next, *edge));
                }
            }
            next += 1;
        }
        None
    }

    /// Counts a cycle that is not known yet.
    fn add(&mut self, anomaly: Anomaly, cycle: &[Edge]) {
        let cycle = self.steps(cycle);
        let transactions: Vec<u32> = cycle.iter().map(|step| step.from).collect();
        let mut sorted = transactions.clone();
        sorted.sort_unstable();
        if self.known.insert(sorted) {
            let what = format!("a circle of {} transactions", transactions.len());
            self.verdict.add(anomaly, || Finding { anomaly, transactions, cycle, what });
        }
    }

    /// The cycle from transaction to transaction: several moments of real time are one step.
    fn steps(&self, cycle: &[Edge]) -> Vec<Step> {
        let is_transaction = |node: u32| node < self.graph.transactions;
        let from_transactions = cycle.iter().filter(|edge| is_transaction(edge.from));
        from_transactions
            .map(|edge| Step {
                from: edge.from,
                dependency: edge.dependency,
                key: self.keys.get(edge.key as usize).copied(),
            })
            .collect()
    }
}

/// The edges that led to a place, and one more.
fn traced(reached: &[(u32, usize, Edge)], mut at: usize, last: &Edge) -> Vec<Edge> {
    let mut cycle = vec![*last];
    while let Some((_, before, edge)) = reached.get(at) {
        cycle.push(*edge);
        if at == 0 {
            break;
        }
        at = *before;
    }
    cycle.reverse();
    cycle
}

/// Whether two anti-dependencies follow each other.
fn has_row(cycle: &[Edge]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    cycle.iter().zip(next).any(|(one, other)| {
        one.dependency.is_anti() && other.dependency.is_anti() && cycle.len() > 1
    })
}

/// Some of the edges, from all parts of the list.
fn spread(edges: &[Edge]) -> Vec<Edge> {
    let step = edges.len().div_ceil(STARTS_MAX).max(1);
    edges.iter().step_by(step).copied().collect()
}
