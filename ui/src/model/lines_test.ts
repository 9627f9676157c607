import assert from 'node:assert/strict';
import {test} from 'node:test';
import type {FunctionLine, LinesAnswer, SymbolsAnswer} from '../api/types.ts';
import {heatOf, listingsOf, placeOf, sortLines, splitPath, totalsOf, type ListingPart} from './lines.ts';
import {comingSources, whyNoLines, whyNothing} from './lines_words.ts';

function at(file: string, line: number, total_ns: number, self_ns = total_ns, build_id = 'a'): FunctionLine {
  const addresses = [{build_id, address: '0x10', ns: total_ns, count: 1}];
  return {file, line, text: null, self_ns, self_count: 1, total_ns, total_count: 1, addresses};
}

function answer(lines: FunctionLine[], sources: [string, number, number][]): LinesAnswer {
  const text = (first: number, count: number) => Array.from({length: count}, (_, i) => `line ${first + i}`);
  return {
    function: 'f',
    executable: '',
    lines,
    sources: sources.map(([file, first_line, count]) => ({file, first_line, text: text(first_line, count)})),
    sources_coming: [],
  };
}

const none: ReadonlySet<string> = new Set();
// 3: a line; 3*: a line with samples; (6-9): a gap.
function outline(parts: readonly ListingPart[]): string {
  return parts
    .map((part) => (part.kind === 'gap' ? `(${part.first}-${part.last})` : `${part.number}${part.samples ? '*' : ''}`))
    .join(' ');
}

test('reports that text is being fetched', () => {
  const known = answer([at('a.c', 1, 10)], []);
  assert.equal(comingSources(known), '');
  assert.match(comingSources({...known, sources_coming: ['a.c']}), /^The text of one file is being fetched/);
  assert.match(comingSources({...known, sources_coming: ['a.c', 'b.c']}), /^The text of 2 files is being fetched/);
});

test('sums self, total, and the part without a line', () => {
  const lines = [at('a.c', 1, 10, 4), at('a.c', 0, 5), at('', 0, 3)];
  assert.deepEqual(totalsOf(lines), {selfNs: 12, totalNs: 18, totalCount: 3, unplacedNs: 8});
  assert.deepEqual(lines.map(placeOf), ['a.c:1', 'a.c:0', '']);
});

test('lines sort by total, by self and by place', () => {
  const lines = [at('b.c', 2, 5, 5), at('a.c', 10, 9, 1), at('a.c', 9, 9, 2)];
  const sorted = (sort: 'total' | 'self' | 'place') => sortLines(lines, sort).map(placeOf).join(' ');
  assert.equal(sorted('total'), 'a.c:9 a.c:10 b.c:2');
  assert.equal(sorted('self'), 'b.c:2 a.c:9 a.c:10');
  assert.equal(sorted('place'), 'a.c:9 a.c:10 b.c:2');
});

test('heat and paths', () => {
  assert.deepEqual([0, 1, 10, 50, 200].map((ns) => heatOf(ns, 1000)), [0, 1, 2, 3, 4]);
  assert.equal(heatOf(0, 0), 0);
  assert.deepEqual(splitPath('/a/b.c'), {directory: '/a/', name: 'b.c'});
  assert.deepEqual(splitPath('b.c'), {directory: '', name: 'b.c'});
});

test('a listing has lines around the lines with samples; the rest is a gap that opens', () => {
  const lines = answer([at('a.c', 10, 5), at('a.c', 40, 7)], [['a.c', 5, 41]]);
  const shown = (opened: ReadonlySet<string>) => outline(listingsOf(lines, opened).files[0]!.parts);
  assert.equal(shown(none), '5 6 7 8 9 10* 11 12 13 14 15 (16-34) 35 36 37 38 39 40* 41 42 43 44 45');
  assert.match(shown(new Set(['a.c:16'])), /15 16 17 .* 33 34 35/);
  assert.equal(shown(new Set(['a.c:17', 'b.c:16'])), shown(none));
});

