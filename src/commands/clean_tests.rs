use super::*;
use crate::ssh::alias::Owner;

fn refused(refusal: Refusal) -> Error {
    Error::Refused(refusal)
}

#[test]
fn only_the_servers_own_word_makes_a_stanza_stale() {
    let gone = refused(Refusal::NotFound("pods \"api\" not found".into()));
    assert!(matches!(looked(Err(gone)), Looked::Gone));
    let others = [
        refused(Refusal::Unreachable("connection refused".into())),
        refused(Refusal::Credentials("You must be logged in".into())),
        refused(Refusal::Forbidden("Forbidden".into())),
        refused(Refusal::Kubeconfig("context \"x\" does not exist".into())),
        Error::Failed { words: String::new(), status: Some(1) },
        Error::Deadline { call: "kubectl".into(), after: LIMIT },
        Error::Answer { what: "JSON", why: "EOF".into() },
        Error::TooMuch { most: 1 },
    ];
    for error in others {
        assert!(matches!(looked(Err(error.clone())), Looked::Unknown(_)), "{error:?}");
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_is_asked_once_and_one_right_that_lacks_is_only_its_namespaces() {
    assert!(is_the_cluster(&refused(Refusal::Unreachable("x".into()))));
    assert!(is_the_cluster(&Error::Deadline { call: "kubectl".into(), after: LIMIT }));
    assert!(!is_the_cluster(&refused(Refusal::Forbidden("x".into()))));
    assert!(!is_the_cluster(&refused(Refusal::NotFound("x".into()))));
}

#[test]
fn a_stanza_without_a_context_is_never_judged_by_another_cluster() {
    let settings = Settings::bare("/home/u");
    let cluster = Cluster { kubectl: "/no/such/kubectl".into(), ..Cluster::default() };
    let elsewhere = Elsewhere::new(&settings, &cluster, Interrupt::default());
    let owner = Owner {
        context: String::new(),
        kubeconfig: "/home/u/.kube/config".into(),
        namespace: "demo".into(),
        pod: "api".into(),
        pod_uid: "u".into(),
        seat: "podbench-1".into(),
    };
    let stanza = Stanza { alias: "a".into(), file: "/x/a.conf".into(), owner, socket: None };
    let said = |current: &str| {
        let asked = ask_all(&elsewhere, current, std::slice::from_ref(&stanza), &[]).unwrap();
        let Some(Looked::Unknown(why)) = asked.of.get(&Lead::of_stanza(&stanza)) else { panic!("judged") };
        (asked.calls, why.clone())
    };
    assert!(said("prod").1.contains("inside a cluster") && said("prod").0 == 0);
    let (calls, why) = said("");
    assert!(calls == 1 && why.contains("can't be started"), "{why}");
}

#[test]
fn what_is_stale_and_could_not_be_removed_is_not_called_nothing() {
    let stale = Stale {
        alias: "a".into(),
        config: "/x/a.conf".into(),
        namespace: "demo".into(),
        pod: "api".into(),
        seat: "podbench-1".into(),
        why: "its pod is gone".into(),
    };
    let said = |stale: Vec<Stale>| {
        let report = Clean {
            schema: wire::CLEAN,
            dry_run: false,
            context: String::new(),
            namespace: "demo".into(),
            unlisted: None,
            checked: stale.len(),
            stale,
            unchecked: Vec::new(),
            seats: Vec::new(),
            removed: Taken::default().into(),
            calls: crate::report::attach::Calls { kubectl: 1, wall_ms: 1 },
            warnings: Vec::new(),
        };
        wire::clean(&report, Style { width: 80, color: false })
    };
    assert!(said(Vec::new()).contains("nothing stale was found"));
    let one = said(vec![stale]);
    assert!(one.contains("its pod is gone") && !one.contains("nothing"), "{one}");
}
