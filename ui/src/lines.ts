// The lines of the function that the user wants to see: asked for when one is chosen, and with everything else.
import {signal} from '@preact/signals';
import type {LinesAnswer} from './api/types.ts';
import {load, nothing, type Loadable} from './loadable.ts';

export const functionLines = signal<Loadable<LinesAnswer>>(nothing);
export const linesLoading = signal(false);

let asking: {question: string; abort: AbortController; done: Promise<void>} | null = null;
let answered = ''; // the question that is answered on screen

export function forgetLines(): void {
  asking?.abort.abort();
  asking = null;
  answered = '';
  linesLoading.value = false;
  functionLines.value = nothing;
}

// A question that is under way is not asked twice.
export function loadLines(parameters: Record<string, string>): Promise<void> {
  const question = JSON.stringify(parameters);
  if (asking?.question === question) return asking.done;
  asking?.abort.abort();
  const keepOld = question === answered;
  if (!keepOld) functionLines.value = nothing;
  linesLoading.value = true;
  const abort = new AbortController();
  const same = (answer: LinesAnswer) => answer;
  const done = load(functionLines, 'lines', parameters, abort.signal, same, keepOld).then(() => {
    if (abort.signal.aborted) return;
    asking = null;
    answered = question;
    linesLoading.value = false;
  });
  asking = {question, abort, done};
  return done;
}
