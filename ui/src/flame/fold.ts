// Folds a flame graph, or the part below one frame, into functions.
import {kindOf, type FlameGraph} from './graph.ts';
import type {FrameKind} from './kind.ts';

export interface FunctionRow {
  name: string; // as the server sent it, like `executable`
  place: string; // FILE:LINE, if lines were requested; '': unknown
  executable: string;
  kind: FrameKind;
  selfNs: number;
  selfCount: number;
  totalNs: number; // a function that calls itself counts once
  totalCount: number;
}

export function foldFunctions(graph: FlameGraph, zoom: number): FunctionRow[] {
  const rows: FunctionRow[] = [];
  const rowOf = new Map<string, number>();
  const rowOfNode = new Int32Array(graph.size).fill(-1);
  for (let i = zoom; i < graph.size; ++i) {
    const parent = graph.parent[i]!;
    if (i !== zoom && (parent < zoom || (parent !== zoom && rowOfNode[parent]! < 0))) continue;
    if (i === 0) continue; // the root is not a function
    const key = `${graph.kind[i]} ${graph.name[i]} ${graph.executable[i]}`;
    let row = rowOf.get(key);
    if (row === undefined) {
      row = rows.length;
      rowOf.set(key, row);
      rows.push({
        name: graph.raw.names[graph.name[i]!]!,
        place: graph.places[graph.name[i]!]!,
        executable: graph.raw.executables[graph.executable[i]!] ?? '',
        kind: kindOf(graph, i),
        selfNs: 0,
        selfCount: 0,
        totalNs: 0,
        totalCount: 0,
      });
    }
    rowOfNode[i] = row;
    const entry = rows[row]!;
    entry.selfNs += graph.selfNs[i]!;
    entry.selfCount += graph.selfCount[i]!;
    let recursive = false;
    for (let above = i; above !== zoom && !recursive;) {
      above = graph.parent[above]!;
      recursive = rowOfNode[above] === row;
    }
    if (recursive) continue;
    entry.totalNs += graph.totalNs[i]!;
    entry.totalCount += graph.totalCount[i]!;
  }
  return rows;
}

export type SortColumn = 'self' | 'total' | 'name';

export function sortRows(rows: readonly FunctionRow[], column: SortColumn, ascending: boolean): FunctionRow[] {
  const byName = (a: FunctionRow, b: FunctionRow) =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : a.executable < b.executable ? -1 : 1;
  const order = {
    self: (a: FunctionRow, b: FunctionRow) => a.selfNs - b.selfNs || a.totalNs - b.totalNs,
    total: (a: FunctionRow, b: FunctionRow) => a.totalNs - b.totalNs || a.selfNs - b.selfNs,
    name: byName,
  }[column];
  const sign = ascending ? 1 : -1;
  return [...rows].sort((a, b) => sign * order(a, b) || byName(a, b));
}
