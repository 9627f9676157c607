// Process events: the marks of the timeline, the programs whose processes ended, and the notable endings. They have
// their own requests, which nothing else waits for: a slow answer must not delay the flame graph.
import {computed, signal, type Signal} from '@preact/signals';
import type {EventMarksAnswer, ProcessEventsAnswer, ProgramsAnswer} from './api/types.ts';
import {load, nothing, type Loadable} from './loadable.ts';
import {eventMarksOf, type EventMarks} from './model/event_marks.ts';
import {endingsOf, programsOf, type Endings, type Programs} from './model/process_events.ts';

export const eventMarks = signal<Loadable<EventMarks>>(nothing);
export const programs = signal<Loadable<Programs>>(nothing);
export const endings = signal<Loadable<Endings>>(nothing);

export const marksMax = 1000;
export const programsMax = 200;
export const endingsPage = 50;
export const endingsMax = 500;
const notableKinds = 'crash,oom,failed';

// While the card is closed, its line is requested only this often. A reducer without process events is not asked more
// often either.
const slowRefreshMs = 60_000;

// A request of one kind. A question that is in flight is not sent twice. Another question aborts it.
class Slot {
  readonly busy = signal(false);
  private running: {question: string; abort: AbortController} | null = null;

  ask(question: string, send: (abort: AbortSignal) => Promise<void>): void {
    if (this.running?.question === question) return;
    this.running?.abort.abort();
    const running = {question, abort: new AbortController()};
    this.running = running;
    this.busy.value = true;
    void send(running.abort.signal).finally(() => {
      if (this.running !== running) return;
      this.running = null;
      this.busy.value = false;
    });
  }
}

const [marksSlot, programsSlot, endingsSlot] = [new Slot(), new Slot(), new Slot()];
export const eventsLoading = computed(
  () => marksSlot.busy.value || programsSlot.busy.value || endingsSlot.busy.value,
);
export const endingsLoading = endingsSlot.busy;

// A reducer of an earlier release does not know these requests.
const isMissing = <T>({value}: Signal<Loadable<T>>): boolean => value.error?.status === 404;
export const eventsMissing = computed(() => isMissing(eventMarks) || isMissing(programs));
let askedAt = -Infinity;

// Range and filters of the answers on screen.
let marksOfQuestion = '';
let programsOfQuestion = '';
let programsLoadedAt = -Infinity;
let endingsOfQuestion = '';

type Parameters = Record<string, string>;

function askMarks(parameters: Parameters): void {
  const question = JSON.stringify(parameters);
  marksSlot.ask(question, async (abort) => {
    const limited = {...parameters, limit: String(marksMax)};
    const keepOld = question === marksOfQuestion;
    await load<EventMarksAnswer, EventMarks>(eventMarks, 'events/marks', limited, abort, eventMarksOf, keepOld);
    if (!abort.aborted) marksOfQuestion = question;
  });
}

function askPrograms(parameters: Parameters, isOpen: boolean, sort: string): void {
  const question = JSON.stringify(parameters);
  const {value, error} = programs.value;
  const isFresh = value && !error && question === programsOfQuestion && Date.now() - programsLoadedAt < slowRefreshMs;
  if (!isOpen && isFresh) return;
  const limited = {...parameters, sort, limit: String(isOpen ? programsMax : 1)};
  programsSlot.ask(JSON.stringify(limited), async (abort) => {
    const keepOld = question === programsOfQuestion;
    const convert = (answer: ProgramsAnswer) => programsOf(answer, isOpen);
    await load<ProgramsAnswer, Programs>(programs, 'events/programs', limited, abort, convert, keepOld);
    if (abort.aborted) return;
    programsOfQuestion = question;
    programsLoadedAt = Date.now();
  });
}

// A refresh requests as many endings as are shown, so that the list does not shrink.
function askEndings(parameters: Parameters): void {
  const question = JSON.stringify(parameters);
  const isSame = question === endingsOfQuestion;
  if (isSame && endingsSlot.busy.value) return;
  const shown = isSame ? (endings.value.value?.events.length ?? 0) : 0;
  const limit = Math.min(endingsMax, Math.max(endingsPage, shown));
  const limited = {...parameters, kind: notableKinds, limit: String(limit)};
  endingsSlot.ask(JSON.stringify(limited), async (abort) => {
    await load<ProcessEventsAnswer, Endings>(endings, 'events', limited, abort, endingsOf, isSame);
    if (!abort.aborted) endingsOfQuestion = question;
  });
}

// Requests the next page and appends it.
export function loadMoreEndings(): void {
  const before = endings.value.value;
  if (!before || before.next === '' || before.events.length >= endingsMax) return;
  const limit = Math.min(endingsPage, endingsMax - before.events.length);
  const limited = {
    ...(JSON.parse(endingsOfQuestion) as Parameters),
    kind: notableKinds,
    limit: String(limit),
    cursor: before.next,
  };
  const append = (answer: ProcessEventsAnswer): Endings => {
    const page = endingsOf(answer);
    return {...page, events: [...before.events, ...page.events]};
  };
  endingsSlot.ask(JSON.stringify(limited), (abort) => load(endings, 'events', limited, abort, append));
}

// `parameters`: range and filters. `isOpen`: the card is open. `sort`: which programs come first if there are too many.
export function refreshEvents(parameters: Parameters, isOpen: boolean, sort: 'processes' | 'cpu'): void {
  if (eventsMissing.value && Date.now() - askedAt < slowRefreshMs) return;
  askedAt = Date.now();
  askMarks(parameters);
  askPrograms(parameters, isOpen, sort);
  if (isOpen) askEndings(parameters);
}
