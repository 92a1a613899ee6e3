//! What a person is told when something says no: one sentence, its causes, commands to try next.
//!
//! Each module has an error enum of its own; at the edge it becomes a [`Failure`], and the kind
//! alone sets the exit code.

use std::fmt;

use serde::Serialize;

use crate::kubectl::Kubectl;
use crate::kubectl::line::Line;
use crate::kubectl::refusal::Right;

/// Whose fault, as far as a script needs to know. On the wire in `kind`, kebab-case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// podbench's own bug.
    Bug,
    /// The local disk said no.
    Disk,
    /// The command line or a local file that it names is wrong.
    Input,
    /// The cluster said no.
    Cluster,
    /// `--require` wasn't met.
    Require,
    /// podbench's own deadline passed.
    Deadline,
    /// ctrl-C.
    Interrupted,
}

impl Kind {
    /// The exit code.
    #[must_use]
    pub const fn exit(self) -> u8 {
        match self {
            Self::Bug | Self::Disk => 1,
            Self::Input | Self::Cluster => 2,
            Self::Require => 3,
            Self::Deadline => 124,
            Self::Interrupted => 130,
        }
    }
}

/// What a person or a script is told. The message is a lowercase fragment, a hint is a command
/// that can be pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Whose fault.
    pub kind: Kind,
    /// What happened, in the words of whoever said no.
    pub message: String,
    /// Why, outermost first.
    pub causes: Vec<String>,
    /// Commands to try next.
    pub hints: Vec<String>,
    /// The right that the cluster's RBAC says is missing.
    pub lacks: Option<Box<Right>>,
    /// kubectl commands to try first, until [`Failure::written`] puts the user's flags into them.
    pub lines: Vec<Line>,
}

impl Failure {
    /// A failure without causes and hints.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            lacks: None,
            lines: Vec::new(),
        }
    }

    /// The input is wrong.
    #[must_use]
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(Kind::Input, message)
    }

    /// The cluster said no.
    #[must_use]
    pub fn cluster(message: impl Into<String>) -> Self {
        Self::new(Kind::Cluster, message)
    }

    /// Adds a cause.
    #[must_use]
    pub fn because(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds a command to try next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds a kubectl command to try next, where the user's flags aren't known.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// Writes the commands that had no flags yet, in front of the other hints: an error's own come
    /// before those of whoever passed it on.
    #[must_use]
    pub fn written(mut self, kubectl: &Kubectl) -> Self {
        let lines: Vec<String> = self.lines.drain(..).map(|line| kubectl.line(&line)).collect();
        self.hints.splice(0..0, lines);
        self
    }

    /// The object that `-o json` prints.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": "podbench/error/v1",
            "kind": self.kind,
            "message": self.message,
            "causes": self.causes,
            "hints": self.hints,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        for cause in &self.causes {
            write!(f, "\n  {}", cause.replace('\n', "\n  "))?;
        }
        for hint in &self.hints {
            write!(f, "\ntry: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
