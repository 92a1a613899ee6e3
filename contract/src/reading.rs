//! A fact about a seat or its target is read, denied by the kernel, or not tried. Absent is not
//! zero, and an error is not an answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An errno, as Linux counts it on every architecture podbench runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

impl Errno {
    /// Operation not permitted.
    pub const EPERM: Self = Self(1);
    /// No such file or directory.
    pub const ENOENT: Self = Self(2);
    /// No such process.
    pub const ESRCH: Self = Self(3);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// Invalid argument.
    pub const EINVAL: Self = Self(22);
    /// Function not implemented.
    pub const ENOSYS: Self = Self(38);

    /// Its symbol where it is one of the few that matter here.
    #[must_use]
    pub const fn symbol(self) -> Option<&'static str> {
        match self.0 {
            1 => Some("EPERM"),
            2 => Some("ENOENT"),
            3 => Some("ESRCH"),
            5 => Some("EIO"),
            13 => Some("EACCES"),
            20 => Some("ENOTDIR"),
            22 => Some("EINVAL"),
            28 => Some("ENOSPC"),
            30 => Some("EROFS"),
            38 => Some("ENOSYS"),
            40 => Some("ELOOP"),
            _ => None,
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.symbol() {
            Some(symbol) => f.write_str(symbol),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// A value asked of the kernel. On the wire: `{"read": V}`, `{"denied": ERRNO}` or `"notTried"`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading<T> {
    /// The kernel answered.
    Read(T),
    /// The kernel said no, or that there is no such thing (`ENOENT`).
    Denied(Errno),
    /// Nobody asked.
    #[default]
    NotTried,
}

impl<T> Reading<T> {
    /// The value, where there is one.
    #[must_use]
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Read(v) => Some(v),
            Self::Denied(_) | Self::NotTried => None,
        }
    }

    /// Was the answer that there is no such file? No Yama file means no Yama, not scope 0.
    #[must_use]
    pub const fn is_absent(&self) -> bool {
        matches!(self, Self::Denied(Errno(2)))
    }

    /// The reading of something else made from this one's value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Read(v) => Reading::Read(f(v)),
            Self::Denied(e) => Reading::Denied(e),
            Self::NotTried => Reading::NotTried,
        }
    }
}

/// Something tried on a process. On the wire: `"ok"`, `{"errno": N}`, `{"signal": N}` or `"notTried"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Attempt {
    /// It worked.
    Ok,
    /// The kernel said no.
    Errno(Errno),
    /// The process that tried was killed by this signal (a seccomp filter may do that).
    Signal(i32),
    /// Nobody tried.
    #[default]
    NotTried,
}

impl Attempt {
    /// Did it work?
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::Ok)
    }

    /// Was it tried?
    #[must_use]
    pub const fn is_tried(self) -> bool {
        !matches!(self, Self::NotTried)
    }

    /// The errno of a refusal.
    #[must_use]
    pub const fn errno(self) -> Option<Errno> {
        match self {
            Self::Errno(e) => Some(e),
            Self::Ok | Self::Signal(_) | Self::NotTried => None,
        }
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Errno(e) => e.fmt(f),
            Self::Signal(n) => write!(f, "killed by signal {n}"),
            Self::NotTried => f.write_str("not measured"),
        }
    }
}
