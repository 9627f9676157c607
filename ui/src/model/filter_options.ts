// The options that the filters offer, from /api/v1/series, and the options that a selector has chosen.
import type {SeriesAnswer, Weight} from '../api/types.ts';
import {formatCount, printable} from './format.ts';
import type {Matcher} from './selector.ts';

export interface FilterOption {
  section: string;
  label: string;
  detail: string;
  ns: number;
  matchers: Matcher[];
}

export type Dimension = 'process' | 'thread' | 'service' | 'container' | 'host';

// The labels that each filter reads and replaces.
export const dimensionLabels: Record<Dimension, readonly string[]> = {
  process: ['process_executable_name', 'process_command', 'process_pid'],
  thread: ['thread_name', 'thread_id'],
  service: [
    'service_name',
    'service_namespace',
    'k8s_namespace_name',
    'k8s_deployment_name',
    'k8s_statefulset_name',
    'k8s_daemonset_name',
    'k8s_cronjob_name',
    'k8s_job_name',
    'k8s_replicaset_name',
    'k8s_pod_name',
    'k8s_pod_uid',
  ],
  container: ['container_id'],
  host: ['host_name', 'host_id', 'node_id'],
};

const is = (label: string, value: string | number): Matcher => ({label, operator: '=', value: String(value)});

function grouped<T extends Weight>(entries: readonly T[], keyOf: (entry: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const entry of entries) {
    const group = groups.get(keyOf(entry));
    if (group) group.push(entry);
    else groups.set(keyOf(entry), [entry]);
  }
  return groups;
}

const sum = (entries: readonly Weight[]) => entries.reduce((ns, entry) => ns + entry.ns, 0);
const byWeight = (a: FilterOption, b: FilterOption) => b.ns - a.ns;
const plural = (count: number, one: string) =>
  `${formatCount(count)} ${one}${count === 1 ? '' : one.endsWith('s') ? 'es' : 's'}`;

type Process = SeriesAnswer['processes'][number];

// A kernel thread has no executable; its command names it.
function processMatcher(process: Process): Matcher {
  return process.executable !== ''
    ? is('process_executable_name', process.executable)
    : is('process_command', process.command);
}

function processOptions(series: SeriesAnswer): FilterOption[] {
  const groups = grouped(series.processes, (process) => JSON.stringify(processMatcher(process)));
  const executables = [...groups.values()].map((group): FilterOption => ({
    section: 'By executable',
    label: printable(group[0]!.executable || group[0]!.command),
    detail: plural(group.length, 'process'),
    ns: sum(group),
    matchers: [processMatcher(group[0]!)],
  }));
  const processes = series.processes.map((process): FilterOption => ({
    section: 'By process',
    label: printable(process.executable || process.command),
    detail: `pid ${process.pid}${
      process.executable && process.command !== process.executable ? ` · ${printable(process.command)}` : ''
    }`,
    ns: process.ns,
    matchers: [processMatcher(process), is('process_pid', process.pid)],
  }));
  return [...executables.sort(byWeight), ...processes.sort(byWeight)];
}

// Returns whether the process passes the equality matchers in `matchers`. Only the server evaluates the others.
function holds(process: Process, matchers: readonly Matcher[]): boolean {
  const labels: Record<string, string> = {
    process_executable_name: process.executable,
    process_command: process.command,
    process_pid: String(process.pid),
    container_id: process.container_id,
    host_name: process.host,
    node_id: process.node_id,
  };
  return matchers.every((m) => m.operator !== '=' || labels[m.label] === undefined || labels[m.label] === m.value);
}

function threadOptions(series: SeriesAnswer, matchers: readonly Matcher[]): FilterOption[] {
  const chosen = new Set(series.processes.filter((process) => holds(process, matchers)).map((process) => process.pid));
  const threads = series.threads.filter((thread) => chosen.has(thread.pid));
  const names = [...grouped(threads, (thread) => thread.name).values()].map((group): FilterOption => ({
    section: 'By name',
    label: printable(group[0]!.name),
    detail: plural(group.length, 'thread'),
    ns: sum(group),
    matchers: [is('thread_name', group[0]!.name)],
  }));
  const single = threads.map((thread): FilterOption => ({
    section: 'By thread',
    label: printable(thread.name),
    detail: `tid ${thread.tid} · pid ${thread.pid}`,
    ns: thread.ns,
    matchers: [is('thread_name', thread.name), is('thread_id', thread.tid)],
  }));
  return [...names.sort(byWeight), ...single.sort(byWeight)];
}

