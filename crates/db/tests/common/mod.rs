//! What the tests of the database share.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, dead_code, missing_docs)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use esker::{DataType, Schema, Value};

/// A directory that is removed when the value is dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("esker-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn people() -> Schema {
    Schema::builder()
        .field("name", DataType::Text)
        .nullable("age", DataType::U8)
        .nullable("note", DataType::Text)
        .primary_key(["name"])
        .build()
        .unwrap()
}

pub fn person(name: &str, age: u64) -> Vec<Value> {
    vec![name.into(), Value::Uint(age), format!("note of {name}").into()]
}
