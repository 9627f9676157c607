// The mock reducer's answers: the stacks of a small fleet, always the same, including names that an attacker would
// choose. The answers have the format of docs/api.md.

export const from = 1763710000000;
export const to = from + 900_000;
const sampleNs = 1e9 / 19;

// The types of the range's samples, by scenario of the mock reducer.
export const cpu = {name: 'cpu', unit: 'nanoseconds'};
export const space = {name: 'alloc_space', unit: 'bytes'};
export const sampleBytes = 4096;

export const hostile = {
  image: '<img src=x onerror="alert(1)">',
  script: '</script><script>alert(2)</script>',
  quotes: `it's "quoted" \\ back\\"slash`,
  control: 'bell\u0007escape\u001b[31mred\u202etxt',
  command: '"><svg onload=alert(3)>',
};
export const hostileType = {name: `${hostile.image}${'x'.repeat(300)}`, unit: `${hostile.control}${'y'.repeat(300)}`};
export const types = {one: [cpu], two: [space, cpu], other: [space], hostile: [hostileType, cpu]};

// Converts an answer about CPU time into an answer about another type: each sample counts `sampleBytes` of its unit.
export function ofType(answer, {name, unit}) {
  const isValue = (key) => (key === 'ns' || key.endsWith('_ns')) && key !== 'start_time_ns';
  const convert = (value, key) => {
    if (typeof value === 'number') return isValue(key) ? Math.round((value / sampleNs) * sampleBytes) : value;
    if (Array.isArray(value)) return value.map((item) => convert(item, key));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, convert(item, name)]));
  };
  return {...convert(answer, ''), type: name, unit};
}
// The text that the page shows for `hostile.control`.
export const controlShown = 'bell\\u0007escape\\u001b[31mred\\u202etxt';

const N = 1,
  K = 2,
  I = 3,
  U = 4;
const start = [
  ['_start', 'truth', N],
  ['__libc_start_main', 'libc.so.6', N],
  ['main', 'truth', N],
];
const work = [...start, ['run', 'truth', N], ['step', 'truth', N]];
const python = [
  ['_start', 'python3.11', N],
  ['Py_BytesMain', 'python3.11', N],
  ['Py_RunMain', 'python3.11', N],
  ['_PyEval_EvalFrameDefault', 'python3.11', N],
];
const syscall = [
  ['entry_SYSCALL_64_after_hwframe', '', K],
  ['do_syscall_64', '', K],
];
const server = [
  ['_start', 'nginx', N],
  ['main', 'nginx', N],
  ['ngx_master_process_cycle', 'nginx', N],
  ['ngx_worker_process_cycle', 'nginx', N],
  ['ngx_process_events_and_timers', 'nginx', N],
  ['ngx_epoll_process_events', 'nginx', N],
];
const http = [...server, ['ngx_http_wait_request_handler', 'nginx', N], ['ngx_http_process_request_line', 'nginx', N]];
const tls = [
  ['SSL_read', 'libssl.so.3', N],
  ['ssl3_read_bytes', 'libssl.so.3', N],
];

