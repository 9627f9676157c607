// The mock reducer's answers about process events.
import {from, hostile, to} from './fixtures.mjs';

const at = (share) => Math.round(from + share * (to - from));
export const longName = `worker-${'very-long-name-'.repeat(40)}`;

const source = {node_id: 'b6f7c1d2e3a4', host: 'node-1', container: '', pod: '', signal_name: '', exit_code: 0};
const mark = (share, kind, executable, more = {}) => ({
  ...source,
  ...{at: at(share), kind, pid: 4000 + Math.round(share * 1000), name: executable.slice(0, 15), executable, count: 1},
  ...more,
});

// Three marks alone; crashes and a restart so close to each other that they share a group; two marks with hostile
// names. One more has a kind that the page does not know.
export function marks(keep = () => true) {
  const web = {container: 'web', pod: 'web-6d5f9c8b7-abcde', namespace: 'shop'};
  const all = [
    mark(0.951, 'restart', hostile.command, {name: hostile.control}),
    mark(0.95, 'oom', hostile.image, {name: hostile.control, ...web, host: hostile.script}),
    mark(0.7, 'oom', 'python3.11', {...web, signal_name: 'SIGKILL'}),
    mark(0.4012, 'restart', 'nginx', {...web, signal_name: 'SIGSEGV'}),
    mark(0.4005, 'crash', 'nginx', {...web, signal_name: 'SIGSEGV', count: 2}),
    mark(0.4, 'crash', 'truth', {signal_name: 'SIGABRT'}),
    mark(0.2, 'restart', 'nginx', {exit_code: 3, pid: 4200}),
    mark(0.1, 'crash', 'truth', {signal_name: 'SIGFPE'}),
    mark(0.3, 'some_new_kind', 'truth'),
  ];
  return {marks: all.filter((entry) => keep(entry)), truncated: false};
}

// More marks than can be drawn side by side: one every tenth of a percent of the range.
export function manyMarks() {
  const kinds = ['crash', 'restart', 'oom'];
  const all = Array.from({length: 1000}, (_, i) => mark((1000 - i) / 1000, kinds[i % 3], 'truth', {count: 1 + (i % 2)}));
  return {marks: all, truncated: true};
}

const endedCpuMs = 500_000; // of all processes that ended, also of long-lived ones

const program = (executable, processes, failed, cpuMs, peakMib, more = {}) => ({
  ...{name: executable.slice(0, 15), executable, executable_path: `/usr/bin/${executable}`, container: '', pod: ''},
  ...{processes, failed, cpu_ns: cpuMs * 1e6, run_ns: cpuMs * 3e6, peak_rss_bytes: peakMib * 1048576},
  share: cpuMs / endedCpuMs,
  ...more,
});

const allPrograms = [
  program('git', 1200, 12, 9_000, 18),
  program('cc1plus', 340, 0, 264_000, 812, {container: 'build', pod: 'build-42', namespace: 'ci'}),
  program('python3.11', 96, 96, 4_100, 64, {container: 'cron', executable_path: '/usr/local/bin/python3.11'}),
  program(hostile.image, 41, 1, 12, 2, {name: hostile.control, executable_path: `/tmp/${hostile.control}/evil`}),
  program(longName, 7, 0, 3, 1),
  program('', 3, 0, 0, 0, {name: 'kworker/u8:3', executable_path: ''}),
];
const sum = (list, key) => list.reduce((total, entry) => total + entry[key], 0);

// There are more programs than the answer has.
export function programs(keep = () => true, limit = 100, sort = 'processes') {
  const key = sort === 'cpu' ? 'cpu_ns' : 'processes';
  const kept = allPrograms.filter((entry) => keep(entry)).sort((a, b) => b[key] - a[key]);
  const others = {processes: 500, failed: 2, cpu_ns: 1e9, share: 1000 / endedCpuMs};
  const total = Object.fromEntries(
    ['processes', 'failed', 'cpu_ns'].map((name) => [name, sum(kept, name) + (kept.length > 0 ? others[name] : 0)]),
  );
  const answer = {programs: kept.slice(0, limit), total, truncated: kept.length > 0};
  return kept.length > 0 ? {...answer, others} : answer;
}

const ending = (index, executable, more) => ({
  ...source,
  ...{at: at(0.99) - index * 4_000, kind: 'exit', pid: 9000 - index, parent_pid: 1, name: executable.slice(0, 15)},
  ...{executable, executable_path: `/usr/bin/${executable}`, container_id: '', uid: 0, signal: 0, core_dumped: false},
  ...{oom_killed: false, run_ns: 1.5e9, user_ns: 2e8, system_ns: 1e8, cpu_ns: 3e8, peak_rss_bytes: 33_554_432},
  ...{processes: 1, events: 1},
  ...more,
});

// Newest first. 120 endings: three pages of the page's list.
const allEndings = Array.from({length: 120}, (_, i) => {
  switch (i) {
    case 0:
      return ending(i, 'nginx', {signal: 11, signal_name: 'SIGSEGV', core_dumped: true, unit: 'nginx.service'});
    case 1:
      return ending(i, 'python3.11', {signal: 9, signal_name: 'SIGKILL', oom_killed: true, container: 'web'});
    case 2:
      return ending(i, 'git', {kind: 'sum', exit_code: 128, processes: 12, events: 36, pid: 0, run_ns: 12e6});
    case 3:
      return ending(i, hostile.image, {name: hostile.control, exit_code: 1, host: hostile.script, pod: hostile.quotes});
    case 4:
      return ending(i, longName, {signal: 15, signal_name: 'SIGTERM'});
    case 5:
      return {at: at(0.96), kind: 'exit'}; // of a reducer that sends no more
    default:
      return ending(i, i % 2 ? 'git' : 'truth', {exit_code: i});
  }
});

// A cursor is the position of the next event.
export function events(keep = () => true, limit = 100, cursor = '') {
  const kept = allEndings.filter((entry) => keep(entry));
  const begin = Number(cursor);
  const next = begin + limit < kept.length ? String(begin + limit) : '';
  return {events: kept.slice(begin, begin + limit), next, truncated: next !== ''};
}

export const noMarks = {marks: [], truncated: false};
export const noPrograms = {programs: [], total: {processes: 0, failed: 0, cpu_ns: 0}, truncated: false};
export const noEvents = {events: [], next: '', truncated: false};

export const counters = {captured: 91_200, stored: 91_180, lost: {}, in_flight: 20};
export const lossy = {
  captured: 91_200,
  stored: 79_500,
  lost: {event_overflow: 11_000, not_taken: 180, opted_out: 500},
  in_flight: 20,
};
