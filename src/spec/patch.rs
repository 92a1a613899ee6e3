//! `--spec-patch`: what a policy-locked cluster asks of a container and podbench doesn't write. A
//! strategic merge patch of the seat's container; whatever would make it another thing than a seat, or
//! make the report untrue, is refused by name.

use podbench_contract::text::escape;
use serde_json::{Map, Value};

/// A patch that can be applied to any rung's container.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch(Map<String, Value>);

/// The fields that may be patched, and by which key a list of theirs is merged.
const FIELDS: [(&str, Option<&str>); 5] = [
    ("env", Some("name")),
    ("volumeMounts", Some("mountPath")),
    ("securityContext", None),
    ("terminationMessagePath", None),
    ("terminationMessagePolicy", None),
];
/// What of the security context no rung decides.
const SECURITY: [&str; 6] = [
    "appArmorProfile",
    "capabilities",
    "procMount",
    "readOnlyRootFilesystem",
    "seLinuxOptions",
    "seccompProfile",
];

impl Patch {
    /// Reads one: YAML, of which JSON is a part.
    ///
    /// # Errors
    /// Why it isn't one, with its place where it isn't YAML; or which field can't be patched.
    pub fn parse(text: &str) -> Result<Self, String> {
        let value: Value = serde_saphyr::from_str(text).map_err(|e| escape(&e.to_string(), 500))?;
        let Value::Object(fields) = value else {
            return Err("it isn't an object of a container's fields, such as `env:`".to_owned());
        };
        for (field, value) in &fields {
            check(field, value)?;
        }
        Ok(Self(fields))
    }

    /// Merges it into a container.
    pub fn apply(&self, container: &mut Value) {
        let Some(object) = container.as_object_mut() else { return };
        for (field, patch) in &self.0 {
            let key = FIELDS.iter().find(|(name, _)| name == field).and_then(|(_, key)| *key);
            let old = object.entry(field.clone()).or_insert(Value::Null);
            match (key, patch) {
                (Some(key), Value::Array(items)) => merge_list(old, items, key),
                _ => merge(old, patch),
            }
            if old.is_null() {
                object.shift_remove(field);
            }
        }
    }
}

/// A map is merged, null removes, anything else replaces.
fn merge(old: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *old = patch.clone();
        return;
    };
    if !old.is_object() {
        *old = Value::Object(Map::new());
    }
    let Some(object) = old.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            object.shift_remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// An entry of the same key is merged, another one is added.
fn merge_list(old: &mut Value, items: &[Value], key: &str) {
    let mut list = old.as_array().cloned().unwrap_or_default();
    for item in items {
        match list.iter_mut().find(|o| o.get(key) == item.get(key)) {
            Some(same) => merge(same, item),
            None => list.push(item.clone()),
        }
    }
    *old = Value::Array(list);
}

fn check(field: &str, value: &Value) -> Result<(), String> {
    if let Some(directive) = directive(value) {
        return Err(format!("the directive {} isn't supported", escape(&directive, 60)));
    }
    let no = |why: &str| Err(format!("{} can't be patched: {why}", escape(field, 60)));
    match field {
        "env" => env(value),
        "volumeMounts" => mounts(value),
        "securityContext" => security(value),
        "terminationMessagePath" | "terminationMessagePolicy" => match value {
            Value::String(_) => Ok(()),
            _ => no("it isn't a text"),
        },
        "name" => no("podbench chooses the next free one"),
        "image" => no("--image names it"),
        "imagePullPolicy" => no("--pull names it"),
        "command" | "args" | "workingDir" | "stdin" | "stdinOnce" | "tty" => {
            no("the seat's agent is what runs")
        }
        "targetContainerName" => no("-c names the target"),
        "resources" | "resizePolicy" | "restartPolicy" | "ports" | "lifecycle" | "livenessProbe"
        | "readinessProbe" | "startupProbe" => no("Kubernetes lets an ephemeral container have none"),
        "envFrom" | "volumeDevices" => no("a seat that has one isn't told from a planted one"),
        _ => no(
            "a seat's container has no such field; env, volumeMounts, securityContext and terminationMessage* can be",
        ),
    }
}

/// A key that begins with `$`, at any depth.
fn directive(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) => map
            .iter()
            .find_map(|(key, value)| if key.starts_with('$') { Some(key.clone()) } else { directive(value) }),
        Value::Array(list) => list.iter().find_map(directive),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn entries<'a>(field: &str, key: &str, value: &'a Value) -> Result<Vec<&'a str>, String> {
    let Value::Array(list) = value else { return Err(format!("{field} isn't a list")) };
    let keys = list.iter().map(|e| e.get(key).and_then(Value::as_str).filter(|k| !k.is_empty()));
    keys.collect::<Option<_>>().ok_or_else(|| format!("an entry of {field} has no {key}"))
}

fn env(value: &Value) -> Result<(), String> {
    for name in entries("env", "name", value)? {
        if name.starts_with("PODBENCH_") || name == "HOME" {
            return Err(format!("env {} can't be patched: podbench writes it", escape(name, 60)));
        }
    }
    Ok(())
}

