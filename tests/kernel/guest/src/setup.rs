//! Does to the calling process what a condition asks for, in the order that leaves each step possible.

use std::collections::BTreeMap;
use std::fs;

use landlock::{ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setresgid, setresuid};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::condition::{Answer, Setup, Userns};

/// ptrace and `process_vm_readv` of x86_64.
const PTRACE_CALLS: [i64; 2] = [101, 310];

/// Does it.
pub(crate) fn apply(setup: &Setup) {
    if let Some(kind) = setup.userns {
        become_id(setup);
        // After a change of ids a process isn't dumpable, and may not write its own maps.
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
        let uid = nix::unistd::getuid();
        unshare(CloneFlags::CLONE_NEWUSER).unwrap();
        let map = match kind {
            Userns::Root => format!("0 {uid} 1"),
        };
        fs::write("/proc/self/setgroups", "deny").unwrap();
        fs::write("/proc/self/uid_map", &map).unwrap();
        fs::write("/proc/self/gid_map", &map).unwrap();
    }
    if let Some(profile) = &setup.apparmor {
        let order = profile
            .strip_prefix('&')
            .map_or_else(|| format!("changeprofile {profile}"), |stacked| format!("stack {stacked}"));
        fs::write("/proc/self/attr/current", order).unwrap();
    }
    if let Some(kind) = &setup.selinux {
        fs::write("/proc/self/attr/current", format!("u:r:{kind}")).unwrap();
    }
    if setup.landlock {
        // It forbids something that nobody here does; that it exists is what ptrace asks about.
        let rules =
            Ruleset::default().handle_access(AccessFs::from_all(ABI::V1) & AccessFs::MakeSock).unwrap();
        let status = rules.create().unwrap().restrict_self().unwrap();
        assert_eq!(status.ruleset, landlock::RulesetStatus::FullyEnforced);
    }
    if setup.userns.is_none() {
        become_id(setup);
    }
    if let Some(caps) = setup.caps {
        keep_only(CapabilitySet::from_bits_retain(caps.bits()), setup.uid != 0);
    }
    if setup.no_new_privs {
        thread::set_no_new_privs(true).unwrap();
    }
    if let Some(answer) = setup.seccomp {
        filter(answer);
    }
}

fn become_id(setup: &Setup) {
    let gid = setup.gid.unwrap_or(setup.uid);
    let real = setup.real_uid.unwrap_or(setup.uid);
    if setup.uid == 0 && gid == 0 && real == 0 {
        return;
    }
    if setup.caps.is_some() {
        thread::set_keep_capabilities(true).unwrap();
    }
    setresgid(Gid::from_raw(gid), Gid::from_raw(gid), Gid::from_raw(gid)).unwrap();
    let uid = Uid::from_raw(setup.uid);
    setresuid(Uid::from_raw(real), uid, uid).unwrap();
}

/// Across an exec root keeps what is in the bounding set, another id what is ambient.
fn keep_only(kept: CapabilitySet, ambient: bool) {
    let now = thread::capabilities(None).unwrap();
    if !ambient {
        for bit in
            (0..=40).map(|n| CapabilitySet::from_bits_retain(1 << n)).filter(|bit| !kept.contains(*bit))
        {
            thread::remove_capability_from_bounding_set(bit).unwrap();
        }
    }
    let inheritable = if ambient { kept } else { now.inheritable & kept };
    thread::set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable }).unwrap();
    if ambient {
        for bit in (0..=40).map(|n| CapabilitySet::from_bits_retain(1 << n)).filter(|bit| kept.contains(*bit))
        {
            thread::configure_capability_in_ambient_set(bit, true).unwrap();
        }
    }
}

fn filter(answer: Answer) {
    let action = match answer {
        Answer::Eperm => SeccompAction::Errno(1),
        Answer::Eacces => SeccompAction::Errno(13),
        Answer::Enosys => SeccompAction::Errno(38),
        Answer::Kill => SeccompAction::KillProcess,
    };
    let rules: BTreeMap<i64, Vec<seccompiler::SeccompRule>> =
        PTRACE_CALLS.into_iter().map(|call| (call, Vec::new())).collect();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, action, seccompiler::TargetArch::x86_64).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    seccompiler::apply_filter(&program).unwrap();
}