// [process, samples, frames from the root]
const stacks = [
  ['truth', 1800, [...work, ['spin_sixty', 'truth', N]]],
  ['truth', 900, [...work, ['spin_thirty', 'truth', N]]],
  ['truth', 280, [...work, ['spin_ten', 'truth', N]]],
  ['truth', 20, [...work, ['spin_ten', 'truth', N], ...syscall, ['__x64_sys_getpid', '', K]]],
  [
    'python3.11',
    420,
    [...python, ['_PyFunction_Vectorcall', 'python3.11', N], ['_PyEval_EvalFrameDefault', 'python3.11', N]],
  ],
  [
    'python3.11',
    210,
    [
      ...python,
      ['_PyFunction_Vectorcall', 'python3.11', N],
      ['_PyEval_EvalFrameDefault', 'python3.11', N],
      ['dict_lookup', 'python3.11', I],
    ],
  ],
  [
    'python3.11',
    160,
    [...python, ['PyNumber_Add', 'python3.11', N], ['long_add', 'python3.11', N], ['_PyLong_Add', 'python3.11', I]],
  ],
  ['python3.11', 90, [...python, ['gc_collect_main', 'python3.11', N], ['subtract_refs', 'python3.11', I]]],
  [
    'python3.11',
    60,
    [
      ...python,
      ['_io__Buffered_read', 'python3.11', N],
      ['read', 'libc.so.6', N],
      ...syscall,
      ['ksys_read', '', K],
      ['vfs_read', '', K],
      ['ext4_file_read_iter', '', K],
      ['copy_page_to_iter', '', K],
    ],
  ],
  [
    'nginx',
    240,
    [
      ...http,
      ['ngx_http_core_run_phases', 'nginx', N],
      ['ngx_http_static_handler', 'nginx', N],
      ['sendfile64', 'libc.so.6', N],
      ...syscall,
      ['do_sendfile', '', K],
      ['tcp_sendmsg_locked', '', K],
      ['tcp_write_xmit', '', K],
      ['__tcp_transmit_skb', '', K],
    ],
  ],
  [
    'nginx',
    150,
    [
      ...http,
      ['ngx_http_core_run_phases', 'nginx', N],
      ['ngx_http_gzip_body_filter', 'nginx', N],
      ['deflate', 'libz.so.1', N],
      ['longest_match', 'libz.so.1', I],
    ],
  ],
  [
    'nginx',
    130,
    [...http, ...tls, ['EVP_DecryptUpdate', 'libcrypto.so.3', N], ['aesni_gcm_decrypt', 'libcrypto.so.3', N]],
  ],
  ['nginx', 70, [...http, ...tls, ['libcrypto.so.3+0x1f84a0', 'libcrypto.so.3', U]]],
  [
    'nginx',
    60,
    [
      ...server,
      ['epoll_wait', 'libc.so.6', N],
      ...syscall,
      ['do_epoll_wait', '', K],
      ['schedule_hrtimeout_range', '', K],
    ],
  ],
  [
    'evil',
    40,
    [
      ['_start', 'evil', N],
      [hostile.image, 'evil', N],
      [hostile.script, hostile.command, N],
    ],
  ],
  [
    'evil',
    25,
    [
      ['_start', 'evil', N],
      [hostile.image, 'evil', N],
      [hostile.quotes, 'evil', N],
    ],
  ],
  [
    'evil',
    15,
    [
      ['_start', 'evil', N],
      [hostile.control, 'evil', N],
      ['[unknown]', '', U],
    ],
  ],
  [
    '',
    35,
    [
      ['ret_from_fork_asm', '', K],
      ['kthread', '', K],
      ['worker_thread', '', K],
      ['process_one_work', '', K],
    ],
  ],
];

const process = (pid, command, executable, container_id = '') => ({
  pid,
  parent_pid: 1,
  start_time_ns: 1,
  command,
  executable,
  executable_path: executable && `/usr/bin/${executable}`,
  container_id,
  host: 'node-1',
  node_id: 'b6f7c1d2e3a4',
  ns: 0,
  count: 0,
});
const processes = [
  process(4242, 'truth', 'truth'),
  process(977, 'python3', 'python3.11', '3f9a2c41d07be6a8855c7f09'),
  process(1203, 'nginx', 'nginx', '81b7d0e4a9c2f3365e0d91aa'),
  process(6660, hostile.command, 'evil'),
  process(35, 'kworker/0:1', ''),
];

