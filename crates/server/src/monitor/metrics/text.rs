//! The text that Prometheus reads.

use std::fmt::Write;
use std::sync::PoisonError;

use esker::WorkInfo;
use esker_vfs::DurationCounts;

use super::Metrics;
use crate::tenant::Tenants;

impl Metrics {
    /// Everything, with figures about the databases that are open. Looks at all of them: not for
    /// tasks that others wait behind.
    #[must_use]
    pub fn text(&self, tenants: &Tenants) -> String {
        let mut text = String::new();
        self.write_requests(&mut text);
        self.write_durations(&mut text);
        write_databases(&mut text, tenants);
        let seconds = self.environment.clock.monotonic_ns() / 1_000_000_000;
        let _ = writeln!(text, "# TYPE esker_clock_seconds gauge\nesker_clock_seconds {seconds}");
        text
    }

    fn write_requests(&self, text: &mut String) {
        *text += "# HELP esker_requests_total Requests that were answered.\n";
        *text += "# TYPE esker_requests_total counter\n";
        self.for_each_operation(|protocol, operation, ends, _| {
            for (status, count) in ends {
                let _ = writeln!(
                    text,
                    "esker_requests_total{{protocol=\"{protocol}\",operation=\"{operation}\",\
                     status=\"{status}\"}} {count}"
                );
            }
        });
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((protocol, operation, status), count) in requests.iter() {
            let _ = writeln!(
                text,
                "esker_requests_total{{protocol=\"{protocol}\",operation=\"{operation}\",\
                 status=\"{status}\"}} {count}"
            );
        }
    }

    fn write_durations(&self, text: &mut String) {
        let name = "esker_request_duration_seconds";
        let _ = writeln!(text, "# HELP {name} How long requests took to be answered.");
        let _ = writeln!(text, "# TYPE {name} histogram");
        let durations = self.durations.lock().unwrap_or_else(PoisonError::into_inner);
        for ((protocol, operation), histogram) in durations.iter() {
            write_histogram(text, name, &labels_of(protocol, operation), histogram);
        }
        self.for_each_operation(|protocol, operation, _, histogram| {
            write_histogram(text, name, &labels_of(protocol, operation), histogram);
        });
    }

    fn for_each_operation(
        &self,
        mut take: impl FnMut(&str, &str, &[(&'static str, u64)], &DurationCounts),
    ) {
        let all = self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for operations in all {
            for (name, ends, histogram) in operations.counted() {
                take(operations.protocol, name, &ends, &histogram);
            }
        }
    }
}

fn labels_of(protocol: &str, operation: &str) -> String {
    format!("protocol=\"{protocol}\",operation=\"{operation}\"")
}

fn write_histogram(text: &mut String, name: &str, labels: &str, histogram: &DurationCounts) {
    for (bound, count) in histogram.cumulated() {
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
    }
    let (count, sum) = (histogram.count, histogram.sum_ns as f64 / 1e9);
    let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "{name}_sum{{{labels}}} {sum}");
    let _ = writeln!(text, "{name}_count{{{labels}}} {count}");
}

/// A name, its meaning, and a value for each database.
type Gauge = (&'static str, &'static str, Vec<(String, u64)>);

fn write_databases(text: &mut String, tenants: &Tenants) {
    let mut gauges: Vec<Gauge> = vec![
        ("esker_rows", "Rows alive.", Vec::new()),
        ("esker_dead_rows", "Versions of rows that still take space.", Vec::new()),
        ("esker_segments", "Sealed segments.", Vec::new()),
        ("esker_segment_bytes", "Bytes of segment files.", Vec::new()),
        ("esker_log_bytes", "Bytes of log files.", Vec::new()),
        ("esker_memory_bytes", "Bytes of memory of rows, indexes and loads.", Vec::new()),
        ("esker_memory_limit_bytes", "The most of them.", Vec::new()),
        ("esker_visible_commit", "The newest commit that reads see.", Vec::new()),
        ("esker_running_queries", "Queries that run.", Vec::new()),
        ("esker_snapshots", "Snapshots and transactions that are held.", Vec::new()),
        ("esker_oldest_snapshot_seconds", "For how long the oldest is held.", Vec::new()),
        ("esker_failed_maintenance", "1 when the last background job failed.", Vec::new()),
        ("esker_clock_suspect", "1 when the machine's clock is not believed.", Vec::new()),
    ];
    let mut works = Vec::new();
    for tenant in tenants.all_open() {
        let info = tenant.database.info();
        works.push((tenant.name.to_string(), info.syncs, info.seals, info.merges));
        let sum =
            |figure: fn(&esker::TableInfo) -> u64| info.tables.iter().map(figure).sum::<u64>();
        let values = [
            sum(|table| table.live_rows),
            sum(|table| table.dead_rows),
            sum(|table| table.segments as u64),
            sum(|table| table.segment_bytes),
            info.log_bytes,
            info.memory.total,
            info.memory.limit,
            info.visible_commit,
            tenant.usage.running_queries(),
            info.snapshots.len() as u64,
            info.snapshots.first().map_or(0, |oldest| oldest.age.as_secs()),
            u64::from(info.last_error.is_some()),
            u64::from(tenant.database.clock().is_suspect),
        ];
        for ((_, _, rows), value) in gauges.iter_mut().zip(values) {
            rows.push((tenant.name.to_string(), value));
        }
    }
    for (name, help, rows) in gauges {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (database, value) in rows {
            let _ = writeln!(text, "{name}{{database=\"{database}\"}} {value}");
        }
    }
    write_work(text, &works);
}

/// A database, its syncs, its seals and its merges.
type Works = (String, DurationCounts, WorkInfo, WorkInfo);

/// What databases have done in the background, and how long that took.
fn write_work(text: &mut String, databases: &[Works]) {
    type Counts = fn(&Works) -> &DurationCounts;
    type Bytes = fn(&Works) -> u64;
    let durations: [(&str, &str, Counts); 3] = [
        ("esker_fsync_duration_seconds", "How long syncs of the log took.", |works| &works.1),
        ("esker_seal_duration_seconds", "How long it took to seal open rows.", |works| {
            &works.2.durations
        }),
        ("esker_merge_duration_seconds", "How long merges took.", |works| &works.3.durations),
    ];
    for (name, help, counts) in durations {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        for works in databases {
            write_histogram(text, name, &format!("database=\"{}\"", works.0), counts(works));
        }
    }
    let bytes: [(&str, &str, Bytes); 2] = [
        ("esker_seal_bytes_total", "Bytes of segments that were sealed.", |works| works.2.bytes),
        ("esker_merge_bytes_total", "Bytes of segments that merges wrote.", |works| works.3.bytes),
    ];
    for (name, help, bytes) in bytes {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for works in databases {
            let _ = writeln!(text, "{name}{{database=\"{}\"}} {}", works.0, bytes(works));
        }
    }
}
