// The view of the page, stored in the part of its address after `#`, so that a link reproduces the view. Only values
// that differ from the default are written.
import {programSorts, type ProgramSort} from './process_events.ts';
import {canFollow, defaultRange, isValidRange} from './time_range.ts';

export interface ViewState {
  from: string;
  to: string;
  live: boolean; // refresh by itself; only for ranges that end now
  query: string; // selector
  type: string; // of samples: NAME or NAME:UNIT; '': CPU time if there is any (model/measure.ts)
  panes: 'both' | 'flame' | 'table';
  orientation: 'icicle' | 'flame'; // root on top, root at the bottom
  colors: 'executable' | 'kind';
  frames: 'function' | 'all'; // function: frames of interpreters are folded into their callers
  group: 'function' | 'line'; // what one frame stands for
  language: string; // languages of stacks, separated by commas; '': all
  names: 'full' | 'short'; // short: without template arguments (short_name.ts)
  search: string;
  zoom: string; // path key of the zoomed frame (flame/graph.ts), '' for the root
  sort: 'self' | 'total' | 'name';
  ascending: boolean;
  filter: string; // of the table
  stacks: 'closed' | 'open'; // the reasons below stack health
  executables: 'closed' | 'open'; // the list of executables
  processes: 'closed' | 'open'; // the programs whose processes ended
  processesSort: ProgramSort;
  processesAscending: boolean;
  lines: string; // the function whose lines are shown, as the server names it; '': none
  linesIn: string; // base name of its executable; '': any
  linesSort: 'total' | 'self' | 'place';
  line: string; // FILE:LINE whose addresses are shown
}

export const defaultView: ViewState = {
  ...defaultRange,
  live: true,
  query: '',
  type: '',
  panes: 'both',
  orientation: 'icicle',
  colors: 'executable',
  frames: 'function',
  group: 'function',
  language: '',
  names: 'full',
  search: '',
  zoom: '',
  sort: 'self',
  ascending: false,
  filter: '',
  stacks: 'closed',
  executables: 'closed',
  processes: 'closed',
  processesSort: 'processes',
  processesAscending: false,
  lines: '',
  linesIn: '',
  linesSort: 'total',
  line: '',
};

const textMax = 4096;

function oneOf<T extends string>(value: string | null, allowed: readonly T[], otherwise: T): T {
  return allowed.includes(value as T) ? (value as T) : otherwise;
}

// `names`: used if the address does not contain names.
export function parseHash(hash: string, names: ViewState['names'] = defaultView.names): ViewState {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  const text = (name: string) => (parameters.get(name) ?? '').slice(0, textMax);
  let range = {from: text('from') || defaultView.from, to: text('to') || defaultView.to};
  if (!isValidRange(range)) range = defaultRange;
  return {
    ...range,
    live: canFollow(range) && parameters.get('live') !== '0',
    query: text('query'),
    type: text('type'),
    panes: oneOf(parameters.get('panes'), ['both', 'flame', 'table'], defaultView.panes),
    orientation: oneOf(parameters.get('orientation'), ['icicle', 'flame'], defaultView.orientation),
    colors: oneOf(parameters.get('colors'), ['executable', 'kind'], defaultView.colors),
    frames: oneOf(parameters.get('frames'), ['function', 'all'], defaultView.frames),
    group: oneOf(parameters.get('group'), ['function', 'line'], defaultView.group),
    language: text('language'),
    names: oneOf(parameters.get('names'), ['full', 'short'], names),
    search: text('search'),
    zoom: /^[0-9a-f]{16}$/.test(text('zoom')) ? text('zoom') : '',
    sort: oneOf(parameters.get('sort'), ['self', 'total', 'name'], defaultView.sort),
    ascending: parameters.get('order') === 'asc',
    filter: text('filter'),
    stacks: oneOf(parameters.get('stacks'), ['closed', 'open'], defaultView.stacks),
    executables: oneOf(parameters.get('executables'), ['closed', 'open'], defaultView.executables),
    processes: oneOf(parameters.get('processes'), ['closed', 'open'], defaultView.processes),
    processesSort: oneOf(parameters.get('processes_sort'), programSorts, defaultView.processesSort),
    processesAscending: parameters.get('processes_order') === 'asc',
    lines: text('lines'),
    linesIn: text('lines_in'),
    linesSort: oneOf(parameters.get('lines_sort'), ['total', 'self', 'place'], defaultView.linesSort),
    line: text('line'),
  };
}

export function formatHash(view: ViewState): string {
  const parameters = new URLSearchParams();
  const put = (name: string, value: string, otherwise: string) => {
    if (value !== otherwise) parameters.set(name, value);
  };
  put('from', view.from, defaultView.from);
  put('to', view.to, defaultView.to);
  if (canFollow(view) && !view.live) parameters.set('live', '0');
  put('query', view.query, '');
  put('type', view.type, '');
  put('panes', view.panes, defaultView.panes);
  put('orientation', view.orientation, defaultView.orientation);
  put('colors', view.colors, defaultView.colors);
  put('frames', view.frames, defaultView.frames);
  put('group', view.group, defaultView.group);
  put('language', view.language, '');
  put('names', view.names, defaultView.names);
  put('search', view.search, '');
  put('zoom', view.zoom, '');
  put('sort', view.sort, defaultView.sort);
  if (view.ascending) parameters.set('order', 'asc');
  put('filter', view.filter, '');
  put('stacks', view.stacks, defaultView.stacks);
  put('executables', view.executables, defaultView.executables);
  put('processes', view.processes, defaultView.processes);
  put('processes_sort', view.processesSort, defaultView.processesSort);
  if (view.processesAscending) parameters.set('processes_order', 'asc');
  put('lines', view.lines, '');
  put('lines_in', view.linesIn, '');
  put('lines_sort', view.linesSort, defaultView.linesSort);
  put('line', view.line, '');
  const text = parameters.toString();
  return text ? `#${text}` : '';
}
