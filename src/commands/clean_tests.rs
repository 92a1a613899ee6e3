use super::*;

fn refused(refusal: Refusal) -> Error {
    Error::Refused(refusal)
}

#[test]
fn only_the_servers_own_word_makes_a_stanza_stale() {
    let gone = refused(Refusal::NotFound("pods \"api\" not found".into()));
    assert!(matches!(verdict(&gone), Verdict::Stale(_)));
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
        assert!(matches!(verdict(&error), Verdict::Unknown(_)), "{error:?}");
    }
}

#[test]
fn a_cluster_that_cannot_be_reached_is_asked_once_and_one_right_that_lacks_is_only_its_namespaces() {
    assert!(is_the_cluster(&refused(Refusal::Unreachable("x".into()))));
    assert!(is_the_cluster(&Error::Deadline { call: "kubectl".into(), after: LIMIT }));
    assert!(!is_the_cluster(&refused(Refusal::Forbidden("x".into()))));
    assert!(!is_the_cluster(&refused(Refusal::NotFound("x".into()))));
}
