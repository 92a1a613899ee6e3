use serde_json::json;

use super::*;
use crate::spec::security::{NonRoot, Security};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1p me@laptop";
const KEY2: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKHEChAgLwFqB3pJzkGm2E7VJ0sL9hVYx4kq0J3j5m1q me@desktop";

fn plan(owner: &str, key: &str) -> Plan {
    Plan { owner: Some(owner.into()), key: PublicKey::parse(key).unwrap(), ..Plan::sample() }
}

fn texts(notes: &[Unused]) -> Vec<String> {
    notes.iter().map(ToString::to_string).collect()
}

fn degraded(uid: u32) -> Security {
    Security::Degraded { uid: NonRoot::new(Uid(uid)).unwrap(), gid: Some(Gid(uid)), seccomp: None }
}

/// A pod with these seats: number, plan, security, running.
fn pod(seats: &[(u32, Plan, Security, bool)]) -> Pod {
    let name = |n: u32| SeatName::parse(&format!("podbench-{n}")).unwrap();
    let specs: Vec<Value> = seats.iter().map(|(n, p, s, _)| p.container(name(*n), s)).collect();
    let state = |running: bool| {
        if running { json!({"running": {}}) } else { json!({"terminated": {"exitCode": 137}}) }
    };
    let statuses: Vec<Value> = seats
        .iter()
        .map(|(n, _, _, running)| json!({"name": name(*n).to_string(), "state": state(*running)}))
        .collect();
    Pod::new(json!({
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [{"name": "app"}], "ephemeralContainers": specs},
        "status": {"ephemeralContainerStatuses": statuses},
    }))
    .unwrap()
}

fn found(pod: &Pod, wanted: Wanted) -> Option<u32> {
    let target = Ids { uid: Some(Uid(7)), gid: Some(Gid(7)) };
    find(pod, &plan("me", KEY), target, wanted).0.map(|f| f.name.number())
}

#[test]
fn the_newest_running_seat_of_mine_is_entered() {
    let mine = || plan("me", KEY);
    let p = pod(&[
        (1, mine(), degraded(7), true),
        (2, mine(), degraded(7), true),
        (3, mine(), degraded(7), false),
        (4, plan("somebody", KEY), degraded(7), true),
    ]);
    assert_eq!(found(&p, Wanted::default()), Some(2));
}

#[test]
fn a_planted_seat_is_said_and_somebody_elses_is_not() {
    let mut planted = plan("me", KEY);
    planted.image = "evil:1".into();
    let p = pod(&[(1, planted, degraded(7), true), (2, plan("somebody", KEY), degraded(7), true)]);
    let (seat, notes) = find(&p, &plan("me", KEY), Ids::default(), Wanted::default());
    assert_eq!(seat, None);
    assert_eq!(texts(&notes), ["podbench-1 runs and isn't used: its image is evil:1"]);
}

#[test]
fn a_ceiling_below_full_does_not_enter_a_root_seat() {
    let p = pod(&[(1, plan("me", KEY), Security::Full, true)]);
    assert_eq!(found(&p, Wanted { ceiling: Some(Rung::Degraded), ..Wanted::default() }), None);
    assert_eq!(found(&p, Wanted { ceiling: Some(Rung::Full), ..Wanted::default() }), Some(1));
}

#[test]
fn ids_that_are_asked_for_choose_among_the_seats() {
    let mine = || plan("me", KEY);
    let p = pod(&[(1, mine(), degraded(8), true), (2, mine(), degraded(7), true)]);
    assert_eq!(found(&p, Wanted { uid: Some(Uid(8)), ..Wanted::default() }), Some(1));
    assert_eq!(found(&p, Wanted { uid: Some(Uid(9)), ..Wanted::default() }), None);
    assert_eq!(found(&p, Wanted { gid: Some(Gid(8)), ..Wanted::default() }), Some(1));
}

#[test]
fn another_laptops_key_is_no_reason_for_another_seat() {
    let p = pod(&[(1, plan("me", KEY), degraded(7), true)]);
    let (seat, notes) = find(&p, &plan("me", KEY2), Ids::default(), Wanted::default());
    assert_eq!((seat.map(|f| f.name.number()), notes.len()), (Some(1), 0));
}

#[test]
fn without_an_owner_only_the_key_says_whose_a_seat_is() {
    let ownerless = |key: &str| Plan { owner: None, ..plan("", key) };
    let key = PublicKey::parse(KEY).unwrap();
    let p = pod(&[
        (1, ownerless(KEY), degraded(7), true),
        (2, ownerless(KEY2), degraded(7), true),
        (3, plan("somebody", KEY), degraded(7), true),
    ]);
    let (seat, notes) = find(&p, &ownerless(KEY), Ids::default(), Wanted::default());
    assert_eq!(seat.map(|f| f.name.number()), Some(1));
    assert!(texts(&notes).iter().any(|n| n.starts_with("podbench-2 ") && n.contains("key")), "{notes:?}");
    let mine = |owner| mine(&p, "app", owner, &key).map(|n| n.number());
    assert_eq!(mine(None), Some(1));
    assert_eq!(mine(Some("me")), None, "a seat without an owner isn't that of somebody who is known");
    assert_eq!(mine(Some("somebody")), Some(3));
}

