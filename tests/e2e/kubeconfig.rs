//! The kubeconfig is kubectl's own business, and what a stanza keeps of it is true later too.

use std::path::Path;
use std::time::{Duration, Instant};

use podbench_test_support::namespace::{Namespace, observe_rules};
use podbench_test_support::person::{Person, alias};
use podbench_test_support::pods::pod;
use podbench_test_support::policy::Policies;
use podbench_test_support::process::{eventually, run, run_with};
use serde_json::{Value, json};

use crate::terminal::on_a_terminal;
use crate::world::{PODBENCH, text};

/// A pod `app`, an observer, and the observer's kubeconfig.
pub fn world(what: &str) -> (Namespace, Person, Value) {
    let ns = Namespace::scratch(what);
    ns.pods(&[pod("app", 1234, 2000)]);
    let config = ns.observer();
    let person = Person::new(PODBENCH, &config, &ns.cluster.image);
    (ns, person, serde_json::from_str(&config).unwrap())
}

/// `ssh ALIAS true` from nowhere, with nothing in its environment.
pub fn ssh_from_nothing(person: &Person, alias: &str) -> i32 {
    let mut command = person.ssh_command("ssh", &["-S", "none", alias, "true"]);
    command.env_clear().current_dir("/");
    run(command).code
}

pub fn executable(file: &Path, text: &str) {
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
    let pem = run_with(decode, ca.as_bytes(), Duration::from_secs(10));
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
    let of = |context: &str, namespace: &str| json!({"name": context, "context": {"cluster": "e2e", "user": "me", "namespace": namespace}});
    let mine = json!({"current-context": "mine", "contexts": [of("mine", &ns.name)]});
    let yours =
        json!({"current-context": "yours", "contexts": [of("mine", "default"), of("yours", &ns.name)]});
    // `d` says of the same context something else, and names another as the current one.
    let files = [("a", cluster), ("b", user), ("c", mine), ("d", yours)];
    for (name, what) in files {
        std::fs::write(folder.join(name), part(what)).unwrap();
    }
    for (order, current) in
        [(["a", "", "nosuch", "b", "c", "d"], "mine"), (["d", "c", "nosuch", "", "b", "a"], "yours")]
    {
        let list =
            order.map(|name| if name.is_empty() { String::new() } else { format!("my configs/{name}") });
        person.env.push(("KUBECONFIG".into(), list.join(":")));
        let report = person.attach(&["app"]);
        let mut view = person.command("kubectl");
        view.args(["config", "view", "--minify", "--raw", "-o", "json"]);
        let merged: Value = run(view).json();
        assert_eq!(text(&report, "/context"), text(&merged, "/current-context"), "{order:?}");
        assert_eq!(text(&report, "/context"), current, "the first file that says it counts");
        assert_eq!(text(&report, "/namespace"), text(&merged, "/contexts/0/context/namespace"));
        person.hang_up(&alias(&report));
        assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0, "the stanza leads there from anywhere");
        person.env.retain(|(name, _)| name != "KUBECONFIG");
    }

    // And `--kubeconfig` by a relative path.
    std::fs::write(folder.join("whole"), config.to_string()).unwrap();
    let report = person.attach(&["app", "--kubeconfig", "my configs/whole", "--host-alias", "whole"]);
    assert_eq!(ssh_from_nothing(&person, &alias(&report)), 0);
}

