// A function's samples by line: sums, order, and the listing of its source around the lines that have samples.
import type {FunctionLine, LinesAnswer, SourceText} from '../api/types.ts';

export type LinesSort = 'total' | 'self' | 'place';

export const hasPlace = (line: FunctionLine): boolean => line.file !== '' && line.line > 0;

// Returns FILE:LINE, which identifies a line, or '' if the file is not known.
export function placeOf({file, line}: FunctionLine): string {
  return file === '' ? '' : `${file}:${line}`;
}

export interface LineTotals {
  selfNs: number;
  totalNs: number;
  totalCount: number;
  unplacedNs: number; // the part of the total that has no known line
}

// Each sample is in one line of the function, so no sample counts twice.
export function totalsOf(lines: readonly FunctionLine[]): LineTotals {
  const totals = {selfNs: 0, totalNs: 0, totalCount: 0, unplacedNs: 0};
  for (const line of lines) {
    totals.selfNs += line.self_ns;
    totals.totalNs += line.total_ns;
    totals.totalCount += line.total_count;
    if (!hasPlace(line)) totals.unplacedNs += line.total_ns;
  }
  return totals;
}

function byPlace(a: FunctionLine, b: FunctionLine): number {
  return a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line;
}

export function sortLines(lines: readonly FunctionLine[], sort: LinesSort): FunctionLine[] {
  const order = {
    total: (a: FunctionLine, b: FunctionLine) => b.total_ns - a.total_ns || b.self_ns - a.self_ns || byPlace(a, b),
    self: (a: FunctionLine, b: FunctionLine) => b.self_ns - a.self_ns || b.total_ns - a.total_ns || byPlace(a, b),
    place: byPlace,
  }[sort];
  return [...lines].sort(order);
}

// Returns how hot a line is, from 0 to 4, by its share of the function's time.
export function heatOf(ns: number, whole: number): number {
  const share = whole > 0 ? ns / whole : 0;
  return share >= 0.2 ? 4 : share >= 0.05 ? 3 : share >= 0.01 ? 2 : share > 0 ? 1 : 0;
}

export function splitPath(path: string): {directory: string; name: string} {
  const slash = path.lastIndexOf('/') + 1;
  return {directory: path.slice(0, slash), name: path.slice(slash)};
}

export type ListingPart =
  | {kind: 'line'; number: number; text: string; samples: FunctionLine | null}
  | {kind: 'gap'; first: number; last: number};

export interface FileListing {
  file: string;
  totalNs: number;
  parts: ListingPart[];
  undrawn: number; // lines with samples that are not drawn, because of the limit
}

export interface TextlessFile {
  file: string;
  totalNs: number;
  lines: number;
}

export interface Listings {
  files: FileListing[]; // most time first
  textless: TextlessFile[]; // lines without text, by file
}

const contextLines = 5;
const gapMin = 3; // smaller gaps are drawn: the row for a gap would take as much space
const gapStep = 200; // lines drawn when a gap is opened
export const listedMax = 1500; // lines drawn of all files, without opened gaps

// Returns the key that identifies an opened gap.
export const gapKey = (file: string, first: number): string => `${file}:${first}`;

class Listed {
  readonly shown = new Set<number>();
  readonly samples = new Map<number, FunctionLine>();
  totalNs = 0;
  undrawn = 0;

  constructor(readonly source: SourceText) {}

  get last(): number {
    return this.source.first_line + this.source.text.length - 1;
  }

  has(number: number): boolean {
    return number >= this.source.first_line && number <= this.last;
  }

  show(from: number, to: number): number {
    const before = this.shown.size;
    for (let number = Math.max(from, this.source.first_line); number <= Math.min(to, this.last); ++number) {
      this.shown.add(number);
    }
    return this.shown.size - before;
  }

  parts(opened: ReadonlySet<string>): ListingPart[] {
    const {file, first_line, text} = this.source;
    const parts: ListingPart[] = [];
    for (let number = first_line; number <= this.last; ++number) {
      if (!this.shown.has(number)) {
        let end = number;
        while (end < this.last && !this.shown.has(end + 1)) ++end;
        const open = opened.has(gapKey(file, number));
        if (!open && end - number + 1 >= gapMin) {
          parts.push({kind: 'gap', first: number, last: end});
          number = end;
          continue;
        }
        this.show(number, open ? Math.min(end, number + gapStep - 1) : end);
      }
      const line = text[number - first_line]!;
      parts.push({kind: 'line', number, text: line, samples: this.samples.get(number) ?? null});
    }
    return parts;
  }
}

// If more than `rowsMax` lines would be drawn, the hottest are.
export function listingsOf(answer: LinesAnswer, opened: ReadonlySet<string>, rowsMax = listedMax): Listings {
  const listed = new Map(answer.sources.map((source) => [source.file, new Listed(source)]));
  const textless = new Map<string, TextlessFile>();
  let rows = 0;
  for (const line of sortLines(answer.lines.filter(hasPlace), 'total')) {
    const file = listed.get(line.file);
    if (!file?.has(line.line)) {
      const entry = textless.get(line.file) ?? {file: line.file, totalNs: 0, lines: 0};
      textless.set(line.file, entry);
      entry.totalNs += line.total_ns;
      entry.lines += 1;
      continue;
    }
    file.totalNs += line.total_ns;
    file.samples.set(line.line, line);
    if (rows < rowsMax) rows += file.show(line.line - contextLines, line.line + contextLines);
    else if (!file.shown.has(line.line)) file.undrawn += 1;
  }
  const byTime = (a: {totalNs: number}, b: {totalNs: number}) => b.totalNs - a.totalNs;
  const files = [...listed.values()].filter(({samples}) => samples.size > 0).sort(byTime);
  return {
    files: files.map((file) => ({
      file: file.source.file,
      totalNs: file.totalNs,
      parts: file.parts(opened),
      undrawn: file.undrawn,
    })),
    textless: [...textless.values()].sort(byTime),
  };
}
