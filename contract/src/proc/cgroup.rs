//! `/proc/PID/cgroup`: which container a process belongs to.
//!
//! Paths are relative to the reader's cgroup namespace and spelled differently by every runtime
//! and driver (`…/pod<uid>/<id>`, `…/cri-containerd-<id>.scope`, `0::/../<id>`); the id is the same
//! in all of them, so it is matched as a substring, over all lines.

use crate::ids::ContainerId;

/// Does any line carry this container's id?
#[must_use]
pub fn mentions(cgroup: &str, id: &ContainerId) -> bool {
    cgroup.lines().any(|line| line.contains(id.as_str()))
}

/// Does any line carry what looks like some container's id (32 or more hexadecimal digits)?
///
/// In a private cgroup namespace of cgroup v2 the reader's own line is `0::/`, and a line without
/// any id says nothing about whose process it is.
#[must_use]
pub fn has_any_id(cgroup: &str) -> bool {
    cgroup.split(|c: char| !c.is_ascii_hexdigit()).any(|word| word.len() >= 32)
}

/// The container's id that the lines carry: the last word of 32 or more hexadecimal digits in a
/// line's last part. `None` where no line carries one.
#[must_use]
pub fn container_id(cgroup: &str) -> Option<ContainerId> {
    let word = |line: &str| {
        // A static pod's uid is 32 digits too, but never in the last part of the path that has one.
        let words = line.rsplit('/').map(|part| part.rsplit(|c: char| !c.is_ascii_hexdigit()));
        words.filter_map(|mut words| words.find(|w| w.len() >= 32)).next().map(str::to_owned)
    };
    cgroup.lines().find_map(word).and_then(|id| ContainerId::parse(&id).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "8d8f2f6f7d1a4be0a1f9e1b1a2c3d4e5f60718293a4b5c6d7e8f901234567890";

    #[test]
    fn every_spelling_of_a_container_is_the_same_container() {
        let id = ContainerId::parse(ID).unwrap();
        let lines = [
            format!("12:memory:/kubepods/burstable/pod1/{ID}\n0::/\n"),
            format!("0::/../cri-containerd-{ID}.scope\n"),
            format!("0::/kubepods.slice/kubepods-pod1.slice/crio-{ID}.scope/container\n"),
            format!("0::/../{ID}\n"),
            format!("3:cpu:/kubepods/pod0123456789abcdef0123456789abcdef/{ID}\n"),
        ];
        for line in lines {
            assert!(mentions(&line, &id) && has_any_id(&line), "{line}");
            assert_eq!(container_id(&line).as_ref(), Some(&id), "{line}");
        }
        assert!(!mentions("0::/\n", &id) && !has_any_id("0::/\n"));
        assert_eq!(container_id("1:name=systemd:/\n0::/\n"), None);
        assert!(!mentions(&format!("0::/../{}\n", ID.replace('8', "9")), &id));
    }
}
