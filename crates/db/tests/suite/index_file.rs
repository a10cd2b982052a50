//! An index file of many pieces, opened by few and many spans, finds every key.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

use crate::fixture::Directory;
use esker::{Batch, DataType, ErrorKind, Options, PutOptions, Schema, Value};

#[test]
fn an_index_file_of_many_pieces_leads_to_every_key() {
    let schema = Schema::builder().field("id", DataType::U64).primary_key(["id"]).build().unwrap();
    for rows in [70_000u64, 300_000] {
        let dir = Directory::new("pieces");
        {
            let db = Options::new().index_file_limit(1).open(&dir.0).unwrap();
            let t = db.create_table("t", schema.clone()).unwrap();
            let mut load = t.load().unwrap();
            let mut batch = Batch::empty(&schema);
            (0..rows).for_each(|id| batch.push_row(&schema, &[Value::Uint(id)]).unwrap());
            load.push(batch).unwrap();
            load.finish().unwrap();
            db.wait_idle().unwrap();
            db.checkpoint().unwrap();
            assert!(dir.files().iter().any(|f| f.starts_with("index")), "{:?}", dir.files());
            // Beside the file's: a segment that it does not cover.
            let mut load = t.load().unwrap();
            (rows..rows + 70_000).for_each(|id| load.push_row(&[Value::Uint(id)]).unwrap());
            load.finish().unwrap();
            db.close().unwrap();
        }
        let db = Options::new().read_only(true).open(&dir.0).unwrap();
        let t = db.table("t").unwrap();
        let missing: Vec<u64> =
            (0..rows + 70_000).filter(|id| !t.exists(&[Value::Uint(*id)]).unwrap()).collect();
        assert!(
            missing.is_empty(),
            "{} keys are lost of {rows}: {:?}",
            missing.len(),
            &missing[..missing.len().min(5)]
        );
    }
}

#[test]
fn an_index_file_that_a_checkpoint_names_and_is_gone_is_damage() {
    let dir = Directory::new("index-gone");
    {
        let db = Options::new().group_limit(1_000, 1 << 20).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        // Few rows have one, too, where keys lie among values: opening does not read these.
        bucket.put_many((0..5_000u64).map(|n| (n.to_le_bytes(), n.to_le_bytes()))).unwrap();
        db.wait_idle().unwrap();
        db.checkpoint().unwrap();
        db.close().unwrap();
    }
    let index = dir.files().into_iter().find(|file| file.starts_with("index")).unwrap();
    std::fs::remove_file(dir.0.join(&index)).unwrap();
    let error = esker::Database::open(&dir.0).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains(&index), "{error}");
}

#[test]
fn more_segments_than_an_index_file_names_come_to_rest() {
    let dir = Directory::new("index-many");
    let key = |n: u32| n.swap_bytes().to_le_bytes();
    {
        let db = Options::new().group_limit(4, 1 << 20).open(&dir.0).unwrap();
        let bucket = db.bucket("b").unwrap();
        // Rising keys are never merged.
        for n in 0..4_400u32 {
            let unsynced = PutOptions::new().sync(false);
            bucket.put_with(key(n), n.to_le_bytes(), unsynced).unwrap();
            if n % 4 == 3 {
                db.wait_idle().unwrap();
            }
        }
        assert!(db.info().tables.first().unwrap().segments > 1_024);
        db.close().unwrap();
    }
    let db = esker::Database::open(&dir.0).unwrap();
    let bucket = db.bucket("b").unwrap();
    assert!((0..4_400u32).all(|n| bucket.get(key(n)).unwrap().unwrap() == n.to_le_bytes()[..]));
}

/// Each load is by a program that ends, and small: opening would read the keys of all of them.
#[test]
fn many_small_loads_do_not_slow_opening() {
    // Fewer are a commit of the log, and no segment.
    const ROWS: u64 = 70_000;
    let schema = Schema::builder().field("id", DataType::U64).primary_key(["id"]).build().unwrap();
    let dir = Directory::new("small-loads");
    let number = |name: &String, kind: &str| {
        let digits = name.strip_prefix(kind)?;
        u64::from_str_radix(digits, 16).ok()
    };
    for part in 0..12u64 {
        let db = Options::new().index_file_limit(200_000).open(&dir.0).unwrap();
        let t = db.table("t").or_else(|_| db.create_table("t", schema.clone())).unwrap();
        let mut load = t.load().unwrap();
        (part * ROWS..(part + 1) * ROWS).for_each(|id| load.push_row(&[id.into()]).unwrap());
        load.finish().unwrap();
        db.close().unwrap();
        // A file that is made later than every segment covers all of them.
        let files = dir.files();
        let index = files.iter().filter_map(|name| number(name, "index-")).max();
        let segment = files.iter().filter_map(|name| number(name, "segment-")).max();
        assert!(part < 2 || index > segment, "after {part}: {files:?}");
    }
    let db = Options::new().read_only(true).open(&dir.0).unwrap();
    assert_eq!(db.table("t").unwrap().count().unwrap(), 12 * ROWS);
}
