//! The events that are measured: 20 fields and a document, as a service that calls models has them,
//! from a fixed seed.

use esker::{DataType, DefaultValue, Schema, StreamOption, Value};
use esker_format::schema::SchemaBuilder;

use crate::Result;
use crate::data::mix;

/// The name of the stream.
pub(super) const STREAM: &str = "events";
/// Microseconds from one event to the next.
pub(super) const STEP_US: u64 = 1_000;
/// The time of the first: 2026-01-01.
pub(super) const FIRST_US: i64 = 1_767_225_600_000_000;

const MODELS: [&str; 12] = [
    "gpt-4o",
    "gpt-4o-mini",
    "o3",
    "o4-mini",
    "claude-sonnet-4",
    "claude-opus-4",
    "claude-haiku",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "llama-4",
    "mistral-large",
    "deepseek-v3",
];
const PROVIDERS: [&str; 6] = ["openai", "anthropic", "google", "meta", "mistral", "deepseek"];
const TIERS: [&str; 3] = ["free", "pro", "team"];
const SOURCES: [&str; 4] = ["litellm", "gateway", "sdk", "batch"];
const USERS: u64 = 20_000;

/// The fields of a stream of them.
pub(super) fn schema() -> Result<Schema> {
    let stream = fields().stream("t", [StreamOption::Window(Some(86_400_000_000))]);
    Ok(stream.build()?)
}

/// The fields of a table of them, in which nothing is packed.
pub(super) fn table_schema() -> Result<Schema> {
    Ok(fields().build()?)
}

fn fields() -> SchemaBuilder {
    let text = DataType::Text;
    Schema::builder()
        .field("t", DataType::Timestamp)
        .default_value(DefaultValue::Now)
        .field("model", text)
        .field("provider", text)
        .field("source", text)
        .field("user_id", text)
        .field("api_key", text)
        .field("tier", text)
        .field("input_tokens", DataType::U32)
        .field("output_tokens", DataType::U32)
        .field("cached_tokens", DataType::U32)
        .field("reasoning_tokens", DataType::U32)
        .field("audio_tokens", DataType::U32)
        .field("cost_nano", DataType::I64)
        .field("latency_ms", DataType::U32)
        .field("first_token_ms", DataType::U32)
        .field("status", DataType::U16)
        .field("is_stream", DataType::Bool)
        .field("region", text)
        .field("request_id", text)
        .field("metadata", DataType::Json)
}

/// One of some texts, the first ones more often.
fn skewed<'t>(texts: &[&'t str], word: u64) -> &'t str {
    let count = texts.len() as u64;
    let (a, b) = (word % count, word / count % count);
    let at = usize::try_from(a.min(b)).unwrap_or(0);
    texts.get(at).copied().unwrap_or_default()
}

/// An event by its number.
pub(super) struct Event {
    number: u64,
    word: u64,
}

impl Event {
    pub fn new(number: u64) -> Self {
        Self { number, word: mix(number ^ 0x5eed) }
    }

    fn draw(&self, part: u64) -> u64 {
        mix(self.word ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn user(&self) -> u64 {
        let (a, b) = (self.draw(1) % USERS, self.draw(2) % USERS);
        a.min(b)
    }

    /// The fields but the time, by name, as JSON has them.
    fn members(&self) -> [(&'static str, Value); 19] {
        let model = skewed(&MODELS, self.draw(3));
        let provider = skewed(&PROVIDERS, self.draw(4));
        let input = self.draw(5) % 4_000 + 20;
        let output = self.draw(6) % 1_500;
        let is_stream = self.draw(7).is_multiple_of(2);
        let rare = |part: u64, one_in: u64, most: u64| {
            if self.draw(part).is_multiple_of(one_in) { self.draw(part + 50) % most } else { 0 }
        };
        let cost = i64::try_from(input * 2_500 + output * 10_000).unwrap_or_default();
        let latency = 200 + self.draw(9) % 400 + self.draw(10) % 3_000;
        let status = if self.draw(11).is_multiple_of(50) { 429u64 } else { 200 };
        let request = format!("req_{:016x}{:08x}", self.draw(12), self.draw(13) >> 32);
        let metadata = format!(
            "{{\"team\":\"team-{:02}\",\"app\":\"app-{:03}\",\"trace\":\"{:08x}\"}}",
            self.draw(14) % 40,
            self.draw(15) % 300,
            self.draw(16) >> 32
        );
        [
            ("model", model.into()),
            ("provider", provider.into()),
            ("source", skewed(&SOURCES, self.draw(17)).into()),
            ("user_id", user_name(self.user()).into()),
            ("api_key", format!("key_{:04}", self.user() % 3_000).into()),
            ("tier", skewed(&TIERS, self.user()).into()),
            ("input_tokens", input.into()),
            ("output_tokens", output.into()),
            ("cached_tokens", rare(20, 4, 2_000).into()),
            ("reasoning_tokens", rare(21, 10, 3_000).into()),
            ("audio_tokens", rare(22, 1_000, 500).into()),
            ("cost_nano", cost.into()),
            ("latency_ms", latency.into()),
            ("first_token_ms", (if is_stream { latency / 4 } else { 0 }).into()),
            ("status", status.into()),
            ("is_stream", is_stream.into()),
            (
                "region",
                skewed(&["eu-west", "us-east", "us-west", "ap-south"], self.draw(23)).into(),
            ),
            ("request_id", request.into()),
            ("metadata", metadata.into()),
        ]
    }

    /// Its time.
    pub fn time_us(&self) -> i64 {
        FIRST_US + i64::try_from(self.number * STEP_US).unwrap_or_default()
    }

    /// Its values, in the order of the fields.
    pub fn row(&self) -> Result<Vec<Value>> {
        let mut row = vec![Value::Timestamp(self.time_us())];
        for (name, value) in self.members() {
            row.push(match (name, value) {
                ("metadata", Value::Text(text)) => Value::Json(esker::json::parse(&text)?),
                (_, value) => value,
            });
        }
        Ok(row)
    }

    /// As JSON, with its time or without.
    pub fn json(&self, with_time: bool) -> String {
        let mut parts = Vec::new();
        if with_time {
            parts.push(format!("\"t\":\"{}\"", Value::Timestamp(self.time_us())));
        }
        for (name, value) in self.members() {
            parts.push(match value {
                Value::Text(text) if name != "metadata" => format!("\"{name}\":\"{text}\""),
                Value::Text(text) => format!("\"{name}\":{text}"),
                other => format!("\"{name}\":{other}"),
            });
        }
        format!("{{{}}}", parts.join(","))
    }
}

/// The name of a user.
pub(super) fn user_name(user: u64) -> String {
    format!("user_{user:05}")
}
