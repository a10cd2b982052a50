//! Feeding rows to accumulators: with a group per row, or all to the only group.

use super::{
    Accumulator, Extremes, FloatLanes, State, WordSet, grouped, kernels, pairs, sketch, spans,
    spread,
};
use esker_format::ValueRef;
use esker_format::key::one_spelling;

use crate::Result;
use crate::bound::{Bound, Node};
use crate::evaluate::{Lanes, Mask, Picked, Rows, Vector, evaluate};
use crate::exec::aggregate::group::{GroupIds, KeyTable, encode};

impl Accumulator {
    /// Counts `rows` rows of group 0, none of them NULL.
    pub(crate) fn add_rows(&mut self, rows: u64) {
        if let State::Rows(counts) | State::Values(counts) = &mut self.state {
            counts.first_mut().into_iter().for_each(|first| *first += rows);
        }
    }

    /// Adds rows, row `i` of the selection to its group. There is room for the groups.
    pub(crate) fn update(&mut self, groups: &GroupIds<'_>, vector: Option<&Vector<'_>>) {
        let unit = self.unit as f64;
        match (&mut self.state, vector) {
            (State::Rows(counts), _) => grouped::count(counts, groups, None),
            (_, None) => {}
            (State::Values(counts), Some(vector)) => {
                grouped::count(counts, groups, vector.nulls.as_deref());
            }
            (State::Distinct(table), Some(vector)) => {
                add_distinct(table, groups.numbers(), vector);
            }
            (State::Words(words), Some(vector)) => add_words(words, groups.numbers(), vector),
            (State::Integers { sums, counts }, Some(vector)) => {
                let nulls = vector.nulls.as_deref();
                grouped::count(counts, groups, nulls);
                match &vector.lanes {
                    Lanes::Ints(v) => grouped::sum_integers(sums, groups, v, nulls),
                    Lanes::Uints(v) => grouped::sum_integers(sums, groups, v, nulls),
                    _ => {}
                }
            }
            (State::Wides { high, low, counts }, Some(vector)) => {
                let nulls = vector.nulls.as_deref();
                grouped::count(counts, groups, nulls);
                if let Lanes::Wides(values) = &vector.lanes {
                    let low_half = i128::from(u64::MAX);
                    let halves: Vec<_> = values.iter().map(|v| v & low_half).collect();
                    grouped::sum_integers(low, groups, &halves, nulls);
                    let halves: Vec<_> = values.iter().map(|v| v >> 64).collect();
                    grouped::sum_integers(high, groups, &halves, nulls);
                }
            }
            (State::Floats { sums, counts, .. }, Some(vector)) => {
                let nulls = vector.nulls.as_deref();
                grouped::count(counts, groups, nulls);
                if let Lanes::Floats(values) = &vector.lanes {
                    grouped::sum_floats(sums, groups, values, nulls);
                }
            }
            (State::Extremes(extremes), Some(vector)) => {
                extremes.update(groups.numbers(), vector);
            }
            (State::Taken(taken), Some(vector)) => taken.update(groups.numbers(), vector),
            (State::Moments(all), Some(vector)) => {
                for (i, group) in groups.numbers().iter().enumerate() {
                    if let (Some(moments), Some(value)) =
                        (all.get_mut(*group as usize), spread::number(vector, unit, i))
                    {
                        moments.add(value);
                    }
                }
            }
            (State::Numbers(all), Some(vector)) => {
                for (i, group) in groups.numbers().iter().enumerate() {
                    if let (Some(values), Some(value)) =
                        (all.get_mut(*group as usize), spread::number(vector, unit, i))
                    {
                        values.push(value);
                    }
                }
            }
            (state, Some(vector)) => update_more(state, groups.numbers(), vector, unit),
        }
    }

