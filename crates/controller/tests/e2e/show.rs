//! What statuses say, as the lines that the design documents' examples come down to.

use std::fmt::Write as _;

use serde_json::Value;

/// Lines without the white space that makes them pretty.
pub(crate) fn plain(text: &str) -> String {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("-")
}

/// For each placement what it is about, and the names of the configs that it wants, that are known
/// good, and that all have:
///
/// ```text
/// aws-placement  True Upgrading  100/400 upgrading...
///     desired hub-config-yyy good hub-config-xxx applied hub-config-xxx
/// ```
pub(crate) fn placements(addon: &Value) -> String {
    let status = &addon["status"];
    let mut told = String::new();
    // The names are in one spelling of the status, which must say the same as the other.
    for (short, long) in list(&status["installProgression"]).iter().zip(list(&status["installProgressions"]))
    {
        assert_eq!((&short["name"], &short["conditions"]), (&long["name"], &long["conditions"]));
        for condition in list(&short["conditions"]).iter().filter(|one| one["type"] == "Progressing") {
            let [name, status, reason] =
                [&short["name"], &condition["status"], &condition["reason"]].map(text);
            writeln!(told, "{name}  {status} {reason}  {}", text(&condition["message"])).unwrap();
        }
        let mut names = [Vec::new(), Vec::new(), Vec::new()];
        for (hashes, objects) in list(&short["configReferences"]).iter().zip(list(&long["configReferences"]))
        {
            let parts = [
                ("desiredConfigSpecHash", "desiredConfig"),
                ("lastKnownGoodConfigSpecHash", "lastKnownGoodConfig"),
                ("lastAppliedConfigSpecHash", "lastAppliedConfig"),
            ];
            for ((hash, object), names) in parts.into_iter().zip(&mut names) {
                assert_eq!(
                    text(&hashes[hash]),
                    text(&objects[object]["specHash"]),
                    "{hash} in both spellings"
                );
                let alone = list(&short["configReferences"]).len() == 1;
                if objects[object].is_object() && (alone || objects["resource"] != "addontemplates") {
                    names.push(text(&objects[object]["name"]));
                }
            }
        }
        let [desired, good, applied] =
            names.map(|names| if names.is_empty() { "-".into() } else { names.join("+") });
        writeln!(told, "    desired {desired} good {good} applied {applied}").unwrap();
    }
    told
}

/// The conditions of an add-on.
pub(crate) fn conditions(addon: &Value) -> String {
    let mut told = String::new();
    // Those three sum the others up, and have tests of their own.
    let sums_up = ["Succeeded", "Reconciling", "Stalled"];
    let own = list(&addon["status"]["conditions"]);
    for condition in own.iter().filter(|one| !sums_up.contains(&text(&one["type"]))) {
        let [kind, status, reason, message] =
            ["type", "status", "reason", "message"].map(|part| text(&condition[part]));
        writeln!(told, "{kind}  {status} {reason}  {message}").unwrap();
    }
    told
}

/// The configs of an instance with their hashes, its versions, and its conditions.
pub(crate) fn instance(instance: &Value) -> String {
    let status = &instance["status"];
    let mut told = String::new();
    for reference in
        list(&status["configReferences"]).iter().filter(|one| one["resource"] != "addontemplates")
    {
        let pin = |object: &str, hash: &str| match reference[object]["name"].as_str() {
            Some(name) => format!("{name}@{:.8}", text(&reference[hash])),
            None => "-".to_owned(),
        };
        let desired = pin("desiredConfig", "desiredConfigSpecHash");
        let applied = pin("lastAppliedConfig", "lastAppliedConfigSpecHash");
        writeln!(told, "{} desired {desired} applied {applied}", text(&reference["resource"])).unwrap();
    }
    if status["desiredVersion"].is_string() {
        let [desired, current, last] =
            ["desiredVersion", "currentVersion", "lastVersion"].map(|part| text(&status[part]));
        writeln!(told, "version desired {desired} current {current} last {last}").unwrap();
    }
    for condition in list(&status["conditions"]).iter().filter(|one| one["type"] != "RevisionHealthy") {
        let [kind, status, reason, message] =
            ["type", "status", "reason", "message"].map(|part| text(&condition[part]));
        writeln!(told, "{kind} {status} {reason}: {message}").unwrap();
    }
    told
}
