// The flame graph of a Python program, as the reducer answers it: with or without the frames of the interpreter, with
// or without lines. 100 samples: 60 in native code that Order.total calls from line 21, 30 in Order.total itself at line
// 24, 10 in a thread of native code.
const ns = 52_631_578;

export const kinds = [
  {name: 'root', color: 'root', mark: ''},
  {name: 'native', color: 'file', mark: '', language: 'native'},
  {name: 'kernel', color: 'kernel', mark: '_[k]', language: 'kernel'},
  {name: 'inlined', color: 'inlined', mark: '_[i]'},
  {name: 'unknown', color: 'unknown', mark: '', language: 'unknown'},
  {name: 'go', color: 'file', mark: '', language: 'go'},
  {name: 'python', color: 'python', mark: '', language: 'python'},
  {name: 'interpreter', color: 'file', mark: '', language: 'native'},
  {name: 'jit', color: 'jit', mark: '', language: 'jit'},
];

// name, kind, index of the executable, line
const loop = ['_PyEval_EvalFrameDefault', 7, 0, 0];
const stacks = [
  [60, [['_start', 1, 0, 0], loop, ['<module>', 6, 2, 40], loop, ['Order.total', 6, 2, 21], ['dot', 1, 1, 7]]],
  [30, [['_start', 1, 0, 0], loop, ['<module>', 6, 2, 40], loop, ['Order.total', 6, 2, 24]]],
  [10, [['pool_run', 1, 1, 90]]],
];
const files = ['/src/blas.c', '/srv/shop/order.py'];

export function pythonFlamegraph(range, parameters) {
  const all = parameters.get('frames') === 'all';
  const lines = parameters.get('lines') === '1';
  const languages = (parameters.get('language') ?? '').split(',').filter((language) => language !== '');
  const names = [];
  const nodes = {parent: [], name: [], kind: [], total_ns: [], self_ns: [], total_count: [], self_count: []};
  Object.assign(nodes, {executable: [], file: [], line: []});
  const known = new Map();
  const visit = (parent, [name, kind, executable, line], count, self) => {
    const key = JSON.stringify([parent, name, kind, lines && line]);
    if (!known.has(key)) {
      known.set(key, nodes.parent.push(parent) - 1);
      if (!names.includes(name)) names.push(name);
      nodes.name.push(names.indexOf(name));
      nodes.kind.push(kind);
      nodes.executable.push(executable);
      nodes.file.push(line > 0 ? executable - 1 : -1);
      nodes.line.push(line);
      for (const column of ['total_ns', 'self_ns', 'total_count', 'self_count']) nodes[column].push(0);
    }
    const at = known.get(key);
    nodes.total_count[at] += count;
    nodes.self_count[at] += self;
    nodes.total_ns[at] += count * ns;
    nodes.self_ns[at] += self * ns;
    return at;
  };
  visit(-1, ['all', 0, -1, 0], 0, 0);
  for (const [count, frames] of stacks) {
    const has = languages.length === 0 || frames.some(([, kind]) => languages.includes(kinds[kind].language));
    if (!has) continue;
    const shown = frames.filter(([, kind]) => all || kinds[kind].name !== 'interpreter');
    let at = visit(-1, ['all', 0, -1, 0], count, 0);
    shown.forEach((frame, i) => (at = visit(at, frame, count, i === shown.length - 1 ? count : 0)));
  }
  const {file, line, ...columns} = nodes;
  return {
    ...range,
    type: 'cpu',
    unit: 'nanoseconds',
    truncated_nodes: 0,
    names,
    nodes: lines ? nodes : columns,
    ...(lines && {files}),
    executables: ['python3.11', 'libblas.so', 'order.py'],
    kinds,
    total: {ns: nodes.total_ns[0], count: nodes.total_count[0]},
  };
}
