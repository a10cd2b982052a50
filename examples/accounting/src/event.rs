//! An event as it is sent, and what it must be.

use std::net::IpAddr;

use esker::{DataType, Value};
use serde::Deserialize;
use serde_json::{Map, json};

use crate::key::Caller;

/// The longest texts, in bytes.
const NAME_BYTES: usize = 256;
const PROVIDER_BYTES: usize = 128;
const ENDPOINT_BYTES: usize = 512;
const METADATA_BYTES: usize = 65_536;
/// The most tokens of a kind, and nanodollars.
const TOKENS_MAX: u32 = 10_000_000;
const COST_MAX: i64 = 1_000_000_000_000;
/// 2020-01-01, and a day, in nanoseconds.
const EARLIEST_NS: i64 = 1_577_836_800_000_000_000;
const DAY_NS: i64 = 86_400_000_000_000;

const PROVIDERS: [&str; 15] = [
    "openai",
    "anthropic",
    "gemini",
    "gemini_vertex",
    "bedrock",
    "azure_openai",
    "mistral",
    "groq",
    "xai",
    "deepseek",
    "cohere",
    "openrouter",
    "ollama",
    "opencode",
    "opencode_zen",
];
const ERRORS: [&str; 7] = [
    "rate_limited",
    "invalid_request",
    "auth_failed",
    "context_length_exceeded",
    "content_filtered",
    "upstream_timeout",
    "upstream_unavailable",
];

/// Tokens by what they were.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Usage {
    pub input_tokens: u32,
    pub output_tokens: u32,
    pub cache_read_input_tokens: u32,
    pub cache_creation_input_tokens: u32,
    pub reasoning_tokens: u32,
    pub audio_input_tokens: u32,
    pub audio_output_tokens: u32,
    pub image_tokens: u32,
    pub tool_use_tokens: u32,
}

/// Milliseconds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Latency {
    pub ttft_ms: Option<u32>,
    pub total_ms: u32,
    pub time_to_close_ms: Option<u32>,
}

/// What a call was.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Flags {
    pub streaming: bool,
    pub tool_calls: bool,
    pub reasoning: bool,
    pub stream_incomplete: bool,
    pub cache_used: bool,
}

/// Why a call failed.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CallError {
    pub kind: String,
    pub message: Option<String>,
    pub status: Option<u16>,
}

/// Nanoseconds since 1970, or a text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Timestamp {
    Nanoseconds(i64),
    Text(String),
}

/// What a client sends of one call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs, reason = "the names say it")]
pub struct IngestEvent {
    pub model: String,
    pub provider: String,
    pub cost_nanodollars: Option<i64>,
    #[serde(default)]
    pub usage: Usage,
    #[serde(default)]
    pub latency: Latency,
    pub timestamp: Option<Timestamp>,
    pub method: Option<String>,
    pub endpoint: Option<String>,
    pub http_status: Option<u16>,
    pub source: Option<String>,
    pub user_id: Option<String>,
    pub api_key_id: Option<String>,
    pub org_id: Option<String>,
    pub project_id: Option<String>,
    pub route_id: Option<String>,
    #[serde(default)]
    pub flags: Flags,
    pub error: Option<CallError>,
    pub trace_id: Option<String>,
    pub request_id: Option<String>,
    pub user_agent: Option<String>,
    pub client_ip: Option<String>,
    pub metadata: Option<serde_json::Value>,
}

