// The answers of /api/v1, as docs/api.md describes them.

export interface WhoamiAnswer {
  name: string; // '': the token has no name
  signed_in_by: string; // none, token, certificate, proxy
  rights: string[]; // read, send, upload, admin; a caller with admin has all
}

export interface Weight {
  ns: number;
  count: number;
}

export interface SampleType {
  name: string;
  unit: string;
  aggregation?: string; // "last" for a gauge
}

export interface TypesAnswer {
  types: SampleType[];
}

// Fields of answers with values. A reducer of an earlier release does not send them.
interface Measured {
  type?: string;
  unit?: string;
  aggregation?: string;
  covered_from?: number; // earlier samples have expired; missing: the answer has all
}

export interface FlameGraphAnswer extends Measured {
  from: number;
  to: number;
  total: Weight;
  truncated_nodes: number;
  names: string[];
  nodes: {
    parent: number[];
    name: number[];
    kind: number[];
    total_ns: number[];
    self_ns: number[];
    total_count: number[];
    self_count: number[];
    executable: number[];
    file?: number[]; // with lines=1, like `line` and `files`; −1: unknown
    line?: number[]; // 0: unknown
  };
  executables: string[];
  files?: string[];
  kinds?: {name: string; color: string; language?: string}[];
}

export interface TopAnswer extends Measured {
  total: Weight;
  functions: {
    name: string;
    executable: string;
    file?: string; // with lines=1, like `line`
    line?: number;
    kind: number;
    self_ns: number;
    self_count: number;
    total_ns: number;
    total_count: number;
  }[];
  kinds?: {name: string; color: string; language?: string}[];
}

export interface TimelineAnswer extends Measured {
  from: number;
  to: number;
  step_ms: number;
  cpu_ns: number[]; // values of any type, in its unit
  count: number[];
}

export interface RolloutVersion {
  hash: string;
  images: string;
  version: string;
}

export interface Rollout extends RolloutVersion {
  at: number;
  cluster: string;
  kind: string;
  namespace: string;
  name: string;
  environment: string; // only for a service, like `executable`
  executable: string;
  previous: RolloutVersion;
}

export interface RolloutsAnswer {
  rollouts: Rollout[];
  truncated: boolean;
}

export interface SeriesProcess extends Weight {
  pid: number;
  parent_pid: number;
  start_time_ns: number;
  command: string;
  executable: string;
  executable_path: string;
  container_id: string;
  host: string;
  node_id: string;
}

export interface SeriesThread extends Weight {
  pid: number;
  tid: number;
  name: string;
  host: string;
}

export interface SeriesAnswer extends Measured {
  processes: SeriesProcess[];
  threads: SeriesThread[];
  containers: ({id: string; name: string} & Weight)[];
  hosts: ({id: string; name: string} & Weight)[];
  pods: ({id: string; name: string; namespace: string} & Weight)[];
  namespaces: ({name: string} & Weight)[];
  workloads: ({kind: string; name: string; namespace: string} & Weight)[];
  services: ({name: string; namespace: string} & Weight)[];
  truncated: boolean;
}

// The fate of samples or of process events.
export interface Fates {
  captured: number;
  stored: number;
  lost: Record<string, number>;
  in_flight: number;
}

export interface Counters extends Fates {
  idle: number;
  process_events?: Fates; // a reducer of an earlier release does not send it
}

export interface StatusNode extends Counters {
  id: string;
  host: string;
  kernel: string;
  architecture: string;
  version: string;
  cpus: number;
  sample_rate_hz: number;
  connected: boolean;
  last_seen: number;
  wire_bytes: number;
  stack_health: Record<string, number>;
}

export interface StackHealthExecutable {
  name: string;
  build_id: string;
  samples: number;
  ns: number;
  endings: Record<string, number>;
  programs: string[];
}

export interface StackHealthAnswer extends Measured {
  samples: number;
  ns: number;
  endings: Record<string, number>;
  endings_ns: Record<string, number>;
  complete_share: number | null;
  executables: StackHealthExecutable[];
  truncated_executables: number;
}

