//! What most live tests begin with.

use podbench_test_support::namespace::Namespace;
use podbench_test_support::person::Person;
use serde_json::Value;

/// The program under test.
pub const PODBENCH: &str = env!("CARGO_BIN_EXE_podbench");

/// A person with the observe Role in a namespace.
pub fn person(ns: &Namespace) -> Person {
    Person::new(PODBENCH, &ns.observer(), &ns.cluster.image)
}

/// A namespace with some of the zoo, and a person who may observe it.
pub fn world(what: &str, zoo: &[&str]) -> (Namespace, Person) {
    let ns = Namespace::scratch(what);
    ns.zoo(zoo);
    let person = person(&ns);
    (ns, person)
}

/// The same under Pod Security `restricted`.
pub fn restricted(what: &str, zoo: &[&str]) -> (Namespace, Person) {
    let ns = Namespace::labelled(what, &["pod-security.kubernetes.io/enforce=restricted"]);
    ns.zoo(zoo);
    let person = person(&ns);
    (ns, person)
}

/// A text of a report, by pointer.
#[track_caller]
pub fn text<'a>(report: &'a Value, pointer: &str) -> &'a str {
    report
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no text at {pointer} in {report:#}"))
}

/// A number of a report, by pointer.
#[track_caller]
pub fn number(report: &Value, pointer: &str) -> u64 {
    report
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no number at {pointer} in {report:#}"))
}

/// The ladder as `rung outcome channel` lines.
pub fn ladder(report: &Value) -> Vec<String> {
    let steps = report.pointer("/ladder").and_then(Value::as_array).cloned().unwrap_or_default();
    steps.iter().map(|s| ["/rung", "/outcome", "/channel"].map(|p| text(s, p)).join(" ")).collect()
}

/// A pod's first container's uid and gid, as its spec says.
pub fn ids(ns: &Namespace, pod: &str) -> (u64, u64) {
    let json = ns.get("pod", pod);
    let at = |key: &str| {
        ["/spec/containers/0/securityContext/", "/spec/securityContext/"]
            .iter()
            .find_map(|base| json.pointer(&format!("{base}{key}")).and_then(Value::as_u64))
            .unwrap_or_else(|| panic!("{pod} sets no {key}"))
    };
    (at("runAsUser"), at("runAsGroup"))
}
