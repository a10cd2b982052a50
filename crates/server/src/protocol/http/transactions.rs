//! Transactions that last over several requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use esker::Isolation;
use esker_vfs::{Clock, Environment};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::call::{Call, blocking};
use super::entity;
use super::route::Outcome;
use crate::auth::token::Principal;
use crate::monitor::active_sessions::ActiveSession;
use crate::session::{Canceller, Request, panic_guard::caught};
use crate::tenant::{Tenant, TenantName};
use crate::{Code, Error, Result, Session};

/// The most transactions at once.
const OPEN_MAX: usize = 1024;
/// The most of one database: the others have theirs.
const TENANT_OPEN_MAX: usize = OPEN_MAX / 4;

/// A transaction between two requests.
#[derive(Debug)]
pub(crate) struct Held {
    principal: Arc<str>,
    tenant: TenantName,
    session: Mutex<Session>,
    /// Whose turn it is: waiting for that keeps no thread.
    turn: Arc<tokio::sync::Mutex<()>>,
    clock: Arc<dyn Clock>,
    active_session: Option<Arc<ActiveSession>>,
    begun_us: i64,
    used_ns: AtomicU64,
    /// A request within it met a panic.
    has_failed: AtomicBool,
}

impl Held {
    /// True once an administrator has ended it, or a panic has.
    fn is_ended(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
            || self.active_session.as_ref().is_some_and(|active_session| active_session.is_ended())
    }

    /// Waits until no other request is done in it; the next one has its turn once what is returned
    /// is dropped.
    pub async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Does something in it that its own client may cancel, and no other. A panic ends it: what
    /// its session has is not used any more, but rolled back.
    pub fn run<R>(
        &self,
        canceller: Canceller,
        work: impl FnOnce(&mut Session) -> Result<R>,
    ) -> Result<R> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if !session.is_in_transaction() {
            return Err(Error::new(Code::NotFound, "the transaction is over"));
        }
        session.cancelled_by(canceller);
        let done = caught(|| work(&mut session)).unwrap_or_else(|e| {
            self.has_failed.store(true, Ordering::Relaxed);
            let fresh = session.sibling();
            drop(std::mem::replace(&mut *session, fresh));
            Err(e)
        });
        // It was not silent while this was done.
        self.used_ns.fetch_max(self.clock.monotonic_ns(), Ordering::Relaxed);
        done
    }
}

/// The transactions that are under way.
#[derive(Debug)]
pub(crate) struct Transactions {
    environment: Environment,
    timeout: Duration,
    open: Mutex<BTreeMap<String, Arc<Held>>>,
}

impl Transactions {
    pub fn new(environment: &Environment, timeout: Duration) -> Self {
        Self { environment: environment.clone(), timeout, open: Mutex::default() }
    }