class Graph {
  constructor() {
    this.names = ['all'];
    this.executables = [];
    this.root = {name: 0, kind: 0, executable: -1, count: 0, self: 0, children: new Map()};
  }
  index(list, text) {
    const at = list.indexOf(text);
    return at >= 0 ? at : list.push(text) - 1;
  }
  add(count, frames) {
    let node = this.root;
    node.count += count;
    for (const [name, executable, kind] of frames) {
      const key = `${kind} ${executable} ${name}`;
      if (!node.children.has(key)) {
        node.children.set(key, {
          name: this.index(this.names, name),
          kind,
          executable: executable ? this.index(this.executables, executable) : -1,
          count: 0,
          self: 0,
          children: new Map(),
        });
      }
      node = node.children.get(key);
      node.count += count;
    }
    node.self += count;
  }
  answer(range, truncated_nodes = 0) {
    const nodes = {
      parent: [],
      name: [],
      kind: [],
      total_ns: [],
      self_ns: [],
      total_count: [],
      self_count: [],
      executable: [],
    };
    const visit = (node, parent) => {
      const at = nodes.parent.push(parent) - 1;
      nodes.name.push(node.name);
      nodes.kind.push(node.kind);
      nodes.executable.push(node.executable);
      nodes.total_count.push(node.count);
      nodes.self_count.push(node.self);
      nodes.total_ns.push(Math.round(node.count * sampleNs));
      nodes.self_ns.push(Math.round(node.self * sampleNs));
      [...node.children.values()].sort((a, b) => b.count - a.count).forEach((child) => visit(child, at));
    };
    visit(this.root, -1);
    return {
      ...range,
      type: 'cpu',
      unit: 'nanoseconds',
      truncated_nodes,
      names: this.names,
      nodes,
      executables: this.executables,
      total: {ns: nodes.total_ns[0], count: nodes.total_count[0]},
    };
  }
}

export function flamegraph(range, keep = () => true, truncated = 0) {
  const graph = new Graph();
  for (const [owner, count, frames] of stacks) {
    if (keep(processes.find((p) => p.executable === owner))) graph.add(count, frames);
  }
  return graph.answer(range, truncated);
}

// Returns the same graph, with one sample in a thousand moved from the first function to the second.
export function shiftedFlamegraph(range, keep) {
  const graph = new Graph();
  for (const [owner, count, frames] of stacks) {
    const moved = {spin_sixty: -3, spin_thirty: 3}[frames.at(-1)[0]] ?? 0;
    if (keep(processes.find((p) => p.executable === owner))) graph.add(count + moved, frames);
  }
  return graph.answer(range);
}

// Names that have template arguments. templateFlamegraph() returns the same graph with these names.
export const templates = {
  spin_sixty: 'std::map<int, std::vector<char>>::emplace<int>(std::pair<int, char> const&)',
  step: '<work::Step<u8> as core::iter::Iterator>::next',
};

export function templateFlamegraph(range, keep) {
  const answer = flamegraph(range, keep);
  return {...answer, names: answer.names.map((name) => templates[name] ?? name)};
}

// Returns 50,001 nodes that are all wide enough to be drawn: 1,000 stacks of 50 different frames side by side.
export function largeFlamegraph(range) {
  const [stackCount, depth] = [1000, 50];
  const nodes = {
    parent: [-1],
    name: [0],
    kind: [0],
    total_ns: [stackCount * 1e9],
    self_ns: [0],
    total_count: [stackCount * 19],
    self_count: [0],
    executable: [-1],
  };
  for (let stack = 0; stack < stackCount; ++stack) {
    for (let level = 0; level < depth; ++level) {
      const leaf = level === depth - 1;
      const at = nodes.parent.push(level === 0 ? 0 : nodes.parent.length - 1) - 1;
      nodes.name.push(1 + ((stack * 7 + level * 13) % 4000));
      nodes.kind.push(1 + (at % 3));
      nodes.total_ns.push(1e9);
      nodes.self_ns.push(leaf ? 1e9 : 0);
      nodes.total_count.push(19);
      nodes.self_count.push(leaf ? 19 : 0);
      nodes.executable.push(at % 12);
    }
  }
  const names = Array.from({length: 4000}, (_, i) => `namespace_${i % 40}::function_${i}(int, char const*)`);
  return {
    ...range,
    type: 'cpu',
    unit: 'nanoseconds',
    truncated_nodes: 0,
    names: ['all', ...names],
    nodes,
    executables: Array.from({length: 12}, (_, i) => `lib${i}.so`),
    total: {ns: nodes.total_ns[0], count: nodes.total_count[0]},
  };
}

export function emptyFlamegraph(range) {
  return new Graph().answer(range);
}