// From the widest to the narrowest: namespaces, services, workloads, pods. Without Kubernetes, only services exist.
function serviceOptions(series: SeriesAnswer): FilterOption[] {
  const options = <T extends Weight & {name: string}>(
    section: string,
    entries: readonly T[],
    detail: (entry: T) => string,
    matchers: (entry: T) => Matcher[],
  ) =>
    entries
      .filter((entry) => entry.name !== '')
      .map((entry): FilterOption => ({
        section,
        label: printable(entry.name),
        detail: printable(detail(entry)),
        ns: entry.ns,
        matchers: matchers(entry),
      }))
      .sort(byWeight);
  const inNamespace = (label: string, entry: {namespace: string}) =>
    entry.namespace ? [is(label, entry.namespace)] : [];
  return [
    ...options(
      'By namespace',
      series.namespaces,
      () => '',
      (entry) => [is('k8s_namespace_name', entry.name)],
    ),
    ...options(
      'By service',
      series.services,
      (entry) => entry.namespace,
      (entry) => [...inNamespace('service_namespace', entry), is('service_name', entry.name)],
    ),
    ...options(
      'By workload',
      series.workloads,
      (entry) => [entry.kind, entry.namespace].filter(Boolean).join(' · '),
      (entry) => [...inNamespace('k8s_namespace_name', entry), is(`k8s_${entry.kind}_name`, entry.name)],
    ),
    ...options(
      'By pod',
      series.pods,
      (entry) => entry.namespace,
      (entry) => [...inNamespace('k8s_namespace_name', entry), is('k8s_pod_name', entry.name)],
    ),
  ];
}

export function filterOptions(
  dimension: Dimension,
  series: SeriesAnswer,
  matchers: readonly Matcher[],
): FilterOption[] {
  switch (dimension) {
    case 'process':
      return processOptions(series);
    case 'thread':
      return threadOptions(series, matchers);
    case 'service':
      return serviceOptions(series);
    case 'container':
      return series.containers
        .filter((container) => container.id !== '')
        .map((container): FilterOption => ({
          section: '',
          label: printable(container.name || container.id.slice(0, 12)),
          detail: container.name
            ? printable(container.id.slice(0, 12))
            : plural(series.processes.filter((process) => process.container_id === container.id).length, 'process'),
          ns: container.ns,
          matchers: [is('container_id', container.id)],
        }))
        .sort(byWeight);
    case 'host': {
      const names = grouped(series.hosts, (host) => host.name);
      return series.hosts
        .map((host): FilterOption => ({
          section: '',
          label: printable(host.name || host.id),
          detail: host.name ? printable(host.id.slice(0, 12)) : '',
          ns: host.ns,
          // Two machines may share a name.
          matchers: [
            host.name && names.get(host.name)!.length === 1 ? is('host_name', host.name) : is('node_id', host.id),
          ],
        }))
        .sort(byWeight);
    }
  }
}

export function sameMatchers(a: readonly Matcher[], b: readonly Matcher[]): boolean {
  return (
    a.length === b.length &&
    a.every((matcher) =>
      b.some(
        (other) =>
          other.label === matcher.label && other.operator === matcher.operator && other.value === matcher.value,
      ),
    )
  );
}

const shortNames: Record<string, string> = {process_pid: 'pid', thread_id: 'tid'};

// Returns the text of a filter's button: the matchers on its own labels, or '' if there are none.
export function describeChoice(dimension: Dimension, matchers: readonly Matcher[]): string {
  return matchers
    .filter((m) => dimensionLabels[dimension].includes(m.label))
    .map((m) => {
      const value = printable(m.label === 'container_id' && m.operator === '=' ? m.value.slice(0, 12) : m.value);
      const short = shortNames[m.label];
      return m.operator === '='
        ? short
          ? `${short} ${value}`
          : value
        : `${short ?? ''} ${m.operator} ${value}`.trim();
    })
    .join(' · ');
}
