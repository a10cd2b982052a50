//! The runs of indexes that earlier openings have built.

use std::collections::BTreeSet;
use std::sync::Arc;

use esker_table::index_run::IndexRun;
use esker_table::segment::run_file_id;
use esker_table::segment::segment_file_name;

use crate::Result;
use crate::catalogue::Catalogue;
use crate::engine::Engine;

/// Gives segments the runs that are there and whole. Others are built again.
pub(super) fn attach(engine: &Engine) -> Result<()> {
    let names: BTreeSet<String> = engine.environment.files.list(&engine.dir)?.into_iter().collect();
    for entry in engine.lock().tables.values() {
        let view = entry.writer.table().view();
        for segment in view.segments() {
            for index in view.schema.indexes() {
                let file = run_file_id(segment.id(), index.id);
                if !names.contains(&segment_file_name(file)) {
                    continue;
                }
                let made_by = (index, entry.writer.table().index_values(&view.schema, index)?);
                let files = &engine.segment_files;
                if let Some(run) = IndexRun::open(segment, files, made_by, &engine.arena)? {
                    segment.add_run(Arc::new(run))?;
                }
            }
        }
    }
    Ok(())
}

/// The names of their files.
pub(super) fn files(catalogue: &Catalogue) -> BTreeSet<String> {
    let views = catalogue.tables.values().map(|entry| entry.writer.table().view());
    let mut names = BTreeSet::new();
    for view in views {
        for segment in view.segments() {
            let runs = segment.runs();
            names.extend(runs.iter().map(|run| segment_file_name(run.entries().id())));
        }
    }
    names
}