export function top(range) {
  const rows = new Map();
  for (const [, count, frames] of stacks) {
    const seen = new Set();
    frames.forEach(([name, executable, kind], depth) => {
      const key = `${kind} ${executable} ${name}`;
      const row = rows.get(key) ?? {name, executable, kind, self_ns: 0, self_count: 0, total_ns: 0, total_count: 0};
      rows.set(key, row);
      if (!seen.has(key)) row.total_count += count;
      seen.add(key);
      if (depth === frames.length - 1) row.self_count += count;
      row.self_ns = Math.round(row.self_count * sampleNs);
      row.total_ns = Math.round(row.total_count * sampleNs);
    });
  }
  return {total: flamegraph(range).total, functions: [...rows.values()].sort((a, b) => b.self_ns - a.self_ns)};
}

export function timeline(range, buckets, share = 1) {
  const step_ms = Math.ceil((range.to - range.from) / buckets);
  const wave = (i) => 1.2 + 0.5 * Math.sin(i / 9) + 0.35 * Math.sin(i / 2.3) + (i % 37 === 0 ? 0.9 : 0);
  const cpu_ns = Array.from({length: buckets}, (_, i) => Math.round(share * wave(i) * step_ms * 1e6));
  return {...range, step_ms, cpu_ns, count: cpu_ns.map((ns) => Math.round(ns / sampleNs))};
}

// Returns four rollouts: one in the middle of the range; two at a quarter, so near to each other that they share a
// mark; one outside the range.
export function rollouts(range) {
  const at = (share) => Math.round(range.from + share * (range.to - range.from));
  const rollout = (share, name, version) => ({
    ...{at: at(share), cluster: 'cluster/1', kind: 'deployment', namespace: 'shop', name, environment: '', executable: ''},
    ...{hash: `h${version}`, images: `${name}:${version}`, version},
    previous: {hash: 'h1', images: `${name}:1.9`, version: '1.9'},
  });
  return {
    ...range,
    rollouts: [rollout(1.5, 'late', '9'), rollout(0.5, 'web', '2.0'), rollout(0.2501, 'cart', '3.0'), rollout(0.25, 'pay', '4.0')],
    truncated: false,
  };
}

export function series() {
  for (const entry of processes) {
    entry.count = stacks.filter(([owner]) => owner === entry.executable).reduce((sum, [, count]) => sum + count, 0);
    entry.ns = Math.round(entry.count * sampleNs);
  }
  const sorted = [...processes].sort((a, b) => b.ns - a.ns);
  const part = ({ns, count}, share) => ({ns: Math.round(ns * share), count: Math.round(count * share)});
  return {
    processes: sorted,
    threads: sorted.flatMap((p) => [
      {pid: p.pid, tid: p.pid, name: p.command, host: p.host, ...part(p, 0.75)},
      {pid: p.pid, tid: p.pid + 1, name: `${p.command.slice(0, 8)}-worker`, host: p.host, ...part(p, 0.25)},
    ]),
    containers: sorted.filter((p) => p.container_id).map((p) => ({id: p.container_id, name: '', ...part(p, 1)})),
    pods: [],
    namespaces: [],
    workloads: [],
    services: sorted.filter((p) => p.executable).map((p) => ({name: p.executable, namespace: '', ...part(p, 1)})),
    hosts: [
      {
        id: 'b6f7c1d2e3a4',
        name: 'node-1',
        ...part(
          sorted.reduce((a, b) => ({ns: a.ns + b.ns, count: a.count + b.count})),
          1,
        ),
      },
    ],
    truncated: false,
  };
}

// How the stacks of `stacks` ended: all are complete, except the stacks that nginx, evil and their library cut short.
const cutShort = [
  // [executable, build-id, process, ending, samples]
  ['libcrypto.so.3', '5c1d', 'nginx', 'no_table', 90],
  ['libcrypto.so.3', '5c1d', 'evil', 'frame_pointer_lost', 30],
  ['evil', 'e811', 'evil', 'bad_row', 20],
  ['[unmapped]', '', 'nginx', 'no_mapping', 9],
  [hostile.image, '0bad', 'evil', 'stale_mapping', 4],
];

