import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {SeriesAnswer, StatusAnswer} from '../api/types.ts';
import {describeChoice, filterOptions, sameMatchers} from './filter_options.ts';
import {
  formatBytes,
  formatCores,
  formatCount,
  formatDuration,
  formatPercent,
  formatSamples,
  printable,
} from './format.ts';
import {health} from './health.ts';
import {formatSelector, parseSelector, replaceMatchers, type Matcher} from './selector.ts';
import {
  absoluteRange,
  canFollow,
  describeRange,
  fromLocalInput,
  isValidRange,
  resolveTime,
  toLocalInput,
  zoomedOut,
} from './time_range.ts';
import {defaultView, formatHash, parseHash, type ViewState} from './view_state.ts';

test('durations carry three digits and a unit', () => {
  const cases: [number, string][] = [
    [0, '0 s'],
    [1, '1 ns'],
    [999, '999 ns'],
    [1500, '1.50 µs'],
    [999_600, '1.00 ms'],
    [12_340_000, '12.3 ms'],
    [345e6, '345 ms'],
    [1e9, '1.00 s'],
    [94.74e9, '94.7 s'],
    [120e9, '2 min'],
    [158e9, '2 min 38 s'],
    [7325e9, '2 h 2 min'],
    [3 * 86400e9, '3 d'],
    [100 * 3600e9, '4 d 4 h'],
  ];
  for (const [ns, text] of cases) assert.equal(formatDuration(ns), text);
});

test('percentages never round a part to nothing or to the whole', () => {
  const cases: [number, number, string][] = [
    [0, 10, '0%'],
    [10, 10, '100%'],
    [6012, 10000, '60.12%'],
    [1, 1e6, '<0.01%'],
    [999_999, 1e6, '>99.99%'],
    [1, 0, '0%'],
    [5, 100_000, '0.01%'],
  ];
  for (const [part, whole, text] of cases) assert.equal(formatPercent(part, whole), text);
  assert.equal(formatPercent(1, 3, 1), '33.3%');
});

test('counts, cores and bytes', () => {
  assert.equal(formatCount(0), '0');
  assert.equal(formatCount(999), '999');
  assert.equal(formatCount(1234567), '1,234,567');
  assert.equal(formatSamples(1), '1 sample');
  assert.equal(formatSamples(1140), '1,140 samples');
  assert.equal(formatCores(1), '1.00 core');
  assert.equal(formatCores(0.0312), '0.031 cores');
  assert.equal(formatCores(12.34), '12.3 cores');
  assert.equal(formatBytes(512), '512 B');
  assert.equal(formatBytes(1024), '1.00 KiB');
  assert.equal(formatBytes(46_137_344), '44.0 MiB');
});

test('control and direction characters are shown, markup stays text', () => {
  assert.equal(printable('a\u0000b\u001b[31m\u007f\u0085'), 'a\\u0000b\\u001b[31m\\u007f\\u0085');
  assert.equal(printable('x\u202ey\u2066z\u200b\ufeff'), 'x\\u202ey\\u2066z\\u200b\\ufeff');
  assert.equal(printable('<img src=x>'), '<img src=x>');
  assert.equal(printable('функция 関数 😀'), 'функция 関数 😀');
});

test('selectors with any value survive a round trip', () => {
  for (const value of ['truth', '', 'a"b', 'back\\slash', 'new\nline\ttab', '{x="y"}', '<b>', '\\', '\\"', 'ünï']) {
    const matchers: Matcher[] = [
      {label: 'process_executable_name', operator: '=', value},
      {label: 'process_pid', operator: '!~', value: '1|2'},
    ];
    assert.deepEqual(parseSelector(formatSelector(matchers)), {matchers});
  }
  assert.equal(formatSelector([{label: 'a', operator: '=', value: 'x"\\'}]), '{a="x\\"\\\\"}');
  assert.equal(formatSelector([]), '');
});

test('parses selectors as users write them', () => {
  assert.deepEqual(parseSelector(''), {matchers: []});
  assert.deepEqual(parseSelector(' { } '), {matchers: []});
  assert.deepEqual(parseSelector('{ process.executable.name = "x" ,host_name=~"a.*", }'), {
    matchers: [
      {label: 'process_executable_name', operator: '=', value: 'x'},
      {label: 'host_name', operator: '=~', value: 'a.*'},
    ],
  });
  assert.deepEqual(parseSelector('{a=~"\\d+"}'), {matchers: [{label: 'a', operator: '=~', value: '\\d+'}]});
});

