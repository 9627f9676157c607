// The state of the whole system, as a level and a short title for the header.
import type {Counters, StatusAnswer} from '../api/types.ts';
import {formatCount, formatPercent} from './format.ts';
import {sum} from './stack_endings.ts';

export interface Health {
  level: 'good' | 'fair' | 'poor' | 'unknown';
  title: string;
}

export function lostTotal(counters: Counters): number {
  return sum(counters.lost);
}

// Up to one lost sample in a thousand does not change the picture. Above that, the header reports the loss.
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
