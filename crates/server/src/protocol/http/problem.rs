//! Errors as RFC 9457 says.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value as Json, json};

use crate::tenant::Wait;
use crate::{Code, Error};

/// The media type of problems.
pub const MEDIA: &str = "application/problem+json";

/// The status of a code.
#[must_use]
pub fn status(code: Code) -> StatusCode {
    match code {
        Code::InvalidRequest | Code::ConstraintViolated => StatusCode::BAD_REQUEST,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Conflict | Code::SequenceGap | Code::Fenced => {
            StatusCode::CONFLICT
        }
        Code::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::Forbidden | Code::ReadOnly => StatusCode::FORBIDDEN,
        Code::LimitExceeded => StatusCode::TOO_MANY_REQUESTS,
        Code::Timeout => StatusCode::GATEWAY_TIMEOUT,
        Code::CursorGone => StatusCode::GONE,
        Code::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        Code::Cancelled | Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Why a request failed, with its status.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    error: Error,
    /// What else is told.
    members: Map<String, Json>,
    /// When to try again, in seconds.
    retry_after: u64,
}

impl Problem {
    /// An error with a status that its code alone does not give.
    #[must_use]
    pub fn new(status: StatusCode, error: Error) -> Self {
        Self { status, error, members: Map::new(), retry_after: 1 }
    }

    /// The same, for who tries again once some time has passed.
    #[must_use]
    pub fn after(mut self, Wait(seconds): Wait) -> Self {
        self.retry_after = seconds;
        self
    }

    /// The same of what a limit of the server has refused, which is none of the client's.
    #[must_use]
    pub fn of_server(self) -> Self {
        match self.status {
            StatusCode::TOO_MANY_REQUESTS => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                error: Error::new(Code::Unavailable, self.error.message()),
                ..self
            },
            _ => self,
        }
    }

    /// The same, which tells more.
    #[must_use]
    pub fn with(mut self, members: Map<String, Json>) -> Self {
        self.members.extend(members);
        self
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.error.code()
    }

    /// The answer.
    #[must_use]
    pub fn into_response(self) -> Response<Body> {
        let code = self.error.code().as_str();
        let mut body = json!({
            "type": format!("urn:esker:error:{code}"),
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.error.message(),
            "code": code,
            "retryable": self.error.code().is_retryable() || self.status.as_u16() == 429,
        });
        if let Json::Object(known) = &mut body {
            self.members.into_iter().for_each(|(name, value)| {
                known.entry(name).or_insert(value);
            });
        }
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                let scheme = HeaderValue::from_static("Bearer realm=\"esker\"");
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
            }
            _ => {}
        }
        response
    }
}

impl<E: Into<Error>> From<E> for Problem {
    fn from(e: E) -> Self {
        let error = e.into();
        Self::new(status(error.code()), error)
    }
}
