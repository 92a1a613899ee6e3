use super::*;
use crate::kubectl::refusal::Right;

fn known(uid: u32) -> Facts {
    Facts { target: Ids { uid: Some(Uid(uid)), gid: Some(Gid(uid)) }, ..Facts::default() }
}

fn rung(next: &Next) -> Option<Rung> {
    match next {
        Next::Rehearse(s) | Next::Land(s) => Some(s.rung()),
        Next::Done(_) | Next::End(_) => None,
    }
}

fn pod_security(offenders: &[&str]) -> Refusal {
    Refusal::PodSecurity {
        level: "restricted:latest".into(),
        offenders: offenders.iter().map(|o| (*o).to_owned()).collect(),
        words: "violates PodSecurity".into(),
    }
}

fn outcomes(ladder: &Ladder) -> Vec<(Rung, StepOutcome)> {
    ladder.steps().iter().map(|s| (s.rung, s.outcome)).collect()
}

/// Refuses every rung on its own account until nothing is left; returns the rungs that were tried.
fn walk(facts: Facts) -> Vec<Rung> {
    let mut ladder = Ladder::new(facts);
    let mut tried = Vec::new();
    let mut next = ladder.advance();
    while let Some(r) = rung(&next) {
        tried.push(r);
        next = ladder.refused(Channel::Rehearsal, pod_security(&["me"]), "me");
    }
    assert_eq!(next, Next::End(End::Exhausted));
    tried
}

#[test]
fn a_known_non_root_target_is_reached_by_its_own_ids_first() {
    assert_eq!(walk(known(1234)), [Rung::Degraded, Rung::Full, Rung::Seat]);
}

#[test]
fn a_root_or_unknown_target_skips_the_degraded_rung() {
    assert_eq!(walk(known(0)), [Rung::Full, Rung::Seat]);
    assert_eq!(walk(Facts::default()), [Rung::Full, Rung::Seat]);
}

#[test]
fn a_shared_pid_namespace_with_other_uids_asks_for_the_capability_first() {
    assert_eq!(walk(Facts { shares_pids: true, ..known(7) }), [Rung::Full, Rung::Degraded, Rung::Seat]);
}

#[test]
fn a_ceiling_is_also_the_classic_order_below_it() {
    let facts = |ceiling| Facts { ceiling: Some(ceiling), ..known(7) };
    assert_eq!(walk(facts(Rung::Full)), [Rung::Full, Rung::Degraded, Rung::Seat]);
    assert_eq!(walk(facts(Rung::Degraded)), [Rung::Degraded, Rung::Seat]);
    assert_eq!(walk(facts(Rung::Seat)), [Rung::Seat]);
}

#[test]
fn a_skipped_rung_says_why_and_spends_no_name() {
    let mut ladder = Ladder::new(Facts { ceiling: Some(Rung::Degraded), ..Facts::default() });
    assert_eq!(rung(&ladder.advance()), Some(Rung::Seat));
    let steps = ladder.steps();
    assert_eq!(steps[0].reason, "--max-rung degraded");
    assert!(steps[1].reason.contains("--target-uid"));
    assert!(steps.iter().all(|s| s.outcome == StepOutcome::Skipped && s.burnt.is_none()));
}

#[test]
fn a_stripped_ptrace_capability_withdraws_the_full_rung() {
    let mut ladder = Ladder::new(Facts { ceiling: Some(Rung::Full), ..known(7) });
    ladder.advance();
    let next = ladder.rehearsed(&Rewrite { ptrace_stripped: true, ..Rewrite::default() });
    assert_eq!(rung(&next), Some(Rung::Degraded));
    assert_eq!(outcomes(&ladder), [(Rung::Full, StepOutcome::Withdrawn)]);
}

#[test]
fn a_root_seat_without_any_capability_is_withdrawn_beside_a_root_target_too() {
    for facts in [known(0), Facts::default()] {
        let mut ladder = Ladder::new(facts);
        ladder.advance();
        let dropped = Rewrite { ptrace_stripped: true, login_lost: true, ..Rewrite::default() };
        assert_eq!(rung(&ladder.rehearsed(&dropped)), Some(Rung::Seat));
        assert!(ladder.steps()[0].reason.contains("sshd"));
    }
}

#[test]
fn a_root_seat_that_can_run_no_sshd_is_kept_where_nothing_else_reaches_the_target() {
    let lost = Rewrite { login_lost: true, ..Rewrite::default() };
    let mut root = Ladder::new(known(0));
    root.advance();
    assert!(matches!(root.rehearsed(&lost), Next::Land(Security::Full)));
    let mut other = Ladder::new(Facts { ceiling: Some(Rung::Full), ..known(1000) });
    other.advance();
    assert_eq!(rung(&other.rehearsed(&lost)), Some(Rung::Degraded));
}

#[test]
fn a_stripped_capability_beside_a_root_target_lands_with_one_warning() {
    for facts in [known(0), Facts::default()] {
        let mut ladder = Ladder::new(facts);
        ladder.advance();
        let stripped = Rewrite { ptrace_stripped: true, ..Rewrite::default() };
        assert!(matches!(ladder.rehearsed(&stripped), Next::Land(Security::Full)));
        assert_eq!(ladder.landed(&stripped), Next::Done(Rung::Full));
        assert_eq!(ladder.warnings().len(), 1);
    }
}

#[test]
fn forced_non_root_beside_root_is_withdrawn_even_for_a_root_target() {
    let mut ladder = Ladder::new(known(0));
    ladder.advance();
    let next = ladder.rehearsed(&Rewrite { non_root_forced: true, ..Rewrite::default() });
    assert_eq!(rung(&next), Some(Rung::Seat));
    assert_eq!(ladder.steps()[0].outcome, StepOutcome::Withdrawn);
}

