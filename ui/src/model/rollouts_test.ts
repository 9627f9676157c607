import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {Rollout} from '../api/types.ts';
import {marksOf, rolloutRange, rolloutText} from './rollouts.ts';

const rollout = (at: number, change: Partial<Rollout> = {}): Rollout => ({
  at,
  cluster: 'cluster/c',
  kind: 'deployment',
  namespace: 'shop',
  name: 'web',
  environment: '',
  executable: '',
  hash: 'b',
  images: 'web:2',
  version: '2.1',
  previous: {hash: 'a', images: 'web:1', version: '2.0'},
  ...change,
});

test('a mark shows the version, else the images, else the template', () => {
  assert.match(rolloutText(rollout(0)), /^\d\d:\d\d:\d\d deployment shop\/web: version 2\.0 → 2\.1$/);
  assert.match(rolloutText(rollout(0, {version: '2.0'})), /web: web:1 → web:2$/);
  assert.match(rolloutText(rollout(0, {version: '2.0', images: 'web:1'})), /web: template a → b$/);
  assert.match(rolloutText(rollout(0, {previous: {hash: '', images: '', version: ''}})), /version \? → 2\.1$/);
});

test('the mark of a service shows the environment, and the executable if there are no images', () => {
  const of = {kind: 'service', namespace: '', environment: 'prod', executable: 'nginx'};
  const service = (more: Partial<Rollout>) => rolloutText(rollout(0, {...of, ...more}));
  assert.match(service({}), / service web \(prod\): version 2\.0 → 2\.1$/);
  assert.match(service({version: '2.0', images: 'web:1'}), /: web:1 a → b$/);
  assert.match(service({version: '', images: '', previous: {hash: 'a', images: '', version: ''}}), /: nginx a → b$/);
});

test('the range is half an hour on both sides, but does not end after now', () => {
  const at = 10_000_000;
  assert.deepEqual(rolloutRange(rollout(at), at * 2), {from: at - 1_800_000, to: at + 1_800_000});
  assert.deepEqual(rolloutRange(rollout(at), at + 5), {from: at - 1_800_000, to: at + 5});
});

test('rollouts close to each other share a mark', () => {
  const marks = marksOf([rollout(50), rollout(10), rollout(12), rollout(-1), rollout(101)], (ms) => ms, 100, 6);
  assert.deepEqual(
    marks.map((mark) => [mark.left, mark.rollouts.length]),
    [
      [10, 2],
      [50, 1],
    ],
  );
});