test('a gap of two lines is drawn, a long gap opens in steps', () => {
  const small = answer([at('a.c', 6, 5), at('a.c', 19, 7)], [['a.c', 1, 24]]);
  assert.ok(!outline(listingsOf(small, none).files[0]!.parts).includes('('));
  const long = answer([at('a.c', 6, 5), at('a.c', 1000, 7)], [['a.c', 1, 1005]]);
  const parts = (...keys: string[]) => outline(listingsOf(long, new Set(keys)).files[0]!.parts);
  assert.match(parts(), /11 \(12-994\) 995/);
  assert.match(parts('a.c:12'), /210 211 \(212-994\) 995/);
  assert.match(parts('a.c:12', 'a.c:212'), /411 \(412-994\) 995/);
});

test('sorts files by time, and lists files without text or with text that ends before the line', () => {
  const lines = [at('a.c', 3, 5), at('b.c', 3, 9), at('c.h', 7, 2), at('c.h', 8, 2), at('b.c', 99, 1), at('', 0, 50)];
  const {files, textless} = listingsOf(answer(lines, [['a.c', 1, 5], ['b.c', 1, 5], ['d.c', 1, 5]]), none);
  assert.deepEqual(files.map(({file, totalNs}) => [file, totalNs]), [['b.c', 9], ['a.c', 5]]);
  assert.deepEqual(textless, [
    {file: 'c.h', totalNs: 4, lines: 2},
    {file: 'b.c', totalNs: 1, lines: 1},
  ]);
});

test('over the limit, draws the hottest lines and counts the rest', () => {
  const lines = Array.from({length: 100}, (_, i) => at('a.c', 1 + 20 * i, 100 - i));
  const {files} = listingsOf(answer(lines, [['a.c', 1, 2000]]), none, 60);
  const {parts, undrawn} = files[0]!;
  const drawn = parts.filter((part) => part.kind === 'line');
  assert.ok(drawn.length >= 60 && drawn.length < 75, `${drawn.length} lines`);
  assert.equal(drawn.filter(({samples}) => samples).length + undrawn, 100);
  assert.ok(drawn[0]!.samples, 'the hottest is there');
});

function symbolsOf(build_id: string, source: string): SymbolsAnswer {
  const symbols = {source, rank: 1, origin: 'node', functions: 1, bytes: 1, stored_at: 0, contested: false};
  const counts = {self_ns: 0, self_count: 0, total_ns: 1, total_count: 1, addresses: 1, unnamed_addresses: 0};
  const executables = [{build_id, name: 'x', path: '/x', ...counts, symbols}];
  return {total: {ns: 1, count: 1}, executables, truncated: 0, notices: []};
}

test('explains why there are no lines', () => {
  const why = (source: string, line = at('', 0, 1)) => whyNoLines([line], symbolsOf('a', source));
  assert.equal(why('dwarf', at('a.c', 1, 1)), null);
  assert.match(why('symtab')!.reason, /come from symbols, without lines/);
  assert.match(why('symtab')!.advice, /tributary symbols push.*--debug-dir/);
  assert.match(why('some_new')!.reason, /come from some new/);
  assert.match(why('kallsyms')!.reason, /kernel/);
  assert.match(why('dwarf')!.reason, /no line for this code/);
  assert.match(why('dwarf', at('a.c', 0, 1))!.reason, /names the file of this code, but not the line/);
  assert.match(whyNoLines([at('', 0, 1)], null)!.advice, /tributary symbols push/);
  assert.match(whyNoLines([at('', 0, 1, 1, 'b')], symbolsOf('a', 'dwarf'))!.reason, /has no line information/);
  assert.match(whyNothing('libx.so+0x10').reason, /no name/);
  assert.match(whyNothing('[unknown]').advice, /just-in-time/);
  assert.match(whyNothing('main').reason, /No sample/);
});
