//! Strongly connected components: R. Tarjan's algorithm, with a stack of its own instead of
//! recursion.

use super::graph::View;

/// In no component of several places.
pub(super) const ALONE: u32 = u32::MAX;

/// The components of more than one place.
#[derive(Debug, Default)]
pub(super) struct Components {
    /// The component of each place, or `ALONE`.
    pub of: Vec<u32>,
    /// The places of each component.
    pub members: Vec<Vec<u32>>,
}

impl Components {
    /// Finds them. An edge from a node to itself makes none.
    pub fn find(view: &View<'_>) -> Self {
        let places = view.places();
        let mut search = Search {
            components: Self { of: vec![ALONE; places as usize], members: Vec::new() },
            order: vec![0; places as usize],
            lowest: vec![0; places as usize],
            stack: Vec::new(),
            next: 1,
        };
        let mut walk: Vec<(u32, usize)> = Vec::new();
        for root in 0..places {
            if search.order_of(root) == 0 {
                search.walk(view, root, &mut walk);
            }
        }
        search.components
    }

    /// The component of a place.
    pub fn component(&self, place: u32) -> u32 {
        self.of.get(place as usize).copied().unwrap_or(ALONE)
    }

    /// Whether two places are in one component of several.
    pub fn together(&self, one: u32, other: u32) -> bool {
        let component = self.component(one);
        component != ALONE && component == self.component(other)
    }
}

/// A place whose component is known.
const DONE: u32 = u32::MAX;

struct Search {
    components: Components,
    /// When a place was first met, from 1; 0 if it was not, `DONE` once its component is known.
    order: Vec<u32>,
    /// The earliest place on the stack that is reached from it.
    lowest: Vec<u32>,
    stack: Vec<u32>,
    next: u32,
}

impl Search {
    fn order_of(&self, place: u32) -> u32 {
        self.order.get(place as usize).copied().unwrap_or(DONE)
    }

    fn lower(&mut self, place: u32, to: u32) {
        if let Some(lowest) = self.lowest.get_mut(place as usize) {
            *lowest = (*lowest).min(to);
        }
    }

    fn enter(&mut self, place: u32, walk: &mut Vec<(u32, usize)>) {
        for list in [&mut self.order, &mut self.lowest] {
            if let Some(slot) = list.get_mut(place as usize) {
                *slot = self.next;
            }
        }
        self.next += 1;
        self.stack.push(place);
        walk.push((place, 0));
    }

    fn walk(&mut self, view: &View<'_>, root: u32, walk: &mut Vec<(u32, usize)>) {
        self.enter(root, walk);
        while let Some((place, edge)) = walk.last_mut() {
            let place = *place;
            let leaving = view.graph.leaving(view.node(place));
            let Some(next) = leaving.get(*edge) else {
                walk.pop();
                let lowest = self.lowest.get(place as usize).copied().unwrap_or_default();
                if let Some((parent, _)) = walk.last() {
                    self.lower(*parent, lowest);
                }
                if lowest == self.order_of(place) {
                    self.finish(place);
                }
                continue;
            };
            *edge += 1;
            if !view.leads(place, next) {
                continue;
            }
            let target = view.target(next);
            match self.order_of(target) {
                0 => self.enter(target, walk),
                DONE => {}
                order => self.lower(place, order),
            }
        }
    }

    /// All above a place on the stack are its component.
    fn finish(&mut self, place: u32) {
        let at = self.stack.iter().rposition(|&on| on == place).unwrap_or(0);
        let members = self.stack.split_off(at);
        for &member in &members {
            if let Some(order) = self.order.get_mut(member as usize) {
                *order = DONE;
            }
        }
        if members.len() > 1 {
            let number = u32::try_from(self.components.members.len()).unwrap_or(ALONE);
            for &member in &members {
                if let Some(of) = self.components.of.get_mut(member as usize) {
                    *of = number;
                }
            }
            self.components.members.push(members);
        }
    }
}