export interface SymbolTable {
  source: string;
  rank: number;
  origin: string;
  functions: number;
  bytes: number;
  stored_at: number;
  contested: boolean;
  nodes?: string[]; // that have this table; undefined: a reducer of an earlier release
  disputed_by?: string[]; // nodes whose file with this build-id has another table
}

export interface SymbolExecutable {
  build_id: string;
  name: string;
  path: string;
  self_ns: number;
  self_count: number;
  total_ns: number;
  total_count: number;
  addresses: number;
  unnamed_addresses: number;
  symbols: SymbolTable | null;
}

export interface SymbolNotice {
  at: number;
  build_id: string;
  text: string;
  times: number;
}

export interface SymbolsAnswer extends Measured {
  total: Weight;
  executables: SymbolExecutable[];
  truncated: number;
  notices: SymbolNotice[];
}

export interface UploadAnswer {
  build_id: string;
  stored: boolean;
  symbols: SymbolTable;
  remarks: string[];
}

export interface LineAddress extends Weight {
  build_id: string;
  address: string;
}

export interface FunctionLine {
  file: string; // '': not known
  line: number; // 0: not known
  text: string | null;
  self_ns: number;
  self_count: number;
  total_ns: number;
  total_count: number;
  addresses: LineAddress[];
}

export interface SourceText {
  file: string;
  first_line: number;
  text: string[];
}

export interface LinesAnswer extends Measured {
  function: string;
  executable: string;
  lines: FunctionLine[];
  sources: SourceText[];
  sources_coming: string[]; // files whose text is being fetched
}

// What the reducer refused, cut or delayed because of a node.
export interface Refusal {
  node: string;
  reason: string;
  amount: number;
}

// Damaged data of the store.
export interface Damage {
  shard: number;
  kind: string;
  count: number;
  reason: string; // of the first one
}

export interface StatusAnswer {
  version: string;
  uptime_s: number;
  total: Counters;
  stack_health: Record<string, number>;
  nodes: StatusNode[];
  refusals?: Refusal[]; // a reducer of an earlier release does not send it
  damage?: Damage[]; // a reducer of an earlier release does not send it
  reducer: {cpu_seconds: number; rss_bytes: number; disk_bytes: number; shards: number; symbol_tables: number};
}

// Answers about process events. model/process_events.ts replaces fields that are missing.
export interface EventSource {
  node_id: string;
  host: string;
  pid: number;
  name: string; // of the process (comm)
  executable: string;
  container: string;
  pod: string;
  namespace: string; // of the pod
  unit: string; // systemd unit, outside of containers
  signal_name: string;
  exit_code: number;
}

export interface EventMark extends EventSource {
  at: number;
  kind: 'crash' | 'oom' | 'restart';
  count: number;
}

export interface EventMarksAnswer {
  marks: Partial<EventMark>[];
  truncated?: boolean;
}

export interface ProcessEvent extends EventSource {
  at: number;
  kind: string;
  parent_pid: number;
  executable_path: string;
  signal: number;
  core_dumped: boolean;
  oom_killed: boolean;
  run_ns: number;
  cpu_ns: number;
  peak_rss_bytes: number;
  processes: number; // of a sum; else 1
}

export interface ProcessEventsAnswer {
  events: Partial<ProcessEvent>[];
  next?: string; // cursor of the next page, '': this is the last page
  truncated?: boolean;
}

export interface ProgramSum {
  processes: number;
  failed: number;
  cpu_ns: number;
  share?: number; // of the CPU time of all processes that ended, 0 to 1
}

export interface Program extends ProgramSum {
  name: string;
  executable: string;
  executable_path: string;
  container: string;
  pod: string;
  namespace: string;
  run_ns: number;
  peak_rss_bytes: number;
}

export interface ProgramsAnswer {
  programs: Partial<Program>[];
  total?: Partial<ProgramSum>;
  others?: Partial<ProgramSum>; // the programs that are not listed
  truncated?: boolean;
}
