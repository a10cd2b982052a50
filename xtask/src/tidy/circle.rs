//! Circles of imports: files that lead back to themselves (strongly connected components, by
//! Tarjan's algorithm: R. Tarjan, *Depth-first search and linear graph algorithms*, 1972).

use std::collections::BTreeSet;

/// The components of more than one node, the largest first; each sorted.
#[must_use]
pub fn circles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let mut search = Search { edges, nodes: vec![None; edges.len()], ..Search::default() };
    for node in 0..edges.len() {
        if search.nodes.get(node).is_some_and(Option::is_none) {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort_by_key(|component| std::cmp::Reverse(component.len()));
    found
}

#[derive(Default)]
struct Search<'a> {
    edges: &'a [BTreeSet<usize>],
    /// Of each visited node: its number, and the lowest number that it leads to.
    nodes: Vec<Option<(usize, usize)>>,
    stack: Vec<usize>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    /// Returns the lowest number that `node` leads to.
    fn visit(&mut self, node: usize) -> usize {
        let number = self.count;
        self.count += 1;
        let mut lowest = number;
        self.set(node, number, lowest);
        self.stack.push(node);
        for &next in self.edges.get(node).into_iter().flatten() {
            match self.nodes.get(next).copied().flatten() {
                None => lowest = lowest.min(self.visit(next)),
                Some((number, _)) if self.stack.contains(&next) => lowest = lowest.min(number),
                Some(_) => {}
            }
        }
        self.set(node, number, lowest);
        if lowest == number {
            let start = self.stack.iter().position(|&other| other == node);
            let mut component = self.stack.split_off(start.unwrap_or(self.stack.len()));
            component.sort_unstable();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
        lowest
    }

    fn set(&mut self, node: usize, number: usize, lowest: usize) {
        if let Some(place) = self.nodes.get_mut(node) {
            *place = Some((number, lowest));
        }
    }
}