test('reports mistakes in selectors with their position', () => {
  const cases: [string, RegExp][] = [
    ['x', /character 1: “\{”/],
    ['{', /ends where a label name/],
    ['{a', /ends where one of = != =~ !~/],
    ['{a=b}', /character 4: a value in double quotes/],
    ['{a="b', /ends where the closing quote/],
    ['{a="b" c="d"}', /character 8: “,” or “\}”/],
    ['{a="b"} x', /character 9: the end/],
    ['{1="b"}', /character 2: a label/],
    ['{a>"b"}', /character 3: one of/],
    ['{a="\\', /ends where an escaped character/],
  ];
  for (const [text, message] of cases) {
    const parsed = parseSelector(text);
    assert.ok('error' in parsed, text);
    assert.match(parsed.error, message, text);
  }
});

test('a filter replaces its own matchers in place and leaves the others', () => {
  const m = (label: string, value: string): Matcher => ({label, operator: '=', value});
  const before = [m('x', '1'), m('process_pid', '2'), m('y', '3'), m('process_command', '4')];
  const labels = ['process_pid', 'process_command'];
  assert.deepEqual(replaceMatchers(before, labels, [m('process_pid', '9')]), [
    m('x', '1'),
    m('process_pid', '9'),
    m('y', '3'),
  ]);
  assert.deepEqual(replaceMatchers(before, labels, []), [m('x', '1'), m('y', '3')]);
  assert.deepEqual(replaceMatchers([m('x', '1')], labels, [m('process_pid', '9')]), [
    m('x', '1'),
    m('process_pid', '9'),
  ]);
});

function seriesAnswer(): SeriesAnswer {
  const process = (pid: number, command: string, executable: string, ns: number, container_id = '') => ({
    pid,
    parent_pid: 1,
    start_time_ns: 0,
    command,
    executable,
    executable_path: '',
    container_id,
    host: 'h',
    node_id: 'id-h',
    ns,
    count: ns,
  });
  return {
    processes: [
      process(10, 'truth', 'truth', 50),
      process(11, 'truth', 'truth', 30),
      process(2, 'kworker\u0007', '', 5),
      process(12, 'py', 'python3', 60, 'c0ffee'.repeat(8)),
    ],
    threads: [
      {pid: 10, tid: 10, name: 'main', host: 'h', ns: 40, count: 4},
      {pid: 10, tid: 15, name: 'main', host: 'h', ns: 10, count: 1},
      {pid: 12, tid: 12, name: 'py', host: 'h', ns: 60, count: 6},
    ],
    containers: [
      {id: 'c0ffee'.repeat(8), name: '', ns: 60, count: 6},
      {id: '', name: '', ns: 85, count: 8},
      {id: 'beef'.repeat(16), name: 'nginx', ns: 5, count: 1},
    ],
    hosts: [
      {id: 'id-h', name: 'h', ns: 1, count: 1},
      {id: 'id-a', name: 'twin', ns: 9, count: 1},
      {id: 'id-b', name: 'twin', ns: 5, count: 1},
    ],
    pods: [{id: 'u-1', name: 'web-1', namespace: 'shop', ns: 5, count: 1}],
    namespaces: [{name: 'shop', ns: 5, count: 1}],
    workloads: [{kind: 'deployment', name: 'web', namespace: 'shop', ns: 5, count: 1}],
    services: [
      {name: 'web', namespace: 'shop', ns: 5, count: 1},
      {name: 'truth', namespace: '', ns: 80, count: 8},
    ],
    truncated: false,
  };
}

test('process options: executables first, heaviest first, kernel threads by command', () => {
  const options = filterOptions('process', seriesAnswer(), []);
  assert.deepEqual(
    options.map((o) => [o.section, o.label, o.detail, o.ns]),
    [
      ['By executable', 'truth', '2 processes', 80],
      ['By executable', 'python3', '1 process', 60],
      ['By executable', 'kworker\\u0007', '1 process', 5],
      ['By process', 'python3', 'pid 12 · py', 60],
      ['By process', 'truth', 'pid 10', 50],
      ['By process', 'truth', 'pid 11', 30],
      ['By process', 'kworker\\u0007', 'pid 2', 5],
    ],
  );
  assert.equal(formatSelector(options[0]!.matchers), '{process_executable_name="truth"}');
  assert.equal(formatSelector(options[4]!.matchers), '{process_executable_name="truth", process_pid="10"}');
  // The selector has the name itself, not its printable form.
  assert.equal(options[2]!.matchers[0]!.value, 'kworker\u0007');
  assert.equal(options[2]!.matchers[0]!.label, 'process_command');
});

