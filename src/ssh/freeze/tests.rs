use super::*;

fn settings() -> Settings {
    let mut settings = Settings::bare("/home/u");
    settings.cwd = PathBuf::from("/work");
    settings
}

fn value(env: &Environment, name: &str) -> Option<String> {
    env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone())
}

#[test]
fn a_kubeconfig_list_is_kept_whole_with_every_entry_absolute() {
    let mut settings = settings();
    assert_eq!(kubeconfig(&settings).unwrap(), "/home/u/.kube/config");
    for (list, kept) in [
        ("/a:b:../c", "/a:/work/b:/work/../c"),
        ("::/a:", "/a"),
        ("", "/home/u/.kube/config"),
        (":", "/home/u/.kube/config"),
        ("/not/there yet:x%y", "/not/there yet:/work/x%y"),
    ] {
        settings.kubeconfig_env = Some(list.into());
        assert_eq!(kubeconfig(&settings).unwrap(), kept, "{list}");
    }
    settings.kubeconfig_env = Some("/a\n/b".into());
    assert!(kubeconfig(&settings).unwrap_err().message.contains("KUBECONFIG"));
}

#[test]
fn a_named_kubeconfig_goes_by_its_flag_alone() {
    let cluster = Cluster { kubeconfig: Some("/k".into()), ..Cluster::default() };
    let env = environment(&settings(), &cluster, false).unwrap();
    assert_eq!(value(&env, "KUBECONFIG"), None);
    assert_eq!(value(&env, "HOME").as_deref(), Some("/home/u"));
}

#[test]
fn a_relative_folder_of_path_is_another_one_tomorrow() {
    let mut settings = settings();
    settings.path = ":bin:/usr/bin:.:/opt/a b:/usr/bin".into();
    let env = environment(&settings, &Cluster::default(), false).unwrap();
    assert_eq!(value(&env, "PATH").as_deref(), Some("/usr/bin:/opt/a b"));
}

#[test]
fn a_proxy_is_kept_and_its_password_never_written() {
    let mut settings = settings();
    settings.kubectl_env = vec![
        ("HTTPS_PROXY".into(), "http://proxy.corp:3128".into()),
        ("NO_PROXY".into(), "localhost,.svc,a@b".into()),
        ("KUBECTL_REMOTE_COMMAND_WEBSOCKETS".into(), "false".into()),
    ];
    let env = environment(&settings, &Cluster::default(), false).unwrap();
    assert_eq!(env.len(), 6);
    for secret in ["http://me:pw@proxy:3128", "me:pw@proxy", "socks5://me@proxy/x"] {
        for name in PROXIES {
            settings.kubectl_env = vec![(name.into(), secret.into())];
            let cluster =
                Cluster { context: Some("a b".into()), kubeconfig: Some("/kc".into()), ..Cluster::default() };
            let failure = environment(&settings, &cluster, false).unwrap_err();
            let said = failure.to_string();
            assert!(said.contains(name) && said.contains("proxy-url") && !said.contains("pw"), "{said}");
            assert_eq!(said.matches("kubectl --kubeconfig=/kc '--context=a b' config").count(), 2, "{said}");
            assert_eq!(failure.kind.exit(), 2);
        }
    }
    settings.kubectl_env = vec![("HTTPS_PROXY".into(), "http://proxy:3128/path@x".into())];
    assert!(environment(&settings, &Cluster::default(), false).is_ok());
}

#[test]
fn inside_a_pod_kubectl_keeps_what_stands_for_a_kubeconfig_there() {
    let mut settings = settings();
    settings.kubectl_env = vec![("KUBERNETES_SERVICE_HOST".into(), "10.0.0.1".into())];
    assert!(
        value(&environment(&settings, &Cluster::default(), true).unwrap(), "KUBERNETES_SERVICE_HOST")
            .is_some()
    );
    assert!(
        value(&environment(&settings, &Cluster::default(), false).unwrap(), "KUBERNETES_SERVICE_HOST")
            .is_none()
    );
}
