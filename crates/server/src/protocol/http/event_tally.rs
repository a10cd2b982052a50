//! What is told of the events of a request: an outcome for each, or counts.

use std::fmt::Write;

use esker::EventId;
use serde_json::{Value as Json, json};

use super::super::event_outcomes::{Place, RESULTS_MAX, StoredEvent};
use super::object_text::{ObjectText, Quoted};
use crate::{Error, Result};

/// The most refused events that are told where the outcomes are not.
const ERRORS_MAX: usize = 100;

/// What became of the events so far.
#[derive(Debug)]
pub(super) struct Tally {
    /// Those that are there, and how many of these were there before.
    pub accepted: u64,
    pub duplicates: u64,
    pub rejected: u64,
    first: Option<EventId>,
    last: Option<EventId>,
    /// The outcome of each, with commas between them, unless they are too many, or are not wanted.
    results: Option<String>,
    first_errors: Vec<Json>,
}

impl Tally {
    /// Of no event yet; of counts only where that is wanted.
    pub fn new(is_minimal: bool) -> Self {
        let results = (!is_minimal).then(String::new);
        let first_errors = Vec::new();
        let (accepted, duplicates, rejected) = (0, 0, 0);
        let (first, last) = (None, None);
        Self { accepted, duplicates, rejected, first, last, results, first_errors }
    }

    /// Adds the outcome of the next event.
    pub fn add(&mut self, place: Place, outcome: &Result<StoredEvent>) {
        let error = match outcome {
            Ok(StoredEvent { id, is_duplicate }) => {
                self.accepted += 1;
                self.duplicates += u64::from(*is_duplicate);
                self.first.get_or_insert(*id);
                self.last = Some(*id);
                None
            }
            Err(e) => {
                self.rejected += 1;
                let error = error_of(e, place);
                if self.first_errors.len() < ERRORS_MAX {
                    self.first_errors.push(error.clone());
                }
                Some(error)
            }
        };
        if self.accepted + self.rejected > RESULTS_MAX as u64 {
            self.results = None;
        }
        let Some(results) = &mut self.results else { return };
        let comma = if results.is_empty() { "" } else { "," };
        // Writing to memory does not fail.
        let _ = match (outcome, error) {
            (Ok(StoredEvent { id, is_duplicate }), _) => {
                let duplicate = if *is_duplicate { ",\"duplicate\":true" } else { "" };
                write!(results, "{comma}{{\"id\":\"{id}\"{duplicate}}}")
            }
            (Err(_), error) => write!(results, "{comma}{{\"error\":{}}}", Json::from(error)),
        };
    }

    /// The answer.
    pub fn into_object(self) -> ObjectText {
        let mut object = ObjectText::new();
        object.add("accepted", self.accepted);
        object.add("rejected", self.rejected);
        if self.duplicates > 0 {
            object.add("duplicates", self.duplicates);
        }
        if let Some(results) = self.results {
            object.add("results", format_args!("[{results}]"));
            return object;
        }
        object.add("first_errors", Json::from(self.first_errors));
        for (name, id) in [("first_id", self.first), ("last_id", self.last)] {
            match id {
                Some(id) => object.add(name, Quoted(id)),
                None => object.add(name, Json::Null),
            }
        }
        object
    }
}

fn error_of(e: &Error, place: Place) -> Json {
    let mut error = json!({
        "code": e.code().as_str(),
        "message": e.message(),
        "retryable": e.code().is_retryable(),
    });
    if let (Place::Line(line), Json::Object(members)) = (place, &mut error) {
        members.insert("line".to_owned(), line.into());
    } else if let (Place::Item(item), Json::Object(members)) = (place, &mut error) {
        members.insert("item".to_owned(), item.into());
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_outcomes_become_counts() {
        let mut tally = Tally::new(false);
        for at in 1..=RESULTS_MAX as u64 {
            let id = EventId::new(1_000, at);
            tally.add(Place::Line(at), &Ok(StoredEvent { id, is_duplicate: false }));
        }
        let wrong = Err(Error::invalid("no event"));
        let mut more = Tally::new(false);
        more.add(Place::Item(1), &wrong);
        let more = Json::from(more.into_object().into_members());
        assert_eq!(more["results"][0]["error"]["item"], 1, "{more}");
        for at in 0..200 {
            tally.add(Place::Line(at), &wrong);
        }
        let told = Json::from(tally.into_object().into_members());
        assert_eq!((&told["accepted"], &told["rejected"]), (&RESULTS_MAX.into(), &200.into()));
        assert_eq!(told["first_errors"].as_array().unwrap().len(), ERRORS_MAX);
        assert!(told["results"].is_null() && told["first_id"] != told["last_id"], "{told}");
    }
}
