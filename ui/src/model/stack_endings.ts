// How the walk of a stack can end, in words: what it means and what to do. And who is to blame.
import type {StackHealthExecutable} from '../api/types.ts';
import {formatPercent} from './format.ts';
import type {Matcher} from './selector.ts';

export interface StackEnding {
  words: string;
  level: 'good' | 'unknown' | 'poor';
  meaning: string;
  advice: string;
}

export const stackEndings: Record<string, StackEnding> = {
  complete: {
    words: 'complete',
    level: 'good',
    meaning: 'The outermost frame is the start of a thread or process.',
    advice: '',
  },
  kernel_only: {
    words: 'kernel only',
    level: 'good',
    meaning: 'A kernel thread, or a moment at which the process has no user stack. Not counted in the share.',
    advice: '',
  },
  unknown: {
    words: 'end not known',
    level: 'unknown',
    meaning: 'The collector did not say how the walk ended.',
    advice: 'Update the collector of that machine if it is older than this reducer.',
  },
  truncated_depth: {
    words: 'deeper than the limit',
    level: 'poor',
    meaning: 'The stack has more frames than a walk takes: the outermost callers are missing.',
    advice: 'Look for a deep recursion in the program.',
  },
  unreadable_memory: {
    words: 'memory not readable',
    level: 'poor',
    meaning: 'The next frame lies in memory that is paged out or not there.',
    advice: 'A few are normal. Many in one program: it swaps, or its stack is damaged.',
  },
  no_mapping: {
    words: 'outside every mapping',
    level: 'poor',
    meaning: 'A return address points where nothing is mapped, as far as the collector knew at that moment.',
    advice: 'Normal right after a start or dlopen. If it lasts, the stack is damaged or its code was unmapped.',
  },
  no_table: {
    words: 'unwind table not loaded yet',
    level: 'poor',
    meaning: 'The collector had not compiled this file’s unwind information in time.',
    advice: 'Normal for the first second of a new program. If it lasts, raise --unwind-memory on the collector.',
  },
  bad_row: {
    words: 'unwind information not usable',
    level: 'poor',
    meaning: 'The file’s unwind information says something here that cannot be followed.',
    advice: 'Hand-written assembler is the usual cause; report the file if it is a common one.',
  },
  frame_pointer_lost: {
    words: 'no unwind information',
    level: 'poor',
    meaning: 'Code without unwind information, and its chain of frame pointers stops too early.',
    advice:
      'Build it with -fasynchronous-unwind-tables or -fno-omit-frame-pointer; let a JIT keep frame pointers ' +
      '(Java: -XX:+PreserveFramePointer).',
  },
  no_progress: {
    words: 'walk went in circles',
    level: 'poor',
    meaning: 'The caller’s frame would not lie above its callee’s.',
    advice: 'Seen where a program switches stacks by itself, or with damaged stacks.',
  },
  stale_mapping: {
    words: 'mapping was replaced',
    level: 'poor',
    meaning: 'A file was unmapped or replaced during the walk: the stack is cut there rather than named wrongly.',
    advice: 'Normal around exec, dlopen and dlclose.',
  },
};

export function endingOf(name: string): StackEnding {
  return (
    stackEndings[name] ?? {
      words: name.replaceAll('_', ' '),
      level: 'poor',
      meaning: 'The reducer tells an ending that this page does not know.',
      advice: 'Reload the page.',
    }
  );
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

// '' when every stack ended well, as far as is known: an end that nobody told is held against no one.
export function cutShort(stacks: Record<string, number>): string {
  const poor = Object.entries(stacks).filter(([ending]) => endingOf(ending).level === 'poor');
  const count = sum(Object.fromEntries(poor));
  return count > 0 ? `${formatPercent(count, sum(stacks), 1)} of stacks cut short` : '';
}

const levels = ['good', 'unknown', 'poor'];

// The endings that occur: those that are as they should be first, of each kind the most frequent first.
export function inOrder(endings: Record<string, number>): [string, number][] {
  const rank = (name: string) => levels.indexOf(endingOf(name).level);
  return Object.entries(endings)
    .filter(([, count]) => count > 0)
    .sort((a, b) => rank(a[0]) - rank(b[0]) || b[1] - a[1]);
}

export interface CompleteShare {
  level: 'good' | 'fair' | 'poor';
  text: string;
}

// null: no stack has a user part, there is nothing to judge.
export function completeShare(endings: Record<string, number>): CompleteShare | null {
  const complete = endings.complete ?? 0;
  const walked = sum(endings) - (endings.kernel_only ?? 0);
  if (walked <= 0) return null;
  const share = complete / walked;
  return {
    level: share >= 0.99 ? 'good' : share >= 0.9 ? 'fair' : 'poor',
    text: formatPercent(complete, walked, 1),
  };
}

const escapeExpression = (text: string) => text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');

// What to filter by to see the stacks that an executable cuts short: the program of that name where there is one, else
// the programs that it happens in. null: no program is known.
export function matcherOf(executable: StackHealthExecutable): Matcher | null {
  const {name, programs} = executable;
  const wanted = programs.includes(name) ? [name] : programs;
  if (wanted.length === 0) return null;
  const label = 'process_executable_name';
  return wanted.length === 1
    ? {label, operator: '=', value: wanted[0]!}
    : {label, operator: '=~', value: wanted.map(escapeExpression).join('|')};
}
