import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {StackHealthExecutable} from '../api/types.ts';
import {completeShare, cutShort, endingOf, inOrder, matcherOf, stackEndings} from './stack_endings.ts';

test('every ending that the reducer reports has words, a meaning, and advice unless it is good', () => {
  // profile/model.h
  const reported = [
    'unknown',
    'complete',
    'kernel_only',
    'truncated_depth',
    'unreadable_memory',
    'no_mapping',
    'no_table',
    'bad_row',
    'frame_pointer_lost',
    'no_progress',
    'stale_mapping',
    'cut_by_quota',
    'runtime_lost',
  ];
  assert.deepEqual(Object.keys(stackEndings).sort(), [...reported].sort());
  for (const {words, level, meaning, advice} of Object.values(stackEndings)) {
    assert.ok(words && meaning);
    assert.equal(advice !== '', level !== 'good', words);
  }
  assert.equal(new Set(Object.values(stackEndings).map((ending) => ending.words)).size, reported.length);
  assert.deepEqual([endingOf('some_new_reason').words, endingOf('some_new_reason').level], ['some new reason', 'poor']);
});

test('a stack with an unknown ending does not count as cut short', () => {
  assert.equal(
    cutShort({complete: 900, kernel_only: 59, truncated_depth: 30, no_mapping: 11}),
    '4.1% of stacks cut short',
  );
  assert.equal(cutShort({complete: 1, kernel_only: 1, unknown: 5}), '');
  assert.equal(cutShort({some_new_reason: 1, complete: 1}), '50.0% of stacks cut short');
  assert.equal(cutShort({}), '');
});

test('the share of complete stacks leaves out stacks without a user part', () => {
  assert.deepEqual(completeShare({complete: 993, kernel_only: 5000, no_table: 7}), {level: 'good', text: '99.3%'});
  assert.deepEqual(completeShare({complete: 90, unknown: 10}), {level: 'fair', text: '90.0%'});
  assert.deepEqual(completeShare({bad_row: 3}), {level: 'poor', text: '0%'});
  assert.deepEqual(completeShare({complete: 1}), {level: 'good', text: '100%'});
  assert.equal(completeShare({kernel_only: 7}), null);
  assert.equal(completeShare({}), null);
});

test('orders endings good first, then most frequent first, without endings that do not occur', () => {
  assert.deepEqual(inOrder({bad_row: 5, no_mapping: 9, unknown: 3, complete: 1, no_table: 0, kernel_only: 2}), [
    ['kernel_only', 2],
    ['complete', 1],
    ['unknown', 3],
    ['no_mapping', 9],
    ['bad_row', 5],
  ]);
});

test('filters an executable by the programs that it is in', () => {
  const executable = (name: string, programs: string[]): StackHealthExecutable => ({
    name,
    build_id: '',
    samples: 1,
    ns: 1,
    endings: {},
    programs,
  });
  const label = 'process_executable_name';
  assert.deepEqual(matcherOf(executable('libx.so', ['nginx'])), {label, operator: '=', value: 'nginx'});
  assert.deepEqual(matcherOf(executable('node', ['npm', 'node'])), {label, operator: '=', value: 'node'});
  assert.deepEqual(matcherOf(executable('libx.so', ['python3.11', 'a+b', 'x\\y'])), {
    label,
    operator: '=~',
    value: 'python3\\.11|a\\+b|x\\\\y',
  });
  assert.equal(matcherOf(executable('[unmapped]', [])), null);
});