#[test]
fn an_owner_with_dollars_finds_their_seat_again() {
    for owner in ["o$1", "$(PODBENCH_TARGET)", "a$$(b"] {
        let p = pod(&[(1, plan(owner, KEY), degraded(7), true)]);
        let (seat, notes) = find(&p, &plan(owner, KEY), Ids::default(), Wanted::default());
        assert_eq!((seat.map(|f| f.name.number()), notes.len()), (Some(1), 0), "{owner}");
        assert!(mine(&p, "app", Some(owner), &PublicKey::parse(KEY).unwrap()).is_some(), "{owner}");
        let other = Plan { image: "seat:2".into(), ..plan(owner, KEY) };
        let (_, notes) = find(&p, &other, Ids::default(), Wanted::default());
        assert_eq!(texts(&notes), ["podbench-1 runs and isn't used: its image is seat:1"]);
    }
}

#[test]
fn a_verb_that_lands_nothing_takes_the_seat_that_attach_takes() {
    let mine = || plan("me", KEY);
    let p = pod(&[(1, mine(), Security::Full, true), (2, mine(), degraded(7), true)]);
    assert_eq!(found(&p, Wanted::default()), Some(1));
    let key = PublicKey::parse(KEY).unwrap();
    let seat = super::mine(&p, &mine().target, Some("me"), &key);
    assert_eq!(seat.map(|s| s.number()), Some(1));
}

#[test]
fn a_seat_that_is_to_the_letter_what_would_be_stored_is_a_twin_and_nothing_less_is() {
    let changed = |key: &str, seat: u32, change: &dyn Fn(&mut Value)| {
        let name = SeatName::parse(&format!("podbench-{seat}")).unwrap();
        let mut stored = plan("me", key).container(name, &degraded(7));
        stored["image"] = "mirror/seat:1".into();
        stored["env"].as_array_mut().unwrap().push(json!({"name": "PROXY", "value": "p"}));
        change(&mut stored);
        stored
    };
    let twin_of = |seats: &[Value], owner: Option<&str>| {
        let mut value =
            pod(&[(1, plan("me", KEY), degraded(7), true), (2, plan("me", KEY), degraded(7), true)])
                .value()
                .clone();
        value["spec"]["ephemeralContainers"] = json!(seats);
        let plan = Plan { owner: owner.map(str::to_owned), ..plan("me", KEY) };
        let wanted = changed(KEY, 3, &|_| {});
        twin(&Pod::new(value).unwrap(), &plan, Rung::Degraded, &wanted).map(|f| (f.name.number(), f.rung))
    };
    let same = changed(KEY, 1, &|_| {});
    assert_eq!(twin_of(std::slice::from_ref(&same), Some("me")), Some((1, Rung::Degraded)));
    // The newest; another laptop's key is let in by the seat; the target was restarted since.
    let other = changed(KEY2, 2, &|_| {});
    assert_eq!(twin_of(&[same, other.clone()], Some("me")), Some((2, Rung::Degraded)));
    assert_eq!(twin_of(std::slice::from_ref(&other), None), None, "nobody says whose it is");
    let changes: [&dyn Fn(&mut Value); 5] = [
        &|s| s["image"] = "seat:1".into(),
        &|s| s["command"] = json!(["sh"]),
        &|s| s["env"].as_array_mut().unwrap().truncate(3),
        &|s| s["securityContext"]["runAsUser"] = 8.into(),
        &|s| s["stdin"] = true.into(),
    ];
    for change in changes {
        let seat = changed(KEY, 1, change);
        assert_eq!(twin_of(std::slice::from_ref(&seat), Some("me")), None, "{seat:#}");
    }
}

#[test]
fn a_verb_that_lands_nothing_enters_no_seat_that_somebody_else_had_a_hand_in() {
    let key = PublicKey::parse(KEY).unwrap();
    let changes: [fn(&mut Value); 4] = [
        |s| s["env"].as_array_mut().unwrap().push(json!({"name": "LD_PRELOAD", "value": "/x.so"})),
        |s| s["volumeMounts"] = json!([{"name": "x", "mountPath": "/usr/local/bin"}]),
        |s| s["args"] = json!(["--evil"]),
        |s| s["securityContext"]["privileged"] = json!(true),
    ];
    for change in changes {
        let mut value = pod(&[(1, plan("me", KEY), degraded(7), true)]).value().clone();
        let seat = value.pointer_mut("/spec/ephemeralContainers/0").unwrap();
        change(seat);
        let shown = format!("{seat:#}");
        assert_eq!(mine(&Pod::new(value).unwrap(), "app", Some("me"), &key), None, "{shown}");
    }
}