/// The values of an event, by the names of their fields.
pub type Values = Vec<(&'static str, Value)>;

fn text(value: Option<String>) -> Value {
    value.filter(|text| !text.is_empty()).map_or(Value::Null, Value::Text)
}

fn number(value: Option<u32>) -> Value {
    value.map_or(Value::Null, |value| Value::Int(i64::from(value)))
}

fn json_value(value: &serde_json::Value) -> Result<Value, String> {
    Value::json(&value.to_string()).map_err(|e| e.to_string())
}

/// The key of a known provider; another one is kept beside.
fn provider(given: &str) -> (String, Option<String>) {
    let key = given.trim().to_ascii_lowercase().replace('-', "_");
    match PROVIDERS.contains(&key.as_str()) {
        true => (key, None),
        false => ("openai_compatible".to_owned(), Some(given.to_owned())),
    }
}

/// The time of an event in nanoseconds, by whatever it is given.
fn time_ns(given: Option<&Timestamp>, now_ns: i64) -> Result<i64, String> {
    let ns = match given {
        None => return Ok(now_ns),
        Some(Timestamp::Nanoseconds(ns)) => *ns,
        Some(Timestamp::Text(text)) => {
            let invalid = |e: String| format!("invalid timestamp: {text:?}: {e}");
            let parsed = esker_query::parse_value(text, DataType::Timestamp);
            match parsed.map_err(|e| invalid(e.to_string()))? {
                Value::Timestamp(us) => {
                    us.checked_mul(1_000).ok_or_else(|| invalid("too far".to_owned()))?
                }
                other => return Err(invalid(format!("{other}"))),
            }
        }
    };
    match ns {
        ..EARLIEST_NS => Err("timestamp is before 2020-01-01".to_owned()),
        ns if ns > now_ns.saturating_add(DAY_NS) => {
            Err("timestamp is more than 24 hours in the future".to_owned())
        }
        ns => Ok(ns),
    }
}

fn expect_short(name: &str, text: Option<&String>, most: usize) -> Result<(), String> {
    match text {
        Some(text) if text.len() > most => {
            Err(format!("{name} has {} bytes, at most {most}", text.len()))
        }
        _ => Ok(()),
    }
}

impl IngestEvent {
    fn expect_valid(&self) -> Result<(), String> {
        let required =
            [("model", &self.model, NAME_BYTES), ("provider", &self.provider, PROVIDER_BYTES)];
        for (name, value, most) in required {
            if value.trim().is_empty() {
                return Err(format!("{name} is required"));
            }
            expect_short(name, Some(value), most)?;
        }
        for (name, value, most) in [
            ("endpoint", &self.endpoint, ENDPOINT_BYTES),
            ("user_id", &self.user_id, NAME_BYTES),
            ("api_key_id", &self.api_key_id, NAME_BYTES),
            ("org_id", &self.org_id, NAME_BYTES),
            ("project_id", &self.project_id, NAME_BYTES),
            ("route_id", &self.route_id, NAME_BYTES),
            // Not cut anywhere, and so not unbounded either.
            ("source", &self.source, NAME_BYTES),
            ("request_id", &self.request_id, NAME_BYTES),
            ("user_agent", &self.user_agent, ENDPOINT_BYTES),
        ] {
            expect_short(name, value.as_ref(), most)?;
        }
        let Usage { input_tokens, output_tokens, cache_read_input_tokens, .. } = self.usage;
        let Usage { cache_creation_input_tokens, reasoning_tokens, .. } = self.usage;
        let Usage {
            audio_input_tokens, audio_output_tokens, image_tokens, tool_use_tokens, ..
        } = self.usage;
        for (name, tokens) in [
            ("input_tokens", input_tokens),
            ("output_tokens", output_tokens),
            ("cache_read_input_tokens", cache_read_input_tokens),
            ("cache_creation_input_tokens", cache_creation_input_tokens),
            ("reasoning_tokens", reasoning_tokens),
            ("audio_input_tokens", audio_input_tokens),
            ("audio_output_tokens", audio_output_tokens),
            ("image_tokens", image_tokens),
            ("tool_use_tokens", tool_use_tokens),
        ] {
            if tokens > TOKENS_MAX {
                return Err(format!("usage.{name} is {tokens}, at most {TOKENS_MAX}"));
            }
        }
        match self.cost_nanodollars {
            Some(cost) if !(0..=COST_MAX).contains(&cost) => {
                Err(format!("cost_nanodollars is {cost}, expected 0 to {COST_MAX}"))
            }
            _ => Ok(()),
        }
    }

    /// The values that are stored, for a caller, by the clock.
    ///
    /// # Errors
    /// For what an event may not be, naming the field.
    pub fn values(self, caller: &Caller, now_ns: i64) -> Result<Values, String> {
        self.expect_valid()?;
        let ns = time_ns(self.timestamp.as_ref(), now_ns)?;
        let (provider, base_url) = provider(&self.provider);
        let metadata = match &self.metadata {
            Some(metadata) if metadata.to_string().len() > METADATA_BYTES => {
                return Err(format!("metadata has more than {METADATA_BYTES} bytes"));
            }
            Some(metadata) => json_value(metadata)?,
            None => Value::Null,
        };
        let tag = |name: &str| {
            let tag = self.metadata.as_ref().and_then(|metadata| metadata.get(name)?.as_str());
            text(tag.map(str::to_owned))
        };
        let (user_tag, session_tag) = (tag("user_tag"), tag("session_tag"));
        let trace_id = self.trace_id.map(|id| trace_id(&id)).transpose()?;
        let is_address = |ip: &String| ip.parse::<IpAddr>().is_ok();
        if self.client_ip.as_ref().is_some_and(|ip| !is_address(ip)) {
            return Err("client_ip is no IP address".to_owned());
        }
        let Flags { streaming, tool_calls, reasoning, stream_incomplete, cache_used } = self.flags;
        let flags = json!({
            "streaming": streaming, "tool_calls": tool_calls, "reasoning": reasoning,
            "stream_incomplete": stream_incomplete, "cache_used": cache_used,
        });
        let error = self.error.map(|error| json_value(&stored_error(error))).transpose()?;
        let (api_key, tier) = (caller.key.clone().or(self.api_key_id), caller.tier.clone());
        let tokens = |tokens: u32| Value::Int(i64::from(tokens));
        let usage = self.usage;
        Ok(vec![
            ("t", Value::Timestamp(ns.div_euclid(1_000))),
            ("ts_ns", ns.into()),
            ("model", self.model.trim().to_ascii_lowercase().as_str().into()),
            ("provider", provider.as_str().into()),
            ("base_url", text(base_url)),
            ("input_tokens", tokens(usage.input_tokens)),
            ("output_tokens", tokens(usage.output_tokens)),
            ("cache_read_input_tokens", tokens(usage.cache_read_input_tokens)),
            ("cache_creation_input_tokens", tokens(usage.cache_creation_input_tokens)),
            ("reasoning_tokens", tokens(usage.reasoning_tokens)),
            ("other_usage", json_value(&other_usage(&usage))?),
            ("cost_given", self.cost_nanodollars.map_or(Value::Null, Value::Int)),
            ("latency_total_ms", tokens(self.latency.total_ms)),
            ("latency_ttft_ms", number(self.latency.ttft_ms)),
            ("time_to_close_ms", number(self.latency.time_to_close_ms)),
            ("method", self.method.as_deref().unwrap_or("POST").into()),
            ("endpoint", self.endpoint.as_deref().unwrap_or_default().into()),
            ("http_status", number(self.http_status.map(u32::from))),
            ("source", text(self.source)),
            ("user_id", text(self.user_id)),
            ("api_key_id", text(api_key)),
            ("tier", tier.as_str().into()),
            ("org_id", text(self.org_id)),
            ("project_id", text(self.project_id)),
            ("route_id", self.route_id.as_deref().unwrap_or("default").into()),
            ("flags", json_value(&flags)?),
            ("error", error.unwrap_or(Value::Null)),
            ("trace_id", text(trace_id)),
            ("request_id", text(self.request_id)),
            ("client_ip", text(self.client_ip)),
            ("user_agent", text(self.user_agent)),
            ("metadata", metadata),
            ("user_tag", user_tag),
            ("session_tag", session_tag),
        ])
    }
}

fn other_usage(usage: &Usage) -> serde_json::Value {
    let all = [
        ("audio_input_tokens", usage.audio_input_tokens),
        ("audio_output_tokens", usage.audio_output_tokens),
        ("image_tokens", usage.image_tokens),
        ("tool_use_tokens", usage.tool_use_tokens),
    ];
    let some = all.into_iter().filter(|(_, tokens)| *tokens > 0);
    some.map(|(name, tokens)| (name.to_owned(), json!(tokens))).collect::<Map<_, _>>().into()
}

fn stored_error(error: CallError) -> serde_json::Value {
    let CallError { kind, message, status } = error;
    match ERRORS.contains(&kind.as_str()) {
        true => json!({ "kind": kind, "message": message, "status": status }),
        false => json!({ "kind": "other", "message": message.unwrap_or(kind), "status": status }),
    }
}

/// 32 digits of base 16, `0x` before them or not.
fn trace_id(given: &str) -> Result<String, String> {
    let digits = given.strip_prefix("0x").unwrap_or(given).to_ascii_lowercase();
    match digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(digits),
        false => Err("trace_id: expected 32 digits of base 16".to_owned()),
    }
}