export function stackHealth(keep = () => true) {
  const kept = (owner) => keep(processes.find((p) => p.executable === owner));
  const total = stacks.filter(([owner]) => kept(owner)).reduce((sum, [, count]) => sum + count, 0);
  const kernel = kept('') ? 35 : 0;
  const endings = {complete: total - kernel, kernel_only: kernel};
  const executables = new Map();
  for (const [name, build_id, owner, ending, samples] of cutShort) {
    if (!kept(owner)) continue;
    endings.complete -= samples;
    endings[ending] = (endings[ending] ?? 0) + samples;
    const entry = executables.get(name) ?? {name, build_id, samples: 0, ns: 0, endings: {}, programs: []};
    executables.set(name, entry);
    entry.samples += samples;
    entry.ns = Math.round(entry.samples * sampleNs);
    entry.endings[ending] = samples;
    entry.programs.push(owner);
  }
  for (const [ending, count] of Object.entries(endings)) if (count === 0) delete endings[ending];
  const in_ns = (counts) => Object.fromEntries(Object.entries(counts).map(([k, n]) => [k, Math.round(n * sampleNs)]));
  return {
    samples: total,
    ns: Math.round(total * sampleNs),
    endings,
    endings_ns: in_ns(endings),
    complete_share: total === kernel ? null : (endings.complete ?? 0) / (total - kernel),
    executables: [...executables.values()].sort((a, b) => b.samples - a.samples),
    truncated_executables: 0,
  };
}

// Returns the same answer, with three complete stacks reported as cut short.
export function shiftedStackHealth(keep) {
  const answer = stackHealth(keep);
  answer.endings.complete -= 3;
  answer.endings.no_progress = 3;
  return answer;
}

export function emptyStackHealth() {
  return stackHealth(() => false);
}

const table = (source, rank, origin, functions, more = {}) => ({
  source,
  rank,
  origin,
  functions,
  bytes: functions * 40,
  stored_at: from,
  contested: false,
  ...more,
});
const id = (begin) => begin.repeat(40).slice(0, 40);

// [name, build-id, path, addresses, unnamed, table]; `[kernel]` for all code of the kernel.
const files = [
  ['truth', id('9f3c'), '/usr/local/bin/truth', 40, 0, table('dwarf', 6, 'upload', 5120)],
  ['libc.so.6', id('10bc'), '/usr/lib/x86_64-linux-gnu/libc.so.6', 60, 3, table('dwarf', 6, 'debuginfod', 9034)],
  ['python3.11', id('9711'), '/usr/bin/python3.11', 200, 20, table('symtab', 3, 'node', 12001)],
  ['[kernel]', id('4e71'), '[kernel]', 300, 0, table('kallsyms', 4, 'node', 121991)],
  ['nginx', id('71c5'), '/usr/sbin/nginx', 100, 0, table('dwarf', 6, 'directory', 2210, {contested: true})],
  ['libcrypto.so.3', id('5c1d'), '/usr/lib/x86_64-linux-gnu/libcrypto.so.3', 50, 32, table('dynsym', 2, 'node', 5801)],
  ['libssl.so.3', id('551a'), '/usr/lib/x86_64-linux-gnu/libssl.so.3', 10, 10, table('functions', 1, 'node', 903)],
  ['libz.so.1', `go:${id('12ab')}`, '/usr/lib/libz.so.1', 4, 0, table('pclntab', 5, 'node', 77)],
  ['evil', id('e811'), `/tmp/${hostile.control}/evil`, 30, 30, null],
  [hostile.command, '', `/tmp/${'long'.repeat(300)}/${hostile.image}`, 3, 3, null],
];

// Returns the number of samples of a function and the build-id of its executable.
export function sampledIn(name, executable, keep = () => true) {
  const is = (frame) => frame[0] === name && (executable === '' || frame[1] === executable);
  const sampled = {self: 0, total: 0, build_id: ''};
  for (const [owner, count, frames] of stacks) {
    const frame = frames.find(is);
    if (!frame || !keep(processes.find((p) => p.executable === owner))) continue;
    sampled.total += count;
    if (is(frames.at(-1))) sampled.self += count;
    const home = frame[2] === K ? '[kernel]' : frame[1];
    sampled.build_id = files.find(([file]) => file === home)?.[1] ?? id('f00d');
  }
  return sampled;
}

export const symbolNotices = [
  {at: to - 60_000, build_id: '', text: 'the debuginfod server https://debug.example does not answer', times: 12},
  {at: to - 120_000, build_id: id('e811'), text: `${hostile.image}: it is cut off${hostile.control}`, times: 1},
];

