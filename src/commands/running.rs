//! The verb that runs, where what a person is told depends on it.

use std::time::Duration;

use super::cp;
use crate::cli::{self, SeatArgs};
use crate::shell::word;

/// The verbs that talk to the cluster.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "each is the verb of its name")]
pub enum Running<'a> {
    Attach,
    Ssh(&'a cli::Ssh),
    Cp(&'a cli::Cp),
    SshConfig,
    Status,
    List,
    Detach,
    Clean,
}

impl Running<'_> {
    /// As it is typed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::Ssh(_) => "ssh",
            Self::Cp(_) => "cp",
            Self::SshConfig => "ssh-config",
            Self::Status => "status",
            Self::List => "list",
            Self::Detach => "detach",
            Self::Clean => "clean",
        }
    }

    /// What is typed behind it for this pod: `rest` is the pod and flags. The verbs that enter a seat
    /// keep which container and which seat were asked for, and `cp` says its pod within a path.
    #[must_use]
    pub(super) fn operands(self, rest: &str) -> String {
        let Some((seat, target)) = self.entered() else { return rest.to_owned() };
        let (pod, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let mut words = vec![match self {
            Self::Cp(args) => cp::sides(args, pod),
            _ => pod.to_owned(),
        }];
        words.extend((!more.is_empty()).then(|| more.to_owned()));
        if !more.split(' ').any(|flag| flag == "-c") {
            words.extend(target.map(|name| format!("-c {}", word(name))));
        }
        words.extend(typed(seat));
        words.join(" ")
    }

    /// The pod and the flags that lead into the same seat.
    #[must_use]
    pub(super) fn seat(self, pod: &str) -> String {
        let mut words = vec![word(pod)];
        if let Some((seat, target)) = self.entered() {
            words.extend(target.map(|name| format!("-c {}", word(name))));
            words.extend(typed(seat));
        }
        words.join(" ")
    }

    /// Of a verb that enters a seat: which seat, and beside which container.
    const fn entered(&self) -> Option<(&SeatArgs, Option<&String>)> {
        match self {
            Self::Ssh(args) => Some((&args.seat, args.pod.target.as_ref())),
            Self::Cp(args) => Some((&args.seat, args.target.as_ref())),
            Self::Attach | Self::SshConfig | Self::Status | Self::List | Self::Detach | Self::Clean => None,
        }
    }
}

/// The flags about the seat that aren't the default.
fn typed(args: &SeatArgs) -> Vec<String> {
    let SeatArgs { no_attach, image, max_rung, timeout, identity, ssh_user } = args;
    let mut flags = Vec::new();
    flags.extend(no_attach.then(|| "--no-attach".to_owned()));
    let mut flag = |name: &str, value: Option<String>| {
        flags.extend(value.map(|value| word(&format!("--{name}={value}"))));
    };
    flag("image", image.clone());
    flag("max-rung", max_rung.map(|rung| rung.to_string()));
    flag("timeout", (*timeout != Duration::from_secs(120)).then(|| timeout.as_secs().to_string()));
    flag("identity", identity.as_ref().map(|file| file.display().to_string()));
    flag("ssh-user", ssh_user.clone());
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Verb;

    /// What is to be pasted for that line, once the pod is known.
    fn again(line: &[&str], rest: &str) -> String {
        let words = std::iter::once(&"podbench").chain(line).map(Into::into);
        let cli = cli::parse(words).unwrap_or_else(|e| panic!("{}", e.text(false)));
        match &cli.verb {
            Verb::Ssh(args) => Running::Ssh(args).operands(rest),
            Verb::Cp(args) => Running::Cp(args).operands(rest),
            _ => Running::Attach.operands(rest),
        }
    }

    #[test]
    fn cp_says_the_pod_within_a_path_and_keeps_what_was_typed() {
        assert_eq!(again(&["cp", "a b", "ap:/tmp/"], "api-1"), "'a b' api-1:/tmp/");
        assert_eq!(again(&["cp", "shop/ap:x", "."], "api-1 -c app"), "shop/api-1:x . -c app");
        let line =
            ["cp", "ap:x", ".", "-c", "app", "--no-attach", "--identity", "/my key", "--timeout", "5m"];
        assert_eq!(again(&line, "api-1"), "api-1:x . -c app --no-attach --timeout=300 '--identity=/my key'");
        assert_eq!(again(&line, "api-1 -c web").matches("-c").count(), 1);
        let line = ["ssh", "ap", "-c", "app", "--max-rung", "full"];
        assert_eq!(again(&line, "api-1"), "api-1 -c app --max-rung=full");
        assert_eq!(again(&["attach", "ap", "--new"], "api-1 --dry-run"), "api-1 --dry-run");
    }
}
