//! How long a process may stand still before a probe of its container takes notice.
//!
//! The kubelet's arithmetic (`pkg/kubelet/prober`): a probe starts every `periodSeconds`, is given up
//! after `timeoutSeconds`, and `failureThreshold` failures one after the other are a failure. A process
//! that is stopped right before a probe has the least time: `(failureThreshold - 1) · periodSeconds +
//! timeoutSeconds`.

use podbench_contract::text::escape;
use serde_json::Value;

use super::Container;

/// What becomes of a container whose probe fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Liveness,
    Readiness,
    Startup,
}

impl Kind {
    const fn field(self) -> &'static str {
        match self {
            Self::Liveness => "livenessProbe",
            Self::Readiness => "readinessProbe",
            Self::Startup => "startupProbe",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Liveness => "liveness",
            Self::Readiness => "readiness",
            Self::Startup => "startup",
        }
    }

    const fn outcome(self) -> &'static str {
        match self {
            Self::Liveness | Self::Startup => "the kubelet restarts it",
            Self::Readiness => "its Services send it nothing",
        }
    }
}

/// A warning for each probe that a process that stands at a breakpoint fails, as far as the container's
/// spec says.
#[must_use]
pub fn outlasted(container: &Container<'_>) -> Vec<String> {
    // Before it has started the other two aren't asked.
    let started = container.status.and_then(|s| s.get("started")).and_then(Value::as_bool) != Some(false);
    let counted: &[Kind] = if started { &[Kind::Liveness, Kind::Readiness] } else { &[Kind::Startup] };
    counted.iter().filter_map(|kind| warning(container, *kind)).collect()
}

fn warning(container: &Container<'_>, kind: Kind) -> Option<String> {
    let probe = container.spec.get(kind.field())?;
    let (what, may) = asked(probe)?;
    let seconds = |field: &str, default: u64| probe.get(field).and_then(Value::as_u64).unwrap_or(default);
    let (period, timeout) = (seconds("periodSeconds", 10), seconds("timeoutSeconds", 1));
    let failures = seconds("failureThreshold", 3).max(1);
    let least = (failures - 1).saturating_mul(period).saturating_add(timeout);
    let times = if failures == 1 { "1 failure".to_owned() } else { format!("{failures} failures") };
    Some(format!(
        "a breakpoint that holds {} for {least} s {may} its {} probe ({what} every {period} s, {times}), and {}",
        container.name(),
        kind.name(),
        kind.outcome()
    ))
}

/// What a probe asks, and whether a process that stands still fails it; `None`: it doesn't.
fn asked(probe: &Value) -> Option<(String, &'static str)> {
    if let Some(get) = probe.get("httpGet") {
        let path = get.get("path").and_then(Value::as_str).unwrap_or("/");
        return Some((format!("GET {}", escape(path, 60)), "fails"));
    }
    if probe.get("grpc").is_some() {
        return Some(("a gRPC health check".to_owned(), "fails"));
    }
    // A process of its own: it fails where it talks to the one that stands still.
    if probe.get("exec").is_some() {
        return Some(("a command".to_owned(), "may fail"));
    }
    // `tcpSocket`: the kernel takes connections for a process that doesn't run.
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::pod::Kind as Of;

    fn warnings(spec: &Value, status: &Value) -> Vec<String> {
        outlasted(&Container { kind: Of::Regular, spec, status: Some(status) })
    }

    #[test]
    fn each_probe_that_a_stopped_process_fails_is_told_with_its_least_time() {
        let spec = json!({"name": "app",
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": 80}},
            "readinessProbe": {"grpc": {"port": 9000}, "periodSeconds": 5, "timeoutSeconds": 2, "failureThreshold": 1},
            "startupProbe": {"exec": {"command": ["true"]}, "failureThreshold": 30}});
        assert_eq!(
            warnings(&spec, &json!({"started": true})),
            [
                "a breakpoint that holds app for 21 s fails its liveness probe (GET /healthz every 10 s, 3 failures), \
                 and the kubelet restarts it",
                "a breakpoint that holds app for 2 s fails its readiness probe (a gRPC health check every 5 s, \
                 1 failure), and its Services send it nothing",
            ]
        );
        assert_eq!(
            warnings(&spec, &json!({"started": false})),
            [
                "a breakpoint that holds app for 291 s may fail its startup probe (a command every 10 s, 30 failures), \
              and the kubelet restarts it"
            ]
        );
    }

    #[test]
    fn a_probe_that_the_kernel_answers_and_none_at_all_are_no_deadline() {
        for spec in [json!({"name": "a"}), json!({"name": "a", "livenessProbe": {"tcpSocket": {"port": 80}}})]
        {
            assert!(warnings(&spec, &json!({})).is_empty());
        }
    }

    proptest! {
        #[test]
        fn whatever_a_spec_says_is_told_on_one_line(period in any::<u64>(), timeout in any::<u64>(), failures in any::<u64>(), path in any::<String>()) {
            let spec = json!({"name": "app", "livenessProbe": {"httpGet": {"path": path}, "periodSeconds": period,
                              "timeoutSeconds": timeout, "failureThreshold": failures}});
            let said = warnings(&spec, &Value::Null);
            prop_assert!(said.len() == 1 && !said[0].contains(char::is_control));
        }
    }
}
