// The ways in which a stack walk can end: a short name, the meaning and what to do. Also the filter for the programs
// with incomplete stacks.
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
    meaning:
      'A kernel thread, or a process that had no user stack at that moment. ' +
      'The share of complete stacks does not count these stacks.',
    advice: '',
  },
  unknown: {
    words: 'unknown ending',
    level: 'unknown',
    meaning: 'The collector did not report how the walk ended.',
    advice: 'If the collector of that machine is older than this reducer, update it.',
  },
  truncated_depth: {
    words: 'deeper than the limit',
    level: 'poor',
    meaning: 'The stack has more frames than the collector walks. The outermost callers are missing.',
    advice: 'Look for deep recursion in the program.',
  },
  unreadable_memory: {
    words: 'memory not readable',
    level: 'poor',
    meaning: 'The next frame is in memory that is paged out or invalid.',
    advice:
      'A few such stacks are normal. If one program has many, its memory is swapped out, or its stack is damaged.',
  },
  no_mapping: {
    words: 'outside every mapping',
    level: 'poor',
    meaning: 'A return address is outside every mapping that the collector knew at that moment.',
    advice:
      'Normal right after a program start or dlopen. ' +
      'If it continues, the stack is damaged, or the code of a caller was unmapped.',
  },
  no_table: {
    words: 'unwind table not loaded yet',
    level: 'poor',
    meaning: 'The collector had not yet loaded the unwind table of the file in which the stack ends.',
    advice: 'Normal for the first second of a new program. If it continues, raise --unwind-memory on the collector.',
  },
  bad_row: {
    words: 'unwind information not usable',
    level: 'poor',
    meaning: 'The unwind information of the file in which the stack ends has a rule that the collector cannot follow.',
    advice: 'The usual cause is hand-written assembler. If the file is a common program or library, report a bug.',
  },
  frame_pointer_lost: {
    words: 'no unwind information',
    level: 'poor',
    meaning: 'The code has no unwind information, and its chain of frame pointers ends too early.',
    advice:
      'Build the code with -fasynchronous-unwind-tables or -fno-omit-frame-pointer. For code from a JIT compiler, ' +
      'switch on frame pointers (Java: -XX:+PreserveFramePointer).',
  },
  no_progress: {
    words: 'walk made no progress',
    level: 'poor',
    meaning: 'The frame found for the caller is not above the frame of the function that it calls.',
    advice: 'The program switches stacks by itself, or its stack is damaged.',
  },
  stale_mapping: {
    words: 'mapping was replaced',
    level: 'poor',
    meaning: 'A file was unmapped or replaced during the walk. The stack ends at this file, to avoid wrong names.',
    advice: 'Normal around exec, dlopen and dlclose.',
  },
  cut_by_quota: {
    words: 'cut by the reducer',
    level: 'poor',
    meaning:
      'The reducer had no room for more different stacks of this day. The innermost frames are missing: the stack ' +
      'counts for a function that called them.',
    advice:
      'The status shows whether the machine used up its own share (trie_quota) or all machines together filled the ' +
      'shard (trie_full). If the machine is in order, raise --trie-nodes-per-day on the reducer.',
  },
  runtime_lost: {
    words: 'language frames missing',
    level: 'poor',
    meaning:
      'The native stack is complete, but frames of a language runtime, such as Python functions, or their names are ' +
      'missing.',
    advice:
      'A few such stacks are normal while a program starts or ends. If one program has many, look at the metrics ' +
      'of the collector for this runtime.',
  },
};

export function endingOf(name: string): StackEnding {
  return (
    stackEndings[name] ?? {
      words: name.replaceAll('_', ' '),
      level: 'poor',
      meaning: 'The reducer reports an ending that this page does not know.',
      advice: 'Reload the page.',
    }
  );
}

export function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

// Returns '' if no stack was cut short. A stack with an unknown ending does not count as cut short.
export function cutShort(stacks: Record<string, number>): string {
  const poor = Object.entries(stacks).filter(([ending]) => endingOf(ending).level === 'poor');
  const count = sum(Object.fromEntries(poor));
  return count > 0 ? `${formatPercent(count, sum(stacks), 1)} of stacks cut short` : '';
}

const levels = ['good', 'unknown', 'poor'];

// Returns the endings that occur: good ones first, then unknown, then poor. Within a level, the most frequent come
// first.
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

// Returns null if no stack has a user part.
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

// Returns the filter for the stacks that `executable` cuts short: the program of the same name if there is one, else
// all programs with such stacks. Returns null if no program is known.
export function matcherOf(executable: StackHealthExecutable): Matcher | null {
  const {name, programs} = executable;
  const wanted = programs.includes(name) ? [name] : programs;
  if (wanted.length === 0) return null;
  const label = 'process_executable_name';
  return wanted.length === 1
    ? {label, operator: '=', value: wanted[0]!}
    : {label, operator: '=~', value: wanted.map(escapeExpression).join('|')};
}
