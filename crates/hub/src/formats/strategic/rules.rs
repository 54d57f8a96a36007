//! Which lists of which kind merge, and by what: the `patchStrategy` and `patchMergeKey` tags of
//! the Go types (k8s.io/api, apimachinery and apiextensions-apiserver v0.35).

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Objects are merged, lists replaced: what a field without a tag does.
    Merge,
    /// `patchStrategy:"replace"`.
    Replace,
    /// `patchStrategy:"merge"` on a list of scalars.
    Set,
    /// `patchStrategy:"merge" patchMergeKey:"…"`.
    ByKey(&'static str),
}

impl Strategy {
    /// The merge key of a list of objects.
    pub(super) fn key(self) -> Option<&'static str> {
        match self {
            Self::ByKey(key) => Some(key),
            Self::Merge | Self::Replace | Self::Set => None,
        }
    }
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) strategy: Strategy,
    /// Of the object, or of the items of the list.
    pub(super) fields: &'static [Field],
}

const METADATA: Field = Field {
    name: "metadata",
    strategy: Strategy::Merge,
    fields: &[
        Field { name: "ownerReferences", strategy: Strategy::ByKey("uid"), fields: &[] },
        Field { name: "finalizers", strategy: Strategy::Set, fields: &[] },
    ],
};

const METADATA_ONLY: &[Field] = &[METADATA];

const NAMESPACE: &[Field] = &[
    METADATA,
    Field {
        name: "status",
        strategy: Strategy::Merge,
        fields: &[Field { name: "conditions", strategy: Strategy::ByKey("type"), fields: &[] }],
    },
];

/// `imagePullSecrets` has its tag only in pods; here it is replaced.
const SERVICE_ACCOUNT: &[Field] =
    &[METADATA, Field { name: "secrets", strategy: Strategy::ByKey("name"), fields: &[] }];

/// The rules of a kind, if strategic merge patch is supported for it.
pub(super) fn of(kind: &str) -> Option<&'static [Field]> {
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
pub(super) fn field(fields: &[Field], name: &str) -> (Strategy, &'static [Field]) {
    let found = fields.iter().find(|field| field.name == name);
    found.map_or((Strategy::Merge, &[]), |field| (field.strategy, field.fields))
}