#[test]
fn a_degraded_seat_at_other_ids_than_the_targets_is_withdrawn() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    let next = ladder.rehearsed(&Rewrite { ids_changed: Some("runAsUser 1".into()), ..Rewrite::default() });
    assert_eq!(rung(&next), Some(Rung::Full));
}

#[test]
fn any_other_rewrite_is_a_line_and_lands() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    let noted = Rewrite { notes: vec!["capabilities.add gained CHOWN".into()], ..Rewrite::default() };
    assert!(matches!(ladder.rehearsed(&noted), Next::Land(_)));
    ladder.landed(&noted);
    assert_eq!(ladder.warnings(), ["a policy changed the seat: capabilities.add gained CHOWN"]);
}

#[test]
fn an_older_seat_that_violates_pod_security_ends_the_walk_by_name() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    let next = ladder.refused(Channel::Rehearsal, pod_security(&["podbench-1", "podbench-2"]), "podbench-2");
    let Next::End(End::Offenders(others, _)) = next else { panic!("{next:?}") };
    assert_eq!(others, ["podbench-1"]);
}

#[test]
fn a_pod_that_violates_pod_security_by_itself_ends_the_walk() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    let next = ladder.refused(Channel::Rehearsal, pod_security(&[]), "podbench-1");
    assert!(matches!(next, Next::End(End::Offenders(others, _)) if others.is_empty()));
}

#[test]
fn what_is_not_about_the_rung_ends_the_walk() {
    let right = Right {
        user: "u".into(),
        verb: "update".into(),
        resource: "pods/ephemeralcontainers".into(),
        group: String::new(),
        namespace: None,
    };
    let webhook = Refusal::WebhookFailed { webhook: "w".into(), words: "timeout".into() };
    for refusal in [Refusal::Rbac(right), webhook, Refusal::Unreachable("refused".into()), Refusal::Conflict]
    {
        let mut ladder = Ladder::new(known(7));
        ladder.advance();
        let next = ladder.refused(Channel::Rehearsal, refusal.clone(), "podbench-1");
        assert_eq!(next, Next::End(End::Refused(refusal)));
        assert_eq!(ladder.steps().len(), 1);
    }
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    let frozen = Refusal::Frozen { container: "podbench-1".into(), words: "may not be changed".into() };
    assert!(
        matches!(ladder.refused(Channel::Rehearsal, frozen, "x"), Next::End(End::Frozen(name, _)) if name == "podbench-1")
    );
}

#[test]
fn a_kubelets_refusal_burns_the_name_and_tries_the_next_rung() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    ladder.rehearsed(&Rewrite::default());
    let words = Words { reason: "CreateContainerConfigError".into(), message: "runAsNonRoot".into() };
    let next = ladder.node_refused(Trouble::Config(words), "podbench-1");
    assert_eq!(rung(&next), Some(Rung::Full));
    assert_eq!(ladder.steps()[0].burnt.as_deref(), Some("podbench-1"));
}

#[test]
fn an_image_that_cannot_be_had_burns_one_name_and_not_three() {
    let mut ladder = Ladder::new(known(7));
    ladder.advance();
    ladder.rehearsed(&Rewrite::default());
    let trouble = Trouble::Image(Words { reason: "ImagePullBackOff".into(), message: "not found".into() });
    assert_eq!(ladder.node_refused(trouble.clone(), "podbench-1"), Next::End(End::Node(trouble)));
}

#[test]
fn a_uid_that_the_server_allows_is_taken_for_the_seat_rung() {
    let denied = Refusal::WebhookDenied {
        webhook: "w".into(),
        words: "Allowed runAsUser values are: \"36096|37887\".".into(),
    };
    let mut ladder = Ladder::new(known(7));
    let mut seats = Vec::new();
    let mut next = ladder.advance();
    while let Next::Rehearse(security) = &next {
        if let Security::Seat { uid, .. } = security {
            seats.push(uid.uid());
        }
        next = ladder.refused(Channel::Rehearsal, denied.clone(), "podbench-1");
    }
    assert_eq!(seats, [Uid(36096)]);
}

#[test]
fn a_dry_run_rehearses_every_rung_and_names_the_one_that_would_land() {
    let mut ladder = Ladder::new(Facts { rehearse_only: true, ..known(7) });
    let mut next = ladder.advance();
    while let Next::Rehearse(security) = &next {
        next = if security.rung() == Rung::Degraded {
            ladder.refused(Channel::Rehearsal, pod_security(&["podbench-1"]), "podbench-1")
        } else {
            ladder.rehearsed(&Rewrite::default())
        };
    }
    assert_eq!(next, Next::End(End::WouldLand(Rung::Full)));
    assert_eq!(
        outcomes(&ladder),
        [
            (Rung::Degraded, StepOutcome::Refused),
            (Rung::Full, StepOutcome::WouldLand),
            (Rung::Seat, StepOutcome::WouldLand),
        ]
    );
}

#[test]
fn what_is_required_is_all_that_is_tried() {
    let mut ladder = Ladder::new(Facts { require: Some(Rung::Full), ..known(7) });
    assert_eq!(ladder.advance(), Next::Rehearse(Security::Full));
    let next = ladder.refused(Channel::Rehearsal, Refusal::Quota("exceeded quota".into()), "podbench-1");
    assert_eq!(next, Next::End(End::Unmet(Rung::Full)));
    assert!(ladder.steps().iter().filter(|s| s.rung < Rung::Full).all(|s| s.outcome == StepOutcome::Skipped));
}
