// Why a function has no lines, or no text, and what to do about it.
import type {FunctionLine, LinesAnswer, SymbolsAnswer} from '../api/types.ts';
import {hasPlace} from './lines.ts';
import {sourceOf} from './symbol_words.ts';

export interface Why {
  reason: string;
  advice: string;
}

const sendDebugInformation =
  'The debug information of the executable has the lines. Send the debug file with “tributary symbols push”, ' +
  'drop it on Executables, or let the nodes (--upload-debug-info) or the reducer (--debug-dir, ' +
  '--debuginfod-urls) look for it. Earlier samples get their lines, too.';
const buildWithLines =
  'Assembler and code that the compiler generates have no lines. Other code was built without line ' +
  'information: build it with -g1 (gcc, clang and rustc), which does not slow the program down.';

// Explains why samples have no known line. Returns null if the lines of all samples are known.
export function whyNoLines(lines: readonly FunctionLine[], symbols: SymbolsAnswer | null): Why | null {
  const unplaced = lines.filter((line) => !hasPlace(line));
  if (unplaced.length === 0) return null;
  if (unplaced.every(({file}) => file !== '')) {
    return {reason: 'The debug information names the file of this code, but not the line.', advice: buildWithLines};
  }
  const ids = new Set(unplaced.flatMap(({addresses}) => addresses.map(({build_id}) => build_id)));
  const table = symbols?.executables.find(({build_id, symbols: known}) => known && ids.has(build_id))?.symbols;
  switch (table?.source) {
    case undefined:
      return {reason: 'The reducer has no line information for this code.', advice: sendDebugInformation};
    case 'kallsyms':
      return {
        reason: 'The nodes send the names of kernel and module functions without lines.',
        advice:
          'Debug files of kernels and modules (vmlinux, .ko.debug) have lines. ' +
          'Send them in the same way as the debug files of programs.',
      };
    case 'dwarf':
    case 'pclntab':
      return {reason: 'The debug information has no line for this code.', advice: buildWithLines};
    default:
      return {
        reason: `These names come from ${sourceOf(table!.source).words}, without lines.`,
        advice: sendDebugInformation,
      };
  }
}

// Returns '' if no text is being fetched.
export function comingSources({sources_coming: {length: files}}: LinesAnswer): string {
  if (files === 0) return '';
  const subject = files === 1 ? 'one file' : `${files} files`;
  return `The text of ${subject} is being fetched from a debuginfod server.`;
}

// Explains why no sample is in a function of this name.
export function whyNothing(name: string): Why {
  if (name === '[unknown]') {
    return {
      reason: 'No file is known for these addresses.',
      advice: 'Code that a program generates at run time, such as that of a just-in-time compiler, has no lines.',
    };
  }
  if (/\+0x[0-9a-f]+$/.test(name)) {
    return {reason: 'This code has no name, so it has no lines.', advice: sendDebugInformation};
  }
  return {
    reason: 'No sample of this selection is in a function of that name.',
    advice: 'Try a longer range or fewer filters. A function gets another name when better symbols arrive.',
  };
}
