import {useMemo} from 'preact/hooks';
import {css, frameColor, type Hues} from '../flame/colors.ts';
import {sortRows, type FunctionRow, type SortColumn} from '../flame/fold.ts';
import {kindNames} from '../flame/kind.ts';
import {compileSearch, exactTerm} from '../flame/search.ts';
import {formatCount, formatDuration, formatPercent, formatSamples, printable} from '../model/format.ts';
import {functions, graphData, setView, shownName, theme, view, zoomNode} from '../state.ts';
import {Icon} from './icons.tsx';
import {StateView} from './state_view.tsx';

const shownMax = 300;

function SortHead({column, label}: {column: SortColumn; label: string}) {
  const {sort, ascending} = view.value;
  const active = sort === column;
  const choose = () => setView(active ? {ascending: !ascending} : {sort: column, ascending: column === 'name'});
  return (
    <th scope="col" class={column} aria-sort={active ? (ascending ? 'ascending' : 'descending') : 'none'}>
      <button type="button" onClick={choose} data-testid={`sort-${column}`}>
        {label}
        {active && <Icon name={ascending ? 'up' : 'down'} />}
      </button>
    </th>
  );
}

function Amount({ns, count, whole}: {ns: number; count: number; whole: number}) {
  return (
    <td class="amount" title={formatSamples(count)}>
      <span class="amount-percent">{formatPercent(ns, whole, 1)}</span>
      <span class="amount-time">{formatDuration(ns)}</span>
    </td>
  );
}

function TopRow({row, whole, hues}: {row: FunctionRow; whole: number; hues: Hues}) {
  const name = printable(row.name);
  const executable = printable(row.executable);
  const term = exactTerm(name);
  const searched = view.value.search === term;
  const color = css(
    frameColor({executable, kind: row.kind, mode: view.value.colors, hues, theme: theme.value, faded: false}),
  );
  return (
    <tr class={searched ? 'searched' : undefined}>
      <td class="name">
        <button
          type="button"
          title={name}
          aria-pressed={searched}
          data-testid="top-function"
          onClick={() => setView({search: searched ? '' : term})}
        >
          <span class="function-name">{shownName(name)}</span>
          <span class="function-origin">
            <span class="swatch" style={{background: color}} />
            {executable ? `${executable} · ${kindNames[row.kind] ?? 'unknown'}` : (kindNames[row.kind] ?? 'unknown')}
          </span>
        </button>
        <span class="self-bar" style={{width: `${whole > 0 ? (100 * row.selfNs) / whole : 0}%`}} />
      </td>
      <Amount ns={row.selfNs} count={row.selfCount} whole={whole} />
      <Amount ns={row.totalNs} count={row.totalCount} whole={whole} />
    </tr>
  );
}

function Rows({graph, zoom}: {graph: NonNullable<typeof graphData.value.value>['graph']; zoom: number}) {
  const {sort, ascending, filter} = view.value;
  const all = functions.value;
  const rows = useMemo(() => {
    const {test} = compileSearch(filter);
    const kept = test ? all.filter((row) => test(row.name) || test(row.executable)) : all;
    return sortRows(kept, sort, ascending);
  }, [all, filter, sort, ascending]);
  return (
    <>
      <div class="table-scroll">
        <table class="top" data-testid="top">
          <thead>
            <tr>
              <SortHead column="name" label="Function" />
              <SortHead column="self" label="Self" />
              <SortHead column="total" label="Total" />
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shownMax).map((row) => (
              <TopRow
                key={`${row.kind} ${row.executable} ${row.name}`}
                row={row}
                whole={graph.totalNs[zoom]!}
                hues={graph.hues}
              />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="note">No function has that name.</p>}
      </div>
      <p class="table-foot" data-testid="top-count">
        {rows.length > shownMax
          ? `The first ${formatCount(shownMax)} of ${formatCount(rows.length)} functions`
          : `${formatCount(rows.length)} ${rows.length === 1 ? 'function' : 'functions'}`}
        {zoom > 0 && ' in the zoomed frame; percent of its time'}
      </p>
    </>
  );
}

export function TopTable() {
  const {value: data, error} = graphData.value;
  const zoom = zoomNode.value;
  return (
    <section class="card top-card" aria-label="Top functions">
      <div class="card-head">
        <h1>Top functions</h1>
        <span class="spring" />
        <div class="search">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Filter"
            aria-label="Filter functions"
            data-testid="top-filter"
            value={view.value.filter}
            spellcheck={false}
            autocomplete="off"
            onInput={(event) => setView({filter: event.currentTarget.value})}
          />
        </div>
      </div>
      {data && data.total.ns > 0 ? (
        <Rows graph={data.graph} zoom={zoom} />
      ) : (
        <StateView error={data ? null : error} empty={data !== null} />
      )}
    </section>
  );
}
