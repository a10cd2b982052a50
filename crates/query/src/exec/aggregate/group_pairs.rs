//! Pairs of groups of two parts of the rows, of which one is added to the other.

/// Calls `add` with what there is here and there of each pair.
pub(super) fn each<T>(
    into: &mut [T],
    from: &[T],
    pairs: &[(u32, u32)],
    mut add: impl FnMut(&mut T, &T),
) {
    for (there, here) in pairs {
        if let (Some(into), Some(from)) = (into.get_mut(*here as usize), from.get(*there as usize))
        {
            add(into, from);
        }
    }
}
