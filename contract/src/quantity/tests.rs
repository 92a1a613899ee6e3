use proptest::prelude::*;

use super::*;

fn q(raw: &str) -> Quantity {
    raw.parse().unwrap_or_else(|why| panic!("{raw}: {why}"))
}

#[test]
fn amounts_are_printed_as_the_api_server_prints_them() {
    // Given to an API server of 1.36 and read back, but for the last four: it leaves those three as
    // they were typed, and rounds what is finer than a thousandth.
    for (spelled, canonical) in [
        ("0", "0"),
        ("0Mi", "0"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("1000m", "1"),
        ("2000", "2k"),
        ("1000k", "1M"),
        ("128974848", "128974848"),
        ("129e6", "129e6"),
        ("1e3", "1e3"),
        ("12E2", "1200"),
        ("1E", "1E"),
        ("512Ki", "512Ki"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("1.", "1"),
        ("+5m", "5m"),
        ("010Mi", "10Mi"),
        ("100u", "100u"),
    ] {
        assert_eq!(q(spelled).to_string(), canonical, "{spelled}");
    }
}

#[test]
fn the_same_amount_is_equal_however_it_is_spelled() {
    for (one, other) in
        [("1Gi", "1024Mi"), ("1", "1000m"), ("1k", "1e3"), ("0.5Gi", "536870912"), ("1M", "1000k")]
    {
        assert_eq!(q(one), q(other));
    }
    assert!(q("1G") < q("1Gi") && q("999m") < q("1") && q("1n") > Quantity::ZERO);
}

#[test]
fn what_is_no_quantity_is_refused() {
    for bad in [
        "", "Mi", ".", "1.2.3", "1 Mi", "1mi", "1MI", "1KI", "-1", "1e", "1e+", "0x10", "1Mi\n", "１",
        "1Gi:2Gi", "e3", "1ee3",
    ] {
        assert_eq!(bad.parse::<Quantity>(), Err(NoQuantity::Spelling), "{bad:?}");
    }
    for large in
        ["8Ei", "10E", "9223372036854775808", "1e99", "1e999999999", "99999999999999999999999999999999"]
    {
        assert_eq!(large.parse::<Quantity>(), Err(NoQuantity::TooLarge), "{large}");
    }
    assert_eq!(q("9223372036854775807").to_string(), "9223372036854775807");
}

#[test]
fn what_is_finer_than_a_billionth_is_rounded_up() {
    assert_eq!(q("0.0000000001"), q("1n"));
    assert_eq!(q("1e-30"), q("1n"));
    assert_eq!(q("1e-999999999"), q("1n"));
}

#[test]
fn a_ratio_is_kept_exactly() {
    assert_eq!(q("400Mi").divided_up(q("10")), Some(q("40Mi")));
    assert_eq!(q("100Mi").divided_up(q("3")).map(|a| a.round_up(q("1Mi"))), Some(q("34Mi")));
    assert_eq!(q("1").divided_up(q("0")), None);
    assert_eq!(q("16Mi").times(q("2.5")), q("40Mi"));
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back_as_the_same_amount_and_stays(raw in "[0-9]{1,9}(\\.[0-9]{0,4})?(n|u|m|k|M|G|T|Ki|Mi|Gi|e[0-9]|)") {
        if let Ok(amount) = raw.parse::<Quantity>() {
            let printed = amount.to_string();
            let again = q(&printed);
            prop_assert_eq!(again, amount);
            prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn order_is_that_of_the_numbers(a in 0_u64..1 << 40, b in 0_u64..1 << 40, milli in any::<bool>()) {
        let spell = |n: u64| q(&if milli { format!("{n}m") } else { format!("{n}Ki") });
        prop_assert_eq!(spell(a).cmp(&spell(b)), a.cmp(&b));
        prop_assert_eq!(spell(a).plus(spell(b)).minus(spell(b)), spell(a));
    }

    #[test]
    fn the_least_request_for_a_ratio_meets_it_and_nothing_less_does(limit in 1_u64..1 << 50, ratio in 1_u64..100_000) {
        let (limit, ratio) = (Quantity::bytes(limit), Quantity::milli(ratio));
        let least = limit.divided_up(ratio).unwrap();
        prop_assert!(least.times(ratio) >= limit || least.plus(q("1n")).times(ratio) >= limit);
        if least > q("1n") {
            prop_assert!(least.minus(q("1n")).times(ratio) < limit);
        }
    }

    #[test]
    fn no_text_makes_it_panic(raw in "\\PC{0,40}") {
        let _ = raw.parse::<Quantity>();
    }
}
