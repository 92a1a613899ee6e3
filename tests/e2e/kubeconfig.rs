//! The kubeconfig is kubectl's own business, and what a stanza keeps of it is true later too.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::process::run;
use serde_json::{Value, json};

use crate::terminal::on_a_terminal;
use crate::world::{PODBENCH, text};

fn world(what: &str) -> (Namespace, Person, Value) {
    let ns = Namespace::scratch(what);
    ns.pods(&[pod("app", 1234, 2000)]);
    let config = ns.observer();
    let person = Person::new(PODBENCH, &config, &ns.cluster.image);
    (ns, person, serde_json::from_str(&config).unwrap())
}

/// `ssh ALIAS true` from nowhere, with nothing in its environment.
fn ssh_from_nothing(person: &Person, alias: &str) -> i32 {
    let mut command = person.ssh_command("ssh", &["-S", "none", alias, "true"]);
    command.env_clear().current_dir("/");
    run(command).code
}

fn executable(file: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The kubeconfig with its token from a program.
fn with_plugin(config: &Value, program: &Path) -> String {
    let mut config = config.clone();
    config["users"][0]["user"] = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": program, "interactiveMode": "IfAvailable",
    }});
    config.to_string()
}

#[test]
fn a_list_of_files_is_merged_as_kubectl_merges_it_and_relative_paths_stay_where_they_were() {
    let (ns, mut person, config) = world("kc-list");
    let home = person.home().to_owned();
    let folder = home.join("my configs");
    std::fs::create_dir(&folder).unwrap();
    // The certificate and the token beside the files that name them, by relative paths.
    let ca =
        config.pointer("/clusters/0/cluster/certificate-authority-data").and_then(Value::as_str).unwrap();
    let mut decode = std::process::Command::new("base64");
    decode.arg("-d");
    let pem = podbench_test_support::process::run_with(decode, ca.as_bytes(), Duration::from_secs(10));
    std::fs::write(folder.join("ca.pem"), pem.stdout).unwrap();
    std::fs::write(folder.join("token"), text(&config, "/users/0/user/token")).unwrap();
    let server = text(&config, "/clusters/0/cluster/server");
    let part = |what: Value| {
        let mut part = json!({"apiVersion": "v1", "kind": "Config"});
        part.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        part.to_string()
    };
    let cluster = json!({"clusters": [{"name": "e2e", "cluster": {"server": server, "certificate-authority": "ca.pem"}}]});
    let user = json!({"users": [{"name": "me", "user": {"tokenFile": "token"}}]});
    let context = json!({"current-context": "mine", "contexts": [
        {"name": "mine", "context": {"cluster": "e2e", "user": "me", "namespace": ns.name}}]});
    for (name, what) in [("a", cluster), ("b", user), ("c", context)] {
        std::fs::write(folder.join(name), part(what)).unwrap();
    }
    person
        .env
        .push(("KUBECONFIG".into(), "my configs/a::my configs/nosuch:my configs/b:my configs/c".into()));
    let report = person.attach(&["app"]);
    let mut view = person.command("kubectl");
    view.args(["config", "view", "--minify", "--raw", "-o", "json"]);
    let merged: Value = run(view).json();
    assert_eq!(text(&report, "/context"), text(&merged, "/current-context"));
    assert_eq!(text(&report, "/namespace"), text(&merged, "/contexts/0/context/namespace"));
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0, "the stanza leads there from anywhere");

    // And `--kubeconfig` by a relative path.
    std::fs::write(folder.join("whole"), config.to_string()).unwrap();
    person.env.retain(|(name, _)| name != "KUBECONFIG");
    let report = person.attach(&["app", "--kubeconfig", "my configs/whole", "--host-alias", "whole"]);
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0);
}

#[test]
fn a_home_with_spaces_percents_quotes_and_umlauts_is_a_home() {
    let (ns, _, config) = world("kc-home");
    let odd = tempfile::Builder::new().prefix("a b%c 'd\" ü$x ").tempdir().unwrap();
    let person = Person::new(PODBENCH, &config.to_string(), &ns.cluster.image);
    for folder in [".ssh", ".kube"] {
        std::fs::create_dir(odd.path().join(folder)).unwrap();
    }
    for file in [".ssh/id_ed25519", ".ssh/id_ed25519.pub", ".kube/config"] {
        std::fs::copy(person.home().join(file), odd.path().join(file)).unwrap();
    }
    let mut attach = person.podbench_command(&["attach", "app", "-o", "json"]);
    attach.env("HOME", odd.path()).current_dir(odd.path());
    let report = run(attach).expect_code(0).json();
    let mut ssh = person.command("ssh");
    ssh.env_clear().current_dir("/").arg("-F").arg(text(&report, "/ssh/config"));
    ssh.args(["-S", "none", &alias(&report), "echo in"]);
    assert_eq!(run(ssh).text(), "in");
}