    fn add(&self, principal: &Principal, tenant: &Tenant, session: Session) -> Result<String> {
        let random = || self.environment.random.next_u64();
        let id = format!("{:016x}{:016x}", random(), random());
        let active_session = session.active_session().cloned();
        let held = Held {
            principal: Arc::clone(&principal.id),
            tenant: tenant.name.clone(),
            session: Mutex::new(session),
            turn: Arc::default(),
            clock: Arc::clone(&self.environment.clock),
            active_session,
            begun_us: self.environment.clock.wall_us(),
            used_ns: AtomicU64::new(self.environment.clock.monotonic_ns()),
            has_failed: AtomicBool::new(false),
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_tenant = open.values().filter(|held| held.tenant == tenant.name).count();
        if of_tenant >= TENANT_OPEN_MAX {
            let message = format!(
                "{TENANT_OPEN_MAX} transactions of the database are under way: end one of them"
            );
            return Err(Error::new(Code::LimitExceeded, message));
        }
        if open.len() >= OPEN_MAX {
            let message = format!("{OPEN_MAX} transactions are under way: end one of them");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        open.insert(id.clone(), Arc::new(held));
        Ok(id)
    }

    /// The transaction of an id, for the client that began it.
    pub fn find(&self, id: &str, principal: &Principal, tenant: &Tenant) -> Result<Arc<Held>> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = |held: &&Arc<Held>| {
            held.principal == principal.id && held.tenant == tenant.name && !held.is_ended()
        };
        let held = open.get(id).filter(own).ok_or_else(|| {
            let message = format!("no transaction {id:?}: it is over, or was silent for too long");
            Error::new(Code::NotFound, message)
        })?;
        held.used_ns.store(self.environment.clock.monotonic_ns(), Ordering::Relaxed);
        Ok(Arc::clone(held))
    }

    fn remove(&self, id: &str) {
        let gone = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        drop(gone);
    }

    /// Lets those go that were silent for too long, or were ended. One that a request is in stays.
    pub fn expire(&self) {
        let now_ns = self.environment.clock.monotonic_ns();
        let most_ns = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
        let is_old = |held: &Arc<Held>| {
            let silent_ns = now_ns.saturating_sub(held.used_ns.load(Ordering::Relaxed));
            (silent_ns > most_ns || held.is_ended()) && held.session.try_lock().is_ok()
        };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let old: Vec<_> =
            open.iter().filter(|(_, h)| is_old(h)).map(|(id, _)| id.clone()).collect();
        let gone: Vec<_> = old.iter().filter_map(|id| open.remove(id)).collect();
        drop(open);
        drop(gone);
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock().unwrap_or_else(PoisonError::into_inner));
        drop(open);
    }

