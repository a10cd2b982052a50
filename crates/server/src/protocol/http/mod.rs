//! HTTP/1.1 and HTTP/2, with or without TLS.
//!
//! ```text
//!  connection ──► TLS ──► hyper ──► axum: which route ──► dispatch ──► handler
//!                                                          │ token, database, rights, limits,
//!                                                          │ unknown parameters
//!                                                          └ errors as problem+json
//! ```
//!
//! [`ROUTES`] has every route once: what it takes, what it needs and what it answers. The router
//! and the OpenAPI document both come from there. A handler translates; sessions do the work.

mod admin;
mod bodies;
mod buckets;
mod bulk;
mod call;
mod compression;
mod copy;
mod cors;
mod databases;
mod deadline;
mod dispatch;
mod entity;
mod event_lines;
mod event_once;
mod event_pages;
mod event_readers;
mod event_tally;
mod export;
mod few_rows;
mod health;
mod host;
mod listener;
mod object_text;
mod openapi;
mod problem;
mod query;
mod range;
mod replay;
mod route;
mod routes;
mod rows;
mod schemas;
mod streams;
mod tables;
mod tags;
mod tail;
mod tailed;
mod tokens;
mod transactions;
mod views;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use listener::HttpServer;
pub use openapi::document;
pub use problem::{MEDIA as PROBLEM_MEDIA, Problem, status};
#[doc(hidden)]
pub use replay::{Replayed, answer_requests};
pub use route::{Need, Parameter, Route};
pub use routes::ROUTES;

use super::tails::Tails;
use crate::auth::access_control::{AccessControl, TokenAuthenticator};
use event_readers::EventReaders;
use transactions::Transactions;

/// What all requests share.
#[derive(Debug)]
pub struct App {
    pub(crate) access_control: Arc<AccessControl>,
    pub(crate) transactions: Transactions,
    /// What makes commits durable for those that wait for them.
    pub(crate) syncs: TokenAuthenticator,
    /// Who waits for events of streams.
    pub(crate) tails: Tails,
    /// What reads events.
    pub(crate) event_readers: Arc<EventReaders>,
    /// True once the server stops.
    pub(crate) stopping: AtomicBool,
}

impl App {
    /// Behind a gate.
    #[must_use]
    pub fn new(access_control: Arc<AccessControl>) -> Self {
        let transactions = Transactions::new(
            &access_control.environment,
            access_control.config.transaction_timeout,
        );
        let syncs = TokenAuthenticator::new(&access_control);
        let tails = Tails::new(access_control.config.connections_max);
        let (event_readers, stopping) = (Arc::default(), AtomicBool::new(false));
        Self { access_control, transactions, syncs, tails, event_readers, stopping }
    }
}