#[test]
fn who_acts_as_somebody_else_does_so_in_the_stanza_too() {
    let (ns, _, _) = world("kc-as");
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let _ = ns.kubeconfig_with("observer2", &rules);
    // An account that may do nothing but act as the observer.
    let rules = "- apiGroups: [\"\"]\n  resources: [serviceaccounts]\n  resourceNames: [observer2]\n  verbs: [impersonate]\n";
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("actor", rules), &ns.cluster.image);
    person.podbench(&["attach", "app"]).expect_code(2);
    let other = format!("system:serviceaccount:{}:observer2", ns.name);
    let report = person.attach(&["app", "--as", &other]);
    assert_eq!(text(&report, "/seat/owner"), other);
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0);
}

#[test]
fn a_context_that_is_switched_or_deleted_later_moves_no_host() {
    let (_ns, person, config) = world("kc-switch");
    let alias = alias(&person.attach(&["app"]));
    let file = person.home().join(".kube/config");
    let mut switched = config.clone();
    switched["clusters"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "dead", "cluster": {"server": "https://127.0.0.1:1"}}));
    switched["contexts"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "dead", "context": {"cluster": "dead", "user": "observer"}}));
    switched["current-context"] = "dead".into();
    std::fs::write(&file, switched.to_string()).unwrap();
    person.hang_up(&alias);
    assert_eq!(ssh_from_nothing(&person, &alias), 0, "it goes where it went");
    switched["contexts"].as_array_mut().unwrap().remove(0);
    std::fs::write(&file, switched.to_string()).unwrap();
    person.hang_up(&alias);
    let said = person.ssh(&["-S", "none", &alias, "true"]);
    assert_eq!(said.code, 255);
    assert!(
        said.stderr.contains("e2e") && said.stderr.contains("context"),
        "it names the context: {}",
        said.stderr
    );
}

#[test]
fn a_credential_plugin_that_sleeps_talks_nonsense_or_fails_is_named_and_bounded() {
    let (ns, person, config) = world("kc-plugin");
    let program = person.home().join("corp-login");
    std::fs::write(person.home().join(".kube/config"), with_plugin(&config, &program)).unwrap();
    for (script, code, words) in [
        ("#!/bin/sh\necho 'Welcome to corp!'\n", 2, &["corp-login"][..]),
        ("#!/bin/sh\necho 'no badge, no token' >&2\nexit 7\n", 2, &["corp-login", "exit code 7"]),
        ("#!/bin/sh\nsleep 300\n", 124, &["corp-login"]),
    ] {
        executable(&program, script);
        let began = Instant::now();
        let said = person.podbench(&["attach", "app"]).expect_code(code);
        assert!(began.elapsed() < Duration::from_secs(60), "{script}");
        for word in words {
            assert!(said.stderr.contains(word), "`{word}` is missing for {script} in:\n{}", said.stderr);
        }
        assert!(said.stderr.contains("try:"), "{}", said.stderr);
    }
    assert!(ns.seats("app").is_empty());
}

#[test]
fn a_credential_plugin_that_asks_a_person_has_the_terminal() {
    let (ns, person, config) = world("kc-ask");
    let program = person.home().join("corp-login");
    let token = text(&config, "/users/0/user/token");
    // Asked once: as such programs do, it keeps what it got.
    executable(
        &program,
        &format!(
            "#!/bin/sh\nkept={0}/kept\nif [ ! -e $kept ]; then\n  printf 'one-time code: ' >&2\n  read code </dev/tty || exit 9\n  \
             [ \"$code\" = 4711 ] || {{ echo 'wrong code' >&2; exit 8; }}\n  touch $kept\nfi\n\
             echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"{token}\"}}}}'\n",
            person.home().display()
        ),
    );
    std::fs::write(person.home().join(".kube/config"), with_plugin(&config, &program)).unwrap();
    let screen =
        on_a_terminal(&person, "\"$PODBENCH\" attach app; echo rc=$?", "one-time code: ", &["4711\r"]);
    assert!(screen.contains("rc=0") && screen.contains("podbench-1"), "{screen}");
    assert_eq!(screen.matches("one-time code").count(), 1, "a person was asked twice: {screen}");
    // Nobody can be asked beneath ssh; the code is kept.
    let alias = format!("podbench-{}-app-1", ns.name);
    assert_eq!(ssh_from_nothing(&person, &alias), 0);
}