export function symbols(keep = () => true, pushed = []) {
  const executables = files.map(([name, build_id, path, addresses, unnamed_addresses, symbols]) => {
    const entry = {build_id, name, path, self_ns: 0, self_count: 0, total_ns: 0, total_count: 0};
    for (const [owner, count, frames] of stacks) {
      if (!keep(processes.find((p) => p.executable === owner))) continue;
      const inside = ([, executable, kind]) => (kind === K ? name === '[kernel]' : executable === name);
      if (frames.some(inside)) entry.total_count += count;
      if (inside(frames.at(-1))) entry.self_count += count;
    }
    entry.self_ns = Math.round(entry.self_count * sampleNs);
    entry.total_ns = Math.round(entry.total_count * sampleNs);
    const sampled = entry.total_count > 0;
    const mended = pushed.includes(name);
    return {
      ...entry,
      addresses: sampled ? addresses : 0,
      unnamed_addresses: sampled && !mended ? unnamed_addresses : 0,
      symbols: mended ? table('dwarf', 6, 'upload', 321) : symbols,
    };
  });
  const unseen = {build_id: id('0dd5'), name: '', path: '', self_ns: 0, self_count: 0, total_ns: 0, total_count: 0};
  return {
    total: flamegraph({from, to}, keep).total,
    executables: [
      ...executables.filter((e) => e.total_count > 0 || e.symbols).sort((a, b) => b.total_count - a.total_count),
      {...unseen, addresses: 0, unnamed_addresses: 0, symbols: table('some_new_source', 9, 'some_new_origin', 8)},
    ],
    truncated: 0,
    notices: symbolNotices,
  };
}

export function emptySymbols() {
  return {total: {ns: 0, count: 0}, executables: [], truncated: 0, notices: []};
}

// Returns the same answer, with one more address without a name.
export function shiftedSymbols(keep) {
  const answer = symbols(keep);
  answer.executables[0].unnamed_addresses += 1;
  return answer;
}

export const uploaded = (stored) => ({
  build_id: id('e811'),
  stored,
  symbols: table('dwarf', 6, 'upload', 321),
  remarks: stored ? [`the debug information of 3 units is in .dwo files ${hostile.script}`] : [],
});

export function status(process_events) {
  const samples = {captured: 5230, idle: 61, stored: 5222, lost: {ring_full: 3, mapping_late: 1}, in_flight: 4};
  const counters = process_events ? {...samples, process_events} : samples;
  const stack_health = {complete: 4810, kernel_only: 200, unknown: 92, truncated_depth: 120};
  return {
    version: '0.1.0',
    uptime_s: 7325,
    total: counters,
    stack_health,
    nodes: [
      {
        id: 'b6f7c1d2e3a4',
        host: 'node-1',
        kernel: '6.1.0-25-amd64',
        architecture: 'x86_64',
        version: '0.1.0',
        cpus: 8,
        sample_rate_hz: 19,
        connected: true,
        last_seen: to,
        ...counters,
        wire_bytes: 48213,
        stack_health,
      },
    ],
    reducer: {cpu_seconds: 4.21, rss_bytes: 46_137_344, disk_bytes: 3_407_872, shards: 1, symbol_tables: 12},
  };
}

// Returns the same answer, with one kind of damage in each of 52 shards, and with text that an attacker would choose.
// The last of 61 collectors was refused something.
export function damagedStatus(process_events) {
  const answer = status(process_events);
  answer.nodes[0].host = hostile.control;
  for (let i = 0; i < 60; ++i) answer.nodes.push({...answer.nodes[0], id: `many-${i}`, host: `many-${i}`});
  const damage = Array.from({length: 52}, (_, shard) => ({
    shard,
    kind: shard === 0 ? 'maintenance: merge_tries' : 'samples',
    count: 1000 + shard,
    reason: shard === 0 ? hostile.image : hostile.control,
  }));
  const refusals = [
    {node: hostile.control, reason: 'old_days', amount: 3},
    {node: 'many-59', reason: 'trie_quota', amount: 1200},
  ];
  return {...answer, refusals, damage};
}
