//! Requested against stored. A mutating policy refuses nothing: it changes the container on its way
//! in, and what was asked for is gone without a word. Only the answer of a rehearsal shows it.

use podbench_contract::text::escape;
use serde_json::Value;

/// What the server made of a seat's container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// `SYS_PTRACE` was asked for and isn't there.
    pub ptrace_stripped: bool,
    /// Root was asked for with the runtime's default capabilities, and lost one without which it
    /// can't run sshd (seen: `drop: [ALL]` ends it before its banner).
    pub login_lost: bool,
    /// `runAsNonRoot: true` stands beside uid 0: the kubelet will refuse to start it.
    pub non_root_forced: bool,
    /// Another uid or gid than asked for: the stored ones, in words.
    pub ids_changed: Option<String>,
    /// Everything else that was changed, one line each.
    pub notes: Vec<String>,
}

/// What sshd needs as root: it puts its pre-authentication half into an empty root as another user.
const LOGIN: [&str; 3] = ["SETUID", "SETGID", "SYS_CHROOT"];

impl Rewrite {
    /// Compares the container that was sent with the one that would be, or was, stored.
    #[must_use]
    pub fn compare(requested: &Value, stored: &Value) -> Self {
        let mut rewrite = Self::default();
        let (asked, got) = (context(requested), context(stored));
        let uid = got.get("runAsUser").and_then(Value::as_u64);
        rewrite.ptrace_stripped =
            caps(asked, "add").contains(&"SYS_PTRACE") && !caps(got, "add").contains(&"SYS_PTRACE");
        let lost = |context: &Value| {
            let (add, drop) = (caps(context, "add"), caps(context, "drop"));
            LOGIN.iter().any(|c| {
                (drop.contains(&"ALL") || drop.contains(c)) && !add.contains(c) && !add.contains(&"ALL")
            })
        };
        rewrite.login_lost = uid == Some(0) && lost(got) && !lost(asked);
        rewrite.non_root_forced = got.get("runAsNonRoot") == Some(&Value::Bool(true)) && uid == Some(0);
        let ids: Vec<String> = ["runAsUser", "runAsGroup"]
            .into_iter()
            .filter(|f| asked.get(*f).is_some() && asked.get(*f) != got.get(*f))
            .map(|f| format!("{f} {}", shown(got.get(f))))
            .collect();
        rewrite.ids_changed = (!ids.is_empty()).then(|| ids.join(", "));
        for kind in ["add", "drop"] {
            let (ours, theirs) = (caps(asked, kind), caps(got, kind));
            let more: Vec<&str> = theirs.iter().copied().filter(|c| !ours.contains(c)).collect();
            let fewer: Vec<&str> =
                ours.iter().copied().filter(|c| !theirs.contains(c) && *c != "SYS_PTRACE").collect();
            if !more.is_empty() {
                rewrite.note(format!("capabilities.{kind} gained {}", more.join(", ")));
            }
            if !fewer.is_empty() {
                rewrite.note(format!("capabilities.{kind} lost {}", fewer.join(", ")));
            }
        }
        const FIELDS: [&str; 8] = [
            "runAsNonRoot",
            "privileged",
            "allowPrivilegeEscalation",
            "readOnlyRootFilesystem",
            "seccompProfile",
            "seLinuxOptions",
            "appArmorProfile",
            "procMount",
        ];
        for field in FIELDS {
            if asked.get(field) != got.get(field) && !(field == "runAsNonRoot" && rewrite.non_root_forced) {
                rewrite.note(format!("securityContext.{field} became {}", shown(got.get(field))));
            }
        }
        for field in ["image", "imagePullPolicy", "command", "args", "targetContainerName"] {
            if requested.get(field) != stored.get(field) {
                rewrite.note(format!("{field} became {}", shown(stored.get(field))));
            }
        }
        for (field, what) in [("env", "variable"), ("volumeMounts", "mount")] {
            rewrite.lists(requested, stored, field, what);
        }
        rewrite
    }

    fn lists(&mut self, requested: &Value, stored: &Value, field: &str, what: &str) {
        let (ours, theirs) = (list(requested, field), list(stored, field));
        let name = |v: &Value| escape(v.get("name").and_then(Value::as_str).unwrap_or("?"), 60);
        for value in theirs.iter().filter(|v| !ours.contains(v)) {
            self.note(format!("{what} {} was added or changed", name(value)));
        }
        for value in ours.iter().filter(|v| !theirs.iter().any(|t| t.get("name") == v.get("name"))) {
            self.note(format!("{what} {} is gone", name(value)));
        }
    }

