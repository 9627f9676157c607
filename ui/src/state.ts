// The state of the page. `view` is the choice of the user, and is stored in the address. The rest are answers of the
// server.
import {computed, effect, signal, untracked, type Signal} from '@preact/signals';
import {refusal} from './api/session.ts';
import type {
  FlameGraphAnswer,
  RolloutsAnswer,
  SampleType,
  SeriesAnswer,
  StackHealthAnswer,
  StatusAnswer,
  SymbolsAnswer,
  TimelineAnswer,
  TopAnswer,
  TypesAnswer,
  Weight,
} from './api/types.ts';
import {refreshEvents} from './events.ts';
import type {Theme} from './flame/colors.ts';
import {foldFunctions, type FunctionRow} from './flame/fold.ts';
import {buildGraph, findByKey, type FlameGraph} from './flame/graph.ts';
import {toKinds, unknownKind} from './flame/kind.ts';
import {compileSearch, findMatches} from './flame/search.ts';
import {forgetLines, loadLines} from './lines.ts';
import {load, nothing, type Loadable} from './loadable.ts';
import {dimensionLabels} from './model/filter_options.ts';
import {askedType, cpuTime, typesOf} from './model/measure.ts';
import {formatSelector, parseSelector, replaceMatchers, type Matcher} from './model/selector.ts';
import {shortName} from './model/short_name.ts';
import {formatHash, parseHash, type ViewState} from './model/view_state.ts';

// The length of names is a personal preference: if the address does not contain it, the last choice applies.
const storedNames = () => (localStorage.getItem('names') === 'short' ? 'short' : 'full');
export const view = signal<ViewState>(parseHash(location.hash, storedNames()));

// A change of these gets its own history entry, so that the browser's Back reverts it.
const remembered: (keyof ViewState)[] = ['from', 'to', 'query', 'type', 'zoom', 'panes', 'lines', 'linesIn', 'frames', 'group', 'language'];

export function setView(patch: Partial<ViewState>): void {
  const before = view.value;
  const after = {...before, ...patch};
  if (patch.names) localStorage.setItem('names', patch.names);
  view.value = after;
  const address = `${location.pathname}${location.search}${formatHash(after)}`;
  if (formatHash(before) === formatHash(after)) return;
  if (remembered.some((name) => before[name] !== after[name])) history.pushState(null, '', address);
  else history.replaceState(null, '', address);
}

export interface GraphData {
  graph: FlameGraph;
  total: Weight;
  from: number;
  to: number;
  coveredFrom?: number;
}

export const types = signal<Loadable<SampleType[]>>(nothing);
export const graphData = signal<Loadable<GraphData>>(nothing);
export const timeline = signal<Loadable<TimelineAnswer>>(nothing);
export const rollouts = signal<Loadable<RolloutsAnswer>>(nothing);
export const stackHealth = signal<Loadable<StackHealthAnswer>>(nothing);
export const series = signal<Loadable<SeriesAnswer>>(nothing);
export const status = signal<Loadable<StatusAnswer>>(nothing);
export const symbols = signal<Loadable<SymbolsAnswer>>(nothing);
export const serverTop = signal<FunctionRow[] | null>(null); // only when the graph was truncated
export const loading = signal(false);
export const loadedAt = signal(0);

export const selector = computed(() => parseSelector(view.value.query));
export const queryError = computed(() => {
  const parsed = selector.value;
  if ('error' in parsed) return parsed.error;
  const error = graphData.value.error;
  const isOfOther = /^(type|language):/.test(error?.message ?? '');
  return view.value.query !== '' && error?.status === 400 && !isOfOther ? error.message : null;
});

// The type of samples in all requests; '': the server's default.
export const shownType = computed(() => askedType(view.value.type, types.value.value ?? []));
export const measure = computed(() => graphData.value.value?.graph.measure ?? cpuTime);

export const zoomNode = computed(() => {
  const data = graphData.value.value;
  return data ? findByKey(data.graph, view.value.zoom) : 0;
});

// Returns a name as it is drawn. Tooltips, details and search have the full name.
const short = computed(() => view.value.names === 'short');
export const shownName = (name: string): string => (short.value ? shortName(name) : name);
const graphNames = computed(() => graphData.value.value?.graph.names ?? []);
export const labels = computed((): readonly string[] => (short.value ? graphNames.value.map(shortName) : graphNames.value));
// Languages of the reducer's frames, for the filter.
export const languages = computed((): string[] => {
  const kinds = graphData.value.value?.graph.kinds ?? [];
  return [...new Set(kinds.flatMap(({language}) => (language === undefined ? [] : [language])))];
});

