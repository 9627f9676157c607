// One word about the whole, for the header.
import type {Counters, StatusAnswer} from '../api/types.ts';
import {formatCount, formatPercent} from './format.ts';

export interface Health {
  level: 'good' | 'fair' | 'poor' | 'unknown';
  title: string;
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

export function lostTotal(counters: Counters): number {
  return sum(counters.lost);
}

// How the walk of a stack can end, in words, and whether that is as it should be. Without unwind information the end of a
// chain of frame pointers cannot be told from a break in it: neither good nor bad.
export const stackEndings: Record<string, {words: string; level: 'good' | 'unknown' | 'poor'}> = {
  complete: {words: 'complete stacks', level: 'good'},
  kernel_only: {words: 'kernel only, complete', level: 'good'},
  unknown: {words: 'end not certain', level: 'unknown'},
  truncated_depth: {words: 'deeper than the limit', level: 'poor'},
  unreadable_memory: {words: 'memory not readable', level: 'poor'},
  no_mapping: {words: 'outside every mapping', level: 'poor'},
};

// '' when every stack ended well, as far as is known.
export function cutShort(stacks: Record<string, number>): string {
  const poor = Object.entries(stacks).filter(([ending]) => (stackEndings[ending]?.level ?? 'poor') === 'poor');
  const count = sum(Object.fromEntries(poor));
  return count > 0 ? `${formatPercent(count, sum(stacks), 1)} of stacks cut short` : '';
}

// One sample in a thousand lost still gives the right picture; more is worth a look.
const lostShareFair = 0.001;

export function health(status: StatusAnswer | null, unreachable: boolean): Health {
  if (unreachable) return {level: 'poor', title: 'Reducer not reachable'};
  if (!status) return {level: 'unknown', title: 'Connecting…'};
  const connected = status.nodes.filter((node) => node.connected).length;
  if (status.nodes.length === 0) return {level: 'fair', title: 'No collector yet'};
  if (connected === 0) return {level: 'poor', title: 'No collector connected'};
  const lost = lostTotal(status.total);
  if (lost > status.total.captured * lostShareFair) {
    return {level: 'fair', title: `${formatPercent(lost, status.total.captured, 1)} of samples lost`};
  }
  if (connected < status.nodes.length) {
    return {
      level: 'fair',
      title: `${formatCount(connected)} of ${formatCount(status.nodes.length)} collectors connected`,
    };
  }
  return {level: 'good', title: connected === 1 ? '1 collector' : `${formatCount(connected)} collectors`};
}