    /// Adds the rows of a mask to group 0, which there is.
    pub(crate) fn update_all<'a>(
        &mut self,
        operand: Option<&'a Bound>,
        rows: &Rows<'a>,
        mask: &Mask,
    ) -> Result<()> {
        let Some(operand) = operand else {
            if let State::Rows(counts) = &mut self.state {
                add(counts, mask.count());
            }
            return Ok(());
        };
        if let Node::Field(position) = operand.node
            && self.update_from_column(position, rows, mask)?
        {
            return Ok(());
        }
        let picked = Picked::of(mask);
        let selection = picked.selection();
        let vector = evaluate(operand, rows, selection)?;
        if let State::Floats { counts, lanes, .. } = &mut self.state {
            let Lanes::Floats(values) = &vector.lanes else { return Ok(()) };
            let lanes = lanes.get_or_insert_with(|| Box::new(FloatLanes::default()));
            let nulls = vector.nulls.as_ref().map_or(0, |n| n.iter().filter(|n| **n).count());
            add(counts, values.len() - nulls);
            match &vector.nulls {
                None => lanes.add(values, selection, rows.start()),
                Some(nulls) => {
                    // Computed rows hold anything where they are NULL.
                    let zeroed =
                        values.iter().zip(nulls).map(|(v, null)| if *null { 0.0 } else { *v });
                    lanes.add(&zeroed.collect::<Vec<_>>(), selection, rows.start());
                }
            }
            return Ok(());
        }
        if let (State::Extremes(extremes), Lanes::Floats(values), None) =
            (&mut self.state, &vector.lanes, &vector.nulls)
        {
            let best = kernels::extreme_float(values, extremes.is_greatest());
            best.into_iter().for_each(|best| extremes.offer_first(ValueRef::Float(best)));
            return Ok(());
        }
        self.update(&GroupIds::from_numbers(vec![0; vector.len()], 1), Some(&vector));
        Ok(())
    }

    /// Adds the rows of a mask straight from an encoded column; false when there is no kernel.
    fn update_from_column(
        &mut self,
        position: usize,
        rows: &Rows<'_>,
        mask: &Mask,
    ) -> Result<bool> {
        if !matches!(self.state, State::Values(_) | State::Integers { .. } | State::Extremes(_)) {
            return Ok(false);
        }
        let column = rows.column(position)?;
        let mut mask = mask.clone();
        mask.and(&Mask::valid(&column.validity, mask.len()));
        if matches!(column.data, esker_format::Data::Constant(ValueRef::Null)) {
            mask.clear();
        }
        match &mut self.state {
            State::Values(counts) => add(counts, mask.count()),
            State::Integers { sums, counts } => {
                let count = mask.count();
                let sum = if count == 0 { Some(0) } else { kernels::sum_integers(&column, &mask) };
                let Some(sum) = sum else { return Ok(false) };
                sums.first_mut().into_iter().for_each(|first| *first += sum);
                add(counts, count);
            }
            State::Extremes(extremes) => {
                return Ok(offer_extreme(extremes, &column, &mask));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Adds rows to what is kept of values one by one.
fn update_more(state: &mut State, groups: &[u32], vector: &Vector<'_>, unit: f64) {
    match state {
        State::Listed(listed) => listed.update(groups, vector),
        State::Bits(bits) => bits.update(groups, vector),
        State::Spans(all) => spans::update(all, groups, vector),
        State::Pairs(all) => {
            for (i, group) in groups.iter().enumerate() {
                if let (Some(into), Some((x, y))) =
                    (all.get_mut(*group as usize), pairs::numbers(vector, i))
                {
                    into.add(x, y);
                }
            }
        }
        State::Products(all) => {
            for (i, group) in groups.iter().enumerate() {
                if let (Some(into), Some(value)) =
                    (all.get_mut(*group as usize), spread::number(vector, unit, i))
                {
                    *into = Some(into.unwrap_or(1.0) * value);
                }
            }
        }
        State::Sketches(all) => {
            let mut key = Vec::new();
            let all_rows = groups.iter().enumerate();
            for (i, group) in all_rows.filter(|(i, _)| !vector.is_null(*i)) {
                if let Some(into) = all.get_mut(*group as usize) {
                    into.add(sketch::hash(vector, i, &mut key));
                }
            }
        }
        _ => {}
    }
}

fn offer_extreme(
    extremes: &mut Extremes,
    column: &esker_format::ColumnSlice<'_>,
    mask: &Mask,
) -> bool {
    match kernels::extreme(column, mask, extremes.is_greatest()) {
        Ok(Some(value)) => extremes.offer_first(value),
        Ok(None) => {}
        Err(()) => return false,
    }
    true
}

fn add(counts: &mut [u64], count: usize) {
    counts.first_mut().into_iter().for_each(|first| *first += count as u64);
}

fn add_words(words: &mut WordSet, groups: &[u32], vector: &Vector<'_>) {
    fn pairs<'v, T: Copy>(
        groups: &'v [u32],
        values: &'v [T],
        word: impl Fn(T) -> u64 + 'v,
    ) -> impl Iterator<Item = (u32, u64)> + 'v {
        groups.iter().copied().zip(values.iter().map(move |value| word(*value)))
    }
    macro_rules! add {
        ($pairs:expr) => {
            match &vector.nulls {
                None => words.add($pairs),
                Some(nulls) => {
                    let known = $pairs.zip(nulls).filter(|(_, null)| !**null);
                    words.add(known.map(|(pair, _)| pair));
                }
            }
        };
    }
    match &vector.lanes {
        Lanes::Ints(values) => add!(pairs(groups, values, i64::cast_unsigned)),
        Lanes::Uints(values) => add!(pairs(groups, values, |value| value)),
        Lanes::Floats(values) => add!(pairs(groups, values, |v| one_spelling(v).to_bits())),
        Lanes::Bools(values) => add!(pairs(groups, values, u64::from)),
        Lanes::Wides(_) | Lanes::Bytes(_) => {}
    }
}

fn add_distinct(table: &mut KeyTable, groups: &[u32], vector: &Vector<'_>) {
    let mut key = Vec::new();
    for i in (0..vector.len()).filter(|i| !vector.is_null(*i)) {
        key.clear();
        let group = groups.get(i).copied().unwrap_or_default();
        key.extend_from_slice(&group.to_le_bytes());
        encode(&mut key, vector, i);
        table.number(&key);
    }
}