#[test]
fn a_home_with_spaces_percents_quotes_and_umlauts_is_a_home() {
    let (ns, _, config) = world("kc-home");
    let odd = tempfile::Builder::new().prefix("a b%c 'd\" ü$x ").tempdir().unwrap();
    let person = Person::new(PODBENCH, &config.to_string(), &ns.cluster.image);
    for folder in [".ssh", ".kube", "my bin %h", "my configs"] {
        std::fs::create_dir(odd.path().join(folder)).unwrap();
    }
    for file in [".ssh/id_ed25519", ".ssh/id_ed25519.pub", ".kube/config"] {
        std::fs::copy(person.home().join(file), odd.path().join(file)).unwrap();
    }
    // The programs and another kubeconfig are in such folders too.
    let bin = odd.path().join("my bin %h");
    std::os::unix::fs::symlink(PODBENCH, bin.join("podbench")).unwrap();
    let real = run({
        let mut which = person.command("sh");
        which.args(["-c", "command -v \"${PODBENCH_KUBECTL:-kubectl}\""]);
        which
    });
    executable(
        &bin.join("kubectl"),
        &format!("#!/bin/sh\necho ran >>\"$0.ran\"\nexec {} \"$@\"\n", real.text()),
    );
    let ran = || std::fs::read_to_string(bin.join("kubectl.ran")).unwrap_or_default().lines().count();
    std::fs::write(odd.path().join("my configs/100% mine"), config.to_string()).unwrap();
    let there = |program: &str| {
        let mut command = person.command(program);
        command.env("HOME", odd.path()).current_dir(odd.path());
        // The one on PATH is meant, whichever the tests run with.
        command.env_remove("PODBENCH_KUBECTL").env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        command
    };
    for kubeconfig in [None, Some("my configs/100% mine")] {
        let mut attach = there(bin.join("podbench").to_str().unwrap());
        attach.args(["attach", "app", "-o", "json"]).envs(kubeconfig.map(|k| ("KUBECONFIG", k)));
        let report = run(attach).expect_code(0).json();
        let before = ran();
        assert!(before > 0, "another kubectl was run");
        let mut ssh = person.command("ssh");
        ssh.env_clear().current_dir("/").arg("-F").arg(text(&report, "/ssh/config"));
        ssh.args(["-S", "none", &alias(&report), "echo in"]);
        assert_eq!(run(ssh).text(), "in");
        assert_eq!(ran(), before + 1, "ssh ran another kubectl");

        // The line that podbench asks for, in the user's own configuration: no other host is touched by it.
        let main = odd.path().join(".ssh/config");
        let others = "Host elsewhere\n  User somebody\n";
        std::fs::write(&main, format!("{}\n{others}", text(&report, "/ssh/include"))).unwrap();
        let options = |config: &Path, host: &str| {
            let mut ssh = there("ssh");
            ssh.arg("-G").arg("-F").arg(config).arg(host);
            run(ssh).text()
        };
        let plain = odd.path().join("plain");
        std::fs::write(&plain, others).unwrap();
        assert_eq!(options(&main, "elsewhere"), options(&plain, "elsewhere"));
        assert!(options(&main, &alias(&report)).contains("hostkeyalias podbench-"), "the line leads nowhere");
        std::fs::remove_file(main).unwrap();
    }
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
fn a_group_and_a_uid_that_somebody_acts_with_are_kept_too() {
    let (ns, _, _) = world("kc-group");
    let rules = std::fs::read_to_string(observe_rules()).unwrap();
    let _ = ns.kubeconfig_with("observer2", &rules);
    let [user, group, uid] = ["user", "group of ours", "uid"].map(|what| format!("{} {what}", ns.name));
    let may = |group: &str, resource: &str, name: &str| json!({"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ["impersonate"]});
    let authorization = "rbac.authorization.k8s.io";
    let name = format!("{}-actor", ns.name);
    let role = |kind: &str, name: &str| json!({"apiGroup": authorization, "kind": kind, "name": name});
    // The rights are the group's: who is that user without the group has none.
    let _actor = Policies::apply(
        &ns,
        &[
            json!({"apiVersion": format!("{authorization}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
                   "rules": [may("", "users", &user), may("", "groups", &group),
                             may("authentication.k8s.io", "uids", &uid)]}),
            json!({"apiVersion": format!("{authorization}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
                   "roleRef": role("ClusterRole", &name),
                   "subjects": [{"kind": "ServiceAccount", "name": "actor", "namespace": ns.name}]}),
            json!({"apiVersion": format!("{authorization}/v1"), "kind": "RoleBinding",
                   "metadata": {"name": "group", "namespace": ns.name}, "roleRef": role("Role", "observer2"),
                   "subjects": [{"apiGroup": authorization, "kind": "Group", "name": group}]}),
        ],
    );
    let nothing = "- apiGroups: [\"\"]\n  resources: [pods]\n  resourceNames: [nosuch]\n  verbs: [get]\n";
    let person = Person::new(PODBENCH, &ns.kubeconfig_with("actor", nothing), &ns.cluster.image);
    eventually("the actor may act", Duration::from_secs(20), || {
        let mut whoami = person.command("kubectl");
        whoami.args(["auth", "whoami", "--as", &user, "--as-group", &group, "--as-uid", &uid]);
        (run(whoami).code == 0).then_some(())
    });
    person.podbench(&["attach", "app", "--as", &user]).expect_code(2);
    let report = person.attach(&["app", "--as", &user, "--as-group", &group, "--as-uid", &uid]);
    assert_eq!(text(&report, "/seat/owner"), user);
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

/// ssh's own input is a ProxyCommand's: a plugin that took a byte of it, or said one, would end the
/// connection or change what it carries.
#[test]
fn beneath_ssh_a_credential_plugin_has_no_input_and_no_way_to_hang_the_connection() {
    let (_ns, person, config) = world("kc-beneath");
    let program = person.home().join("corp-login");
    let home = person.home().display();
    let credential = format!(
        "echo '{{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{{\"token\":\"{}\"}}}}'\n",
        text(&config, "/users/0/user/token")
    );
    executable(&program, &format!("#!/bin/sh\n{credential}"));
    let mut with = serde_json::from_str::<Value>(&with_plugin(&config, &program)).unwrap();
    let file = person.home().join(".kube/config");
    std::fs::write(&file, with.to_string()).unwrap();
    let alias = alias(&person.attach(&["app"]));

    // One that reads and chatters: everything arrives all the same, and it read nothing.
    executable(
        &program,
        &format!("#!/bin/sh\necho 'Welcome to corp!' >&2\nhead -c 64 >{home}/eaten\n{credential}"),
    );
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let digest = "sha256sum | cut -c -64";
    let here = run_with(
        {
            let mut sh = person.command("sh");
            sh.args(["-c", digest]);
            sh
        },
        &sent,
        Duration::from_secs(20),
    );
    let there = person.ssh_command("ssh", &["-S", "none", &alias, digest]);
    assert_eq!(run_with(there, &sent, Duration::from_secs(60)).text(), here.text());
    assert_eq!(std::fs::read(person.home().join("eaten")).unwrap(), b"");

    // The others end the connection in words: of the plugin, or of ssh where it has none.
    let limit = person.ssh_command("ssh", &["-G", &alias]);
    assert!(run(limit).text().contains("\nconnecttimeout 60\n"), "the stanza sets no limit");
    for (script, mode, words) in [
        ("echo 'Welcome to corp!'", "IfAvailable", "getting credentials: decoding stdout"),
        ("echo 'no badge, no token' >&2; exit 7", "IfAvailable", "no badge, no token"),
        ("read code </dev/tty || exit 9", "Always", "standard input is not a terminal"),
        // The test reads its stderr to the end, and the program lives a while longer than ssh.
        ("exec sleep 15 2>/dev/null", "IfAvailable", "timed out"),
    ] {
        executable(&program, &format!("#!/bin/sh\n{script}\n"));
        with["users"][0]["user"]["exec"]["interactiveMode"] = mode.into();
        std::fs::write(&file, with.to_string()).unwrap();
        let began = Instant::now();
        // The stanza's minute, shortened.
        let said = person.ssh(&["-S", "none", "-o", "ConnectTimeout=3", &alias, "true"]);
        assert_eq!(said.code, 255, "{script}: {said:?}");
        assert!(began.elapsed() < Duration::from_secs(12), "{script}");
        assert!(said.stderr.contains(words), "`{words}` is missing for {script} in:\n{}", said.stderr);
    }
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
