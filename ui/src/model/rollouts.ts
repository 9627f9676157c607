// The marks of rollouts on the timeline, and their texts (docs/rollouts.md).
import type {Rollout} from '../api/types.ts';
import {formatClock} from './format.ts';

const windowMs = 30 * 60e3;

function change(before: string, now: string): string {
  return before === now ? now : `${before || '?'} → ${now || '?'}`;
}

function summary(rollout: Rollout): string {
  const {previous} = rollout;
  if (rollout.version !== previous.version) return `version ${change(previous.version, rollout.version)}`;
  if (rollout.images !== previous.images) return change(previous.images, rollout.images);
  const hash = change(previous.hash, rollout.hash);
  if (rollout.kind !== 'service') return `template ${hash}`;
  return `${rollout.images || rollout.executable} ${hash}`;
}

export function rolloutText(rollout: Rollout): string {
  const {kind, namespace, name, environment} = rollout;
  const workload = (namespace && `${namespace}/`) + name + (environment && ` (${environment})`);
  return `${formatClock(rollout.at)} ${kind} ${workload}: ${summary(rollout)}`;
}

// Returns the half hour before the rollout and the half hour after it, but nothing after `now`.
export function rolloutRange(rollout: Rollout, now: number): {from: number; to: number} {
  return {from: rollout.at - windowMs, to: Math.min(rollout.at + windowMs, now)};
}

export interface Mark {
  left: number; // pixels from the left edge of the plot
  rollouts: Rollout[];
}

// Rollouts closer together than `apart` pixels share a mark: a hundred workloads may change at once.
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
