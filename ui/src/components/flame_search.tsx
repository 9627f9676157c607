// The search for functions in the flame graph, and the list that leads from a match to its lines.
import {useEffect, useRef} from 'preact/hooks';
import {sortRows} from '../flame/fold.ts';
import {formatCount, formatPercent, printable} from '../model/format.ts';
import {functions, graphData, matches, openLines, search, setView, shownName, view, zoomNode} from '../state.ts';
import {Icon} from './icons.tsx';
import {Popover} from './popover.tsx';

const matchesMax = 20;

// The functions that the search found, most time first.
function MatchLines() {
  const {test} = search.value;
  const data = graphData.value.value;
  if (!test || !data || !matches.value?.count) return null;
  const whole = data.graph.totalNs[zoomNode.value]!;
  const list = () => {
    const found = sortRows(functions.value.filter((row) => test(printable(row.name))), 'total', false);
    return (
      <div class="options">
        <p class="section">Show the lines of a matching function</p>
        <div class="choices">
          {found.slice(0, matchesMax).map((row) => (
            <button
              key={`${row.kind.name} ${row.executable} ${row.name}`}
              type="button"
              title={printable(row.name)}
              data-testid="match-lines"
              onClick={() => openLines(row.name, row.executable)}
            >
              <span class="option-label">{shownName(printable(row.name))}</span>
              <span class="option-detail">{printable(row.executable)}</span>
              <span class="option-weight">{formatPercent(row.totalNs, whole)}</span>
            </button>
          ))}
        </div>
        {found.length > matchesMax && (
          <p class="section">{`${formatCount(found.length - matchesMax)} more functions: use the table’s filter.`}</p>
        )}
      </div>
    );
  };
  return (
    <Popover name="Lines of matches" label="Lines…">
      {list}
    </Popover>
  );
}

export function FlameSearch() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const abort = new AbortController();
    document.addEventListener(
      'keydown',
      (event) => {
        const target = event.target as HTMLElement;
        if (event.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
        event.preventDefault();
        input.current?.focus();
        input.current?.select();
      },
      {signal: abort.signal},
    );
    return () => abort.abort();
  }, []);
  const data = graphData.value.value;
  const found = matches.value;
  const zoom = zoomNode.value;
  return (
    <div class="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        placeholder="Search functions"
        aria-label="Search functions"
        data-testid="search"
        title={'Text, "exact name" or /regular expression/. Shortcut: /'}
        value={view.value.search}
        spellcheck={false}
        autocomplete="off"
        aria-invalid={search.value.error !== null}
        onInput={(event) => setView({search: event.currentTarget.value})}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            setView({search: ''});
            input.current?.blur();
          }
        }}
      />
      <span
        class={`search-result${search.value.error ? ' bad' : ''}`}
        role="status"
        data-testid="search-result"
        title={search.value.error ?? undefined}
      >
        {search.value.error
          ? 'not a regular expression'
          : found && data
            ? `${formatCount(found.count)} ${found.count === 1 ? 'frame' : 'frames'}, ` +
              `${formatPercent(found.ns, data.graph.totalNs[zoom]!)}`
            : ''}
      </span>
      <MatchLines />
    </div>
  );
}
