import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {SeriesProcess, SymbolExecutable} from '../api/types.ts';
import {
  nodesOf,
  originOf,
  programMatcher,
  shortBuildId,
  sourceOf,
  summaryOf,
  symbolSources,
  unnamedShare,
} from './symbol_words.ts';

const executable = (more: Partial<SymbolExecutable>): SymbolExecutable => ({
  build_id: '',
  name: '',
  path: '',
  self_ns: 0,
  self_count: 0,
  total_ns: 0,
  total_count: 0,
  addresses: 0,
  unnamed_addresses: 0,
  symbols: null,
  ...more,
});

test('every source and origin that the reducer reports has its own words', () => {
  // docs/api.md
  assert.deepEqual(Object.keys(symbolSources).sort(), ['dwarf', 'dynsym', 'functions', 'kallsyms', 'pclntab', 'symtab']);
  assert.equal(new Set(Object.values(symbolSources).map((source) => source.words)).size, 6);
  for (const {words, meaning} of Object.values(symbolSources)) assert.ok(words && meaning);
  assert.deepEqual(['node', 'nodes', 'upload', 'directory', 'debuginfod'].map(originOf), [
    'one node',
    'two nodes',
    'an upload',
    'a directory',
    'debuginfod',
  ]);
  assert.equal(sourceOf('perf_map').words, 'perf map');
  assert.equal(originOf('object_store'), 'object store');
});

test('names the nodes that have a table, and those that have another one', () => {
  assert.equal(nodesOf({nodes: ['a', 'b'], disputed_by: ['c']}), 'Sent by a, b. Another table: c.');
  assert.equal(nodesOf({nodes: [], disputed_by: []}), '');
  assert.equal(nodesOf({}), '', 'a reducer of an earlier release');
});

test('cuts the digits of a build-id, not its prefix', () => {
  assert.equal(shortBuildId('9f3c0123456789abcdef'), '9f3c01234567…');
  assert.equal(shortBuildId('go:9f3c0123456789abcdef'), 'go:9f3c01234567…');
  assert.equal(shortBuildId('9f3c01234567'), '9f3c01234567');
  assert.equal(shortBuildId('htl:9f3c'), 'htl:9f3c');
  assert.equal(shortBuildId(''), '');
});

test('the share of addresses without a name', () => {
  assert.deepEqual(unnamedShare(0, 10), {level: 'good', text: '0%'});
  assert.deepEqual(unnamedShare(42, 1000), {level: 'good', text: '4.2%'});
  assert.deepEqual(unnamedShare(1, 5), {level: 'fair', text: '20.0%'});
  assert.deepEqual(unnamedShare(10, 10), {level: 'poor', text: '100%'});
  assert.equal(unnamedShare(0, 0), null);
});

test('the line counts sampled executables, and says if there are more', () => {
  const nginx = executable({total_count: 9, addresses: 30, unnamed_addresses: 1});
  const libc = executable({total_count: 3, addresses: 10, unnamed_addresses: 1});
  const other = executable({build_id: 'ab'});
  const answer = {total: {ns: 1, count: 9}, executables: [nginx, libc, other], truncated: 7, notices: []};
  assert.deepEqual(summaryOf(answer), {count: '2', unnamed: {level: 'good', text: '5.0%'}});
  assert.equal(summaryOf({...answer, executables: [nginx, libc]}).count, 'more than 2');
  assert.equal(summaryOf({...answer, executables: [nginx, libc], truncated: 0}).count, '2');
  assert.deepEqual(summaryOf({...answer, executables: [other]}), {count: '0', unnamed: null});
});

test('a program filters by its processes; a library has no filter', () => {
  const processes = [{executable: 'nginx'}, {executable: ''}] as SeriesProcess[];
  assert.deepEqual(programMatcher(executable({name: 'nginx'}), processes), {
    label: 'process_executable_name',
    operator: '=',
    value: 'nginx',
  });
  assert.equal(programMatcher(executable({name: 'libc.so.6'}), processes), null);
  assert.equal(programMatcher(executable({}), processes), null);
});
