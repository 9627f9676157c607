// A flame graph as typed arrays. The layout is computed once when the graph arrives. Afterwards, drawing, hit tests and
// zoom are arithmetic on these columns. Fields that end in Ns are in the unit of `measure`. The horizontal axis is that
// of the root: node i covers [start[i], start[i] + totalNs[i]).
import type {FlameGraphAnswer} from '../api/types.ts';
import {printable} from '../model/format.ts';
import {measureOf, type Measure} from '../model/measure.ts';
import {assignHues, hasOwnColor, type Hues} from './colors.ts';
import {toKinds, unknownKind, type FrameKind} from './kind.ts';

export interface FlameGraph {
  size: number;
  measure: Measure;
  names: string[]; // as they are shown: printable, and with the line if lines were requested
  places: string[]; // FILE:LINE of each name; '': unknown, or lines were not requested
  executables: string[];
  raw: {names: string[]; executables: string[]}; // as the server sent them, for requests
  truncatedNodes: number;
  parent: Int32Array;
  name: Uint32Array;
  kind: Uint8Array; // index into kinds
  kinds: readonly FrameKind[];
  executable: Int32Array; // −1: none
  totalNs: Float64Array;
  selfNs: Float64Array;
  totalCount: Float64Array;
  selfCount: Float64Array;
  depth: Uint16Array;
  start: Float64Array;
  levels: Uint32Array[]; // by depth: node indices, ascending start
  deepest: Uint16Array; // depth of the deepest node below each node, the node included
  // A hash of the names from the root to the node, as two 32-bit halves: finds the same frame in the next answer.
  keyHigh: Uint32Array;
  keyLow: Uint32Array;
  hues: Hues;
}

const depthMax = 65535;
const huesShared = 16; // executables with distinct colours

function check(condition: boolean, problem: string): void {
  if (!condition) throw new Error(`The flame graph from the server is inconsistent: ${problem}.`);
}

// With lines, nodes with the same name but different lines get different names.
function namesWithLines({nodes, names, files}: FlameGraphAnswer): {name: number[]; raw: string[]; places: string[]} {
  const {file, line, name} = nodes;
  if (!file || !line) return {name, raw: names, places: names.map(() => '')};
  const raw: string[] = [];
  const places: string[] = [];
  const known = new Map<string, number>();
  const renamed = name.map((number, i) => {
    const key = `${number} ${file[i]} ${line[i]}`;
    let at = known.get(key);
    if (at === undefined) {
      at = raw.push(names[number] ?? '') - 1;
      places.push(line[i]! > 0 ? `${files?.[file[i]!] ?? '?'}:${line[i]}` : '');
      known.set(key, at);
    }
    return at;
  });
  return {name: renamed, raw, places};
}

// Returns the name, followed by the file's base name and the line in parentheses.
export function withPlace(name: string, place: string): string {
  return place === '' ? name : `${name} (${place.slice(place.lastIndexOf('/') + 1)})`;
}

export function buildGraph(answer: FlameGraphAnswer): FlameGraph {
  const {nodes, executables} = answer;
  const size = nodes.parent.length;
  check(size > 0 && nodes.parent[0] === -1, 'it has no root');
  for (const [column, values] of Object.entries(nodes)) {
    check(Array.isArray(values) && values.length === size, `column ${column} does not have ${size} rows`);
  }
  nodes.name.forEach((number, i) => {
    check(number >= 0 && number < answer.names.length, `node ${i} has a name that is not listed`);
  });
  const {name, raw: names, places} = namesWithLines(answer);
  const graph: FlameGraph = {
    size,
    measure: measureOf(answer),
    names: names.map((raw, i) => printable(withPlace(raw, places[i]!))),
    places: places.map(printable),
    executables: executables.map(printable),
    raw: {names, executables},
    truncatedNodes: answer.truncated_nodes,
    parent: Int32Array.from(nodes.parent),
    name: Uint32Array.from(name),
    kind: Uint8Array.from(nodes.kind),
    kinds: toKinds(answer.kinds),
    executable: Int32Array.from(nodes.executable),
    totalNs: Float64Array.from(nodes.total_ns),
    selfNs: Float64Array.from(nodes.self_ns),
    totalCount: Float64Array.from(nodes.total_count),
    selfCount: Float64Array.from(nodes.self_count),
    depth: new Uint16Array(size),
    start: new Float64Array(size),
    levels: [],
    deepest: new Uint16Array(size),
    keyHigh: new Uint32Array(size),
    keyLow: new Uint32Array(size),
    hues: new Map(),
  };
  for (let i = 0; i < size; ++i) {
    const parent = graph.parent[i]!;
    check(i === 0 || (parent >= 0 && parent < i), `node ${i} comes before its parent`);
    check(graph.executable[i]! < executables.length, `node ${i} has an executable that is not listed`);
    check(graph.totalNs[i]! >= 0 && Number.isFinite(graph.totalNs[i]!), `node ${i} has no valid total`);
    check(i === 0 || graph.depth[parent]! < depthMax, 'it is too deep');
    if (i > 0) graph.depth[i] = graph.depth[parent]! + 1;
  }
  layOut(graph);
  computeKeys(graph);
  graph.hues = assignHues(largestExecutables(graph, huesShared));
  return graph;
}