    fn note(&mut self, line: String) {
        self.notes.push(line);
    }
}

/// The container of that name among the stored ones.
#[must_use]
pub fn stored<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let list = pod.pointer("/spec/ephemeralContainers")?.as_array()?;
    list.iter().find(|c| c.get("name").is_some_and(|n| n == name))
}

fn context(container: &Value) -> &Value {
    container.get("securityContext").unwrap_or(&Value::Null)
}

fn caps<'a>(context: &'a Value, kind: &str) -> Vec<&'a str> {
    let list = context.get("capabilities").and_then(|c| c.get(kind)).and_then(Value::as_array);
    // `CAP_SYS_PTRACE` and `SYS_PTRACE` are the same to the runtime.
    let bare = |v: &'a Value| v.as_str().map(|s| s.strip_prefix("CAP_").unwrap_or(s));
    list.map_or(&[][..], Vec::as_slice).iter().filter_map(bare).collect()
}

fn list<'a>(container: &'a Value, field: &str) -> &'a [Value] {
    container.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "absent".to_owned(),
        Some(Value::String(text)) => escape(text, 120),
        Some(other) => escape(&other.to_string(), 120),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::security::Security;
    use serde_json::json;

    fn full(change: impl FnOnce(&mut Value)) -> Rewrite {
        let asked = json!({"name": "podbench-1", "image": "i", "securityContext": Security::Full.to_json()});
        let mut stored = asked.clone();
        stored["resources"] = json!({});
        stored["terminationMessagePath"] = json!("/dev/termination-log");
        change(&mut stored);
        Rewrite::compare(&asked, &stored)
    }

    #[test]
    fn what_the_server_fills_in_is_no_rewrite() {
        assert_eq!(full(|_| {}), Rewrite::default());
    }

    #[test]
    fn a_stripped_capability_shows_in_every_spelling() {
        assert!(full(|s| s["securityContext"]["capabilities"] = Value::Null).ptrace_stripped);
        let dropped = full(|s| s["securityContext"]["capabilities"] = json!({"drop": ["ALL"]}));
        assert!(dropped.ptrace_stripped && dropped.login_lost);
        assert!(!full(|s| s["securityContext"]["capabilities"] = Value::Null).login_lost);
        let kept = full(|s| s["securityContext"]["capabilities"]["drop"] = json!(["ALL"]));
        assert!(!kept.ptrace_stripped && kept.login_lost, "SYS_PTRACE is still added");
        let one = full(|s| s["securityContext"]["capabilities"]["drop"] = json!(["CAP_SETGID", "MKNOD"]));
        assert!(one.login_lost);
        let back = json!({"add": ["SYS_PTRACE", "SETUID", "SETGID", "SYS_CHROOT"], "drop": ["ALL"]});
        assert!(!full(|s| s["securityContext"]["capabilities"] = back).login_lost);
        assert!(
            !full(|s| s["securityContext"]["capabilities"]["add"] = json!(["CAP_SYS_PTRACE"]))
                .ptrace_stripped
        );
    }

    #[test]
    fn non_root_beside_uid_zero_is_a_seat_that_never_starts() {
        let rewrite = full(|s| s["securityContext"]["runAsNonRoot"] = json!(true));
        assert!(rewrite.non_root_forced && rewrite.notes.is_empty());
        let moved = full(|s| {
            s["securityContext"]["runAsNonRoot"] = json!(true);
            s["securityContext"]["runAsUser"] = json!(1000);
        });
        assert!(!moved.non_root_forced);
        assert_eq!(moved.ids_changed.as_deref(), Some("runAsUser 1000"));
    }

    #[test]
    fn anything_else_is_one_line() {
        let rewrite = full(|s| {
            s["securityContext"]["capabilities"]["add"] = json!(["SYS_PTRACE", "CHOWN", "KILL"]);
            s["securityContext"]["readOnlyRootFilesystem"] = json!(true);
            s["image"] = "mirror/i".into();
            s["env"] = json!([{"name": "HTTP_PROXY", "value": "\u{1b}"}]);
        });
        assert!(!rewrite.ptrace_stripped);
        assert_eq!(
            rewrite.notes,
            [
                "capabilities.add gained CHOWN, KILL",
                "securityContext.readOnlyRootFilesystem became true",
                "image became mirror/i",
                "variable HTTP_PROXY was added or changed",
            ]
        );
    }
}
