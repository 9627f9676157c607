// Texts for the source and origin of an executable's names, and the summary of the list of executables.
import type {SeriesProcess, SymbolExecutable, SymbolsAnswer} from '../api/types.ts';
import {formatCount, formatPercent} from './format.ts';
import type {Matcher} from './selector.ts';

interface SymbolSource {
  words: string;
  meaning: string;
}

export const symbolSources: Record<string, SymbolSource> = {
  dwarf: {words: 'debug information', meaning: 'Functions, inlined calls, files and lines.'},
  pclntab: {words: 'Go table', meaning: 'The table of functions and lines that every Go program contains.'},
  kallsyms: {words: 'kernel', meaning: 'The functions that the running kernel lists.'},
  symtab: {words: 'symbols', meaning: 'Functions, without inlined calls and lines. The debug file has these, too.'},
  dynsym: {
    words: 'exported symbols',
    meaning: 'Only functions that the file exports. Other functions have no names. The debug file has all names.',
  },
  functions: {
    words: 'function bounds',
    meaning: 'Where functions begin and end, without names. The debug file has the names.',
  },
};

export function sourceOf(source: string): SymbolSource {
  return symbolSources[source] ?? {words: source.replaceAll('_', ' '), meaning: ''};
}

const origins: Record<string, string> = {
  node: 'one node',
  nodes: 'two nodes',
  upload: 'an upload',
  directory: 'a directory',
  debuginfod: 'debuginfod',
};

export function originOf(origin: string): string {
  return origins[origin] ?? origin.replaceAll('_', ' ');
}

// The nodes that have a table, and the nodes whose file with this build-id has another table.
export function nodesOf({nodes, disputed_by}: {nodes?: string[]; disputed_by?: string[]}): string {
  const has = nodes?.length ? `Sent by ${nodes.join(', ')}.` : '';
  const disputes = disputed_by?.length ? `Another table: ${disputed_by.join(', ')}.` : '';
  return [has, disputes].filter(Boolean).join(' ');
}

const idDigits = 12;

// Cuts the digits of a build-id. A prefix such as `go:` or `htl:` stays: it is part of the id.
export function shortBuildId(id: string): string {
  const digits = id.slice(id.indexOf(':') + 1);
  return digits.length <= idDigits ? id : `${id.slice(0, id.length - digits.length + idDigits)}…`;
}

export const wasSampled = (executable: SymbolExecutable): boolean => executable.total_count > 0;

export interface UnnamedShare {
  level: 'good' | 'fair' | 'poor';
  text: string;
}

// Returns null if no address was sampled.
export function unnamedShare(unnamed: number, addresses: number): UnnamedShare | null {
  if (addresses <= 0) return null;
  const share = unnamed / addresses;
  return {
    level: share <= 0.05 ? 'good' : share <= 0.25 ? 'fair' : 'poor',
    text: formatPercent(unnamed, addresses, 1),
  };
}

export interface SymbolSummary {
  count: string;
  unnamed: UnnamedShare | null;
}

// Sampled executables come before the others in the list. So the part that was cut off can have sampled executables
// only if all listed ones were sampled.
export function summaryOf({executables, truncated}: SymbolsAnswer): SymbolSummary {
  const sampled = executables.filter(wasSampled);
  const sum = (of: 'addresses' | 'unnamed_addresses') => sampled.reduce((total, row) => total + row[of], 0);
  const more = truncated > 0 && sampled.length === executables.length;
  return {
    count: `${more ? 'more than ' : ''}${formatCount(sampled.length)}`,
    unnamed: unnamedShare(sum('unnamed_addresses'), sum('addresses')),
  };
}

// Returns the filter for the processes that run this file. Returns null if no process runs the file: it is a library,
// a module or the kernel.
export function programMatcher({name}: SymbolExecutable, processes: readonly SeriesProcess[]): Matcher | null {
  if (name === '' || !processes.some((process) => process.executable === name)) return null;
  return {label: 'process_executable_name', operator: '=', value: name};
}
