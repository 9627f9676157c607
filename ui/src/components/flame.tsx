import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {FlameController, type Pointed} from '../flame/controller.ts';
import {css, frameColor} from '../flame/colors.ts';
import {executableOf, largestExecutables, keyOf, pathTo, type FlameGraph} from '../flame/graph.ts';
import {Kind, kindNames} from '../flame/kind.ts';
import {formatCount, formatDuration, formatPercent} from '../model/format.ts';
import {graphData, matches, search, setView, theme, view, zoomNode, type GraphData} from '../state.ts';
import {Icon} from './icons.tsx';
import {StateView} from './state_view.tsx';

function Cell({ns, count, graph, zoom, name}: {ns: number; count: number; graph: FlameGraph; zoom: number; name: string}) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td data-testid={`tooltip-${name.toLowerCase()}-time`}>{formatDuration(ns)}</td>
      <td data-testid={`tooltip-${name.toLowerCase()}-samples`}>{formatCount(count)}</td>
      <td data-testid={`tooltip-${name.toLowerCase()}-percent`}>{formatPercent(ns, graph.totalNs[0]!)}</td>
      {zoom > 0 && <td data-testid={`tooltip-${name.toLowerCase()}-zoomed`}>{formatPercent(ns, graph.totalNs[zoom]!)}</td>}
    </tr>
  );
}

function Tooltip({graph, zoom, pointed}: {graph: FlameGraph; zoom: number; pointed: Pointed}) {
  const box = useRef<HTMLDivElement>(null);
  const {node, x, y} = pointed;
  useLayoutEffect(() => {
    const element = box.current!;
    const margin = 12;
    const {offsetWidth: width, offsetHeight: height} = element;
    const left = Math.max(margin, Math.min(x + margin, innerWidth - width - margin));
    const below = y + margin + height < innerHeight;
    const top = Math.max(margin, below ? y + margin : y - height - margin);
    element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  });
  const executable = executableOf(graph, node);
  const kind = graph.kind[node]!;
  return (
    <div class="tooltip" ref={box} role="status" data-testid="tooltip" data-node={node}>
      <p class="tooltip-name" data-testid="tooltip-name">{graph.names[graph.name[node]!]}</p>
      <p class="tooltip-origin">
        <span class="swatch" style={{background: css(frameColor({executable, kind, mode: view.value.colors, hues: graph.hues,
                                                                 theme: theme.value, faded: false}))}} />
        {executable && <span data-testid="tooltip-executable">{executable}</span>}
        <span class="muted" data-testid="tooltip-kind">{kindNames[kind] ?? 'unknown'}</span>
      </p>
      <table>
        <thead>
          <tr>
            <th /><th>CPU time</th><th>samples</th><th>of all</th>{zoom > 0 && <th>of zoomed</th>}
          </tr>
        </thead>
        <tbody>
          <Cell name="Total" ns={graph.totalNs[node]!} count={graph.totalCount[node]!} graph={graph} zoom={zoom} />
          <Cell name="Self" ns={graph.selfNs[node]!} count={graph.selfCount[node]!} graph={graph} zoom={zoom} />
        </tbody>
      </table>
    </div>
  );
}

function Breadcrumbs({graph, zoom}: {graph: FlameGraph; zoom: number}) {
  const path = pathTo(graph, zoom);
  const name = (node: number) => graph.names[graph.name[node]!]!;
  // A deep path keeps its ends: where it comes from and what is close.
  const shown = path.length > 6 ? [path[0]!, -1, ...path.slice(-4)] : path;
  return (
    <nav class="breadcrumbs" aria-label="Zoomed frame and its callers" data-testid="breadcrumbs">
      {shown.map((node, i) => (
        node < 0 ? <span key="gap" class="muted">…</span> :
          <button key={node} type="button" title={name(node)} aria-current={i === shown.length - 1 ? 'location' : undefined}
                  onClick={() => setView({zoom: keyOf(graph, node)})}>
            {name(node)}
          </button>
      ))}
    </nav>
  );
}

function Legend({graph}: {graph: FlameGraph}) {
  const {colors} = view.value;
  const swatch = (executable: string, kind: number, label: string) => (
    <li key={label}>
      <span class="swatch" style={{background: css(frameColor({executable, kind, mode: colors, hues: graph.hues, theme: theme.value, faded: false}))}} />
      {label}
    </li>
  );
  const kinds = new Set<number>(graph.kind);
  const largest = largestExecutables(graph, 8);
  return (
    <ul class="legend">
      {colors === 'executable' && largest.map((executable) => swatch(executable, Kind.native, executable))}
      {colors === 'kind' && kinds.has(Kind.native) && swatch('', Kind.native, 'native')}
      {colors === 'kind' && kinds.has(Kind.inlined) && swatch('', Kind.inlined, 'inlined')}
      {kinds.has(Kind.kernel) && swatch('', Kind.kernel, 'kernel')}
      {kinds.has(Kind.unknown) && swatch('', Kind.unknown, 'unknown')}
    </ul>
  );
}

