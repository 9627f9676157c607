import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {FlameGraphAnswer} from '../api/types.ts';
import {foldFunctions, sortRows} from './fold.ts';
import {buildGraph, executableOf, findByKey, firstEndingAfter, keyOf, nodeAt, pathTo} from './graph.ts';
import {compileSearch, exactTerm, findMatches} from './search.ts';

// all ─ main ─┬ work ─ work ─ leaf     main 100, work 70 (30 of it in work again, 10 of that in leaf)
//             ├ leaf                   20
//             └ idle                   10
function answer(): FlameGraphAnswer {
  const total = [100, 100, 70, 20, 10, 30, 10];
  const self = [0, 0, 40, 20, 10, 20, 10];
  return {
    from: 0,
    to: 1000,
    type: 'cpu',
    unit: 'nanoseconds',
    total: {ns: 100, count: 10},
    truncated_nodes: 0,
    names: ['all', 'main', 'work', 'leaf', 'idle'],
    nodes: {
      parent: [-1, 0, 1, 1, 1, 2, 5],
      name: [0, 1, 2, 3, 4, 2, 3],
      kind: [0, 1, 1, 1, 2, 1, 1],
      total_ns: total,
      self_ns: self,
      total_count: total.map((ns) => ns / 10),
      self_count: self.map((ns) => ns / 10),
      executable: [-1, 0, 0, 1, -1, 0, 1],
    },
    executables: ['truth', 'libx.so'],
  };
}

test('layout puts children side by side from the left edge of their parent', () => {
  const graph = buildGraph(answer());
  assert.deepEqual([...graph.start], [0, 0, 0, 70, 90, 0, 0]);
  assert.deepEqual([...graph.depth], [0, 1, 2, 2, 2, 3, 4]);
  assert.deepEqual(
    graph.levels.map((level) => [...level]),
    [[0], [1], [2, 3, 4], [5], [6]],
  );
  assert.deepEqual([...graph.deepest], [4, 4, 4, 2, 2, 4, 4]);
});

test('layout sorts a level if its nodes arrive in another order', () => {
  const mixed = answer();
  // Two subtrees interleaved: the second's child arrives before the first's.
  mixed.nodes = {
    parent: [-1, 0, 0, 2, 1],
    name: [0, 1, 2, 3, 3],
    kind: [0, 1, 1, 1, 1],
    total_ns: [10, 6, 4, 4, 6],
    self_ns: [0, 0, 0, 4, 6],
    total_count: [10, 6, 4, 4, 6],
    self_count: [0, 0, 0, 4, 6],
    executable: [-1, 0, 0, 0, 0],
  };
  const graph = buildGraph(mixed);
  assert.deepEqual([...graph.levels[2]!], [4, 3]);
  assert.equal(nodeAt(graph, 2, 5.9), 4);
  assert.equal(nodeAt(graph, 2, 6), 3);
});

test('a point finds its frame, half-open on the right, or no frame', () => {
  const graph = buildGraph(answer());
  assert.equal(nodeAt(graph, 2, 0), 2);
  assert.equal(nodeAt(graph, 2, 69.999), 2);
  assert.equal(nodeAt(graph, 2, 70), 3);
  assert.equal(nodeAt(graph, 2, 100), -1);
  assert.equal(nodeAt(graph, 3, 30), -1);
  assert.equal(nodeAt(graph, 9, 0), -1);
  assert.equal(firstEndingAfter(graph, graph.levels[2]!, 95), 2);
});

test('frames without width are never hit', () => {
  const flat = answer();
  flat.nodes.total_ns = [100, 100, 100, 0, 0, 30, 10];
  assert.equal(nodeAt(buildGraph(flat), 2, 99), 2);
});

test('refuses inconsistent answers with the reason', () => {
  const cases: [string, (broken: FlameGraphAnswer) => void, RegExp][] = [
    ['no nodes', (a) => Object.values(a.nodes).forEach((column: number[]) => (column.length = 0)), /no root/],
    ['short column', (a) => a.nodes.self_ns.pop(), /column self_ns/],
    ['parent after child', (a) => (a.nodes.parent[2] = 5), /node 2 comes before its parent/],
    ['second root', (a) => (a.nodes.parent[3] = -1), /node 3 comes before its parent/],
    ['unlisted name', (a) => (a.nodes.name[1] = 99), /node 1 has a name/],
    ['negative name', (a) => (a.nodes.name[1] = -1), /node 1 has a name/],
    ['unlisted executable', (a) => (a.nodes.executable[1] = 2), /node 1 has an executable/],
    ['total that is not a number', (a) => (a.nodes.total_ns[1] = Number.NaN), /node 1 has no valid total/],
  ];
  for (const [problem, breakIt, message] of cases) {
    const broken = answer();
    breakIt(broken);
    assert.throws(() => buildGraph(broken), message, problem);
  }
});

