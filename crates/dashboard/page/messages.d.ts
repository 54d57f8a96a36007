// What the server sends, as its `messages.rs` writes it. For editors and `tsc` only: the page does not load this file. A test compares both.

/** What a cluster does. */
export type ClusterKind = 'settled' | 'inFlight' | 'failed' | 'waiting' | 'leaving';

export interface Counts {
  settled: number;
  inFlight: number;
  failed: number;
  waiting: number;
  leaving: number;
}

/** An add-on in the list. */
export interface Summary extends Counts {
  name: string;
  displayName: string;
  state: string;
  message: string;
  clusters: number;
  placements: number;
  version: string | null;
  oldestWaitSince: string | null;
  paused: boolean;
}

export interface Gate {
  /** All of them must pass. */
  canaries: string[];
  open: boolean;
  message: string;
}

export interface Placement {
  name: string;
  /** Its rank in the order in which a revision reaches the placements. */
  position: number;
  state: string;
  message: string;
  strategy: string;
  budget: number | null;
  slotsUsed: number;
  inFlight: number;
  governed: number;
  done: number;
  failed: number;
  waiting: number;
  leaving: number;
  gate: Gate | null;
  paused: boolean;
  wants: string | null;
  target: string | null;
  knownGood: string | null;
}

export interface Problem {
  severity: 'warning' | 'error';
  message: string;
}

export interface Brake {
  held: number;
  message: string;
  acknowledge: string;
}

export interface Reason {
  code: string;
  kind: ClusterKind;
  message: string;
  count: number;
  examples: string[];
}

export interface Revision {
  label: string;
  number: number | null;
  placement: string;
  version: string | null;
  at: string | null;
  current: boolean;
  clusters: number;
  changes: string[];
}

export interface Event {
  at: string;
  type: string;
  reason: string;
  message: string;
  about: string;
}

/** What is known of an add-on, neither by cluster nor by time. */
export interface Sections extends Counts {
  name: string;
  displayName: string;
  description: string | null;
  state: string;
  message: string;
  version: string | null;
  oldestWaitSince: string | null;
  paused: boolean;
  placements: Placement[];
  problems: Problem[];
  brake: Brake | null;
  reasons: Reason[];
  revisions: Revision[];
  events: Event[];
}

/** Seconds since 1970; settled, in flight, failed, waiting. */
export type Point = [number, number, number, number, number];

/** One entry per cluster in each column. `kind`, `message` and `revision` are places in the dictionary; -1 stands for none. */
export interface ClusterColumns {
  name: string[];
  placement: number[];
  kind: number[];
  message: number[];
  revision: number[];
  order: number[];
}

/** The event `addon`. */
export interface AddOnMessage extends Sections {
  now: string;
  timeline: Point[];
  dictionary: string[];
  clusters: ClusterColumns;
}

/** The event `addon-delta`: what is left out is as it was. */
export interface AddOnDelta extends Partial<Sections> {
  now: string;
  dictionaryAppend?: string[];
  dictionarySet?: [number, string][];
  /** Row, kind, message, revision. */
  rows?: [number, number, number, number][];
  append?: ClusterColumns;
  timeline?: Point[];
  timelineAppend?: Point[];
  revisionClusters?: number[];
}

/** The event `addons`. */
export interface ListMessage {
  now: string;
  addons: Summary[];
}

/** The event `addons-delta`. */
export interface ListDelta {
  now: string;
  changed: Summary[];
  gone: string[];
}

export interface HubOutage {
  since: string;
  cause: string;
}

/** The event `hub`, when the hub becomes unreachable or reachable. */
export interface HubMessage {
  unreachable: HubOutage | null;
}

export interface Condition {
  type: string;
  status: string;
  reason: string | null;
  message: string | null;
  lastTransitionTime: string | null;
}

export interface Manifest {
  kind: string | null;
  namespace: string | null;
  name: string | null;
  conditions: Condition[];
  feedback: [string, string][];
  content: string | null;
}

export interface Work {
  name: string;
  conditions: Condition[];
  manifests: Manifest[];
}

/** Answer to `/api/addons/ADDON/clusters/CLUSTER`. */
export interface ClusterDetail {
  cluster: string;
  placement: string | null;
  kind: ClusterKind;
  code: string;
  message: string;
  desired: string | null;
  /** What it is assigned. */
  revision: string | null;
  applied: string | null;
  labels: Record<string, string>;
  available: string | null;
  /** Set if the health of its objects is not asked for. */
  health: string | null;
  conditions: Condition[];
  works: Work[];
  next: string;
}

/** Answer to `/api/info`. */
export interface Info {
  version: string;
  server: string;
  writes: boolean;
  mode: string;
  user: string | null;
}
