//! The gate for connections that say once who they are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::AccessControl;
use crate::auth::authenticator::{Admitted, Authenticator};
use crate::session::group_sync::Durability;
use crate::tenant::{Tenant, TenantName};
use crate::{Error, Result};

/// A database, and what makes its commits durable.
type Entered = (Arc<Tenant>, Arc<Durability>);

/// Lets those in who show a token, to the database that they name, or to the server's own.
#[derive(Debug)]
pub struct TokenAuthenticator {
    access_control: Arc<AccessControl>,
    /// Where all connections come from, as far as the addresses tell that are listened on.
    peer: Option<IpAddr>,
    entered: Mutex<BTreeMap<TenantName, Entered>>,
}

impl TokenAuthenticator {
    /// Behind a gate. Connections are taken for those of this machine when nothing is listened on
    /// that others reach.
    #[must_use]
    pub fn new(access_control: &Arc<AccessControl>) -> Self {
        let listens = [access_control.config.wire_listen, access_control.config.resp_listen];
        let mut addresses = listens.into_iter().flatten().map(|address| address.ip());
        let peer = addresses.find(|ip| !ip.is_loopback());
        Self { access_control: Arc::clone(access_control), peer, entered: Mutex::default() }
    }

    /// What makes the commits of a database durable, for all who wait.
    pub(crate) fn durability(&self, tenant: &Arc<Tenant>) -> Arc<Durability> {
        let mut entered = self.entered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, durability)) = entered.get(&tenant.name) {
            if Arc::ptr_eq(known, tenant) {
                return Arc::clone(durability);
            }
            // A database of the same name that was removed since.
            durability.stop();
        }
        let durability = Durability::start(&tenant.database);
        let one = (Arc::clone(tenant), Arc::clone(&durability));
        entered.insert(tenant.name.clone(), one);
        durability
    }
}

impl Authenticator for TokenAuthenticator {
    fn is_ready(&self, database: Option<&str>) -> bool {
        let name = database.map_or_else(|| Ok(TenantName::main()), str::parse);
        // What is no name is refused at once.
        name.is_ok_and(|name| self.access_control.tenants.find_open(&name).is_some())
    }

    fn admit(&self, token: Option<&str>, database: Option<&str>) -> Result<Admitted> {
        let principal = self.access_control.principal(token, self.peer)?;
        let name = database.map_or_else(|| Ok(TenantName::main()), str::parse);
        let name = name.map_err(Error::invalid)?;
        let tenant = self.access_control.enter(&principal, &name)?;
        let durability = self.durability(&tenant);
        Ok(Admitted { session: self.access_control.session(&principal, &tenant), durability })
    }
}

impl Drop for TokenAuthenticator {
    fn drop(&mut self) {
        let entered = self.entered.get_mut().unwrap_or_else(PoisonError::into_inner);
        entered.values().for_each(|(_, durability)| durability.stop());
    }
}
