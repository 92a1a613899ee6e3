//! `podbench list`: every seat, from one list of pods. No seat is entered.

use std::collections::HashMap;

use super::pick::{self, Around};
use super::{Answer, Done, Session, seats};
use crate::cli;
use crate::error::Failure;
use crate::report::list::{self as wire, List, Row};
use crate::seat::inventory::Inventory;
use crate::ssh::inventory::{Place, Stanza, Stanzas, stanzas};

/// Lists.
///
/// # Errors
/// When the pods can't be listed.
pub(super) fn run(args: &cli::List, session: &Session<'_>) -> Result<Done, Failure> {
    let kubectl = session.kubectl;
    let selector = args.selector.as_deref();
    session.progress("listing pods");
    // First, so that a credential plugin has the terminal.
    let first =
        if args.all_namespaces { kubectl.list_all_pods(selector)? } else { kubectl.list_pods(selector)? };
    let around = Around::ask(session)?;
    let context = around.context.clone().unwrap_or_default();
    let pods = pick::list(first.finish()?)?;
    let (owner, warning) = around.owner(session)?;
    let caller = seats::caller(session, owner);
    let Stanzas { known, unread } = stanzas(session.settings);
    let mut by_seat: HashMap<(&str, &str), &Stanza> = HashMap::new();
    for stanza in &known {
        by_seat.entry((&stanza.owner.pod_uid, &stanza.owner.seat)).or_insert(stanza);
    }
    let (mut rows, mut not_ours) = (Vec::new(), Vec::new());
    for pod in &pods {
        let inventory = Inventory::of(pod);
        for seat in inventory.seats.iter().filter(|s| !args.mine || s.is_of(&caller)) {
            let name = seat.name.to_string();
            rows.push(Row {
                namespace: pod.namespace().to_owned(),
                pod: pod.name().to_owned(),
                pod_uid: pod.uid().to_owned(),
                seat: seats::value(&inventory, seat, &caller),
                ssh: by_seat.get(&(pod.uid(), name.as_str())).map(|s| s.alias.clone()),
            });
        }
        not_ours.extend(seats::not_ours(pod, &inventory));
    }
    let namespace = kubectl.namespace().filter(|_| !args.all_namespaces).map(str::to_owned);
    let place = Place::new(session.settings, session.cluster, &context.name)?;
    let here = |s: &&Stanza| s.is_in(&place) && namespace.as_ref().is_none_or(|n| *n == s.owner.namespace);
    let stale = known.iter().filter(here).filter_map(|stanza| {
        let pod =
            pods.iter().find(|p| p.name() == stanza.owner.pod && p.namespace() == stanza.owner.namespace);
        match pod {
            Some(pod) => Some(seats::stale(stanza, seats::dead_end(stanza, pod)?)),
            // With a selector, a pod that wasn't listed may well be there.
            None if args.selector.is_none() => Some(seats::stale(stanza, "its pod is gone")),
            None => None,
        }
    });
    let list = List {
        schema: wire::SCHEMA,
        context: context.name.clone(),
        stale: stale.collect(),
        namespace,
        pods: pods.len(),
        seats: rows,
        not_ours,
        calls: session.calls(),
        warnings: warning.into_iter().chain(unread).collect(),
    };
    session.ui.clear();
    tell(args, session, &list);
    let text = wire::text(&list, session.settings.stdout_columns, session.settings.frozen_clock);
    let value = super::to_value(&list)?;
    Ok(Answer::Value(value, text).into())
}

/// What isn't a row: on stderr, so that stdout is the table and nothing else.
fn tell(args: &cli::List, session: &Session<'_>, list: &List) {
    if list.seats.is_empty() {
        let whose = if args.mine { "no seat of yours" } else { "no seat" };
        let place = if args.all_namespaces { " in any namespace".to_owned() } else { session.place() };
        session.ui.note(&format!("{whose}{place} ({} pods)", list.pods));
    }
    for other in &list.not_ours {
        session.ui.note(&format!("not ours: {}", other.text()));
    }
    for stale in &list.stale {
        session.ui.note(&stale.text());
    }
    if !list.stale.is_empty() {
        session.ui.note(&format!("try: {}", session.bare_verb("clean")));
    }
    for warning in &list.warnings {
        session.ui.note(&format!("warning: {warning}"));
    }
}
