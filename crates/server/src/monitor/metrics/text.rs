//! The text that Prometheus reads.

use std::fmt::{Display, Write};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use esker::{Info, TableInfo};
use esker_vfs::DurationCounts;

use super::Metrics;
use crate::tenant::{Tenant, Tenants};

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
        let mut write = |labels: String, status: &dyn Display, count: u64| {
            let _ = writeln!(text, "esker_requests_total{{{labels},status=\"{status}\"}} {count}");
        };
        self.for_each_operation(|protocol, operation, ends, _| {
            ends.iter().for_each(|(end, n)| write(labels_of(protocol, operation), end, *n));
        });
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        for ((protocol, operation, status), count) in requests.iter() {
            write(labels_of(protocol, operation), status, *count);
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

/// The name and meaning of something that is reported of each database, and how it is found.
type Figure<R> = (&'static str, &'static str, fn(&Tenant, &Info) -> R);

const GAUGES: &[Figure<u64>] = &[
    ("esker_rows", "Rows alive.", |_, info| sum(info, |table| table.live_rows)),
    ("esker_dead_rows", "Versions of rows that still take space.", |_, info| {
        sum(info, |table| table.dead_rows)
    }),
    ("esker_segments", "Sealed segments.", |_, info| sum(info, |table| table.segments as u64)),
    ("esker_segment_bytes", "Bytes of segment files.", |_, info| {
        sum(info, |table| table.segment_bytes)
    }),
    ("esker_log_bytes", "Bytes of log files.", |_, info| info.log_bytes),
    ("esker_memory_bytes", "Bytes of memory of rows, indexes and loads.", |_, info| {
        info.memory.total
    }),
    ("esker_memory_limit_bytes", "The most of them.", |_, info| info.memory.limit),
    ("esker_visible_commit", "The newest commit that reads see.", |_, info| info.visible_commit),
    ("esker_running_queries", "Queries that run.", |tenant, _| tenant.usage.running_queries()),
    ("esker_tails", "Tails of streams.", |tenant, _| tenant.usage.tails().load(Ordering::Relaxed)),
    ("esker_waiting_event_bytes", "Bytes of events that wait for their commit.", |tenant, _| {
        tenant.database.waiting_event_bytes()
    }),
    ("esker_snapshots", "Snapshots and transactions that are held.", |_, info| {
        info.snapshots.len() as u64
    }),
    ("esker_oldest_snapshot_seconds", "For how long the oldest is held.", |_, info| {
        info.snapshots.first().map_or(0, |oldest| oldest.age.as_secs())
    }),
    ("esker_failed_maintenance", "1 when the last background job failed.", |_, info| {
        info.last_error.is_some().into()
    }),
    ("esker_clock_suspect", "1 when the machine's clock is not believed.", |tenant, _| {
        tenant.database.clock().is_suspect.into()
    }),
];

const DURATIONS: &[Figure<DurationCounts>] = &[
    ("esker_fsync_duration_seconds", "How long syncs of the log took.", |_, info| {
        info.syncs.clone()
    }),
    ("esker_seal_duration_seconds", "How long it took to seal open rows.", |_, info| {
        info.seals.durations.clone()
    }),
    ("esker_merge_duration_seconds", "How long merges took.", |_, info| {
        info.merges.durations.clone()
    }),
];

const COUNTERS: &[Figure<u64>] = &[
    ("esker_events_total", "Events that were stored in streams over HTTP.", |tenant, _| {
        tenant.usage.event_counts().0
    }),
    ("esker_refused_events_total", "Events that were refused.", |tenant, _| {
        tenant.usage.event_counts().1
    }),
    ("esker_seal_bytes_total", "Bytes of segments that were sealed.", |_, info| info.seals.bytes),
    ("esker_merge_bytes_total", "Bytes of segments that merges wrote.", |_, info| {
        info.merges.bytes
    }),
];

fn sum(info: &Info, figure: fn(&TableInfo) -> u64) -> u64 {
    info.tables.iter().map(figure).sum()
}

fn write_databases(text: &mut String, tenants: &Tenants) {
    let found = tenants.all_open().into_iter();
    let found: Vec<_> = found.map(|tenant| (tenant.database.info(), tenant)).collect();
    for (kind, figures) in [("gauge", GAUGES), ("counter", COUNTERS)] {
        for (name, help, figure) in figures {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (info, tenant) in &found {
                let value = figure(tenant, info);
                let _ = writeln!(text, "{name}{{database=\"{}\"}} {value}", tenant.name);
            }
        }
    }
    for (name, help, figure) in DURATIONS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} histogram");
        for (info, tenant) in &found {
            let labels = format!("database=\"{}\"", tenant.name);
            write_histogram(text, name, &labels, &figure(tenant, info));
        }
    }
}
