//! What a session of a principal may do in a tenant, checked for each request.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use esker::{BackupReport, Database};

use crate::Result;
use crate::auth::token::{Principal, Standing, TokenStore};
use crate::session::{Access, Level, NewBackup};
use crate::tenant::{Loads, QueryPermit, QuotaReservation, Tenant};

/// What a session of a principal may do in a tenant.
#[derive(Debug)]
pub(super) struct Authorizer {
    principal: Principal,
    tenant: Arc<Tenant>,
    tokens: Arc<TokenStore>,
    /// The token that was shown; none of a principal that is trusted without.
    standing: Option<Standing>,
}

impl Authorizer {
    pub fn new(principal: &Principal, tenant: &Arc<Tenant>, tokens: &Arc<TokenStore>) -> Self {
        let standing = (!principal.is_trusted()).then(|| Standing::new(&principal.id));
        let (principal, tenant) = (principal.clone(), Arc::clone(tenant));
        Self { principal, tenant, tokens: Arc::clone(tokens), standing }
    }
}

impl Access for Authorizer {
    fn expect(&self, level: Level, table: Option<&str>) -> Result<()> {
        self.principal.expect(level, Some(&self.tenant.name), table)
    }

    fn expect_valid(&self) -> Result<()> {
        self.standing.as_ref().map_or(Ok(()), |standing| self.tokens.expect_valid(standing))
    }

    fn count_request(&self) -> Result<()> {
        self.tenant.usage.count_request()
    }

    fn reserve_quota(
        &self,
        database: &Database,
        room: &mut QuotaReservation,
        rows: u64,
        bytes: u64,
    ) -> Result<()> {
        self.tenant.usage.reserve_quota(database, room, rows, bytes)
    }

    fn begin_query(&self) -> Result<Option<QueryPermit>> {
        self.tenant.usage.begin_query().map(Some)
    }

    fn loads(&self) -> Option<Loads> {
        Some(self.tenant.usage.loads().clone())
    }

    fn back_up(&self, backup: &NewBackup) -> Result<(String, BackupReport)> {
        self.tenant.back_up(backup)
    }

    fn expect_events(&self) -> Result<()> {
        self.tenant.usage.expect_events().map_err(|(e, _)| e)
    }

    fn count_events(&self, count: u64) {
        self.tenant.usage.count_events(count);
    }

    fn note_events(&self, stored: u64, refused: u64) {
        self.tenant.usage.note_events(stored, refused);
    }

    fn tails(&self) -> Option<Arc<AtomicU64>> {
        Some(Arc::clone(self.tenant.usage.tails()))
    }

    fn result_bytes_max(&self) -> u64 {
        self.tenant.usage.limits().result_bytes.unwrap_or(u64::MAX)
    }
}