fn mounts(value: &Value) -> Result<(), String> {
    for path in entries("volumeMounts", "mountPath", value)? {
        if !path.starts_with('/') {
            return Err(format!("volumeMounts {}: a mountPath is absolute", escape(path, 60)));
        }
        if super::mounts::hides_the_seat(path) {
            return Err(format!(
                "volumeMounts {}: a volume there would hide what makes it a seat",
                escape(path, 60)
            ));
        }
    }
    Ok(())
}

fn security(value: &Value) -> Result<(), String> {
    let Value::Object(fields) = value else { return Err("securityContext isn't an object".to_owned()) };
    for (field, value) in fields {
        if !SECURITY.contains(&field.as_str()) {
            return Err(format!(
                "securityContext.{} can't be patched: the rung decides it (--max-rung, --target-uid, --target-gid)",
                escape(field, 60)
            ));
        }
        if field == "capabilities" && value.get("add").is_some() {
            return Err(
                "securityContext.capabilities.add can't be patched: the full rung adds SYS_PTRACE, and beside a uid \
                 other than 0 a capability is worth nothing"
                    .to_owned(),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use serde_json::json;

    use super::*;

    fn seat() -> Value {
        json!({
            "name": "podbench-1", "image": "seat:1", "command": ["/agent"], "targetContainerName": "app",
            "env": [{"name": "PODBENCH_TARGET", "value": "app"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "securityContext": {"runAsUser": 7, "capabilities": {"drop": ["ALL"]}},
        })
    }

    #[test]
    fn lists_are_merged_by_their_key_maps_by_theirs_and_null_removes() {
        let patch = Patch::parse(
            "env:\n- {name: HTTPS_PROXY, value: p}\nvolumeMounts:\n- {mountPath: /data, readOnly: true}\n\
             - {mountPath: /x, name: x}\nsecurityContext:\n  readOnlyRootFilesystem: true\n  seccompProfile: {type: RuntimeDefault}\n",
        )
        .unwrap();
        let mut container = seat();
        patch.apply(&mut container);
        let names: Vec<&str> =
            container["env"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["PODBENCH_TARGET", "HTTPS_PROXY"]);
        assert_eq!(
            container["volumeMounts"][0],
            json!({"mountPath": "/data", "name": "data", "readOnly": true})
        );
        assert_eq!(container["volumeMounts"].as_array().unwrap().len(), 2);
        let context = &container["securityContext"];
        assert_eq!((&context["runAsUser"], &context["readOnlyRootFilesystem"]), (&json!(7), &json!(true)));
        Patch::parse("securityContext: {capabilities: null}").unwrap().apply(&mut container);
        assert!(container["securityContext"].get("capabilities").is_none());
    }

    #[test]
    fn what_would_make_it_another_thing_than_a_seat_is_refused_by_name() {
        for (text, words) in [
            ("name: x", "name can't be patched"),
            ("image: x", "--image names it"),
            ("imagePullPolicy: Always", "--pull"),
            ("command: [sh]", "the seat's agent"),
            ("targetContainerName: x", "-c names the target"),
            ("resources: {}", "ephemeral container"),
            ("envFrom: []", "planted"),
            ("privileged: true", "no such field"),
            ("env: [{name: PODBENCH_OWNER, value: me}]", "podbench writes it"),
            ("env: [{name: HOME, value: /}]", "podbench writes it"),
            ("env: {}", "isn't a list"),
            ("env: [{value: x}]", "has no name"),
            ("volumeMounts: [{name: x, mountPath: x}]", "absolute"),
            ("volumeMounts: [{name: x, mountPath: /usr/local}]", "would hide"),
            ("securityContext: {privileged: true}", "the rung decides it"),
            ("securityContext: {allowPrivilegeEscalation: true}", "the rung decides it"),
            ("securityContext: {runAsUser: 0}", "--target-uid"),
            ("securityContext: {capabilities: {add: [SYS_ADMIN]}}", "capabilities.add"),
            ("env: [{name: A, $patch: delete}]", "$patch"),
            ("- a list", "isn't an object"),
            ("a: [", ""),
        ] {
            let why = Patch::parse(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn a_bomb_of_aliases_is_refused_and_not_expanded() {
        let mut text = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (n, before) in ('b'..='l').zip('a'..) {
            text.extend([format!(
                "{n}: &{n} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n"
            )]);
        }
        assert!(Patch::parse(&text).is_err());
    }

    proptest! {
        #[test]
        fn no_patch_takes_away_what_makes_it_a_seat(
            names in proptest::collection::vec("[A-Z_]{1,12}", 0..4),
            path in "/[a-z]{1,8}",
            read_only in any::<bool>(),
        ) {
            let env: Vec<Value> = names.iter().map(|n| json!({"name": n, "value": "v"})).collect();
            let text = json!({
                "env": env, "volumeMounts": [{"name": "v", "mountPath": path}],
                "securityContext": {"readOnlyRootFilesystem": read_only},
            });
            if let Ok(patch) = Patch::parse(&text.to_string()) {
                let (before, mut after) = (seat(), seat());
                patch.apply(&mut after);
                for field in ["name", "image", "command", "targetContainerName"] {
                    prop_assert_eq!(&before[field], &after[field]);
                }
                prop_assert_eq!(&before["env"][0], &after["env"][0]);
                prop_assert_eq!(&after["securityContext"]["runAsUser"], &json!(7));
            }
        }
    }
}
