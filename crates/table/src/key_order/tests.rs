use std::sync::Arc;

use esker_arena::{Arena, ArenaOptions};
use esker_format::{DataType, Schema, Value};
use proptest::prelude::*;

use super::{KeyForm, SortedRows};
use crate::group::GroupWriter;
use crate::view::RowGroup;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whenever readers come by, the runs name every row once, each run in the order of keys and
    /// versions.
    #[test]
    fn runs_grow_with_the_group(
        rows in prop::collection::vec(("[ab\u{0}]{0,10}", 0i32..4), 1..400),
        looks in prop::collection::vec(0usize..400, 1..8),
    ) {
        let schema = Schema::builder()
            .field("text", DataType::Text)
            .field("n", DataType::I32)
            .primary_key(["text", "n"])
            .build()
            .unwrap();
        let arena = Arena::new(ArenaOptions::default()).unwrap();
        let mut writer = GroupWriter::create(&arena, 1, &schema).unwrap();
        let row_group = RowGroup::Group(Arc::clone(writer.group()));
        let (form, sorted) = (KeyForm::of(&schema), SortedRows::default());
        let mut looks = looks;
        looks.push(rows.len());
        looks.sort_unstable();
        let mut written = 0;
        for look in looks {
            let look = look.min(rows.len());
            while written < look {
                let (text, n) = &rows[written];
                let row = [Value::Text(text.clone()), Value::Int(i64::from(*n))];
                writer.push((&row, &[]), written as u64 + 1, true, 1, None).unwrap();
                written += 1;
            }
            let runs = sorted.cover(&row_group, &form, look).unwrap();
            let mut seen = Vec::new();
            for run in &runs {
                let key = |row: &u32| (rows[*row as usize].clone(), *row);
                prop_assert!(run.rows.is_sorted_by_key(key));
                seen.extend(run.rows.iter().copied());
            }
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..u32::try_from(look).unwrap()).collect::<Vec<_>>());
            prop_assert!(runs.len() <= 12, "{} runs", runs.len());
        }
    }
}