const searchTerm = computed(() => view.value.search);
export const search = computed(() => compileSearch(searchTerm.value));
export const matches = computed(() => {
  const data = graphData.value.value;
  return data && search.value.test ? findMatches(data.graph, search.value.test, zoomNode.value) : null;
});
export const functions = computed((): FunctionRow[] => {
  const data = graphData.value.value;
  if (!data) return [];
  return zoomNode.value === 0 && serverTop.value ? serverTop.value : foldFunctions(data.graph, zoomNode.value);
});

// Theme: the system's, unless the user chose one on the page.
export type ThemeChoice = 'system' | Theme;
const darkSystem = matchMedia('(prefers-color-scheme: dark)');
const systemDark = signal(darkSystem.matches);
const stored = localStorage.getItem('theme');
export const themeChoice = signal<ThemeChoice>(stored === 'light' || stored === 'dark' ? stored : 'system');
export const theme = computed((): Theme =>
  themeChoice.value === 'system' ? (systemDark.value ? 'dark' : 'light') : themeChoice.value,
);

export const refreshMs = 5000;
let running: AbortController | null = null;
let timer = 0;
let answered = ''; // the question whose answers are on screen

function toGraphData(answer: FlameGraphAnswer): GraphData {
  return {graph: buildGraph(answer), total: answer.total, from: answer.from, to: answer.to, coveredFrom: answer.covered_from};
}

function toRows(answer: TopAnswer): FunctionRow[] {
  const kinds = toKinds(answer.kinds);
  return answer.functions.map((f) => ({
    name: f.name,
    place: f.line ? `${f.file || '?'}:${f.line}` : '',
    executable: f.executable,
    kind: kinds[f.kind] ?? unknownKind,
    selfNs: f.self_ns,
    selfCount: f.self_count,
    totalNs: f.total_ns,
    totalCount: f.total_count,
  }));
}

const topLimit = '500';

async function loadTop(parameters: Record<string, string>, abort: AbortSignal): Promise<void> {
  const top: Signal<Loadable<FunctionRow[]>> = signal(nothing);
  if ((graphData.value.value?.graph.truncatedNodes ?? 0) > 0) {
    await load<TopAnswer, FunctionRow[]>(top, 'top', {...parameters, limit: topLimit}, abort, toRows);
  }
  if (!abort.aborted) serverTop.value = top.value.value;
}

export const executablesMax = 300;
const closedRefreshMs = 60_000;
let symbolsLoadedAt = -Infinity;

// Names change slowly. While the card is closed, its line is requested only every closedRefreshMs.
function wantsSymbols(sameQuestion: boolean): boolean {
  const {value, error} = symbols.value;
  if (view.value.executables === 'open' || !sameQuestion || !value || error) return true;
  return Date.now() - symbolsLoadedAt >= closedRefreshMs;
}

async function loadSymbols(parameters: Record<string, string>, abort: AbortSignal, keepOld: boolean): Promise<void> {
  const limited = {...parameters, limit: String(executablesMax)};
  await load<SymbolsAnswer, SymbolsAnswer>(symbols, 'symbols', limited, abort, (answer) => answer, keepOld);
  if (!abort.aborted) symbolsLoadedAt = Date.now();
}

// Call it when symbol tables have arrived: the graph has other names now.
export function symbolsChanged(): Promise<void> {
  symbolsLoadedAt = -Infinity;
  return refresh();
}

function inRange(): Record<string, string> {
  const {from, to} = view.value;
  return shownType.value === '' ? {from, to} : {from, to, type: shownType.value};
}

// Returns the parameters of every request about samples.
function selected(): Record<string, string> {
  const {query} = view.value;
  return query.trim() === '' ? inRange() : {...inRange(), query};
}

// Returns the parameters of requests for frames.
function framed(): Record<string, string> {
  const {frames, group, language} = view.value;
  return {
    ...selected(),
    ...(frames === 'all' && {frames}),
    ...(group === 'line' && {lines: '1'}),
    ...(language !== '' && {language}),
  };
}

// `name`: the function's name as the server sent it; `executable`: the executable that contains it, '': any.
export function openLines(name: string, executable: string): void {
  setView({lines: name, linesIn: executable, line: ''});
}

export function closeLines(): void {
  setView({lines: '', linesIn: '', line: ''});
}

// Shows only the processes of one program. Filters other than that of processes stay.
export function selectProgram(matcher: Matcher): void {
  const parsed = selector.value;
  if (!('matchers' in parsed)) return;
  setView({query: formatSelector(replaceMatchers(parsed.matchers, dimensionLabels.process, [matcher])), zoom: ''});
}

