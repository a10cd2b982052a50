//! Writes that are done once, however often they are sent.

use esker::{BucketOptions, ErrorKind, PutOptions, Ttl};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::time::Duration;

use super::call::Call;
use super::write::Written;
use crate::session::Session;
use crate::{Code, Error, Result};

/// The bucket that has what was answered.
pub(super) const BUCKET: &str = "esker_idempotency";

/// One write with a key.
#[derive(Clone, Debug)]
pub(super) struct Once {
    /// Of token, route and key: nobody meets another's.
    key: [u8; 32],
    /// Of the body: another body with the same key is an error.
    body: [u8; 32],
    lifetime: Duration,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    body: [u8; 32],
    written: Written,
}

impl Once {
    /// What a request asks for.
    pub fn of(call: &Call, body: &[u8]) -> Result<Option<Self>> {
        let Some(text) = call.header("idempotency-key")? else { return Ok(None) };
        if text.is_empty() || text.len() > 255 {
            let found = text.len();
            let message = format!("idempotency-key: expected 1 to 255 characters, found {found}");
            return Err(Error::invalid(message));
        }
        let uri = &call.parts.uri;
        let (method, path) = (call.parts.method.as_str(), uri.path());
        let scope = [call.principal.id.as_bytes(), method.as_bytes(), path.as_bytes()];
        let key = hash(&[&scope[..], &[text.as_bytes()]].concat());
        let body = hash(&[uri.query().unwrap_or("").as_bytes(), body]);
        Ok(Some(Self { key, body, lifetime: call.app.gate.config.idempotency_lifetime }))
    }

    /// Makes the bucket if there is none.
    pub fn prepare(&self, session: &Session) -> Result<()> {
        let database = session.database();
        if database.table(BUCKET).is_ok() {
            return Ok(());
        }
        match database.create_bucket(BUCKET, &BucketOptions::new()) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e.into()),
            _ => Ok(()),
        }
    }

    /// What was answered before, within the transaction of the session.
    pub fn find(&self, session: &Session) -> Result<Option<Written>> {
        let transaction = session.transaction().ok_or_else(no_transaction)?;
        let Some(value) = transaction.bucket(BUCKET)?.get(self.key)? else { return Ok(None) };
        let kept: Kept = serde_json::from_slice(&value)
            .map_err(|e| Error::new(Code::Damaged, format!("bucket {BUCKET:?}: {e}")))?;
        if kept.body != self.body {
            let message = "idempotency-key: it was used with another body before";
            return Err(Error::invalid(message));
        }
        Ok(Some(kept.written))
    }

    /// Keeps what is answered, in the same commit as the write.
    pub fn keep(&self, session: &Session, written: &Written) -> Result<()> {
        let transaction = session.transaction().ok_or_else(no_transaction)?;
        let kept = Kept { body: self.body, written: written.clone() };
        let value =
            serde_json::to_vec(&kept).map_err(|e| Error::new(Code::Internal, e.to_string()))?;
        let options = PutOptions::new().ttl(Ttl::After(self.lifetime));
        Ok(transaction.bucket(BUCKET)?.put_with(self.key, value, options)?)
    }
}

fn no_transaction() -> Error {
    Error::new(Code::Internal, "a write with a key outside of a transaction")
}

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
