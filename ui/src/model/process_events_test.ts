import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {Program} from '../api/types.ts';
import {
  cpuShare,
  endingsOf,
  endingText,
  isCrash,
  momentOf,
  placeOfProgram,
  programMatcherOf,
  programName,
  programsOf,
  sortPrograms,
  type ProgramSort,
} from './process_events.ts';

const end = {signal: 0, signal_name: '', exit_code: 0, core_dumped: false, oom_killed: false};

test('how a process ended', () => {
  assert.equal(endingText(end), 'ended');
  assert.equal(endingText({...end, exit_code: 2}), 'exit code 2');
  assert.equal(endingText({...end, signal: 9}), 'killed by signal 9');
  assert.equal(endingText({...end, signal: 11, signal_name: 'SIGSEGV', core_dumped: true}), 'killed by SIGSEGV, core dumped');
  assert.equal(endingText({...end, signal: 9, signal_name: 'SIGKILL', oom_killed: true}), 'killed by the OOM killer');
  assert.equal(endingText({...end, signal_name: 'S\u001bIG'}), 'killed by S\\u001bIG');
  assert.ok(isCrash({...end, signal_name: 'SIGABRT'}));
  assert.ok(!isCrash({...end, signal_name: 'SIGTERM'}));
});

test('answers without fields, or with fields of other types, break nothing', () => {
  assert.deepEqual(endingsOf({} as never), {events: [], next: ''});
  const {events, next} = endingsOf({events: [{pid: '7', at: -1, executable: null} as never], next: 'x'});
  assert.equal(next, 'x');
  assert.deepEqual([events[0]!.pid, events[0]!.at, events[0]!.executable, events[0]!.processes], [0, 0, '', 1]);
  const empty = programsOf({} as never, false);
  assert.deepEqual(empty.total, {processes: 0, failed: 0, cpu_ns: 0});
  assert.equal(empty.others, null);
  const more = programsOf({programs: [{executable: 'a', cpu_ns: NaN}], others: {processes: 3}}, true);
  assert.equal(more.programs[0]!.cpu_ns, 0);
  assert.deepEqual(more.others, {processes: 3, failed: 0, cpu_ns: 0});
});

const program = (executable: string, processes: number, failed: number, cpu_ns: number, peak_rss_bytes: number): Program => ({
  ...{name: executable, executable, executable_path: '', container: '', pod: '', namespace: '', run_ns: 0},
  ...{processes, failed, cpu_ns, peak_rss_bytes},
});

test('sorts programs by each column, and keeps the order of equal rows', () => {
  const programs = [program('b', 5, 0, 9, 1), program('a', 5, 2, 7, 3), program('c', 1, 0, 8, 2)];
  const order = (sort: ProgramSort, ascending: boolean) =>
    sortPrograms(programs, sort, ascending)
      .map(programName)
      .join('');
  assert.equal(order('processes', false), 'bac');
  assert.equal(order('processes', true), 'cba');
  assert.equal(order('failed', false), 'abc');
  assert.equal(order('cpu', false), 'bca');
  assert.equal(order('memory', false), 'acb');
  assert.equal(order('name', true), 'abc');
});

test('a program is named by its executable, else by its command, and filtered by the same', () => {
  assert.equal(programName({name: 'x', executable: 'bash'}), 'bash');
  assert.equal(programName({name: 'k\u202e', executable: ''}), 'k\\u202e');
  assert.equal(programName({name: '', executable: ''}), 'name not known');
  assert.deepEqual(programMatcherOf({name: 'x', executable: 'bash'})?.label, 'process_executable_name');
  assert.deepEqual(programMatcherOf({name: 'kworker', executable: ''}), {
    ...{label: 'process_command', operator: '='},
    value: 'kworker',
  });
  assert.equal(programMatcherOf({name: '', executable: ''}), null);
});

test('where a program ran', () => {
  const nowhere = {pod: '', namespace: '', container: ''};
  assert.equal(placeOfProgram({...nowhere, pod: 'web', container: 'c'}), 'pod web');
  assert.equal(placeOfProgram({...nowhere, pod: 'web', namespace: 'shop'}), 'pod shop/web');
  assert.equal(placeOfProgram({...nowhere, container: 'c', unit: 'docker.service'}), 'container c');
  assert.equal(placeOfProgram({...nowhere, unit: 'cron\n.service'}), 'unit cron\\u000a.service');
  assert.equal(placeOfProgram(nowhere), '');
});

test('the share of the CPU time is that of the answer, else that of the total', () => {
  const total = {processes: 2, failed: 0, cpu_ns: 100};
  assert.equal(cpuShare({...total, cpu_ns: 25, share: 0.1}, total), 0.1);
  assert.equal(cpuShare({...total, cpu_ns: 25}, total), 0.25);
  assert.equal(cpuShare(total, {...total, cpu_ns: 0}), 0);
});

test('a time of another day has its date', () => {
  const now = new Date(2026, 10, 21, 12, 0, 0).getTime();
  assert.equal(momentOf(now - 60e3, now), '11:59:00');
  assert.equal(momentOf(now - 86400e3, now), '2026-11-20 12:00:00');
});
