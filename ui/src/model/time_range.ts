// A time range in the form of the API: each end is in unix milliseconds or relative to the server's `now`.
import {formatClock, formatDate} from './format.ts';

export interface TimeRange {
  from: string;
  to: string;
}

export const presets: readonly {from: string; label: string}[] = [
  {from: '-1m', label: 'Last minute'},
  {from: '-5m', label: 'Last 5 minutes'},
  {from: '-15m', label: 'Last 15 minutes'},
  {from: '-1h', label: 'Last hour'},
  {from: '-6h', label: 'Last 6 hours'},
  {from: '-24h', label: 'Last 24 hours'},
];

export const defaultRange: TimeRange = {from: '-15m', to: 'now'};

const relative = /^(?:now)?-(\d{1,9})(ms|s|m|h|d)$/;
const unitMs: Record<string, number> = {ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3};

// Returns milliseconds since the epoch, with `nowMs` as `now`. Returns null if `text` is not a point in time.
export function resolveTime(text: string, nowMs: number): number | null {
  if (text === 'now') return nowMs;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const match = relative.exec(text);
  return match ? nowMs - Number(match[1]) * unitMs[match[2]!]! : null;
}

export function isValidRange(range: TimeRange): boolean {
  const now = Date.now();
  const from = resolveTime(range.from, now);
  const to = resolveTime(range.to, now);
  return from !== null && to !== null && from < to;
}

// Returns whether the range moves with the clock, so that the page can follow it live: relative begin, end now.
export function canFollow(range: TimeRange): boolean {
  return range.to === 'now' && relative.test(range.from);
}

export function absoluteRange(fromMs: number, toMs: number): TimeRange {
  const from = Math.max(0, Math.floor(fromMs));
  return {from: String(from), to: String(Math.max(from + 1, Math.ceil(toMs)))};
}

// Returns a range of twice the length around the same middle, or earlier, so that it does not end after now.
export function zoomedOut(range: TimeRange, nowMs: number): TimeRange {
  const from = resolveTime(range.from, nowMs) ?? nowMs - 900e3;
  const to = resolveTime(range.to, nowMs) ?? nowMs;
  const half = (to - from) / 2;
  const end = Math.min(to + half, Math.max(nowMs, to));
  return absoluteRange(end - 4 * half, end);
}

export function describeRange(range: TimeRange): string {
  const preset = presets.find((candidate) => candidate.from === range.from && range.to === 'now');
  if (preset) return preset.label;
  const now = Date.now();
  const from = resolveTime(range.from, now);
  const to = resolveTime(range.to, now);
  if (from === null || to === null) return `${range.from} to ${range.to}`;
  if (range.to === 'now') return `Last ${range.from.replace(/^(now)?-/, '')}`;
  const toDate = formatDate(from) === formatDate(to) ? '' : `${formatDate(to)} `;
  return `${formatDate(from)} ${formatClock(from)} – ${toDate}${formatClock(to)}`;
}

// Formats the value of <input type="datetime-local" step="1">: local time without a zone.
export function toLocalInput(ms: number): string {
  return `${formatDate(ms)}T${formatClock(ms)}`;
}

export function fromLocalInput(text: string): number | null {
  const ms = new Date(text).getTime();
  return text === '' || Number.isNaN(ms) ? null : ms;
}