test('thread options follow the chosen process', () => {
  const chosen: Matcher[] = [{label: 'process_executable_name', operator: '=', value: 'truth'}];
  assert.deepEqual(
    filterOptions('thread', seriesAnswer(), chosen).map((o) => `${o.label} ${o.detail}`),
    ['main 2 threads', 'main tid 10 · pid 10', 'main tid 15 · pid 10'],
  );
  assert.equal(filterOptions('thread', seriesAnswer(), []).length, 5);
});

test('leaves out containers without id; hosts that share a name are distinguished by id', () => {
  assert.deepEqual(
    filterOptions('container', seriesAnswer(), []).map((o) => [o.label, o.detail]),
    [
      ['c0ffeec0ffee', '1 process'],
      ['nginx', 'beefbeefbeef'],
    ],
  );
  assert.deepEqual(
    filterOptions('host', seriesAnswer(), []).map((o) => formatSelector(o.matchers)),
    ['{node_id="id-a"}', '{node_id="id-b"}', '{host_name="h"}'],
  );
});

test('services, workloads and pods are chosen together with their namespace', () => {
  assert.deepEqual(
    filterOptions('service', seriesAnswer(), []).map((o) => [o.section, o.label, o.detail, formatSelector(o.matchers)]),
    [
      ['By namespace', 'shop', '', '{k8s_namespace_name="shop"}'],
      ['By service', 'truth', '', '{service_name="truth"}'],
      ['By service', 'web', 'shop', '{service_namespace="shop", service_name="web"}'],
      ['By workload', 'web', 'deployment · shop', '{k8s_namespace_name="shop", k8s_deployment_name="web"}'],
      ['By pod', 'web-1', 'shop', '{k8s_namespace_name="shop", k8s_pod_name="web-1"}'],
    ],
  );
});

test('a filter shows the choice of the selector', () => {
  const parsed = parseSelector('{process_executable_name="truth", process_pid="10", host_name=~"a.*"}');
  assert.ok('matchers' in parsed);
  assert.equal(describeChoice('process', parsed.matchers), 'truth · pid 10');
  assert.equal(describeChoice('host', parsed.matchers), '=~ a.*');
  assert.equal(describeChoice('thread', parsed.matchers), '');
  assert.ok(sameMatchers(parsed.matchers, [...parsed.matchers].reverse()));
  assert.ok(!sameMatchers(parsed.matchers, parsed.matchers.slice(1)));
});

test('resolves absolute and relative times, and refuses other texts', () => {
  const now = 1_000_000_000;
  const cases: [string, number | null][] = [
    ['now', now],
    ['-60s', now - 60e3],
    ['now-5m', now - 300e3],
    ['-1h', now - 3600e3],
    ['-2d', now - 172800e3],
    ['1763710000000', 1763710000000],
    ['', null],
    ['5m', null],
    ['-5', null],
    ['yesterday', null],
    ['+5m', null],
  ];
  for (const [text, ms] of cases) assert.equal(resolveTime(text, now), ms, text);
});

test('ranges', () => {
  assert.ok(isValidRange({from: '-15m', to: 'now'}));
  assert.ok(!isValidRange({from: 'now', to: '-15m'}));
  assert.ok(canFollow({from: '-15m', to: 'now'}));
  assert.ok(!canFollow({from: '1763710000000', to: 'now'}));
  assert.deepEqual(absoluteRange(10.7, 20.2), {from: '10', to: '21'});
  assert.deepEqual(absoluteRange(10, 10), {from: '10', to: '11'});
  assert.deepEqual(zoomedOut({from: '1000', to: '2000'}, 10_000), {from: '500', to: '2500'});
  assert.deepEqual(zoomedOut({from: '1000', to: '2000'}, 2000), {from: '0', to: '2000'});
  assert.equal(describeRange({from: '-1h', to: 'now'}), 'Last hour');
  assert.equal(describeRange({from: '-7m', to: 'now'}), 'Last 7m');
  const at = new Date(2026, 10, 21, 8, 5, 9).getTime();
  assert.equal(describeRange(absoluteRange(at, at + 61e3)), '2026-11-21 08:05:09 – 08:06:10');
  assert.equal(fromLocalInput(toLocalInput(at)), at);
  assert.equal(fromLocalInput(''), null);
});

