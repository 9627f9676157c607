import {useMemo} from 'preact/hooks';
import {css, frameColor, type Hues} from '../flame/colors.ts';
import {sortRows, type FunctionRow, type SortColumn} from '../flame/fold.ts';
import {withPlace} from '../flame/graph.ts';
import {compileSearch, exactTerm} from '../flame/search.ts';
import {formatCount, printable} from '../model/format.ts';
import {functions, graphData, measure, openLines, setView, shownName, theme, view, zoomNode} from '../state.ts';
import {Amount, SortHead} from './cells.tsx';
import {Icon} from './icons.tsx';
import {StateView} from './state_view.tsx';

const shownMax = 300;

function Head({column, label}: {column: SortColumn; label: string}) {
  const {sort, ascending} = view.value;
  const active = sort === column;
  const choose = () => setView(active ? {ascending: !ascending} : {sort: column, ascending: column === 'name'});
  const order = active ? (ascending ? 'ascending' : 'descending') : 'none';
  return <SortHead column={column} label={label} order={order} choose={choose} />;
}

function TopRow({row, whole, hues}: {row: FunctionRow; whole: number; hues: Hues}) {
  const name = printable(withPlace(row.name, row.place));
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
          class="function"
          title={name}
          aria-pressed={searched}
          data-testid="top-function"
          onClick={() => setView({search: searched ? '' : term})}
        >
          <span class="function-name">{shownName(name)}</span>
          <span class="function-origin">
            <span class="swatch" style={{background: color}} />
            {executable ? `${executable} · ${row.kind.name}` : row.kind.name}
          </span>
        </button>
        <button
          type="button"
          class="lines-button"
          aria-label={`Lines of ${name}`}
          title="Lines: the source lines of this function that have samples"
          data-testid="top-lines"
          onClick={() => openLines(row.name, row.executable)}
        >
          <Icon name="lines" />
        </button>
        <span class="self-bar" style={{width: `${whole > 0 ? (100 * row.selfNs) / whole : 0}%`}} />
      </td>
      <Amount ns={row.selfNs} count={row.selfCount} whole={whole} unit={measure.value.unit} />
      <Amount ns={row.totalNs} count={row.totalCount} whole={whole} unit={measure.value.unit} />
    </tr>
  );
}

function Rows({graph, zoom}: {graph: NonNullable<typeof graphData.value.value>['graph']; zoom: number}) {
  const {sort, ascending, filter} = view.value;
  const all = functions.value;
  const rows = useMemo(() => {
    const {test} = compileSearch(filter);
    const kept = test ? all.filter((row) => test(printable(withPlace(row.name, row.place))) || test(printable(row.executable))) : all;
    return sortRows(kept, sort, ascending);
  }, [all, filter, sort, ascending]);
  return (
    <>
      <div class="table-scroll">
        <table class="top" data-testid="top">
          <thead>
            <tr>
              <Head column="name" label="Function" />
              <Head column="self" label="Self" />
              <Head column="total" label="Total" />
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, shownMax).map((row) => (
              <TopRow
                key={`${row.kind.name} ${row.executable} ${row.name} ${row.place}`}
                row={row}
                whole={graph.totalNs[zoom]!}
                hues={graph.hues}
              />
            ))}
          </tbody>
        </table>
        {rows.length === 0 && <p class="note">No function or executable matches the filter.</p>}
      </div>
      <p class="table-foot" data-testid="top-count">
        {rows.length > shownMax
          ? `The first ${formatCount(shownMax)} of ${formatCount(rows.length)} functions`
          : `${formatCount(rows.length)} ${rows.length === 1 ? 'function' : 'functions'}`}
        {zoom > 0 && ' in the zoomed frame; percentages of this frame'}
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