function layOut(graph: FlameGraph): void {
  const {size, parent, depth, start, totalNs, deepest} = graph;
  const next = new Float64Array(size); // where the next child of each node begins
  const levelSizes: number[] = [];
  for (let i = 0; i < size; ++i) {
    if (i > 0) {
      const p = parent[i]!;
      start[i] = next[p]!;
      next[p]! += totalNs[i]!;
    }
    next[i] = start[i]!;
    levelSizes[depth[i]!] = (levelSizes[depth[i]!] ?? 0) + 1;
    deepest[i] = depth[i]!;
  }
  for (let i = size - 1; i > 0; --i) {
    const p = parent[i]!;
    if (deepest[i]! > deepest[p]!) deepest[p] = deepest[i]!;
  }
  const filled = levelSizes.map(() => 0);
  graph.levels = levelSizes.map((count) => new Uint32Array(count));
  for (let i = 0; i < size; ++i) graph.levels[depth[i]!]![filled[depth[i]!]!++] = i;
  for (const level of graph.levels) {
    for (let k = 1; k < level.length; ++k) {
      if (start[level[k - 1]!]! > start[level[k]!]!) {
        level.sort((a, b) => start[a]! - start[b]!);
        break;
      }
    }
  }
}

// Returns the executables that cover the most area, largest first. Frames whose kind has its own colour do not count.
export function largestExecutables(graph: FlameGraph, limit: number): string[] {
  const area = new Float64Array(graph.executables.length);
  for (let i = 0; i < graph.size; ++i) {
    if (graph.executable[i]! >= 0 && !hasOwnColor(kindOf(graph, i))) area[graph.executable[i]!]! += graph.totalNs[i]!;
  }
  const used = [...area.keys()].filter((e) => area[e]! > 0).sort((a, b) => area[b]! - area[a]!);
  return used.slice(0, limit).map((e) => graph.executables[e]!);
}

// FNV-1a over UTF-16 units; two different bases give the two halves of a key.
function hashText(text: string, base: number): number {
  let hash = base;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

function computeKeys(graph: FlameGraph): void {
  const high = graph.names.map((text) => hashText(text, 0x811c9dc5));
  const low = graph.names.map((text) => hashText(text, 0x3c6ef372));
  const executables = graph.executables.map((text) => hashText(text, 0x811c9dc5));
  const mix = (hash: number, value: number) => {
    let mixed = Math.imul(hash ^ value, 0x9e3779b1);
    mixed ^= mixed >>> 15;
    return Math.imul(mixed, 0x85ebca6b) >>> 0;
  };
  for (let i = 0; i < graph.size; ++i) {
    const p = graph.parent[i]!;
    const own = mix(executables[graph.executable[i]!] ?? 0, graph.kind[i]!);
    graph.keyHigh[i] = mix(mix(p < 0 ? 1 : graph.keyHigh[p]!, high[graph.name[i]!]!), own);
    graph.keyLow[i] = mix(mix(p < 0 ? 2 : graph.keyLow[p]!, low[graph.name[i]!]!), own);
  }
}

export function keyOf(graph: FlameGraph, node: number): string {
  if (node <= 0) return '';
  const hex = (value: number) => value.toString(16).padStart(8, '0');
  return hex(graph.keyHigh[node]!) + hex(graph.keyLow[node]!);
}

// Returns 0, the root, if no node has this key.
export function findByKey(graph: FlameGraph, key: string): number {
  if (key === '') return 0;
  const high = parseInt(key.slice(0, 8), 16);
  const low = parseInt(key.slice(8), 16);
  for (let i = 1; i < graph.size; ++i) {
    if (graph.keyLow[i] === low && graph.keyHigh[i] === high) return i;
  }
  return 0;
}

export function kindOf(graph: FlameGraph, node: number): FrameKind {
  return graph.kinds[graph.kind[node]!] ?? unknownKind;
}

export function executableOf(graph: FlameGraph, node: number): string {
  return graph.executables[graph.executable[node]!] ?? '';
}

// Returns true if the graph has frames that an interpreter ran.
export function hasInterpretedCode(graph: FlameGraph): boolean {
  const interpreted = graph.kinds.findIndex(({name}) => name === 'python');
  return interpreted >= 0 && graph.kind.includes(interpreted);
}

// Returns the nodes from the root to `node`, both included.
export function pathTo(graph: FlameGraph, node: number): number[] {
  const path: number[] = [];
  for (let at = node; at >= 0; at = graph.parent[at]!) path.push(at);
  return path.reverse();
}

// Returns the node at this depth whose range contains `x` (in the unit of `measure`), or −1.
export function nodeAt(graph: FlameGraph, depth: number, x: number): number {
  const level = graph.levels[depth];
  if (!level) return -1;
  const node = level[firstEndingAfter(graph, level, x)];
  return node !== undefined && graph.start[node]! <= x ? node : -1;
}

// Returns the index in `level` of the first node that ends after `x`. Nodes of zero width contain no x: `>` skips them.
export function firstEndingAfter(graph: FlameGraph, level: Uint32Array, x: number): number {
  let low = 0;
  let high = level.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const node = level[middle]!;
    if (graph.start[node]! + graph.totalNs[node]! > x) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
