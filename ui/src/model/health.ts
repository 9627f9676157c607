// The state of the whole system, as a level and a short title for the header.
import type {Counters, Fates, StatusAnswer} from '../api/types.ts';
import {formatCount, formatPercent} from './format.ts';
import {sum} from './stack_endings.ts';

export interface Health {
  level: 'good' | 'fair' | 'poor' | 'unknown';
  title: string;
}

// The reason of samples and events of containers that opted out of profiling. Nothing went wrong with them, so they do
// not count as loss here.
export const optedOut = 'opted_out';

export function lostTotal(fates: Fates): number {
  return sum(fates.lost ?? {}) - optedOutOf(fates);
}

export function optedOutOf(fates: Fates): number {
  return fates.lost?.[optedOut] ?? 0;
}

export function lostEventsOf({process_events}: Counters): number {
  return process_events ? lostTotal(process_events) : 0;
}

// Up to one lost sample or event in a thousand does not change the picture. Above that, the header reports the loss.
const lostShareFair = 0.001;

function lossOf(fates: Fates | undefined, things: string): string {
  if (!fates) return '';
  const lost = lostTotal(fates);
  return lost > fates.captured * lostShareFair ? `${formatPercent(lost, fates.captured, 1)} of ${things} lost` : '';
}

export function health(status: StatusAnswer | null, unreachable: boolean): Health {
  if (unreachable) return {level: 'poor', title: 'Reducer not reachable'};
  if (!status) return {level: 'unknown', title: 'Connecting…'};
  const connected = status.nodes.filter((node) => node.connected).length;
  if (status.nodes.length === 0) return {level: 'fair', title: 'No collector yet'};
  if (connected === 0) return {level: 'poor', title: 'No collector connected'};
  const loss = lossOf(status.total, 'samples') || lossOf(status.total.process_events, 'process events');
  if (loss) return {level: 'fair', title: loss};
  if (connected < status.nodes.length) {
    return {
      level: 'fair',
      title: `${formatCount(connected)} of ${formatCount(status.nodes.length)} collectors connected`,
    };
  }
  return {level: 'good', title: connected === 1 ? '1 collector' : `${formatCount(connected)} collectors`};
}
