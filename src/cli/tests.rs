use std::ffi::OsString;

use std::time::Duration;

use podbench_contract::ids::{Gid, Uid};
use podbench_contract::rung::Rung;

use super::*;

fn cli(line: &str) -> Result<Cli, Stop> {
    parse(line.split(' ').filter(|w| !w.is_empty()).map(OsString::from))
}

fn attach(line: &str) -> Attach {
    match cli(line).unwrap_or_else(|e| panic!("{line}: {}", e.text(false))).verb {
        Verb::Attach(attach) => *attach,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_types_are_a_valid_command_line() {
    command().debug_assert();
}

#[test]
fn nothing_typed_prints_the_help_and_exits_2() {
    let stop = cli("podbench").unwrap_err();
    assert_eq!((stop.code, stop.to_stderr), (2, true));
    assert!(stop.text(false).trim_start().starts_with("Examples:"), "{}", stop.text(false));
    let help = cli("podbench --help").unwrap_err();
    assert_eq!((help.code, help.to_stderr), (0, false));
}

#[test]
fn a_seats_verb_is_told_as_such_with_the_command_that_runs_it_there() {
    for verb in ["dbg", "pids", "capreport"] {
        let stop = cli(&format!("podbench {verb} 7")).unwrap_err();
        assert_eq!((stop.code, stop.to_stderr), (2, true));
        let way = format!("podbench ssh POD -t -- podbench {verb}");
        assert!(stop.text(false).contains(&way), "{}", stop.text(false));
        let object: serde_json::Value =
            serde_json::from_str(cli(&format!("podbench {verb} -o json")).unwrap_err().text(false)).unwrap();
        assert_eq!(object["hints"][0], way.as_str());
    }
}

#[test]
fn the_help_of_each_verb_begins_with_examples_and_fits_a_terminal() {
    for verb in ["", "attach", "ssh", "ssh-config", "completion"] {
        let help = cli(&format!("podbench {verb} --help")).unwrap_err();
        let text = help.text(false);
        assert!(text.trim_start().starts_with("Examples:"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn flags_about_the_cluster_are_taken_before_and_after_the_verb() {
    for line in [
        "podbench -n shop --context c --as u --as-group g --as-group h -o json attach api",
        "podbench attach api -n shop --context c --as u --as-group g --as-group h -o json",
        "podbench attach -n=shop --context=c --as=u api --as-group=g --as-group=h -ojson",
    ] {
        let cli = cli(line).unwrap();
        assert_eq!(cli.cluster.namespace.as_deref(), Some("shop"), "{line}");
        assert_eq!(cli.cluster.context.as_deref(), Some("c"));
        assert_eq!(cli.cluster.as_user.as_deref(), Some("u"));
        assert_eq!(cli.cluster.as_groups, ["g", "h"]);
        assert_eq!(cli.output, Output::Json);
    }
}

#[test]
fn a_level_is_spelled_as_kubectl_or_as_people_spell_it() {
    for (line, level) in [
        ("podbench version", 0),
        ("podbench version -v", 1),
        ("podbench -vv version", 2),
        ("podbench version -v -v", 2),
        ("podbench version -v=6", 6),
        ("podbench version -v6", 6),
        ("podbench version -v 6", 6),
        ("podbench version --v=6", 6),
        ("podbench version --v 6", 6),
    ] {
        assert_eq!(cli(line).unwrap().cluster.verbosity(), level, "{line}");
    }
    let parsed = cli("podbench attach -v api").unwrap();
    assert_eq!(parsed.cluster.verbosity(), 1);
    assert_eq!(attach("podbench attach -v api").pod.pod.as_deref(), Some("api"));
}

#[test]
fn attach_takes_typed_values() {
    let a = attach(
        "podbench attach api -c app --target-uid 2147483647 --target-gid 0 --max-rung degraded --require seat \
         --pull always --mount data --mount home:/home/me --timeout 5m --host-alias api --ssh-user me --new",
    );
    assert_eq!((a.target_uid, a.target_gid), (Some(Uid(2_147_483_647)), Some(Gid(0))));
    assert_eq!((a.max_rung, a.require), (Some(Rung::Degraded), Some(Rung::Seat)));
    assert_eq!((a.pull, a.pull.as_str()), (Pull::Always, "Always"));
    assert_eq!(a.mounts.len(), 2);
    assert_eq!(a.mounts[1], Mount { claim: "home".into(), path: Some("/home/me".into()) });
    assert_eq!(a.timeout, Duration::from_secs(300));
    assert!(!a.is_dry_run() && a.new);
    let a = attach("podbench attach");
    assert_eq!((a.timeout, a.pull, a.pod.pod), (Duration::from_secs(120), Pull::IfNotPresent, None));
    assert_eq!(attach("podbench attach --container app").pod.target.as_deref(), Some("app"));
    assert!(attach("podbench attach --dry-run api").is_dry_run());
    assert!(attach("podbench attach --dry-run=server api").is_dry_run());
}

#[test]
fn a_value_that_no_cluster_could_take_is_refused_here() {
    for bad in [
        "--target-uid 2147483648",
        "--target-uid -1",
        "--target-uid root",
        "--target-gid 4294967295",
        "--max-rung root",
        "--require most",
        "--timeout 0",
        "--timeout soon",
        "--timeout 99999999999999999999h",
        "--mount /etc",
        "--mount a:b",
        "--mount a:/x/../y",
        "--host-alias -oProxyCommand=x",
        "--host-alias a*",
        "--ssh-user Root;x",
        "--pull sometimes",
        "--dry-run=client",
        "--plain",
        "--image=",
        "-n=",
        "--context=\u{1b}[31m",
    ] {
        let stop = cli(&format!("podbench attach api {bad}")).unwrap_err();
        assert_eq!((stop.code, stop.to_stderr), (2, true), "{bad}");
    }
}

#[test]
fn a_wrong_flag_under_o_json_is_an_object_on_stdout() {
    for line in
        ["podbench attach -o json --nope", "podbench --output=json attach --timeout x", "podbench -ojson"]
    {
        let stop = cli(line).unwrap_err();
        let value: serde_json::Value = serde_json::from_str(stop.text(true)).unwrap();
        assert_eq!(
            (value["schema"].as_str(), value["kind"].as_str()),
            (Some("podbench/error/v1"), Some("input"))
        );
        assert_eq!((stop.code, stop.to_stderr), (2, false));
        assert!(!value["message"].as_str().unwrap().starts_with("error"), "{value}");
    }
}

#[test]
fn started_as_a_kubectl_plugin_it_calls_itself_so() {
    let stop = cli("/opt/bin/kubectl-podbench attach --nope").unwrap_err();
    assert!(stop.text(false).contains("kubectl podbench attach"), "{}", stop.text(false));
}

#[test]
fn a_completion_script_knows_the_verbs() {
    for shell in [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish] {
        let script = String::from_utf8(completion(shell)).unwrap();
        assert!(script.contains("ssh-config") && script.contains("max-rung"));
    }
}
