//! Kubernetes' times, and how long ago one is.

use std::time::{SystemTime, UNIX_EPOCH};

/// A time as Kubernetes writes it (`2026-11-30T22:05:00Z`), in seconds since 1970.
pub(crate) fn seconds(time: &str) -> Option<u64> {
    let part = |range: std::ops::Range<usize>| time.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
    if !(1..=12).contains(&month) || year < 1970 {
        return None;
    }
    // Days before a month, with the year beginning in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    Some((days.checked_sub(719_468)? * 24 + hour) * 3600 + minute * 60 + second)
}

/// How long ago that is: `90s`, `12m`, `5h`, `3d`.
pub(crate) fn age(created: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    match now.saturating_sub(created) {
        s if s < 120 => format!("{s}s"),
        s if s < 7_200 => format!("{}m", s / 60),
        s if s < 172_800 => format!("{}h", s / 3600),
        s => format!("{}d", s / 86_400),
    }
}
