//! The probes, by kind: which fields to ask for, and what they say.
//!
//! A row holds the paths of the fields and a function that judges their values. A kind whose
//! existence is all that can be asked of it has no row. Paths are in the dialect of OCM's agent, in
//! which an absent field and a counter of 0 are both left out of the report: absent means 0.

use aviary_api::work::FieldValue;
use jiff::Timestamp;

/// What all names of our feedback values begin with. Templates may not use such names, so that an
/// author cannot forge evidence.
pub(crate) const PREFIX: &str = "aviary-";
/// The name under which the digest of an object is reported.
pub(crate) const DIGEST: &str = "aviary-digest";
/// The name under which a workload's last change between available and unavailable is reported.
const SINCE: &str = "aviary-since";

const GENERATION: (&str, &str) = ("aviary-generation", ".metadata.generation");
const OBSERVED: (&str, &str) = ("aviary-observed", ".status.observedGeneration");
const REPLICAS: (&str, &str) = ("aviary-replicas", ".spec.replicas");
const TOTAL: (&str, &str) = ("aviary-total", ".status.replicas");
const UPDATED: (&str, &str) = ("aviary-updated", ".status.updatedReplicas");
const AVAILABLE: (&str, &str) = ("aviary-available", ".status.availableReplicas");
const AVAILABLE_SINCE: (&str, &str) =
    (SINCE, r#".status.conditions[?(@.type=="Available")].lastTransitionTime"#);
const READY_SINCE: (&str, &str) = (SINCE, r#".status.conditions[?(@.type=="Ready")].lastTransitionTime"#);
const PAUSED: (&str, &str) = ("aviary-paused", ".spec.paused");
const PROGRESS: (&str, &str) = ("aviary-progress", r#".status.conditions[?(@.type=="Progressing")].reason"#);
const REPLICA_FAILURE: (&str, &str) =
    ("aviary-replica-failure", r#".status.conditions[?(@.type=="ReplicaFailure")].status"#);
pub(super) const MAX_UNAVAILABLE: &str = "aviary-max-unavailable";
const UPDATE_TYPE: (&str, &str) = ("aviary-update-type", ".spec.updateStrategy.type");
const PARTITION: (&str, &str) = ("aviary-partition", ".spec.updateStrategy.rollingUpdate.partition");
const POD_MANAGEMENT: (&str, &str) = ("aviary-pod-management", ".spec.podManagementPolicy");
const FIRST_ORDINAL: (&str, &str) = ("aviary-first-ordinal", ".spec.ordinals.start");
const CURRENT: (&str, &str) = ("aviary-current", ".status.currentReplicas");
const CURRENT_REVISION: (&str, &str) = ("aviary-current-revision", ".status.currentRevision");
const UPDATE_REVISION: (&str, &str) = ("aviary-update-revision", ".status.updateRevision");
const DESIRED: (&str, &str) = ("aviary-desired", ".status.desiredNumberScheduled");
const COMPLETE: (&str, &str) = ("aviary-complete", r#".status.conditions[?(@.type=="Complete")].status"#);
const FAILED: (&str, &str) = ("aviary-failed", r#".status.conditions[?(@.type=="Failed")].status"#);
const SUSPENDED: (&str, &str) = ("aviary-suspended", ".spec.suspend");
const PHASE: (&str, &str) = ("aviary-phase", ".status.phase");
const READY: (&str, &str) = ("aviary-ready", r#".status.conditions[?(@.type=="Ready")].status"#);
const ESTABLISHED: (&str, &str) =
    ("aviary-established", r#".status.conditions[?(@.type=="Established")].status"#);
const NAMES_ACCEPTED: (&str, &str) =
    ("aviary-names-accepted", r#".status.conditions[?(@.type=="NamesAccepted")].status"#);
const SERVED: (&str, &str) = ("aviary-served", r#".status.conditions[?(@.type=="Available")].status"#);
const RECONCILING: (&str, &str) =
    ("aviary-reconciling", r#".status.conditions[?(@.type=="Reconciling")].status"#);
const STALLED: (&str, &str) = ("aviary-stalled", r#".status.conditions[?(@.type=="Stalled")].status"#);

/// How one kind is probed.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) group: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) resource: &'static str,
    /// The agent cannot update such an object in place: without an update strategy of the author's
    /// it is created once.
    pub(crate) create_only: bool,
    pub(crate) paths: &'static [(&'static str, &'static str)],
    judge: fn(&Values<'_>) -> Result<Judgement, WrongType>,
}

/// What a probe says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Healthy,
    Progressing { detail: String, tolerable: bool },
    Failed { detail: String, tolerable: bool },
}

/// Counters and generations are never larger: what is, cannot be computed with.
const LARGEST: i64 = 1 << 53;

/// A value that the field cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrongType(pub(crate) &'static str);

impl Probe {
    pub(crate) fn judge(&self, values: &Values<'_>) -> Result<Judgement, WrongType> {
        (self.judge)(values)
    }

    /// Its controller does not replace pods when their template changes.
    pub(crate) fn keeps_pods(&self) -> bool {
        matches!(self.resource, "replicasets" | "replicationcontrollers")
    }
}

/// The probe of a kind that Kubernetes itself has.
pub(crate) fn built_in(group: &str, kind: &str) -> Option<&'static Probe> {
    PROBES.iter().find(|probe| probe.group == group && probe.kind == kind)
}

/// Groups of built-in kinds without health fields: only their existence can be checked. They are
/// listed one by one, because custom resources may have a group of `k8s.io` as well, such as
/// `gateway.networking.k8s.io`.
pub(crate) fn has_only_existence(group: &str) -> bool {
    matches!(
        group,
        "" | "apps"
            | "batch"
            | "autoscaling"
            | "policy"
            | "extensions"
            | "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io"
            | "authentication.k8s.io"
            | "authorization.k8s.io"
            | "certificates.k8s.io"
            | "coordination.k8s.io"
            | "discovery.k8s.io"
            | "events.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "internal.apiserver.k8s.io"
            | "networking.k8s.io"
            | "node.k8s.io"
            | "rbac.authorization.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storage.k8s.io"
            | "storagemigration.k8s.io"
    )
}

static PROBES: &[Probe] = &[
    Probe {
        group: "apps",
        kind: "Deployment",
        resource: "deployments",
        create_only: false,
        paths: &[
            GENERATION,
            OBSERVED,
            REPLICAS,
            TOTAL,
            UPDATED,
            AVAILABLE,
            PAUSED,
            PROGRESS,
            REPLICA_FAILURE,
            AVAILABLE_SINCE,
            (MAX_UNAVAILABLE, ".spec.strategy.rollingUpdate.maxUnavailable"),
        ],
        judge: deployment,
    },
    Probe {
        group: "apps",
        kind: "ReplicaSet",
        resource: "replicasets",
        create_only: false,
        paths: &[GENERATION, OBSERVED, REPLICAS, TOTAL, AVAILABLE, REPLICA_FAILURE],
        judge: replica_set,
    },
    Probe {
        group: "",
        kind: "ReplicationController",
        resource: "replicationcontrollers",
        create_only: false,
        paths: &[GENERATION, OBSERVED, REPLICAS, TOTAL, AVAILABLE, REPLICA_FAILURE],
        judge: replica_set,
    },
    Probe {
        group: "apps",
        kind: "StatefulSet",
        resource: "statefulsets",
        create_only: false,
        paths: &[
            GENERATION,
            OBSERVED,
            REPLICAS,
            TOTAL,
            UPDATED,
            AVAILABLE,
            PARTITION,
            UPDATE_TYPE,
            POD_MANAGEMENT,
            FIRST_ORDINAL,
            CURRENT,
            CURRENT_REVISION,
            UPDATE_REVISION,
            (MAX_UNAVAILABLE, ".spec.updateStrategy.rollingUpdate.maxUnavailable"),
        ],
        judge: stateful_set,
    },
    Probe {
        group: "apps",
        kind: "DaemonSet",
        resource: "daemonsets",
        create_only: false,
        paths: &[
            GENERATION,
            OBSERVED,
            DESIRED,
            ("aviary-updated", ".status.updatedNumberScheduled"),
            ("aviary-available", ".status.numberAvailable"),
            UPDATE_TYPE,
            (MAX_UNAVAILABLE, ".spec.updateStrategy.rollingUpdate.maxUnavailable"),
        ],
        judge: daemon_set,
    },
    Probe {
        group: "batch",
        kind: "Job",
        resource: "jobs",
        create_only: true,
        paths: &[COMPLETE, FAILED, SUSPENDED],
        judge: job,
    },
    Probe {
        group: "",
        kind: "Pod",
        resource: "pods",
        create_only: true,
        paths: &[PHASE, READY, READY_SINCE],
        judge: pod,
    },
    Probe {
        group: "",
        kind: "PersistentVolumeClaim",
        resource: "persistentvolumeclaims",
        create_only: false,
        paths: &[PHASE],
        judge: claim,
    },
    Probe {
        group: "apiextensions.k8s.io",
        kind: "CustomResourceDefinition",
        resource: "customresourcedefinitions",
        create_only: false,
        paths: &[ESTABLISHED, NAMES_ACCEPTED],
        judge: definition,
    },
    Probe {
        group: "apiregistration.k8s.io",
        kind: "APIService",
        resource: "apiservices",
        create_only: false,
        paths: &[SERVED],
        judge: api_service,
    },
];

/// The probe of every other kind, by the conventions of kstatus.
pub(crate) static CUSTOM: Probe = Probe {
    group: "",
    kind: "",
    resource: "",
    create_only: false,
    paths: &[GENERATION, OBSERVED, READY, RECONCILING, STALLED],
    judge: custom,
};

/// How a percentage of replicas becomes a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rounding {
    Down,
    Up,
}

/// The values that an agent reports of one object.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    /// The name of the object.
    pub(crate) object: &'a str,
    pub(crate) all: Vec<(&'a str, &'a FieldValue)>,
}

impl Values<'_> {
    fn get(&self, name: &str) -> Option<&FieldValue> {
        self.all.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn number(&self, (name, _): (&'static str, &str)) -> Result<i64, WrongType> {
        match self.get(name) {
            None => Ok(0),
            Some(value) => value
                .integer
                .filter(|number| value.type_ == "Integer" && (0..=LARGEST).contains(number))
                .ok_or(WrongType(name)),
        }
    }

    /// A number that every API server fills in: without it the report is not whole.
    fn required(&self, field: (&'static str, &str)) -> Result<i64, WrongType> {
        self.get(field.0).ok_or(WrongType(field.0))?;
        self.number(field)
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<&str, WrongType> {
        match self.get(name) {
            None => Ok(""),
            Some(value) => value.string.as_deref().filter(|_| value.type_ == "String").ok_or(WrongType(name)),
        }
    }

    /// Since when the workload is available, or ready, where its kind says so.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.text(SINCE).ok()?.parse().ok()
    }

    fn is_true(&self, (name, _): (&'static str, &str)) -> Result<bool, WrongType> {
        Ok(self.text(name)? == "True")
    }

    fn is_false(&self, (name, _): (&'static str, &str)) -> Result<bool, WrongType> {
        Ok(self.text(name)? == "False")
    }

    fn flag(&self, (name, _): (&'static str, &str)) -> Result<bool, WrongType> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value.boolean.filter(|_| value.type_ == "Boolean").ok_or(WrongType(name)),
        }
    }

    /// How many of `of` may be unavailable: a number, or a percentage, which Kubernetes rounds down
    /// for Deployments and up for the others.
    pub(super) fn max_unavailable(
        &self,
        of: i64,
        default: i64,
        rounding: Rounding,
    ) -> Result<i64, WrongType> {
        let Some(value) = self.get(MAX_UNAVAILABLE) else { return Ok(default) };
        match value.type_.as_str() {
            "Integer" => value.integer.ok_or(WrongType(MAX_UNAVAILABLE)),
            "String" => {
                let percent = value.string.as_deref().and_then(|text| text.strip_suffix('%'));
                let percent: i64 =
                    percent.and_then(|text| text.parse().ok()).ok_or(WrongType(MAX_UNAVAILABLE))?;
                let hundredths = of.saturating_mul(percent);
                Ok(match rounding {
                    Rounding::Down => hundredths / 100,
                    Rounding::Up => hundredths.saturating_add(99) / 100,
                })
            }
            _ => Err(WrongType(MAX_UNAVAILABLE)),
        }
    }

    /// The generation that the controller of a custom resource has observed. Not every kind has the
    /// field, and some have it as a string: what is no number is as good as absent.
    fn observed_by_custom(&self) -> Result<i64, WrongType> {
        let Some(value) = self.get(OBSERVED.0) else { return Ok(LARGEST) };
        match value.type_.as_str() {
            "Integer" => self.number(OBSERVED),
            _ => Ok(value.string.as_deref().and_then(|text| text.parse().ok()).unwrap_or(LARGEST)),
        }
    }

    /// The object's controller has not seen its latest generation. Every object whose controller
    /// observes it has a generation: a report without one lacks more than counters of 0.
    fn is_stale(&self) -> Result<bool, WrongType> {
        match self.number(GENERATION)? {
            0 => Err(WrongType(GENERATION.0)),
            generation => Ok(self.number(OBSERVED)? < generation),
        }
    }
}

fn progressing(detail: impl Into<String>) -> Judgement {
    Judgement::Progressing { detail: detail.into(), tolerable: false }
}

fn failed(detail: impl Into<String>) -> Judgement {
    Judgement::Failed { detail: detail.into(), tolerable: false }
}

const ON_DELETE: &str = "with OnDelete it may still run the earlier version";
const STALE: &str = "its controller has not processed the latest change yet";

fn deployment(values: &Values<'_>) -> Result<Judgement, WrongType> {
    let (wanted, total) = (values.required(REPLICAS)?, values.number(TOTAL)?);
    let (updated, available) = (values.number(UPDATED)?, values.number(AVAILABLE)?);
    let stale = values.is_stale()?;
    if !stale && updated == wanted && available == wanted && total == wanted {
        return Ok(Judgement::Healthy);
    }
    let detail = if stale {
        STALE.to_owned()
    } else if updated < wanted {
        format!("{updated} of {wanted} replicas updated, {available} available")
    } else if available < wanted {
        format!("{available} of {wanted} updated replicas available")
    } else {
        format!("old replicas still running: {}", (total - updated).max(0))
    };
    let tolerable =
        available > 0 && wanted - available <= values.max_unavailable(wanted, 0, Rounding::Down)?;
    if !stale && values.text(PROGRESS.0)? == "ProgressDeadlineExceeded" {
        let detail = format!("{detail}; its progress deadline has passed");
        return Ok(Judgement::Failed { detail, tolerable });
    }
    if !stale && values.is_true(REPLICA_FAILURE)? {
        return Ok(Judgement::Failed { detail: format!("{detail}; its pods cannot be created"), tolerable });
    }
    if values.flag(PAUSED)? && updated < wanted {
        return Ok(progressing(format!("{detail}; it is paused")));
    }
    Ok(Judgement::Progressing { detail, tolerable })
}

fn replica_set(values: &Values<'_>) -> Result<Judgement, WrongType> {
    let (wanted, total) = (values.required(REPLICAS)?, values.number(TOTAL)?);
    let available = values.number(AVAILABLE)?;
    if values.is_stale()? {
        return Ok(progressing(STALE));
    }
    if available == wanted && total == wanted {
        return Ok(Judgement::Healthy);
    }
    let detail = format!("{available} of {wanted} replicas available");
    if values.is_true(REPLICA_FAILURE)? {
        return Ok(failed(format!("{detail}; its pods cannot be created")));
    }
    Ok(progressing(detail))
}

/// With `OnDelete` a person deletes the pods that are to be updated.
fn is_on_delete(values: &Values<'_>) -> Result<bool, WrongType> {
    Ok(values.text(UPDATE_TYPE.0)? == "OnDelete")
}

fn stateful_set(values: &Values<'_>) -> Result<Judgement, WrongType> {
    let (wanted, available) = (values.required(REPLICAS)?, values.number(AVAILABLE)?);
    let updated = values.number(UPDATED)?;
    let on_delete = is_on_delete(values)?;
    let to_update = match on_delete {
        true => 0,
        false => (wanted - values.number(PARTITION)?).max(0),
    };
    let stale = values.is_stale()?;
    if !stale && updated >= to_update && available == wanted {
        return Ok(Judgement::Healthy);
    }
    let detail = if stale {
        STALE.to_owned()
    } else if updated < to_update {
        let awaited = if available < wanted { awaited_pod(values, wanted)? } else { String::new() };
        format!("{updated} of {to_update} replicas updated, {available} available{awaited}")
    } else if on_delete {
        format!("{available} of {wanted} replicas available; {ON_DELETE}")
    } else {
        format!("{available} of {wanted} replicas available")
    };
    let tolerable = available > 0 && wanted - available <= values.max_unavailable(wanted, 1, Rounding::Up)?;
    Ok(Judgement::Progressing { detail, tolerable })
}

/// The pod that a StatefulSet waits for. It replaces pods one by one from the highest ordinal down,
/// and waits for one that is not ready: also for one of a version that is no longer wanted, which
/// it never replaces.
fn awaited_pod(values: &Values<'_>, wanted: i64) -> Result<String, WrongType> {
    if values.text(POD_MANAGEMENT.0)? == "Parallel" {
        return Ok(String::new());
    }
    let (total, updated) = (values.number(TOTAL)?, values.number(UPDATED)?);
    let (current, update) = (values.text(CURRENT_REVISION.0)?, values.text(UPDATE_REVISION.0)?);
    if update.is_empty() {
        return Ok(String::new());
    }
    let back = current == update;
    // Pods with lower ordinals may have either revision.
    let kept = if back { updated } else { values.number(CURRENT)? };
    let of_neither = total - kept - if back { 0 } else { updated };
    let pod = |ordinal: i64| -> Result<String, WrongType> {
        let ordinal = values.number(FIRST_ORDINAL)?.saturating_add(ordinal);
        Ok(format!("pod {}-{ordinal}", values.object))
    };
    Ok(if of_neither > 0 {
        format!(
            "; it does not replace {} of an earlier version: delete that pod if it is not ready",
            pod(kept)?
        )
    } else if !back && updated > 0 {
        format!("; waiting for {}", pod((wanted - updated).max(0))?)
    } else if back && total > 0 {
        format!("; waiting for {}", pod(total - 1)?)
    } else {
        String::new()
    })
}

fn daemon_set(values: &Values<'_>) -> Result<Judgement, WrongType> {
    let (wanted, updated) = (values.required(DESIRED)?, values.number(UPDATED)?);
    let available = values.number(AVAILABLE)?;
    let stale = values.is_stale()?;
    let on_delete = is_on_delete(values)?;
    if !stale && (updated == wanted || on_delete) && available == wanted {
        return Ok(Judgement::Healthy);
    }
    let detail = if stale {
        STALE.to_owned()
    } else if updated < wanted && !on_delete {
        format!("updated on {updated} of {wanted} nodes, available on {available}")
    } else if on_delete {
        format!("available on {available} of {wanted} nodes; {ON_DELETE}")
    } else {
        format!("available on {available} of {wanted} nodes")
    };
    let tolerable = available > 0 && wanted - available <= values.max_unavailable(wanted, 1, Rounding::Up)?;
    Ok(Judgement::Progressing { detail, tolerable })
}

fn job(values: &Values<'_>) -> Result<Judgement, WrongType> {
    if values.is_true(COMPLETE)? || values.flag(SUSPENDED)? {
        return Ok(Judgement::Healthy);
    }
    match values.is_true(FAILED)? {
        true => Ok(failed("it has failed")),
        false => Ok(progressing("it has not completed yet")),
    }
}

fn pod(values: &Values<'_>) -> Result<Judgement, WrongType> {
    match values.text(PHASE.0)? {
        "Succeeded" => Ok(Judgement::Healthy),
        "Failed" => Ok(failed("it has failed")),
        _ if values.is_true(READY)? => Ok(Judgement::Healthy),
        _ => Ok(progressing("it is not ready")),
    }
}

fn claim(values: &Values<'_>) -> Result<Judgement, WrongType> {
    match values.text(PHASE.0)? {
        // Binding may wait for the first pod that uses the claim.
        "Bound" | "Pending" => Ok(Judgement::Healthy),
        "Lost" => Ok(failed("its volume is lost")),
        _ => Ok(progressing("it is not bound yet")),
    }
}

fn definition(values: &Values<'_>) -> Result<Judgement, WrongType> {
    if values.is_false(NAMES_ACCEPTED)? {
        return Ok(failed("its names are in conflict with another kind"));
    }
    match values.is_true(ESTABLISHED)? && values.is_true(NAMES_ACCEPTED)? {
        true => Ok(Judgement::Healthy),
        false => Ok(progressing("it is not established yet")),
    }
}

fn api_service(values: &Values<'_>) -> Result<Judgement, WrongType> {
    match values.is_true(SERVED)? {
        true => Ok(Judgement::Healthy),
        false => Ok(progressing("it is not available")),
    }
}

fn custom(values: &Values<'_>) -> Result<Judgement, WrongType> {
    if values.observed_by_custom()? < values.number(GENERATION)? {
        return Ok(progressing(STALE));
    }
    let is_stalled = values.is_true(STALLED)?;
    let is_healthy = match values.text(READY.0)? {
        // What says itself that it is ready is healthy, as with a failure that Kubernetes leaves
        // behind.
        "True" => true,
        "" => !is_stalled,
        _ => false,
    };
    if is_healthy && !values.is_true(RECONCILING)? {
        return Ok(Judgement::Healthy);
    }
    match is_stalled {
        true => Ok(failed("it is stalled")),
        false => Ok(progressing("it is not ready")),
    }
}
