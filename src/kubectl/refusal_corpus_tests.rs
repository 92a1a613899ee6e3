//! What people's clusters said, as they reported it in public: engines that the project's own cluster
//! doesn't have. Who said no is read from the frame, never from the words in it.

use super::tests::{SAMPLES, kind};
use super::*;

/// (kind, what it names, the text that kubectl printed)
const REPORTED: &[(&str, &str, &str)] = &[
    (
        "webhook-denied",
        "validation.gatekeeper.sh",
        "Error from server (Forbidden): admission webhook \"validation.gatekeeper.sh\" denied the request: \
         [psp-privileged-container] Privileged container is not allowed: debugger, securityContext: {\"privileged\": true}\n\
         [repo-is-openpolicyagent] container <debugger> has an invalid image repo <busybox>, allowed repos are [\"openpolicyagent/\"]",
    ),
    (
        "webhook-denied",
        "validation.gatekeeper.sh",
        "Error from server ([denied by container-must-have-limits] container <debugger> has no resource limits): admission \
         webhook \"validation.gatekeeper.sh\" denied the request: [denied by container-must-have-limits] container <debugger> \
         has no resource limits",
    ),
    (
        "webhook-denied",
        "validate.kyverno.svc-fail",
        "Error from server: admission webhook \"validate.kyverno.svc-fail\" denied the request: \n\nresource \
         Pod/default/api was blocked due to the following policies \n\nrestrict-image-registries:\n  validate-registries: \
         'validation error: Unknown image registry. rule validate-registries failed at path /spec/ephemeralContainers/0/image/'\n",
    ),
    (
        "webhook-denied",
        "validate.kyverno.svc",
        "Error from server: admission webhook \"validate.kyverno.svc\" denied the request: \n\nresource Pod/default/api was \
         blocked due to the following policies\n\ndisallow-capabilities:\n  adding-capabilities: 'validation error: Any \
         capabilities added beyond the allowed list (spec.containers[*].securityContext.capabilities.add, \
         spec.initContainers[*]) are disallowed. rule adding-capabilities failed at path \
         /spec/ephemeralContainers/0/securityContext/'",
    ),
    (
        "webhook-denied",
        "pod.sigstore.dev",
        "Error from server (BadRequest): admission webhook \"pod.sigstore.dev\" denied the request without explanation",
    ),
    (
        "policy",
        "demo-policy.example.com",
        "The pods \"api\" is invalid: : ValidatingAdmissionPolicy 'demo-policy.example.com' with binding \
         'demo-binding-test.example.com' denied request: failed expression: object.spec.replicas <= 5",
    ),
    (
        "policy",
        "no-debug",
        "Error from server (Forbidden): pods \"api\" is forbidden: ValidatingAdmissionPolicy 'no-debug' with binding \
         'no-debug' denied request: debug containers are for the platform team",
    ),
    (
        "constraint",
        "restricted-v2",
        "Error from server (Forbidden): pods \"api\" is forbidden: unable to validate against any security context \
         constraint: [provider \"anyuid\": Forbidden: not usable by user or serviceaccount, provider restricted-v2: \
         .ephemeralContainers[0].runAsUser: Invalid value: 0: must be in the ranges: [1000680000, 1000689999], provider \
         restricted-v2: .ephemeralContainers[0].capabilities.add: Invalid value: \"SYS_PTRACE\": capability may not be added]",
    ),
    (
        "pod-security",
        "restricted:v1.24",
        "Error from server (Forbidden): pods \"api\" is forbidden: violates PodSecurity \"restricted:v1.24\": \
         allowPrivilegeEscalation != false (containers \"debugger-8xzrl\", \"debugger-kkl5s\" must set \
         securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"debugger-8xzrl\" must set \
         securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"debugger-8xzrl\" must set \
         securityContext.runAsNonRoot=true)",
    ),
    (
        "rbac",
        "jane",
        "Error from server (Forbidden): pods \"api\" is forbidden: User \"jane\" cannot patch resource \
         \"pods/ephemeralcontainers\" in API group \"\" in the namespace \"shop\"",
    ),
];

#[test]
fn a_reported_denial_is_told_by_its_frame_and_kept_whole() {
    for (want, names, text) in REPORTED {
        let refusal = refusal(text).unwrap_or_else(|| panic!("nobody knows {text}"));
        assert_eq!(kind(&refusal), *want, "{text}");
        let said = refusal.words();
        assert!(said.contains(names), "{said}");
        // The last words are the ones that help.
        if *want != "rbac" {
            let end: String =
                words(text).chars().rev().take(30).collect::<Vec<_>>().into_iter().rev().collect();
            assert!(said.ends_with(&end), "cut short: {said}");
        }
    }
}

#[test]
fn whatever_a_rules_author_writes_the_rule_is_still_the_one_that_said_no() {
    let frames = [
        (
            "webhook-denied",
            "Error from server (Forbidden): admission webhook \"w.corp\" denied the request: ",
        ),
        (
            "webhook-denied",
            "error: You must be logged in to the server (admission webhook \"w.corp\" denied the request: ",
        ),
        (
            "policy",
            "Error from server (Forbidden): pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ",
        ),
    ];
    let texts = SAMPLES
        .iter()
        .map(|(_, name, text)| (*name, *text))
        .chain(REPORTED.iter().map(|(kind, _, text)| (*kind, *text)));
    for (name, text) in texts {
        // Frames don't nest: a webhook that quotes another webhook's or policy's no.
        if ["webhook-denied", "webhook-failed", "policy", "policy-forbidden"].contains(&name) {
            continue;
        }
        for (want, frame) in frames {
            let framed = format!("{frame}{text}");
            assert_eq!(refusal(&framed).as_ref().map(kind), Some(want), "{name} in {frame}");
        }
    }
}

#[test]
fn every_reason_that_a_webhook_gives_is_another_frame_and_the_same_denial() {
    let said = "admission webhook \"w.corp\" denied the request: ask #platform";
    for frame in [
        format!("Error from server: {said}"),
        format!("Error from server (Forbidden): {said}"),
        format!("Error from server (Timeout): {said}"),
        format!("Error from server (NotFound): {said}"),
        format!("Error from server (Conflict): {said}"),
        format!("Error from server (TooManyRequests): {said}"),
        format!("Error from server (ServiceUnavailable): {said}"),
        format!("error: You must be logged in to the server ({said})"),
    ] {
        let Some(Refusal::WebhookDenied { webhook, words }) = refusal(&frame) else { panic!("{frame}") };
        assert_eq!((webhook.as_str(), words.as_str()), ("w.corp", said), "{frame}");
    }
    let plain = refusal("error: You must be logged in to the server (Unauthorized)");
    assert!(matches!(plain, Some(Refusal::Credentials(_))), "{plain:?}");
}