// A process event has no thread and no type of samples, so these filters do not apply to it.
export const hasThreadFilter = computed(() => {
  const parsed = selector.value;
  return 'matchers' in parsed && parsed.matchers.some(({label}) => dimensionLabels.thread.includes(label));
});

function refreshProcessEvents(): void {
  const {from, to, query, processes, processesSort} = view.value;
  const parsed = selector.value;
  const asked =
    'matchers' in parsed && hasThreadFilter.value
      ? formatSelector(replaceMatchers(parsed.matchers, dimensionLabels.thread, []))
      : query.trim();
  const sort = processesSort === 'cpu' ? 'cpu' : 'processes';
  refreshEvents({from, to, ...(asked && {query: asked})}, processes === 'open', sort);
}

async function refreshLines(): Promise<void> {
  const {lines, linesIn} = view.value;
  if (lines === '') return forgetLines();
  await loadLines({...selected(), function: lines, ...(linesIn && {executable: linesIn})});
}

export async function refresh(): Promise<void> {
  running?.abort();
  clearTimeout(timer);
  if (refusal.peek() !== null) return;
  const {from, to, query, frames, group, language} = view.value;
  const abort = new AbortController();
  running = abort;
  loading.value = true;
  const parameters = selected();
  const same = <T>(answer: T) => answer;
  // If a request fails, the old answer stays only if the question is the same.
  const question = JSON.stringify([from, to, query, shownType.value, frames, group, language]);
  const keepOld = question === answered;
  const ofFrames = framed();
  const answers = Promise.all([
    load(graphData, 'flamegraph', ofFrames, abort.signal, toGraphData, keepOld).then(() =>
      loadTop(ofFrames, abort.signal),
    ),
    load<TimelineAnswer, TimelineAnswer>(
      timeline,
      'timeline',
      {...parameters, buckets: '180'},
      abort.signal,
      same,
      keepOld,
    ),
    load<RolloutsAnswer, RolloutsAnswer>(rollouts, 'rollouts', parameters, abort.signal, same, keepOld),
    load<StackHealthAnswer, StackHealthAnswer>(stackHealth, 'stack-health', parameters, abort.signal, same, keepOld),
    load<SeriesAnswer, SeriesAnswer>(series, 'series', inRange(), abort.signal, same),
    // If the types differ from those of the last range, the requested type may change. Then all requests are repeated.
    load<TypesAnswer, SampleType[]>(types, 'types', {from, to}, abort.signal, typesOf),
    load<StatusAnswer, StatusAnswer>(status, 'status', {}, abort.signal, same),
    wantsSymbols(keepOld) ? loadSymbols(parameters, abort.signal, keepOld) : null,
    refreshLines(),
  ]);
  // The last requests, because a browser sends only a few at a time.
  refreshProcessEvents();
  await answers;
  if (abort.signal.aborted) return;
  loading.value = false;
  if (refusal.peek() !== null) return; // signing in refreshes the page
  answered = question;
  if (!graphData.value.error) loadedAt.value = Date.now();
  scheduleRefresh();
}

function scheduleRefresh(): void {
  clearTimeout(timer);
  if (!view.value.live || document.hidden) return;
  timer = window.setTimeout(() => void refresh(), refreshMs);
}

export function start(): void {
  darkSystem.addEventListener('change', () => (systemDark.value = darkSystem.matches));
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
  effect(() => {
    if (themeChoice.value === 'system') localStorage.removeItem('theme');
    else localStorage.setItem('theme', themeChoice.value);
  });
  const takeAddress = () => (view.value = parseHash(location.hash, storedNames()));
  window.addEventListener('hashchange', takeAddress);
  window.addEventListener('popstate', takeAddress);
  // A hidden page sends no requests. It refreshes when it becomes visible.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) clearTimeout(timer);
    else if (view.value.live) void refresh();
  });
  const asked = computed(() => {
    const {from, to, query, frames, group, language} = view.value;
    return JSON.stringify([from, to, query, shownType.value, frames, group, language]);
  });
  const askedLines = computed(() => JSON.stringify([view.value.lines, view.value.linesIn]));
  effect(() => {
    void askedLines.value;
    untracked(() => void refreshLines());
  });
  const askedProcesses = computed(() => JSON.stringify([view.value.processes, view.value.processesSort === 'cpu']));
  effect(() => {
    void askedProcesses.value;
    untracked(refreshProcessEvents);
  });
  const live = computed(() => view.value.live);
  effect(() => {
    void asked.value;
    untracked(() => void refresh());
  });
  effect(() => {
    if (live.value && !untracked(() => loading.value)) untracked(() => void refresh());
    else if (!live.value) clearTimeout(timer);
  });
}
