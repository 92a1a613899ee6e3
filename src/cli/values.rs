//! What a flag's text becomes. A value that goes into an argv of kubectl's or a stanza is checked
//! here, so nobody further in meets a control character.

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use podbench_contract::ids::{Gid, Uid};
use podbench_contract::quantity::Quantity;
use podbench_contract::rung::Rung;
use podbench_contract::text as pattern;

/// The largest uid or gid that Kubernetes takes in a security context.
const HIGHEST_ID: u32 = i32::MAX.unsigned_abs();

/// A `CLAIM[:PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// A claim's or a volume's name.
    pub claim: String,
    /// Where in the seat, absolute; `None`: where the target has it.
    pub path: Option<String>,
}

/// When the node pulls the seat's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Pull {
    /// Where the node hasn't got it.
    #[default]
    IfNotPresent,
    /// Every time.
    Always,
    /// Never.
    Never,
}

impl Pull {
    /// The value of `imagePullPolicy`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::IfNotPresent => "IfNotPresent",
            Self::Always => "Always",
            Self::Never => "Never",
        }
    }
}

/// A `VALUE` or a `REQUEST:LIMIT`: how much of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The request, where it was spelled.
    pub request: Option<Quantity>,
    /// The limit.
    pub limit: Quantity,
}

/// Full, degraded or seat.
#[derive(Clone, Copy, Debug)]
pub struct RungParser;

impl TypedValueParser for RungParser {
    type Value = Rung;

    fn parse_ref(
        &self,
        cmd: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Rung, clap::Error> {
        let word = PossibleValuesParser::new(Rung::ALL.map(Rung::as_str)).parse_ref(cmd, arg, value)?;
        word.parse().map_err(|_| clap::Error::new(clap::error::ErrorKind::InvalidValue).with_cmd(cmd))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Rung::ALL.into_iter().map(|r| PossibleValue::new(r.as_str()))))
    }
}

/// One line without control characters, and not empty.
pub(crate) fn text(raw: &str) -> Result<String, String> {
    if raw.is_empty() {
        return Err("it is empty".to_owned());
    }
    pattern::printable(raw, 1024).ok_or_else(|| "it holds a control character".to_owned())
}

pub(crate) fn reason(raw: &str) -> Result<String, String> {
    let most = podbench_contract::env::MOST_REASON;
    if raw.len() > most {
        return Err(format!("it is longer than {most} bytes"));
    }
    text(raw)
}

pub(crate) fn login(raw: &str) -> Result<String, String> {
    if pattern::is_login(raw) {
        Ok(raw.to_owned())
    } else {
        Err("a login is up to 32 of a-z, 0-9, _ and -, and begins with a letter or _".to_owned())
    }
}

pub(crate) fn alias(raw: &str) -> Result<String, String> {
    if crate::ssh::alias::is_alias(raw) {
        Ok(raw.to_owned())
    } else {
        Err("an alias is up to 100 of a-z, A-Z, 0-9, _, . and -, and begins with a letter or a digit"
            .to_owned())
    }
}

/// No registry's rules, only what could not be an image whatever the registry says.
pub(crate) fn image(raw: &str) -> Result<String, String> {
    let raw = text(raw)?;
    if raw.contains(char::is_whitespace) || raw.starts_with('-') {
        return Err("an image reference has no spaces and doesn't begin with -".to_owned());
    }
    Ok(raw)
}

fn id(raw: &str) -> Result<u32, String> {
    raw.parse().ok().filter(|n| *n <= HIGHEST_ID).ok_or_else(|| format!("a number from 0 to {HIGHEST_ID}"))
}

pub(crate) fn uid(raw: &str) -> Result<Uid, String> {
    id(raw).map(Uid)
}

pub(crate) fn gid(raw: &str) -> Result<Gid, String> {
    id(raw).map(Gid)
}

/// `120`, `90s`, `5m`, `1h`.
pub(crate) fn seconds(raw: &str) -> Result<Duration, String> {
    let (number, unit) = match raw.strip_suffix(['s', 'm', 'h']) {
        Some(number) if raw.ends_with('m') => (number, 60),
        Some(number) if raw.ends_with('h') => (number, 3600),
        Some(number) => (number, 1),
        None => (raw, 1),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
    seconds
        .filter(|s| (1..=86_400).contains(s))
        .map(Duration::from_secs)
        .ok_or_else(|| "seconds, or a number with s, m or h; from one second to a day".to_owned())
}

pub(crate) fn mount(raw: &str) -> Result<Mount, String> {
    let (claim, path) = match raw.split_once(':') {
        Some((claim, path)) => (claim, Some(path)),
        None => (raw, None),
    };
    if !crate::pod::is_dns(claim) {
        return Err(
            "a claim's name is of a-z, 0-9, - and ., and begins and ends with a letter or a digit".to_owned()
        );
    }
    if let Some(path) = path {
        let climbs = path.split('/').any(|part| part == "..");
        if !path.starts_with('/') || path == "/" || climbs || path.contains(':') || text(path).is_err() {
            return Err("the path is absolute, without `..` and `:`".to_owned());
        }
        if crate::spec::mounts::hides_the_seat(path) {
            return Err("a volume there would hide what makes it a seat".to_owned());
        }
    }
    Ok(Mount { claim: claim.to_owned(), path: path.map(str::to_owned) })
}

fn size(raw: &str, check: fn(Quantity) -> Result<(), String>) -> Result<Size, String> {
    let amount = |text: &str| text.parse::<Quantity>().map_err(|why| why.to_string());
    let (request, limit) = match raw.split_once(':') {
        Some((request, limit)) => (Some(amount(request)?), amount(limit)?),
        None => (None, amount(raw)?),
    };
    check(limit)?;
    if let Some(request) = request {
        check(request)?;
        if request > limit {
            return Err(format!("the request {request} is more than the limit {limit}"));
        }
    }
    Ok(Size { request, limit })
}

/// `6Gi`, `2Gi:6Gi`. `6` is six bytes to Kubernetes, and `100m` a tenth of one: nobody means them.
pub(crate) fn memory(raw: &str) -> Result<Size, String> {
    size(raw, |amount| {
        if amount < Quantity::bytes(1 << 20) {
            return Err(format!(
                "{amount} of memory is less than a mebibyte; Mi and Gi are the usual suffixes"
            ));
        }
        if amount.is_multiple_of(Quantity::bytes(1)) {
            Ok(())
        } else {
            Err(format!("{amount} is no whole number of bytes"))
        }
    })
}

/// `2`, `500m`, `1:2`.
pub(crate) fn cpu(raw: &str) -> Result<Size, String> {
    size(raw, |amount| {
        if amount.is_zero() || !amount.is_multiple_of(Quantity::milli(1)) {
            return Err("processor time is counted in thousandths of a core, from 1m on".to_owned());
        }
        Ok(())
    })
}