interface ChoiceProps<T extends string> {
  name: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  choose: (value: T) => void;
}

export function Segmented<T extends string>({name, value, choices, choose}: ChoiceProps<T>) {
  return (
    <div class="segmented" role="group" aria-label={name}>
      {choices.map(([key, label]) => (
        <button key={key} type="button" aria-pressed={value === key} data-testid={`${name.toLowerCase()}-${key}`}
                onClick={() => choose(key)}>
          {label}
        </button>
      ))}
    </div>
  );
}

function Search() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const abort = new AbortController();
    document.addEventListener('keydown', (event) => {
      const target = event.target as HTMLElement;
      if (event.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    }, {signal: abort.signal});
    return () => abort.abort();
  }, []);
  const data = graphData.value.value;
  const found = matches.value;
  const zoom = zoomNode.value;
  return (
    <div class="search">
      <Icon name="search" />
      <input ref={input} type="search" placeholder="Search functions" aria-label="Search functions" data-testid="search"
             title={'Text, "exact name" or /regular expression/. Press / to get here.'} value={view.value.search}
             spellcheck={false} autocomplete="off" aria-invalid={search.value.error !== null}
             onInput={(event) => setView({search: event.currentTarget.value})}
             onKeyDown={(event) => {
               if (event.key === 'Escape') {
                 setView({search: ''});
                 input.current?.blur();
               }
             }} />
      <span class={`search-result${search.value.error ? ' bad' : ''}`} role="status" data-testid="search-result"
            title={search.value.error ?? undefined}>
        {search.value.error ? 'not a regular expression'
          : found && data ? `${formatCount(found.count)} ${found.count === 1 ? 'frame' : 'frames'}, ` +
            `${formatPercent(found.ns, data.graph.totalNs[zoom]!)}` : ''}
      </span>
    </div>
  );
}

function Canvas({data}: {data: GraphData}) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const controller = useRef<FlameController | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  const {graph} = data;
  const zoom = zoomNode.value;
  const current = useRef(graph);
  current.current = graph;
  const {orientation, colors} = view.value;
  const matching = matches.value?.nodes ?? null;
  const currentTheme = theme.value;

  useLayoutEffect(() => {
    const made = new FlameController(scroller.current!, spacer.current!, canvas.current!, {
      zoom: (node) => setView({zoom: keyOf(current.current, node)}),
      point: setPointed,
    });
    controller.current = made;
    return () => made.dispose();
  }, []);
  useLayoutEffect(() => controller.current!.setGraph(graph, zoom), [graph]);
  useLayoutEffect(() => controller.current!.setOptions({orientation, colors, theme: currentTheme, matches: matching}),
                  [orientation, colors, currentTheme, matching]);
  useLayoutEffect(() => controller.current!.zoomTo(zoom), [zoom]);

  return (
    <>
      <div class="flame-scroll" ref={scroller} data-testid="flame-scroll">
        <div class="flame-spacer" ref={spacer}>
          <canvas ref={canvas} tabIndex={0} role="application" data-testid="flame"
                  aria-label={'Flame graph. Arrow keys move between frames, Enter zooms, Escape zooms out.'} />
        </div>
      </div>
      {pointed && pointed.node < graph.size && <Tooltip graph={graph} zoom={zoom} pointed={pointed} />}
    </>
  );
}

export function Flame() {
  const {value: data, error} = graphData.value;
  const {orientation, colors} = view.value;
  const zoom = zoomNode.value;
  const usable = data && data.total.ns > 0;
  return (
    <section class="card flame" aria-label="Flame graph">
      <div class="card-head">
        <h1>Flame graph</h1>
        <Search />
        <span class="spring" />
        <Segmented name="Colors" value={colors} choose={(value) => setView({colors: value})}
                   choices={[['executable', 'Executable'], ['kind', 'Kind']]} />
        <Segmented name="Orientation" value={orientation} choose={(value) => setView({orientation: value})}
                   choices={[['icicle', 'Icicle'], ['flame', 'Flame']]} />
        <button type="button" class="button" disabled={zoom === 0} data-testid="reset-zoom" onClick={() => setView({zoom: ''})}>
          Reset
        </button>
      </div>
      {usable ? (
        <>
          {data.graph.truncatedNodes > 0 && (
            <p class="banner" data-testid="truncated">
              <Icon name="warning" />
              {`The graph is too large to show whole: its ${formatCount(data.graph.truncatedNodes)} smallest nodes were cut. ` +
                'Their time still counts in the frames that called them. A shorter range or a filter shows them.'}
            </p>
          )}
          <Breadcrumbs graph={data.graph} zoom={zoom} />
          <Canvas data={data} />
          <Legend graph={data.graph} />
        </>
      ) : <StateView error={data ? null : error} empty={data !== null} />}
    </section>
  );
}
