use super::*;

/// A graph of relations of drawn sizes and equalities between some of them.
fn graph(count: usize, pairs: &[(usize, usize)], generator: &mut Generator) -> JoinGraph {
    let relation = |generator: &mut Generator| {
        let rows = generator.pick([1.0, 10.0, 300.0, 5_000.0, 1e6]);
        let passing = rows * generator.pick([1.0, 1.0, 0.3, 0.01]);
        RelationEstimate { rows, passing }
    };
    let relations: Vec<_> = (0..count).map(|_| relation(generator)).collect();
    let edge = |(a, b): &(usize, usize), generator: &mut Generator| Edge {
        relations: bit(*a) | bit(*b),
        sides: Some((bit(*a), bit(*b))),
        share: generator.pick([1.0, 0.1, 1e-3, 1e-6]),
        sought: generator.pick([0, bit(*a), bit(*b)]),
    };
    let edges = pairs.iter().map(|pair| edge(pair, generator)).collect();
    JoinGraph { relations, edges, classes: Vec::new() }
}

fn all(graph: &JoinGraph) -> Set {
    (0..graph.relations.len()).map(bit).sum()
}

/// How many joins of a tree have no condition.
fn products(graph: &JoinGraph, tree: &JoinTree) -> usize {
    let JoinTree::Join(left, right, _) = tree else { return 0 };
    let own = usize::from(graph.connection(left.set(), right.set()) == NOTHING);
    own + products(graph, left) + products(graph, right)
}

fn chain(count: usize) -> Vec<(usize, usize)> {
    (1..count).map(|n| (n - 1, n)).collect()
}

fn star(count: usize) -> Vec<(usize, usize)> {
    (1..count).map(|n| (0, n)).collect()
}

fn clique(count: usize) -> Vec<(usize, usize)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

/// A chain, a star, a clique, or a tree with some more edges, its relations in any order.
fn draw(count: usize, generator: &mut Generator) -> JoinGraph {
    let mut pairs = match generator.index(4) {
        0 => chain(count),
        1 => star(count),
        2 => clique(count),
        _ => {
            let mut pairs: Vec<_> = (1..count).map(|n| (generator.index(n), n)).collect();
            let more = [generator.index(count), generator.index(count)];
            pairs.extend((more[0] != more[1]).then_some((more[0], more[1])));
            pairs
        }
    };
    let mut moved: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        moved.swap(at, generator.index(at + 1));
    }
    pairs.iter_mut().for_each(|(a, b)| (*a, *b) = (moved[*a], moved[*b]));
    let mut graph = graph(count, &pairs, generator);
    if generator.chance(300_000) {
        // Some relations have fields that are equal.
        let members = (0..count).filter(|_| generator.chance(600_000)).collect::<Vec<_>>();
        let values: Vec<_> =
            members.into_iter().map(|n| (n, generator.pick([1.0, 20.0, 400.0]))).collect();
        let relations = values.iter().map(|(n, _)| bit(*n)).sum();
        let sought = if generator.chance(500_000) { relations & 5 } else { 0 };
        graph.classes.push(Class { relations, values, sought });
    }
    graph
}

/// Every tree of a set in which each join has a key.
fn trees(graph: &JoinGraph, set: Set) -> Vec<JoinTree> {
    if set.count_ones() == 1 {
        return vec![JoinTree::Relation(set.trailing_zeros() as usize)];
    }
    let mut all = Vec::new();
    let mut part = (set - 1) & set;
    while part > 0 {
        let rest = set & !part;
        if part & set & set.wrapping_neg() != 0 && graph.connection(part, rest) == KEY {
            for left in trees(graph, part) {
                for right in trees(graph, rest) {
                    all.push(graph.joined(left.clone(), right));
                }
            }
        }
        part = (part - 1) & set;
    }
    all
}

/// Dynamic programming finds what looking at every tree finds.
#[test]
fn the_cheapest_tree_is_the_cheapest_of_all() {
    let generator = &mut Generator::new(1, 1);
    let mut several = 0;
    for case in 0..400 {
        let graph = draw(2 + generator.index(5), generator);
        let found = graph.cheapest();
        assert_eq!(found.set(), all(&graph));
        let every = trees(&graph, all(&graph));
        let costs = every.iter().map(|tree| graph.cost_of(tree));
        let least = costs.fold(f64::INFINITY, f64::min);
        let cost = graph.cost_of(&found);
        assert!(cost <= least * (1.0 + 1e-9), "{case}: {cost} of {found:?}, {least} of {every:?}");
        several += usize::from(every.len() > 50);
    }
    assert!(several > 50, "{several}");
}

/// A component that keys connect is joined before a condition or nothing connects it to others.
#[test]
fn no_tree_has_a_product_that_a_key_avoids() {
    let generator = &mut Generator::new(2, 1);
    for count in [2, 3, 5, 8, 10, 11, 12, 27, RELATIONS_MAX] {
        for pairs in [chain(count), star(count)] {
            let graph = graph(count, &pairs, generator);
            let tree = graph.cheapest();
            let mut leaves = tree.leaves();
            leaves.sort_unstable();
            assert!(leaves.into_iter().eq(0..count), "{tree:?}");
            assert_eq!(products(&graph, &tree), 0, "{tree:?}");
        }
    }
    // Two chains, and a relation that only an inequality leads to.
    let mut pairs = chain(4);
    pairs.extend([(4, 5), (5, 6)]);
    let mut graph = graph(8, &pairs, generator);
    graph.edges.push(Edge { relations: bit(7) | bit(1), sides: None, share: 0.3, sought: 0 });
    let tree = graph.cheapest();
    assert_eq!(products(&graph, &tree), 1, "{tree:?}");
    let JoinTree::Join(left, right, _) = &tree else { panic!("{tree:?}") };
    assert_eq!(products(&graph, left) + products(&graph, right), 0, "{tree:?}");
}

/// A row that passes all conditions of all relations is counted, in whatever order they are joined.
#[test]
fn rows_of_a_set_are_as_many_in_every_tree() {
    let generator = &mut Generator::new(3, 1);
    for _ in 0..50 {
        let graph = draw(4, generator);
        for tree in trees(&graph, all(&graph)) {
            let JoinTree::Join(.., rows) = &tree else { panic!("{tree:?}") };
            assert!((rows - graph.rows(all(&graph))).abs() <= rows * 1e-9, "{tree:?}");
        }
    }
}
