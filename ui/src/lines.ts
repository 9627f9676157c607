// The lines of the function that the user chose. They are requested when a function is chosen, and with every refresh.
import {signal} from '@preact/signals';
import type {LinesAnswer} from './api/types.ts';
import {load, nothing, type Loadable} from './loadable.ts';

export const functionLines = signal<Loadable<LinesAnswer>>(nothing);
export const linesLoading = signal(false);

// While the reducer fetches text, the lines are requested again, but not for ever: a debuginfod server may be slow.
const comingAgainMs = 2_000;
const comingAgainMax = 15;

let asking: {question: string; abort: AbortController; done: Promise<void>} | null = null;
let answered = ''; // the question whose answer is on screen
let again: ReturnType<typeof setTimeout> | undefined;
let timesAgain = 0;

export function forgetLines(): void {
  clearTimeout(again);
  asking?.abort.abort();
  asking = null;
  answered = '';
  linesLoading.value = false;
  functionLines.value = nothing;
}

function askAgain(question: string, parameters: Record<string, string>): void {
  if ((functionLines.value.value?.sources_coming.length ?? 0) === 0 || timesAgain >= comingAgainMax) return;
  again = setTimeout(() => {
    if (question !== answered || asking !== null) return;
    timesAgain++;
    void loadLines(parameters);
  }, comingAgainMs);
}

// A question that is in flight is not sent twice.
export function loadLines(parameters: Record<string, string>): Promise<void> {
  const question = JSON.stringify(parameters);
  if (asking?.question === question) return asking.done;
  asking?.abort.abort();
  clearTimeout(again);
  const keepOld = question === answered;
  if (!keepOld) {
    functionLines.value = nothing;
    timesAgain = 0;
  }
  linesLoading.value = true;
  const abort = new AbortController();
  const same = (answer: LinesAnswer) => answer;
  const done = load(functionLines, 'lines', parameters, abort.signal, same, keepOld).then(() => {
    if (abort.signal.aborted) return;
    asking = null;
    answered = question;
    linesLoading.value = false;
    askAgain(question, parameters);
  });
  asking = {question, abort, done};
  return done;
}
