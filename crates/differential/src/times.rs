//! Whether the times that `EXPLAIN ANALYZE` tells add up.

use esker_query::{ExplainedInput, Explanation};

/// Milliseconds that rounding nanoseconds to them may lose.
const ROUNDED_MS: f64 = 1e-3;

/// Refuses a total below the sum of what it has, and a join or query below what it reads.
pub(crate) fn add_up(explained: &Explanation) -> Result<(), String> {
    let Some(met) = explained.met else { return Err("it has run, and shows no figures".into()) };
    let steps = explained.steps.iter().filter_map(|step| step.ran).map(|ran| ran.elapsed_ms);
    let input = explained.input.iter().filter_map(|input| input.elapsed_ms);
    let before = explained.subqueries.iter().filter_map(|subquery| subquery.plan.met);
    let parts: f64 = steps.chain(input).chain(before.map(|met| met.elapsed_ms)).sum();
    if parts > met.elapsed_ms + ROUNDED_MS {
        return Err(format!("the parts took {parts} ms, the whole {} ms", met.elapsed_ms));
    }
    explained.input.iter().try_for_each(within)?;
    explained.subqueries.iter().try_for_each(|subquery| add_up(&subquery.plan))
}

fn within(input: &ExplainedInput) -> Result<(), String> {
    let below: f64 = input.inputs.iter().filter_map(|below| below.elapsed_ms).sum();
    match input.elapsed_ms {
        Some(own) if below > own + ROUNDED_MS => {
            Err(format!("{} took {own} ms, what it reads {below} ms", input.kind))
        }
        _ => input.inputs.iter().try_for_each(within),
    }
}
