//! A company's proxy is kubectl's own business too, and the stanza keeps the way through it.

use std::net::SocketAddr;

use podbench_test_support::connect::Forward;
use podbench_test_support::person::{Person, alias};
use podbench_test_support::process::run;
use serde_json::Value;

use crate::kubeconfig::{executable, ssh_from_nothing, world};
use crate::world::text;

/// Where the API server really is.
fn server(config: &Value) -> SocketAddr {
    let url = text(config, "/clusters/0/cluster/server");
    url.trim_start_matches("https://").parse().expect("an address and a port")
}

/// Leaves the person a kubeconfig whose server is a name that nothing but a proxy resolves; what the
/// proxy is asked for.
fn named_server(person: &Person, config: &mut Value) -> String {
    let server = server(config);
    let asked = format!("api.corp.invalid:{}", server.port());
    let cluster = &mut config["clusters"][0]["cluster"];
    cluster["server"] = format!("https://{asked}").into();
    // The certificate is the same server's.
    cluster["tls-server-name"] = server.ip().to_string().into();
    write(person, config);
    asked
}

fn write(person: &Person, config: &Value) {
    std::fs::write(person.home().join(".kube/config"), config.to_string()).unwrap();
}

/// Attaches and enters by ssh from nothing, and shows that each went through the proxy and nowhere else.
#[track_caller]
fn goes_through(person: &Person, proxy: &Forward, asked: &str) {
    let before = proxy.asked().len();
    let report = person.attach(&["app"]);
    let after = proxy.asked().len();
    assert!(after >= before + 4, "attach went around the proxy");
    assert_eq!(ssh_from_nothing(person, &alias(&report)), 0);
    assert!(proxy.asked().len() > after, "ssh went around the proxy");
    assert!(proxy.asked().iter().all(|a| a == asked), "{:?}", proxy.asked());
}

#[test]
fn a_proxy_in_the_environment_is_used_and_the_stanza_keeps_it() {
    let (_ns, mut person, mut config) = world("px-env");
    let proxy = Forward::http(server(&config));
    let asked = named_server(&person, &mut config);
    let said = person.podbench(&["attach", "app"]).expect_code(2);
    assert!(said.stderr.contains("api.corp.invalid"), "without a proxy it is no host: {}", said.stderr);
    for name in ["HTTPS_PROXY", "https_proxy"] {
        person.env.push((name.into(), proxy.url.clone()));
        goes_through(&person, &proxy, &asked);
        person.env.pop();
    }
    // One that is gone is no way around it. With what kubectl has learnt of the server kept, its words
    // are about the server alone.
    person.env.push(("HTTPS_PROXY".into(), "http://127.0.0.1:1".into()));
    let said = person.podbench(&["attach", "app"]).expect_code(2);
    assert!(said.stderr.contains("the API server can't be reached"), "{}", said.stderr);
    std::fs::remove_dir_all(person.home().join(".kube/cache")).unwrap();
    let said = person.podbench(&["attach", "app"]).expect_code(2);
    for words in ["127.0.0.1:1: connect: connection refused", "the proxy in front of", "HTTPS_PROXY"] {
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
}

#[test]
fn a_proxy_in_the_kubeconfig_is_used_and_one_with_a_password_in_the_environment_is_refused() {
    let (_ns, mut person, mut config) = world("px-url");
    let server = server(&config);
    let proxy = Forward::http(server);
    config["clusters"][0]["cluster"]["proxy-url"] = proxy.url.clone().into();
    write(&person, &config);
    goes_through(&person, &proxy, &server.to_string());

    let transcript = person.home().join("transcript");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), transcript.display().to_string()));
    person.env.push(("HTTPS_PROXY".into(), "http://me:hunter2@proxy.invalid:3128".into()));
    let said = person.podbench(&["attach", "app"]).expect_code(2);
    assert!(said.stderr.contains("proxy-url") && !said.stderr.contains("hunter2"), "{}", said.stderr);
    assert!(!transcript.exists(), "the cluster was asked");
}

#[test]
fn a_proxy_that_is_spoken_to_over_tls_lets_an_attach_and_ssh_pass() {
    let (_ns, mut person, mut config) = world("px-tls");
    let server = server(&config);
    let proxy = Forward::https(server);
    proxy.trusted_by(&mut config);
    config["clusters"][0]["cluster"]["proxy-url"] = proxy.url.clone().into();
    write(&person, &config);
    goes_through(&person, &proxy, &server.to_string());

    // kubectl 1.30.2 said this of every exec over a websocket, and tried nothing else.
    let kubectl = run({
        let mut which = person.command("sh");
        which.args(["-c", "command -v \"${PODBENCH_KUBECTL:-kubectl}\""]);
        which
    });
    let older = person.home().join("older-kubectl");
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' exec '*) [ \"$KUBECTL_REMOTE_COMMAND_WEBSOCKETS\" = false ] || \
         {{ echo 'error: proxy: unknown scheme: https' >&2; exit 1; }};; esac\nexec {} \"$@\"\n",
        kubectl.text()
    );
    executable(&older, &script);
    let older = older.to_str().unwrap();
    let report = person.attach(&["app", "--kubectl", older]);
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0);
    let stanza = std::fs::read_to_string(text(&report, "/ssh/config")).unwrap();
    assert!(stanza.contains("KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"), "{stanza}");
    person.podbench(&["detach", "app", "--kubectl", older]).expect_code(0);

    // The same from the environment.
    config["clusters"][0]["cluster"].as_object_mut().unwrap().remove("proxy-url");
    let asked = named_server(&person, &mut config);
    person.env.push(("HTTPS_PROXY".into(), proxy.url.clone()));
    let before = proxy.asked().len();
    let report = person.attach(&["app"]);
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0);
    assert!(proxy.asked().len() > before + 4 && proxy.asked().last() == Some(&asked), "{:?}", proxy.asked());
}