test('keys find the same frame again and distinguish recursion levels', () => {
  const graph = buildGraph(answer());
  const keys = [...Array(graph.size).keys()].map((node) => keyOf(graph, node));
  assert.equal(keys[0], '');
  assert.equal(new Set(keys).size, graph.size);
  keys.slice(1).forEach((key) => assert.match(key, /^[0-9a-f]{16}$/));
  // The next answer orders and numbers everything differently.
  const next = answer();
  next.names = ['all', 'leaf', 'main', 'work'];
  next.nodes = {
    parent: [-1, 0, 1, 2, 1, 3],
    name: [0, 2, 3, 3, 1, 1],
    kind: [0, 1, 1, 1, 1, 1],
    total_ns: [9, 9, 5, 3, 4, 1],
    self_ns: [0, 0, 2, 2, 4, 1],
    total_count: [9, 9, 5, 3, 4, 1],
    self_count: [0, 0, 2, 2, 4, 1],
    executable: [-1, 0, 0, 0, 1, 1],
  };
  const after = buildGraph(next);
  assert.equal(findByKey(after, keys[5]!), 3);
  assert.equal(findByKey(after, keys[3]!), 4);
  assert.equal(findByKey(after, keys[4]!), 0);
  assert.deepEqual(pathTo(after, 5), [0, 1, 2, 3, 5]);
  assert.equal(executableOf(after, 5), 'libx.so');
  assert.equal(executableOf(after, 0), '');
});

test('makes names printable', () => {
  const dirty = answer();
  dirty.names[1] = 'a\u0007b\u202ec';
  assert.equal(buildGraph(dirty).names[1], 'a\\u0007b\\u202ec');
});

test('folding counts a function that calls itself once', () => {
  const rows = sortRows(foldFunctions(buildGraph(answer()), 0), 'total', false);
  assert.deepEqual(
    rows.map((r) => [r.name, r.executable, r.selfNs, r.totalNs, r.selfCount, r.totalCount]),
    [
      ['main', 'truth', 0, 100, 0, 10],
      ['work', 'truth', 60, 70, 6, 7],
      ['leaf', 'libx.so', 30, 30, 3, 3],
      ['idle', '', 10, 10, 1, 1],
    ],
  );
});

test('folding below a frame counts only that frame', () => {
  const rows = foldFunctions(buildGraph(answer()), 5);
  assert.deepEqual(
    rows.map((r) => [r.name, r.selfNs, r.totalNs]),
    [
      ['work', 20, 30],
      ['leaf', 10, 10],
    ],
  );
});

test('lines tell the frames of a function apart, and the rows of the table', () => {
  const lined = answer();
  lined.files = ['/src/app/work.py'];
  lined.nodes.file = [-1, -1, 0, -1, -1, 0, 0];
  lined.nodes.line = [0, 0, 12, 7, 0, 14, 0];
  const graph = buildGraph(lined);
  const shown = [...graph.name].map((name) => graph.names[name]);
  assert.deepEqual(shown, ['all', 'main', 'work (work.py:12)', 'leaf (?:7)', 'idle', 'work (work.py:14)', 'leaf']);
  assert.equal(graph.places[graph.name[2]!], '/src/app/work.py:12');
  assert.equal(graph.raw.names[graph.name[2]!], 'work'); // requests have the name without the line
  assert.deepEqual(
    sortRows(foldFunctions(graph, 0), 'total', false).map((r) => [r.name, r.place, r.totalNs]),
    [
      ['main', '', 100],
      ['work', '/src/app/work.py:12', 70],
      ['work', '/src/app/work.py:14', 30],
      ['leaf', '?:7', 20],
      ['idle', '', 10],
      ['leaf', '', 10],
    ],
  );
  lined.nodes.name[3] = 5;
  assert.throws(() => buildGraph(lined), /inconsistent/);
});

test('rows sort by each column both ways, ties by name', () => {
  const rows = foldFunctions(buildGraph(answer()), 0);
  const names = (column: 'self' | 'total' | 'name', ascending: boolean) =>
    sortRows(rows, column, ascending)
      .map((r) => r.name)
      .join(' ');
  assert.equal(names('self', false), 'work leaf idle main');
  assert.equal(names('self', true), 'main idle leaf work');
  assert.equal(names('name', true), 'idle leaf main work');
  assert.equal(names('name', false), 'work main leaf idle');
});

test('search counts nested matches once, and only within the zoomed frame', () => {
  const graph = buildGraph(answer());
  const {test: work} = compileSearch('WOR');
  assert.deepEqual({...findMatches(graph, work!, 0), nodes: null}, {nodes: null, count: 2, ns: 70, samples: 7});
  assert.deepEqual({...findMatches(graph, work!, 5), nodes: null}, {nodes: null, count: 1, ns: 30, samples: 3});
  const leaf = findMatches(graph, compileSearch('leaf').test!, 2);
  assert.equal(leaf.ns, 10);
  assert.deepEqual([...leaf.nodes], [0, 0, 0, 1, 0, 0, 1]);
  assert.equal(findMatches(graph, compileSearch('all').test!, 0).count, 0);
});

test('search terms: text, exact name, regular expression, and an invalid one', () => {
  assert.equal(compileSearch('  ').test, null);
  const exact = compileSearch(exactTerm('a"b')).test!;
  assert.equal(exact('a"b'), true);
  assert.equal(exact('xa"b'), false);
  const expression = compileSearch('/^ma.n$/').test!;
  assert.equal(expression('MAIN'), true);
  assert.equal(expression('domain'), false);
  const broken = compileSearch('/(/');
  assert.equal(broken.test, null);
  assert.match(broken.error!, /group|parenthes/i);
  assert.equal(compileSearch('f(').test!('f(int)'), true);
});
