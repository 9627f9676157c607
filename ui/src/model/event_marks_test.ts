import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {EventMark} from '../api/types.ts';
import {
  countMarks,
  eventMarksOf,
  groupMarks,
  groupNumber,
  groupWidth,
  markCountsText,
  markText,
  markWords,
} from './event_marks.ts';

const mark = (at: number, change: Partial<EventMark> = {}): EventMark => ({
  at,
  kind: 'crash',
  count: 1,
  node_id: 'n1',
  host: 'node-1',
  pid: 42,
  name: 'web',
  executable: 'web-server',
  container: 'app',
  pod: '',
  namespace: '',
  unit: '',
  signal_name: '',
  exit_code: 0,
  ...change,
});

test('an answer without fields, and unknown kinds, break nothing', () => {
  assert.deepEqual(eventMarksOf({marks: []}), {marks: [], truncated: false});
  assert.deepEqual(eventMarksOf({} as never), {marks: [], truncated: false});
  const {marks, truncated} = eventMarksOf({
    marks: [{at: 9, kind: 'oom'}, {at: 5, kind: 'crash', count: 0}, {at: 7, kind: 'new' as never}, {kind: 'crash'}],
    truncated: true,
  });
  assert.ok(truncated);
  assert.deepEqual(
    marks.map(({at, kind, count, pod}) => [at, kind, count, pod]),
    [
      [5, 'crash', 1, ''],
      [9, 'oom', 1, ''],
    ],
  );
});

test('counts say each kind once, worst first', () => {
  assert.equal(markCountsText(countMarks([])), '');
  assert.equal(markCountsText(countMarks([mark(0)])), '1 crash');
  const several = [mark(0, {kind: 'restart'}), mark(0, {count: 3}), mark(0, {kind: 'oom', count: 1200})];
  assert.equal(markCountsText(countMarks(several)), '3 crashes, 1,200 OOM kills, 1 restart');
});

test('words and text of a mark', () => {
  assert.equal(markWords(mark(0, {signal_name: 'SIGSEGV'})), 'crash (SIGSEGV)');
  assert.equal(markWords(mark(0, {kind: 'restart', count: 2, exit_code: 1})), '2 restarts after exit code 1');
  assert.equal(markWords(mark(0, {kind: 'oom', signal_name: 'SIGKILL'})), 'OOM kill');
  const at = new Date(2026, 10, 21, 8, 5, 9).getTime();
  const text = markText(mark(at, {pod: 'web-1', host: 'a\u0007b'}), at);
  assert.equal(text, '08:05:09 web-server: crash · pod web-1 · host a\\u0007b · pid 42');
  assert.match(markText(mark(at, {executable: '', name: '', host: '', node_id: '', container: '', pid: 0}), at + 864e5),
    /^2026-11-21 08:05:09 name not known: crash$/);
});

const same = (ms: number) => ms;

test('marks that would overlap share a group, which counts them', () => {
  const groups = groupMarks([mark(-1), mark(10), mark(12), mark(60, {kind: 'restart'}), mark(101)], same, 100, 8);
  assert.deepEqual(
    groups.map((group) => [group.left, markCountsText(group.counts), groupNumber(group)]),
    [
      [10, '2 crashes', '2'],
      [60, '1 restart', ''],
    ],
  );
});

test('one of each kind needs no number; more than 99 are not counted out', () => {
  const one = groupMarks([mark(5), mark(6, {kind: 'oom'}), mark(7, {kind: 'restart'})], same, 100, 8);
  assert.deepEqual(one.map(groupNumber), ['']);
  assert.deepEqual(groupMarks([mark(5, {count: 100})], same, 100, 8).map(groupNumber), ['99+']);
});

test('no two groups overlap, and none leaves the chart', () => {
  const kinds = ['crash', 'oom', 'restart'] as const;
  for (const step of [0.1, 1, 3, 7, 13, 40]) {
    const marks = Array.from({length: Math.floor(1000 / step)}, (_, i) =>
      mark(i * step, {kind: kinds[i % 3]!, count: 1 + (i % 60)}),
    );
    const groups = groupMarks(marks, same, 1000, 8);
    groups.forEach((group, i) => {
      assert.ok(group.left >= 0 && group.left + groupWidth(group) <= 1000 + 14, `step ${step}: ${group.left}`);
      const next = groups[i + 1];
      if (next) assert.ok(next.left >= group.left + groupWidth(group), `step ${step}: ${group.left}, ${next.left}`);
    });
    const drawn = groups.flatMap((group) => group.marks);
    assert.equal(drawn.length, marks.length);
    const counted = groups.map(({counts}) => counts.crash + counts.oom + counts.restart);
    assert.equal(
      counted.reduce((a, b) => a + b, 0),
      marks.reduce((sum, {count}) => sum + count, 0),
    );
  }
});
