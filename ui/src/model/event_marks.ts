// Marks of crashes, OOM kills and restarts on the timeline. Marks that would overlap are drawn as one group.
import type {EventMark, EventMarksAnswer} from '../api/types.ts';
import {formatCount, printable} from './format.ts';
import {amountOf, listOf, momentOf, placeOfProgram, programName, sourceOf, textOf} from './process_events.ts';

export type EventMarkKind = EventMark['kind'];

// Worst first. Groups draw and count their kinds in this order.
export const markKinds: readonly EventMarkKind[] = ['crash', 'oom', 'restart'];

const kindWords: Record<EventMarkKind, readonly [string, string]> = {
  crash: ['crash', 'crashes'],
  oom: ['OOM kill', 'OOM kills'],
  restart: ['restart', 'restarts'],
};

export type MarkCounts = Record<EventMarkKind, number>;

export interface EventMarks {
  marks: EventMark[];
  truncated: boolean;
}

// Drops marks without a time or of an unknown kind.
export function eventMarksOf(answer: EventMarksAnswer): EventMarks {
  const marks = listOf(answer.marks).flatMap((mark): EventMark[] => {
    const kind = markKinds.find((known) => known === textOf(mark.kind));
    const at = amountOf(mark.at);
    return kind && at > 0 ? [{...sourceOf(mark), at, kind, count: Math.max(1, amountOf(mark.count))}] : [];
  });
  return {marks: marks.sort((a, b) => a.at - b.at), truncated: answer.truncated === true};
}

export function countMarks(marks: readonly EventMark[]): MarkCounts {
  const counts: MarkCounts = {crash: 0, oom: 0, restart: 0};
  for (const {kind, count} of marks) counts[kind] += count;
  return counts;
}

// "3 crashes, 1 restart"; '' for no marks.
export function markCountsText(counts: MarkCounts): string {
  return markKinds
    .filter((kind) => counts[kind] > 0)
    .map((kind) => `${formatCount(counts[kind])} ${kindWords[kind][counts[kind] === 1 ? 0 : 1]}`)
    .join(', ');
}

// "crash (SIGSEGV)", "OOM kill", "3 restarts after exit code 1". The end in a restart is that of the process before it.
export function markWords({kind, count, signal_name, exit_code}: EventMark): string {
  const [one, many] = kindWords[kind];
  const words = count === 1 ? one : `${formatCount(count)} ${many}`;
  const end = signal_name ? printable(signal_name) : exit_code > 0 ? `exit code ${exit_code}` : '';
  if (end === '' || kind === 'oom') return words;
  return kind === 'restart' ? `${words} after ${end}` : `${words} (${end})`;
}

// Where it happened: "pod web-1 · host node-1 · pid 42".
export function markPlace(mark: EventMark): string {
  const host = printable(mark.host || mark.node_id);
  return [placeOfProgram(mark), host && `host ${host}`, mark.pid > 0 && `pid ${mark.pid}`].filter(Boolean).join(' · ');
}

export function markText(mark: EventMark, now: number): string {
  const place = markPlace(mark);
  return `${momentOf(mark.at, now)} ${programName(mark)}: ${markWords(mark)}${place && ` · ${place}`}`;
}

export interface MarkGroup {
  left: number; // pixels from the left edge of the plot to the middle of the first glyph
  marks: EventMark[];
  counts: MarkCounts;
}

export const glyphWidth = 11; // pixels, with the gap to the next glyph
const digitWidth = 6;
const groupGap = 8;
const shownCountMax = 99;

// The number beside the glyphs: only if they do not already show it.
export function groupNumber({counts}: Pick<MarkGroup, 'counts'>): string {
  const kinds = markKinds.filter((kind) => counts[kind] > 0).length;
  const all = markKinds.reduce((sum, kind) => sum + counts[kind], 0);
  if (all <= kinds) return '';
  return all > shownCountMax ? `${shownCountMax}+` : String(all);
}

export function groupWidth(group: Pick<MarkGroup, 'counts'>): number {
  const kinds = markKinds.filter((kind) => group.counts[kind] > 0).length;
  return kinds * glyphWidth + groupNumber(group).length * digitWidth;
}

function merged(a: MarkGroup, b: MarkGroup): MarkGroup {
  const marks = [...a.marks, ...b.marks];
  return {left: a.left, marks, counts: countMarks(marks)};
}

const reaches = (group: MarkGroup, left: number): boolean => left < group.left + groupWidth(group) + groupGap;

// `marks`: oldest first, at most a few thousand. `spare`: pixels to the right of the plot that a group may use.
export function groupMarks(
  marks: readonly EventMark[],
  toPixels: (ms: number) => number,
  width: number,
  spare: number,
): MarkGroup[] {
  const groups: MarkGroup[] = [];
  for (const mark of marks) {
    const left = Math.round(toPixels(mark.at));
    if (left < 0 || left > width) continue;
    const last = groups.at(-1);
    if (last && reaches(last, left)) {
      last.marks.push(mark);
      last.counts[mark.kind] += mark.count;
    } else {
      groups.push({left, marks: [mark], counts: countMarks([mark])});
    }
  }
  // A wide group at the right edge moves to the left, and may then meet the group before it.
  let end = groups.pop();
  while (end) {
    end = {...end, left: Math.max(0, Math.min(end.left, width + spare - groupWidth(end) + glyphWidth / 2))};
    const before = groups.at(-1);
    if (!before || !reaches(before, end.left)) return [...groups, end];
    groups.pop();
    end = merged(before, end);
  }
  return groups;
}