    /// What there is in a database, for its administrator.
    pub fn list(&self, tenant: &TenantName) -> Vec<serde_json::Value> {
        let now_ns = self.environment.clock.monotonic_ns();
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.values().filter(|held| held.tenant == *tenant && !held.is_ended());
        own.map(|held| {
            let silent_ns = now_ns.saturating_sub(held.used_ns.load(Ordering::Relaxed));
            json!({
                "token": &*held.principal,
                "begun_us": held.begun_us,
                "silent_ms": silent_ns / 1_000_000,
            })
        })
        .collect()
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Begin {
    read_only: bool,
    isolation: Option<String>,
}

pub(super) async fn begin(mut call: Call) -> Outcome {
    let asked: Begin = call.json().await?;
    let isolation = match asked.isolation.as_deref() {
        None | Some("snapshot") => Isolation::Snapshot,
        Some("serializable") => Isolation::Serializable,
        Some(text) => {
            let message = format!("isolation: expected snapshot or serializable, found {text:?}");
            return Err(Error::invalid(message).into());
        }
    };
    let mut session = call.session()?;
    session.register("http");
    let read_only = asked.read_only;
    let begun = blocking(move || {
        session.run(Request::Begin { isolation, read_only })?;
        Ok::<_, Error>(session)
    });
    let session = begun.await??;
    let tenant = call.tenant()?;
    let id = call.app.transactions.add(&call.principal, &tenant, session)?;
    entity::json(StatusCode::CREATED, &json!({ "id": id }))
}

async fn end(call: Call, request: Request) -> Outcome {
    let (id, tenant) = (call.path("transaction").to_owned(), call.tenant()?);
    let held = call.app.transactions.find(&id, &call.principal, &tenant)?;
    let turn = held.turn().await;
    let outcome = blocking(move || {
        let _turn = turn;
        held.run(Canceller::default(), |session| session.run(request))
    });
    let outcome = outcome.await?;
    call.app.transactions.remove(&id);
    outcome?;
    entity::empty()
}

pub(super) async fn commit(call: Call) -> Outcome {
    end(call, Request::Commit).await
}

pub(super) async fn rollback(call: Call) -> Outcome {
    end(call, Request::Rollback).await
}

#[cfg(test)]
mod tests {
    use esker_vfs::sim::{Options, Simulation};

    use super::*;
    use crate::auth::access_control::AccessControl;
    use crate::config::Config;
    use crate::session::Expiry;

    const TIMEOUT: Duration = Duration::from_secs(60);

    fn access_control(environment: &Environment) -> AccessControl {
        let config = Config { memory: true, trust_local: true, ..Config::default() };
        AccessControl::open(config, environment, None).unwrap()
    }

    fn begin(
        access_control: &AccessControl,
        transactions: &Transactions,
        tenant: &Arc<Tenant>,
    ) -> Result<String> {
        let mut session = access_control.session(&Principal::trusted(), tenant);
        session.run(Request::Begin { isolation: Isolation::default(), read_only: false })?;
        transactions.add(&Principal::trusted(), tenant, session)
    }

    #[test]
    fn one_that_was_busy_was_not_silent() {
        let simulation = Simulation::new(1, Options::default());
        let access_control = access_control(&simulation.environment());
        let transactions = Transactions::new(&simulation.environment(), TIMEOUT);
        let tenant = access_control.tenants.get(&TenantName::main()).unwrap();
        let id = begin(&access_control, &transactions, &tenant).unwrap();
        let find = || transactions.find(&id, &Principal::trusted(), &tenant);
        let busy = |_: &mut Session| {
            simulation.advance_clock(2 * TIMEOUT);
            Ok(())
        };
        find().unwrap().run(Canceller::default(), busy).unwrap();
        transactions.expire();
        assert!(find().is_ok(), "it was in use until just now");
        simulation.advance_clock(2 * TIMEOUT);
        transactions.expire();
        assert_eq!(find().unwrap_err().code(), Code::NotFound);
    }

    #[test]
    fn a_panic_ends_the_transaction_that_met_it() {
        let environment = Environment::os();
        let access_control = access_control(&environment);
        let transactions = Transactions::new(&environment, TIMEOUT);
        let tenant = access_control.tenants.get(&TenantName::main()).unwrap();
        let bucket = tenant.database.create_bucket("b", &esker::BucketOptions::new()).unwrap();
        let id = begin(&access_control, &transactions, &tenant).unwrap();
        let held = transactions.find(&id, &Principal::trusted(), &tenant).unwrap();
        let entries = vec![(b"k".to_vec(), b"half".to_vec())];
        let put = Request::BucketPut { bucket: "b".into(), entries, expiry: Expiry::Default };
        let work = |session: &mut Session| -> Result<()> {
            session.run(put)?;
            panic!("a planted panic");
        };
        let e = held.run(Canceller::default(), work).unwrap_err();
        assert_eq!(e.code(), Code::Internal, "{e}");
        // Who waited for its turn meets it, and whoever comes later.
        let e = held.run(Canceller::default(), |session| session.run(Request::Commit)).unwrap_err();
        assert_eq!((e.code(), e.message()), (Code::NotFound, "the transaction is over"));
        let e = transactions.find(&id, &Principal::trusted(), &tenant).unwrap_err();
        assert_eq!(e.code(), Code::NotFound);
        assert_eq!(transactions.list(&tenant.name).len(), 0);
        assert_eq!(bucket.get(b"k").unwrap(), None, "it is rolled back");
        transactions.expire();
        assert_eq!(Arc::strong_count(&held), 1, "it is forgotten");
    }

    #[test]
    fn one_database_has_not_the_transactions_of_all() {
        let environment = Environment::os();
        let access_control = access_control(&environment);
        let transactions = Transactions::new(&environment, TIMEOUT);
        let first = access_control.tenants.get(&TenantName::main()).unwrap();
        let second = access_control.tenants.create(&"shop".parse().unwrap()).unwrap();
        for _ in 0..TENANT_OPEN_MAX {
            begin(&access_control, &transactions, &first).unwrap();
        }
        let e = begin(&access_control, &transactions, &first).unwrap_err();
        assert_eq!(e.code(), Code::LimitExceeded, "{e}");
        begin(&access_control, &transactions, &second).unwrap();
    }
}