#[test]
fn a_token_that_has_ended_meanwhile_is_had_anew_when_ssh_connects() {
    let (ns, person, config) = world("kc-token");
    let program = person.home().join("short token");
    // The token itself is in a file, and says that it ends in twenty seconds.
    executable(
        &program,
        &format!(
            "#!/bin/sh\ncat <<E\n{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\
             \"status\":{{\"token\":\"$(cat {}/token)\",\"expirationTimestamp\":\"$(date -u -d '+20 seconds' +%Y-%m-%dT%H:%M:%SZ)\"}}}}\nE\n",
            person.home().display()
        ),
    );
    let token = |text: &str| std::fs::write(person.home().join("token"), text).unwrap();
    token(text(&config, "/users/0/user/token"));
    std::fs::write(person.home().join(".kube/config"), with_plugin(&config, &program)).unwrap();
    let alias = alias(&person.attach(&["app"]));
    // A stanza that kept the first token would get in now.
    token("ended");
    assert_eq!(person.ssh(&["-S", "none", &alias, "true"]).code, 255);
    token(&ns.kubectl(&["create", "token", "observer"]).text());
    person.ssh(&["-S", "none", &alias, "true"]).expect_code(0);
    let stanza =
        std::fs::read_to_string(person.home().join(format!(".podbench/config.d/{alias}.conf"))).unwrap();
    assert!(!stanza.contains(text(&config, "/users/0/user/token")), "a token is on the disk");
}

/// A CONNECT proxy on loopback; how many connections it carried. `route`: where all of them go.
fn proxy(route: Option<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let carried = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten().take(200) {
            let (carried, route) = (Arc::clone(&carried), route.clone());
            std::thread::spawn(move || carry(client, route, &carried));
        }
    });
    (port, count)
}

fn carry(mut client: TcpStream, route: Option<String>, carried: &AtomicUsize) -> Option<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && head.len() < 4096 && client.read(&mut byte).ok()? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.strip_prefix("CONNECT ")?.split(' ').next()?;
    let mut server = TcpStream::connect(route.as_deref().unwrap_or(target)).ok()?;
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
    carried.fetch_add(1, Ordering::Relaxed);
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let up = std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(std::net::Shutdown::Both);
    up.join().ok()
}

#[test]
fn a_proxy_in_the_kubeconfig_is_used_and_one_with_a_password_in_the_environment_is_refused() {
    let (_ns, mut person, mut config) = world("kc-proxy");
    let (port, carried) = proxy(None);
    config["clusters"][0]["cluster"]["proxy-url"] = format!("http://127.0.0.1:{port}").into();
    std::fs::write(person.home().join(".kube/config"), config.to_string()).unwrap();
    let alias = alias(&person.attach(&["app"]));
    let before = carried.load(Ordering::Relaxed);
    assert!(before >= 4, "attach went around the proxy");
    assert_eq!(ssh_from_nothing(&person, &alias), 0);
    assert!(carried.load(Ordering::Relaxed) > before, "ssh went around the proxy");

    let transcript = person.home().join("transcript");
    person.env.push(("PODBENCH_TRANSCRIPT".into(), transcript.display().to_string()));
    person.env.push(("HTTPS_PROXY".into(), "http://me:hunter2@proxy.invalid:3128".into()));
    let said = person.podbench(&["attach", "app"]).expect_code(2);
    assert!(said.stderr.contains("proxy-url") && !said.stderr.contains("hunter2"), "{}", said.stderr);
    assert!(!transcript.exists(), "the cluster was asked");
}

#[test]
fn a_proxy_in_the_environment_is_used_by_attach_and_by_ssh_from_an_empty_environment() {
    let (_ns, mut person, mut config) = world("kc-env-proxy");
    let server = text(&config, "/clusters/0/cluster/server").trim_start_matches("https://").to_owned();
    let (port, carried) = proxy(Some(server));
    // Go's programs never send what is meant for loopback through a proxy; the certificate has this name.
    config["clusters"][0]["cluster"]["server"] = "https://kubernetes.default.svc".into();
    std::fs::write(person.home().join(".kube/config"), config.to_string()).unwrap();
    person.env.push(("HTTPS_PROXY".into(), format!("http://127.0.0.1:{port}")));
    let alias = alias(&person.attach(&["app"]));
    let before = carried.load(Ordering::Relaxed);
    assert!(before >= 4, "attach went around the proxy");
    assert_eq!(ssh_from_nothing(&person, &alias), 0);
    assert!(carried.load(Ordering::Relaxed) > before, "ssh went around the proxy");
}
