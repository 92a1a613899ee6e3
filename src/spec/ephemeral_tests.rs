use podbench_contract::ids::{Gid, Uid};

use super::super::security::NonRoot;
use super::*;
use crate::pod::Kind;

fn plan() -> Plan {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me@laptop";
    Plan {
        image: "registry/seat:1".into(),
        containers: vec!["app".into(), "side".into()],
        key: PublicKey::parse(key).unwrap(),
        ..Plan::sample()
    }
}

fn degraded() -> Security {
    Security::Degraded { uid: NonRoot::new(Uid(1234)).unwrap(), gid: Some(Gid(4321)), seccomp: None }
}

fn name() -> SeatName {
    SeatName::parse("podbench-1").unwrap()
}

fn differs(change: impl FnOnce(&mut Value)) -> Option<String> {
    let mut spec = plan().container(name(), &degraded());
    change(&mut spec);
    plan().differs(&Container { kind: Kind::Ephemeral, spec: &spec, status: None })
}

#[test]
fn the_environment_is_sorted_and_home_is_only_set_for_a_home_volume() {
    let names = |plan: &Plan| plan.env().iter().map(|(n, _)| *n).collect::<Vec<_>>();
    let bare = names(&plan());
    assert!(bare.is_sorted() && !bare.contains(&"HOME"));
    let mut with = plan();
    with.mounts.push(VolumeMount { volume: "podbench-home".into(), path: HOME_PATH.into() });
    assert!(names(&with).contains(&"HOME"));
}

#[test]
fn a_seat_asks_for_no_resources_and_no_terminal() {
    let json = plan().container(name(), &Security::Full);
    for field in ["resources", "stdin", "tty", "ports", "volumeMounts"] {
        assert_eq!(json.get(field), None, "{field}");
    }
    assert_eq!(json["command"], json!(["/usr/local/bin/podbench", "agent"]));
}

#[test]
fn a_value_with_dollars_is_read_back_as_it_was_written() {
    assert_eq!(literal("me $(PODBENCH_OWNER)"), "me $$(PODBENCH_OWNER)");
    for owner in ["a$b", "$(X)", "$$(X)", "$$$", "$", "x$(PODBENCH_OWNER)$$y", "corp:me@$(HOST)"] {
        let plan = Plan { owner: Some(owner.into()), ..plan() };
        let spec = plan.container(name(), &degraded());
        let seat = Container { kind: Kind::Ephemeral, spec: &spec, status: None };
        assert_eq!(seat.env("PODBENCH_OWNER").as_deref(), Some(owner));
        assert_eq!(plan.differs(&seat), None, "{owner}");
    }
}

#[test]
fn a_seat_that_podbench_would_write_is_reused_with_another_key_and_a_restarted_target() {
    assert_eq!(differs(|_| {}), None);
    assert_eq!(
        differs(|s| {
            s["resources"] = json!({});
            s["terminationMessagePath"] = "/dev/termination-log".into();
            for e in s["env"].as_array_mut().unwrap() {
                if e["name"] == "PODBENCH_PUBKEY" || e["name"] == "PODBENCH_TARGET_CID" {
                    e["value"] = "another".into();
                }
            }
        }),
        None
    );
}

#[test]
fn a_planted_seat_is_not_trusted_whatever_it_changed() {
    let changes: [fn(&mut Value); 12] = [
        |s| s["image"] = "evil/seat:1".into(),
        |s| s["command"] = json!(["/bin/sh", "-c", "evil"]),
        |s| s["args"] = json!(["--evil"]),
        |s| s["targetContainerName"] = "side".into(),
        |s| s["env"].as_array_mut().unwrap().push(json!({"name": "LD_PRELOAD", "value": "/x.so"})),
        |s| s["env"].as_array_mut().unwrap().retain(|e| e["name"] != "PODBENCH_PUBKEY"),
        |s| s["volumeMounts"] = json!([{"name": "secrets", "mountPath": "/usr/local/bin"}]),
        |s| s["envFrom"] = json!([{"secretRef": {"name": "x"}}]),
        |s| s["securityContext"]["privileged"] = json!(true),
        |s| s["securityContext"]["procMount"] = json!("Unmasked"),
        |s| s["volumeMounts"] = json!([{"name": "data", "mountPath": "/data", "subPath": "x"}]),
        |s| {
            for e in s["env"].as_array_mut().unwrap() {
                if e["name"] == "PODBENCH_OWNER" {
                    e["value"] = "somebody".into();
                }
            }
        },
    ];
    for (n, change) in changes.into_iter().enumerate() {
        assert!(differs(change).is_some(), "change {n}");
    }
}

#[test]
fn a_seat_without_an_owner_is_not_mine() {
    assert_eq!(
        differs(|s| s["env"].as_array_mut().unwrap().retain(|e| e["name"] != "PODBENCH_OWNER")),
        Some("it names no owner".to_owned())
    );
}

#[test]
fn a_seat_that_was_landed_with_a_resize_is_the_same_seat_unless_it_says_nonsense() {
    let with = |value: &str| {
        let entry = json!({"name": "PODBENCH_RESIZED_FROM", "value": value});
        differs(|spec| spec["env"].as_array_mut().unwrap().push(entry))
    };
    assert_eq!(with("app memory 16Mi:64Mi -> 16Mi:128Mi"), None);
    for bad in ["", "app memory 16Mi:64Mi -> $(X)", "x\ny"] {
        assert!(with(bad).is_some_and(|why| why.contains("PODBENCH_RESIZED_FROM")), "{bad:?}");
    }
    let mut plan = plan();
    plan.resized = vec!["app cpu 5m:100m -> 5m:200m".parse().unwrap()];
    let spec = plan.container(name(), &degraded());
    let seat = Container { kind: Kind::Ephemeral, spec: &spec, status: None };
    assert_eq!(seat.env("PODBENCH_RESIZED_FROM").as_deref(), Some("app cpu 5m:100m -> 5m:200m"));
    assert_eq!(self::plan().differs(&seat), None);
}
