//! The author of every kubectl command that a person is told to paste: it goes to the cluster that
//! podbench talks to, as the user that podbench is.

use super::Kubectl;
use crate::settings::Cluster;
use crate::shell::word;

/// A command's words, before anybody knows which flags the user typed: what an error carries until
/// it meets the [`Kubectl`] that it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The namespace it is about; `None`: none.
    namespace: Option<String>,
    /// The verb's words, in front of the flags.
    verb: Vec<String>,
    /// What follows them.
    rest: Vec<String>,
}

impl Line {
    /// A command about something that isn't in a namespace.
    #[must_use]
    pub fn bare(words: &[&str]) -> Self {
        Self { namespace: None, verb: owned(words), rest: Vec::new() }
    }

    /// A command in this namespace: its verb's words, and what follows.
    #[must_use]
    pub fn within(namespace: &str, verb: &[&str], rest: &[&str]) -> Self {
        Self { namespace: Some(namespace.to_owned()), verb: owned(verb), rest: owned(rest) }
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&w| w.to_owned()).collect()
}

impl Kubectl {
    /// The command, to paste.
    #[must_use]
    pub fn line(&self, line: &Line) -> String {
        // The flags right after the verb: what follows `--` is another program's.
        let words = |words: &[String]| words.iter().map(|w| format!(" {}", word(w))).collect::<String>();
        let flags = self.flags(line.namespace.as_deref());
        format!("kubectl{}{flags}{}", words(&line.verb), words(&line.rest))
    }

    /// A command in the run's namespace, to paste: its verb's words, and what follows.
    #[must_use]
    pub fn command(&self, verb: &[&str], rest: &[&str]) -> String {
        let line =
            Line { namespace: self.namespace().map(str::to_owned), verb: owned(verb), rest: owned(rest) };
        self.line(&line)
    }

    /// The command that gives a shell in a seat.
    #[must_use]
    pub fn enter(&self, namespace: &str, pod: &str, seat: &str) -> String {
        self.line(&Line::within(namespace, &["exec", "-it"], &[pod, "-c", seat, "--", "sh"]))
    }

    /// What the user typed about the cluster, as [`flags`].
    #[must_use]
    pub fn flags(&self, namespace: Option<&str>) -> String {
        flags(&self.scope.cluster, namespace)
    }
}

/// What the user typed about the cluster, each with a space in front of it.
#[must_use]
pub fn flags(cluster: &Cluster, namespace: Option<&str>) -> String {
    // The namespace is known better, and the other two don't say where.
    let Cluster { kubeconfig, context, as_user, as_groups, as_uid, namespace: _, kubectl: _, verbosity: _ } =
        cluster;
    let mut flags = String::new();
    if let Some(name) = namespace {
        flags.extend([" -n ", &word(name)]);
    }
    // One word each: a value can't be read as a flag of its own.
    let mut flag = |name: &str, value: &str| flags.extend([" ", &word(&format!("--{name}={value}"))]);
    if let Some(file) = kubeconfig {
        flag("kubeconfig", &file.display().to_string());
    }
    if let Some(name) = context {
        flag("context", name);
    }
    if let Some(user) = as_user {
        flag("as", user);
    }
    as_groups.iter().for_each(|group| flag("as-group", group));
    if let Some(uid) = as_uid {
        flag("as-uid", uid);
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure;
    use crate::kubectl::call::Scope;
    use crate::kubectl::refusal::{Refusal, Right, refusal};
    use crate::kubectl::{Context, Error, fake};

    fn typed() -> Kubectl {
        let cluster = Cluster {
            kubeconfig: Some("/my files/kc".into()),
            context: Some("prod".into()),
            as_user: Some("o'neil".into()),
            as_groups: vec!["dev".into()],
            as_uid: Some("7".into()),
            ..Cluster::default()
        };
        let (mut kubectl, _) = fake::kubectl(|_, _| fake::ok(""));
        kubectl.scope = Scope { cluster, ..Scope::default() };
        kubectl.pin(&Context { name: "prod".into(), namespace: "demo".into(), plugin: None });
        kubectl
    }

    const TYPED: &str =
        r"'--kubeconfig=/my files/kc' --context=prod '--as=o'\''neil' --as-group=dev --as-uid=7";

    #[test]
    fn what_was_typed_is_in_every_command_and_in_front_of_another_programs_words() {
        let kubectl = typed();
        assert_eq!(
            kubectl.command(&["logs"], &["api", "-c", "a b"]),
            format!("kubectl logs -n demo {TYPED} api -c 'a b'")
        );
        assert_eq!(
            kubectl.enter("demo", "api", "podbench-1"),
            format!("kubectl exec -it -n demo {TYPED} api -c podbench-1 -- sh")
        );
        assert_eq!(kubectl.line(&Line::bare(&["version"])), format!("kubectl version {TYPED}"));
    }

    #[test]
    fn the_hints_of_every_error_go_to_the_cluster_that_said_no() {
        let rbac = "Error from server (Forbidden): pods \"api\" is forbidden: User \"o'neil\" cannot get resource \
                    \"pods\" in API group \"\" in the namespace \"demo\"";
        let errors = [
            Error::Refused(refusal(rbac).unwrap()),
            Error::Refused(refusal("error: You must be logged in to the server (Unauthorized)").unwrap()),
            Error::Deadline { call: "kubectl get".into(), after: std::time::Duration::from_secs(30) },
        ];
        for error in errors {
            let failure = Failure::from(error).hint("podbench attach api").written(&typed());
            let (last, ours) = failure.hints.split_last().unwrap();
            assert_eq!(last, "podbench attach api", "the error's own hints come first");
            assert!(!ours.is_empty() && failure.lines.is_empty());
            for hint in ours {
                assert!(hint.starts_with("kubectl ") && hint.contains(TYPED), "{hint}");
            }
        }
    }

    #[test]
    fn every_word_of_a_role_is_quoted() {
        for odd in ["get; rm -rf ~", "$(x)", "a b", "o'neil"] {
            let right = Right {
                user: odd.into(),
                verb: odd.into(),
                resource: odd.into(),
                group: String::new(),
                namespace: Some(odd.into()),
            };
            let failure = Failure::from(Error::Refused(Refusal::Rbac(right))).written(&typed());
            let name = word(&format!("podbench-{odd}-{odd}"));
            let ns = word(odd);
            let [role, binding] = failure.hints.as_slice() else { panic!("{failure:?}") };
            let [verb, resource, by, user] = ["verb", "resource", "role", "user"].map(|f| match f {
                "role" => word(&format!("--role=podbench-{odd}-{odd}")),
                other => word(&format!("--{other}={odd}")),
            });
            assert_eq!(*role, format!("kubectl create role {name} -n {ns} {TYPED} {verb} {resource}"));
            assert_eq!(*binding, format!("kubectl create rolebinding {name} -n {ns} {TYPED} {by} {user}"));
        }
    }
}
