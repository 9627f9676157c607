// What a rollout's mark on the timeline says (docs/rollouts.md).
import type {Rollout} from '../api/types.ts';
import {formatClock} from './format.ts';

const windowMs = 30 * 60e3;

function change(before: string, now: string): string {
  return before === now ? now : `${before || '?'} → ${now || '?'}`;
}

export function rolloutText(rollout: Rollout): string {
  const {previous} = rollout;
  const what =
    rollout.version !== previous.version
      ? `version ${change(previous.version, rollout.version)}`
      : rollout.images !== previous.images
        ? change(previous.images, rollout.images)
        : `template ${change(previous.hash, rollout.hash)}`;
  return `${formatClock(rollout.at)} ${rollout.kind} ${rollout.namespace}/${rollout.name}: ${what}`;
}

// The half hours on both sides of it, as far as they have passed.
export function rolloutRange(rollout: Rollout, now: number): {from: number; to: number} {
  return {from: rollout.at - windowMs, to: Math.min(rollout.at + windowMs, now)};
}

export interface Mark {
  left: number; // of the plot, in pixels
  rollouts: Rollout[];
}

// Those nearer to each other than `apart` pixels share a mark: a hundred workloads may change at once.
export function marksOf(
  rollouts: readonly Rollout[],
  toPixels: (ms: number) => number,
  width: number,
  apart: number,
): Mark[] {
  const marks: Mark[] = [];
  for (const rollout of [...rollouts].sort((a, b) => a.at - b.at)) {
    const left = Math.round(toPixels(rollout.at));
    if (left < 0 || left > width) continue;
    const last = marks.at(-1);
    if (last && left - last.left < apart) last.rollouts.push(rollout);
    else marks.push({left, rollouts: [rollout]});
  }
  return marks;
}
