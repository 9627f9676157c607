// Process events: how processes ended, and sums by program. The answers are checked field by field, so that an answer
// of another release cannot break the page.
import type {
  EventSource,
  ProcessEvent,
  ProcessEventsAnswer,
  Program,
  ProgramsAnswer,
  ProgramSum,
} from '../api/types.ts';
import {formatClock, formatCount, formatDate, printable} from './format.ts';
import type {Matcher} from './selector.ts';

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
export const amountOf = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
export const listOf = <T>(value: T[] | undefined): T[] => (Array.isArray(value) ? value : []);

export function sourceOf(source: Partial<EventSource>): EventSource {
  return {
    node_id: textOf(source.node_id),
    host: textOf(source.host),
    pid: amountOf(source.pid),
    name: textOf(source.name),
    executable: textOf(source.executable),
    container: textOf(source.container),
    pod: textOf(source.pod),
    namespace: textOf(source.namespace),
    unit: textOf(source.unit),
    signal_name: textOf(source.signal_name),
    exit_code: amountOf(source.exit_code),
  };
}

export interface Endings {
  events: ProcessEvent[];
  next: string;
}

export function endingsOf(answer: ProcessEventsAnswer): Endings {
  const events = listOf(answer.events).map(
    (event): ProcessEvent => ({
      ...sourceOf(event),
      at: amountOf(event.at),
      kind: textOf(event.kind),
      parent_pid: amountOf(event.parent_pid),
      executable_path: textOf(event.executable_path),
      signal: amountOf(event.signal),
      core_dumped: event.core_dumped === true,
      oom_killed: event.oom_killed === true,
      run_ns: amountOf(event.run_ns),
      cpu_ns: amountOf(event.cpu_ns),
      peak_rss_bytes: amountOf(event.peak_rss_bytes),
      processes: Math.max(1, amountOf(event.processes)),
    }),
  );
  return {events, next: textOf(answer.next)};
}

export interface Programs {
  programs: Program[];
  total: ProgramSum;
  others: ProgramSum | null;
  truncated: boolean;
  isList: boolean; // false: only the sums were requested
}

function sumOf(sum: Partial<ProgramSum> | undefined): ProgramSum {
  const counts = {processes: amountOf(sum?.processes), failed: amountOf(sum?.failed), cpu_ns: amountOf(sum?.cpu_ns)};
  return sum?.share === undefined ? counts : {...counts, share: Math.min(1, amountOf(sum.share))};
}

// Returns the share of the CPU time, 0 to 1. Without a share in the answer: the share of the listed processes.
export function cpuShare(sum: ProgramSum, total: ProgramSum): number {
  return sum.share ?? (total.cpu_ns > 0 ? Math.min(1, sum.cpu_ns / total.cpu_ns) : 0);
}

export function programsOf(answer: ProgramsAnswer, isList: boolean): Programs {
  const programs = listOf(answer.programs).map(
    (program): Program => ({
      ...sumOf(program),
      name: textOf(program.name),
      executable: textOf(program.executable),
      executable_path: textOf(program.executable_path),
      container: textOf(program.container),
      pod: textOf(program.pod),
      namespace: textOf(program.namespace),
      run_ns: amountOf(program.run_ns),
      peak_rss_bytes: amountOf(program.peak_rss_bytes),
    }),
  );
  const others = sumOf(answer.others);
  return {
    programs,
    total: sumOf(answer.total),
    others: others.processes > 0 ? others : null,
    truncated: answer.truncated === true,
    isList,
  };
}

export type ProgramSort = 'name' | 'processes' | 'failed' | 'cpu' | 'memory';
export const programSorts: readonly ProgramSort[] = ['name', 'processes', 'failed', 'cpu', 'memory'];

const byColumn: Record<ProgramSort, (a: Program, b: Program) => number> = {
  name: (a, b) => programName(a).localeCompare(programName(b), 'en'),
  processes: (a, b) => a.processes - b.processes,
  failed: (a, b) => a.failed - b.failed,
  cpu: (a, b) => a.cpu_ns - b.cpu_ns,
  memory: (a, b) => a.peak_rss_bytes - b.peak_rss_bytes,
};

// Rows with equal values stay in the order of the answer.
export function sortPrograms(programs: readonly Program[], sort: ProgramSort, ascending: boolean): Program[] {
  const compare = byColumn[sort];
  return [...programs].sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
}

type Named = Pick<EventSource, 'name' | 'executable'>;

// If the executable is unknown, the name of the process is shown.
export function programName({name, executable}: Named): string {
  return printable(executable || name) || 'name not known';
}

export function programMatcherOf({name, executable}: Named): Matcher | null {
  if (executable !== '') return {label: 'process_executable_name', operator: '=', value: executable};
  return name === '' ? null : {label: 'process_command', operator: '=', value: name};
}

// A pod says more than the name of its container.
export function placeOfProgram(place: Pick<EventSource, 'pod' | 'namespace' | 'container'> & {unit?: string}): string {
  const {pod, namespace, container, unit = ''} = place;
  if (pod !== '') return `pod ${printable(namespace && `${namespace}/`)}${printable(pod)}`;
  if (container !== '') return `container ${printable(container)}`;
  return unit && `unit ${printable(unit)}`;
}

// Signals of a bug in the program, or of a limit that it exceeded (profile/signal_name.h).
const crashSignals = ['ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'SEGV', 'XCPU', 'XFSZ', 'SYS'].map((name) => `SIG${name}`);

export function isCrash({signal_name}: Pick<ProcessEvent, 'signal_name'>): boolean {
  return crashSignals.includes(signal_name);
}

type End = Pick<ProcessEvent, 'signal' | 'signal_name' | 'exit_code' | 'core_dumped' | 'oom_killed'>;

// How a process ended: "killed by SIGSEGV, core dumped", "exit code 1".
export function endingText(event: End): string {
  if (event.oom_killed) return 'killed by the OOM killer';
  if (event.signal > 0 || event.signal_name !== '') {
    const signal = printable(event.signal_name) || `signal ${event.signal}`;
    return `killed by ${signal}${event.core_dumped ? ', core dumped' : ''}`;
  }
  return event.exit_code > 0 ? `exit code ${event.exit_code}` : 'ended';
}

export function processCount(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'process' : 'processes'}`;
}

// The time alone if it is of today, else with its date.
export function momentOf(ms: number, now: number): string {
  const clock = formatClock(ms);
  return formatDate(ms) === formatDate(now) ? clock : `${formatDate(ms)} ${clock}`;
}