test('the address reproduces the view, and contains only values that differ from the default', () => {
  assert.equal(formatHash(defaultView), '');
  assert.deepEqual(parseHash(''), defaultView);
  const view: ViewState = {
    from: '1763710000000',
    to: '1763710060000',
    live: false,
    query: '{process_executable_name="a&b#c\\"d"}',
    type: 'alloc_space:bytes&x',
    panes: 'flame',
    orientation: 'flame',
    colors: 'kind',
    frames: 'all',
    group: 'line',
    language: 'python,go',
    names: 'short',
    search: '/x+y/ %',
    zoom: '00ff00ff12345678',
    sort: 'total',
    ascending: true,
    filter: 'é',
    stacks: 'open',
    executables: 'open',
    processes: 'open',
    processesSort: 'memory',
    processesAscending: true,
    lines: 'f<int>(char const*) & more',
    linesIn: 'truth',
    linesSort: 'place',
    line: '/src/a b.c:42',
  };
  assert.deepEqual(parseHash(formatHash(view)), view);
  assert.equal(formatHash({...defaultView, live: false}), '#live=0');
  assert.equal(parseHash('', 'short').names, 'short');
  assert.equal(parseHash('#names=full', 'short').names, 'full');
});

test('an address with invalid values gives the default', () => {
  assert.deepEqual(parseHash('#from=x&to=y&live=maybe&panes=9&names=9&frames=9&group=9&zoom=<script>&sort=size&stacks=9&executables=9&lines_sort=9&processes=9&processes_sort=9&processes_order=9'), defaultView);
  assert.equal(parseHash('#from=-5m&to=-10m').from, defaultView.from);
  assert.equal(parseHash(`#query=${'x'.repeat(10_000)}`).query.length, 4096);
  assert.equal(parseHash('#from=1&to=2&live=1').live, false);
});

test('sums up health in one title', () => {
  const counters = {captured: 10_000, idle: 0, stored: 10_000, lost: {} as Record<string, number>, in_flight: 0};
  const node = {
    ...counters,
    id: 'n',
    host: 'n',
    kernel: '',
    architecture: '',
    version: '',
    cpus: 1,
    sample_rate_hz: 19,
    connected: true,
    last_seen: 0,
    wire_bytes: 0,
    stack_health: {},
  };
  const status: StatusAnswer = {
    version: '',
    uptime_s: 0,
    total: counters,
    stack_health: {},
    nodes: [node],
    reducer: {cpu_seconds: 0, rss_bytes: 0, disk_bytes: 0, shards: 1, symbol_tables: 0},
  };
  assert.deepEqual(health(status, false), {level: 'good', title: '1 collector'});
  assert.equal(health(null, false).level, 'unknown');
  assert.deepEqual(health(status, true), {level: 'poor', title: 'Reducer not reachable'});
  assert.equal(health({...status, nodes: []}, false).title, 'No collector yet');
  assert.equal(health({...status, nodes: [{...node, connected: false}]}, false).title, 'No collector connected');
  assert.equal(
    health({...status, nodes: [node, {...node, connected: false}]}, false).title,
    '1 of 2 collectors connected',
  );
  assert.deepEqual(health({...status, total: {...counters, lost: {ring_full: 100}}}, false), {
    level: 'fair',
    title: '1.0% of samples lost',
  });
  assert.equal(health({...status, total: {...counters, lost: {ring_full: 10}}}, false).level, 'good');
  const events = (lost: number) => ({...counters, process_events: {...counters, lost: {event_overflow: lost}}});
  assert.deepEqual(health({...status, total: events(200)}, false), {
    level: 'fair',
    title: '2.0% of process events lost',
  });
  assert.equal(health({...status, total: events(10)}, false).level, 'good');
  assert.match(health({...status, total: {...events(200), lost: {ring_full: 100}}}, false).title, /of samples lost$/);
});
