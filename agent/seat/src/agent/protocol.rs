//! What the agent answers, one line each, and the state it keeps for `measure`.

use podbench_contract::measurement::{Failure, Login, Sshd};
use podbench_contract::text::escape;
use serde::{Deserialize, Serialize};

/// An answer that isn't a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The agent listens: said first, to every peer that may ask.
    Hello,
    /// The session's descriptors are with the agent; its exit code follows.
    Taken,
    /// The session's sshd ended.
    Exit(u8),
    /// It was done.
    Done,
    /// The seat's processes were ended; so many didn't.
    Stopped {
        /// How many are still there.
        left: usize,
    },
    /// It won't be done, and why.
    Refused(String),
}

impl Reply {
    /// The line, with its end.
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Hello => "hello\n".to_owned(),
            Self::Taken => "taken\n".to_owned(),
            Self::Exit(code) => format!("exit {code}\n"),
            Self::Done => "done\n".to_owned(),
            Self::Stopped { left } => format!("stopped {left}\n"),
            Self::Refused(why) => format!("refused {}\n", escape(why, 300)),
        }
    }

    /// Reads a line; `None` is no reply.
    pub(crate) fn decode(line: &str) -> Option<Self> {
        let line = line.strip_suffix('\n')?;
        match line.split_once(' ') {
            None if line == "hello" => Some(Self::Hello),
            None if line == "taken" => Some(Self::Taken),
            None if line == "done" => Some(Self::Done),
            Some(("exit", code)) => code.parse().ok().map(Self::Exit),
            Some(("stopped", left)) => left.parse().ok().map(|left| Self::Stopped { left }),
            Some(("refused", why)) => Some(Self::Refused(escape(why, 300))),
            _ => None,
        }
    }
}

/// What the agent knows of the seat; its answer to `state`, as one JSON line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct State {
    /// The agent's version.
    pub(crate) version: String,
    /// Start-up steps that failed, in their order.
    pub(crate) failures: Vec<Failure>,
    /// The login that sshd will accept.
    pub(crate) login: Login,
    /// The seat's home folder.
    pub(crate) home: String,
    /// The seat's sshd.
    pub(crate) sshd: Sshd,
    /// ssh connections that are open now.
    pub(crate) sessions: Option<u32>,
}

impl State {
    /// Records a step that failed, and says so in the container's log.
    pub(crate) fn fail(&mut self, step: &str, why: impl std::fmt::Display) {
        let why = escape(&why.to_string(), 300);
        crate::out::note(&format!("{step}: {why}"));
        self.failures.push(Failure { step: step.to_owned(), why });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_answered_is_understood() {
        let refused = Reply::Refused("not you".into());
        for reply in
            [Reply::Hello, Reply::Taken, Reply::Exit(137), Reply::Done, Reply::Stopped { left: 3 }, refused]
        {
            assert_eq!(Reply::decode(&reply.encode()), Some(reply));
        }
        for bad in ["", "taken", "exit\n", "exit 256\n", "stopped x\n", "nonsense 1\n"] {
            assert_eq!(Reply::decode(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_reason_comes_back_as_one_line_and_no_text_panics(why in "\\PC*", line in "\\PC*\n?") {
            let sent = Reply::Refused(why).encode();
            prop_assert_eq!(sent.matches('\n').count(), 1);
            prop_assert!(matches!(Reply::decode(&sent), Some(Reply::Refused(_))));
            let _ = Reply::decode(&line);
        }
    }

    #[test]
    fn a_reason_is_one_line_whatever_it_held() {
        let line = Reply::Refused("two\nlines\u{1b}[2J".into()).encode();
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.contains('\u{1b}'));
    }
}
