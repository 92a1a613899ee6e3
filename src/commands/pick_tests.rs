use serde_json::json;

use super::*;

#[test]
fn what_is_typed_names_a_pod_or_something_that_has_pods() {
    let query = |text: &str| parse(Some(text));
    assert_eq!(query("api-7d9f").unwrap(), Query::Name("api-7d9f".into()));
    assert_eq!(query("pod/Api").unwrap(), Query::Name("Api".into()));
    assert_eq!(query("deploy/web").unwrap(), Query::Owner("deployment", "web".into()));
    assert_eq!(query("svc/web").unwrap(), Query::Owner("service", "web".into()));
    assert_eq!(parse(None).unwrap(), Query::Nothing);
    for bad in ["", "a b", "a\u{1b}", "pod/", "node/x", "a;b", "deploy/-x", "a/b/c", "$(x)"] {
        assert!(query(bad).is_err(), "{bad:?}");
    }
    assert_eq!(query("pod/").unwrap_err().message, "pod/ needs a name");
}

#[test]
fn a_pod_is_the_same_pod_however_its_kind_is_spelled() {
    for spelled in ["api", "pod/api", "pods/api", "po/api"] {
        assert_eq!(bare(spelled), "api");
        assert_eq!(parse(Some(spelled)).unwrap(), Query::Name("api".into()));
    }
    assert_eq!(bare("deploy/api"), "deploy/api");
}

#[test]
fn inside_a_pod_without_a_kubeconfig_the_namespace_is_the_pods_own() {
    use crate::commands::Running;
    use crate::kubectl::fake::{self, fails, ok};
    let asked = |namespace: Option<&str>| {
        let mut settings = crate::settings::Settings::bare("/nonexistent");
        settings.pod_namespace = namespace.map(str::to_owned);
        let cluster = crate::settings::Cluster::default();
        let (kubectl, _) = fake::kubectl(|line, _| match line {
            l if l.contains("config view") => fails("error: current-context must exist in order to minify"),
            _ => ok(json!({"status": {"userInfo": {"username": "me"}}})),
        });
        let ui = crate::ui::Ui::new(&settings);
        let (cluster, verb) = (&cluster, Running::List);
        let session = Session { settings: &settings, cluster, kubectl: &kubectl, verb, ui };
        Around::ask(&session).unwrap().context
    };
    assert_eq!(asked(Some("shop")), Some(nameless("shop")));
    assert_eq!(asked(None), None);
}

#[test]
fn every_kind_of_selector_is_spelled_as_kubectl_takes_it() {
    let of = |selector: Value| selector_of(&json!({"spec": {"selector": selector}}));
    assert_eq!(of(json!({"app": "web", "tier": ""})).as_deref(), Some("app=web,tier="));
    assert_eq!(of(json!({"matchLabels": {"app": "web"}})).as_deref(), Some("app=web"));
    let rules = json!({"matchLabels": {"a": "b"}, "matchExpressions": [
        {"key": "env", "operator": "In", "values": ["x", "y"]}, {"key": "old", "operator": "DoesNotExist"}]});
    assert_eq!(of(rules).as_deref(), Some("a=b,env in (x,y),!old"));
    assert_eq!(of(json!({})), None);
    assert_eq!(selector_of(&json!({"spec": {}})), None);
}

#[test]
fn a_pod_is_only_called_ready_where_it_is() {
    let pod = |name: &str, ready: bool| {
        let status = if ready { "True" } else { "False" };
        Pod::new(json!({
            "metadata": {"name": name, "namespace": "n"},
            "spec": {"containers": []},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }))
        .unwrap()
    };
    let taken = |pods: Vec<Pod>| first_of(pods).map(|(pod, why)| format!("{}: {why}", pod.name()));
    assert_eq!(taken(vec![]), None);
    assert_eq!(taken(vec![pod("a", false)]).as_deref(), Some("a: the only pod"));
    let some = taken(vec![pod("a", false), pod("c", true), pod("b", true)]);
    assert_eq!(some.as_deref(), Some("b: the first ready one of 3 pods"));
    let none = taken(vec![pod("b", false), pod("a", false)]);
    assert_eq!(none.as_deref(), Some("a: none is ready, so the first of 2 pods"));
}

use super::selector as selector_of;

#[test]
fn a_time_is_read_and_a_text_that_is_none_is_not() {
    assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
    assert_eq!(seconds("2000-03-01T00:00:01Z"), Some(951_868_801));
    assert_eq!(seconds("2026-11-30T22:05:00Z"), Some(1_796_076_300));
    for bad in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-11-30"] {
        assert_eq!(seconds(bad), None, "{bad}");
    }
}

#[test]
fn a_table_lines_up() {
    let rows = [
        ["api".to_owned(), "1/1".into(), "Running".into(), "3m".into()],
        ["a-longer-name".to_owned(), "0/2".into(), "CrashLoopBackOff".into(), "1d".into()],
    ];
    let text = table(&rows);
    assert_eq!(text.lines().next().unwrap(), "NAME           READY  STATUS            AGE");
    assert_eq!(text.lines().nth(1).unwrap(), "api            1/1    Running           3m");
}

#[test]
fn who_asks_is_asked_twice_and_a_cluster_that_cannot_say_is_told_from_one_that_is_away() {
    use crate::kubectl::fake::{fails, kubectl, ok};
    use std::sync::atomic::{AtomicUsize, Ordering};
    let user = || ok(json!({"status": {"userInfo": {"username": "me"}}}));
    let asked =
        |fails_first: usize, words: &'static str| {
            let count = AtomicUsize::new(0);
            let (kubectl, calls) = kubectl(move |_, _| {
                if count.fetch_add(1, Ordering::Relaxed) < fails_first { fails(words) } else { user() }
            });
            let said = owner(&kubectl, kubectl.whoami().ok());
            let calls = calls.lock().unwrap().len();
            (said, calls)
        };
    let away = "Unable to connect to the server: dial tcp 10.0.0.1:443: connect: connection refused";
    assert_eq!(asked(0, ""), (Ok((Some("me".into()), vec![])), 1));
    assert_eq!(asked(1, away), (Ok((Some("me".into()), vec![])), 2));
    let (said, calls) = asked(9, away);
    assert!(said.unwrap_err().causes.iter().any(|c| c.contains("nothing was written")) && calls == 2);
    let (said, calls) = asked(9, "error: the selfsubjectreviews API is not enabled in the cluster");
    let (who, warnings) = said.unwrap();
    assert!(who.is_none() && calls == 1 && warnings[0].contains("not enabled"), "{warnings:?}");
}
