// Finds the frames that match a search term. Plain text matches anywhere in the name, in upper or lower case. "text" in
// double quotes must be the whole name. /text/ is a regular expression.
import type {FlameGraph} from './graph.ts';

export type NameTest = (name: string) => boolean;

// `test` is null if the term is empty or wrong. `error` is the message if the regular expression is wrong.
export function compileSearch(term: string): {test: NameTest | null; error: string | null} {
  const trimmed = term.trim();
  if (trimmed === '') return {test: null, error: null};
  if (trimmed.length >= 2 && trimmed.startsWith('"') && trimmed.endsWith('"')) {
    const whole = trimmed.slice(1, -1);
    return {test: (name) => name === whole, error: null};
  }
  if (trimmed.length >= 3 && trimmed.startsWith('/') && trimmed.endsWith('/')) {
    try {
      const expression = new RegExp(trimmed.slice(1, -1), 'i');
      return {test: (name) => expression.test(name), error: null};
    } catch (error) {
      return {test: null, error: error instanceof Error ? error.message : String(error)};
    }
  }
  const lower = trimmed.toLowerCase();
  return {test: (name) => name.toLowerCase().includes(lower), error: null};
}

// Returns the term that matches exactly this name.
export function exactTerm(name: string): string {
  return `"${name}"`;
}

export interface Matches {
  nodes: Uint8Array; // 1: matches
  count: number; // frames that match within the zoomed frame
  ns: number; // their time, nested matches counted once
  samples: number;
}

export function findMatches(graph: FlameGraph, test: NameTest, zoom: number): Matches {
  const byName = Uint8Array.from(graph.names, (name) => (test(name) ? 1 : 0));
  const nodes = new Uint8Array(graph.size);
  // 1: inside the zoomed frame; 2: also at or below a match.
  const inside = new Uint8Array(graph.size);
  const matches: Matches = {nodes, count: 0, ns: 0, samples: 0};
  for (let i = 0; i < graph.size; ++i) {
    // The root is not a frame: its name "all" would match many terms.
    if (i > 0) nodes[i] = byName[graph.name[i]!]!;
    const above = i === zoom ? 1 : i === 0 ? 0 : inside[graph.parent[i]!]!;
    inside[i] = above;
    if (above === 0 || nodes[i] === 0) continue;
    ++matches.count;
    if (above === 1) {
      matches.ns += graph.totalNs[i]!;
      matches.samples += graph.totalCount[i]!;
    }
    inside[i] = 2;
  }
  return matches;
}
