//! Which lists of which kind merge, and by what: the `patchStrategy` and `patchMergeKey` tags of
//! the Go types (k8s.io/api, apimachinery and apiextensions-apiserver v0.35).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchStrategy {
    /// Objects are merged, lists replaced: what a field without a tag does.
    Merge,
    /// `patchStrategy:"replace"`.
    Replace,
    /// `patchStrategy:"merge"` on a list of scalars.
    Set,
    /// `patchStrategy:"merge" patchMergeKey:"…"`.
    ByKey(&'static str),
}

impl PatchStrategy {
    /// The merge key of a list of objects.
    pub(super) fn key(self) -> Option<&'static str> {
        match self {
            Self::ByKey(key) => Some(key),
            Self::Merge | Self::Replace | Self::Set => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct FieldRule {
    pub(super) name: &'static str,
    pub(super) strategy: PatchStrategy,
    /// Of the object, or of the items of the list.
    pub(super) fields: &'static [FieldRule],
}

const METADATA: FieldRule = FieldRule {
    name: "metadata",
    strategy: PatchStrategy::Merge,
    fields: &[
        FieldRule { name: "ownerReferences", strategy: PatchStrategy::ByKey("uid"), fields: &[] },
        FieldRule { name: "finalizers", strategy: PatchStrategy::Set, fields: &[] },
    ],
};

const METADATA_ONLY: &[FieldRule] = &[METADATA];

const NAMESPACE: &[FieldRule] = &[
    METADATA,
    FieldRule {
        name: "status",
        strategy: PatchStrategy::Merge,
        fields: &[FieldRule { name: "conditions", strategy: PatchStrategy::ByKey("type"), fields: &[] }],
    },
];

/// `imagePullSecrets` has its tag only in pods; here it is replaced.
const SERVICE_ACCOUNT: &[FieldRule] =
    &[METADATA, FieldRule { name: "secrets", strategy: PatchStrategy::ByKey("name"), fields: &[] }];

/// The rules of a kind, if strategic merge patch is supported for it.
pub(super) fn of(kind: &str) -> Option<&'static [FieldRule]> {
    match kind {
        "Namespace" => Some(NAMESPACE),
        "ServiceAccount" => Some(SERVICE_ACCOUNT),
        // The only other tag of these, `x-kubernetes-validations` by `rule`, is inside
        // `spec.versions`, which is replaced as a whole.
        "ConfigMap"
        | "Secret"
        | "Event"
        | "Lease"
        | "ControllerRevision"
        | "CustomResourceDefinition"
        | "Role"
        | "ClusterRole"
        | "RoleBinding"
        | "ClusterRoleBinding" => Some(METADATA_ONLY),
        _ => None,
    }
}

/// The rule of a field and those inside it.
pub(super) fn field(fields: &[FieldRule], name: &str) -> (PatchStrategy, &'static [FieldRule]) {
    let found = fields.iter().find(|field| field.name == name);
    found.map_or((PatchStrategy::Merge, &[]), |field| (field.strategy, field.fields))
}
