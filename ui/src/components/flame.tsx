import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {FlameController, type Pointed} from '../flame/controller.ts';
import {keyOf, pathTo, type FlameGraph} from '../flame/graph.ts';
import {formatCount, formatPercent} from '../model/format.ts';
import {graphData, labels, matches, search, setView, shownName, theme, view, zoomNode, type GraphData} from '../state.ts';
import {Icon} from './icons.tsx';
import {Legend} from './legend.tsx';
import {Segmented} from './segmented.tsx';
import {StateView} from './state_view.tsx';
import {Tooltip} from './tooltip.tsx';

function Breadcrumbs({graph, zoom}: {graph: FlameGraph; zoom: number}) {
  const path = pathTo(graph, zoom);
  const full = (node: number) => graph.names[graph.name[node]!]!;
  // A deep path keeps its ends: where it comes from and what is close.
  const shown = path.length > 6 ? [path[0]!, -1, ...path.slice(-4)] : path;
  return (
    <nav class="breadcrumbs" aria-label="Zoomed frame and its callers" data-testid="breadcrumbs">
      {shown.map((node, i) =>
        node < 0 ? (
          <span key="gap" class="muted">
            …
          </span>
        ) : (
          <button
            key={node}
            type="button"
            title={full(node)}
            aria-current={i === shown.length - 1 ? 'location' : undefined}
            onClick={() => setView({zoom: keyOf(graph, node)})}
          >
            {shownName(full(node))}
          </button>
        ),
      )}
    </nav>
  );
}

function Search() {
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
        title={'Text, "exact name" or /regular expression/. Press / to get here.'}
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
  const currentLabels = labels.value;

  useLayoutEffect(() => {
    const made = new FlameController(scroller.current!, spacer.current!, canvas.current!, {
      zoom: (node) => setView({zoom: keyOf(current.current, node)}),
      point: setPointed,
    });
    controller.current = made;
    return () => made.dispose();
  }, []);
  useLayoutEffect(() => controller.current!.setGraph(graph, zoom), [graph]);
  useLayoutEffect(
    () => controller.current!.setOptions({orientation, colors, theme: currentTheme, matches: matching, labels: currentLabels}),
    [orientation, colors, currentTheme, matching, currentLabels],
  );
  useLayoutEffect(() => controller.current!.zoomTo(zoom), [zoom]);

  return (
    <>
      <div class="flame-scroll" ref={scroller} data-testid="flame-scroll">
        <div class="flame-spacer" ref={spacer}>
          <canvas
            ref={canvas}
            tabIndex={0}
            role="application"
            data-testid="flame"
            aria-label={'Flame graph. Arrow keys move between frames, Enter zooms, Escape zooms out.'}
          />
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
        <Segmented
          name="Colors"
          value={colors}
          choose={(value) => setView({colors: value})}
          choices={[
            ['executable', 'Executable'],
            ['kind', 'Kind'],
          ]}
        />
        <Segmented
          name="Orientation"
          value={orientation}
          choose={(value) => setView({orientation: value})}
          choices={[
            ['icicle', 'Icicle'],
            ['flame', 'Flame'],
          ]}
        />
        <button
          type="button"
          class="button"
          disabled={zoom === 0}
          data-testid="reset-zoom"
          onClick={() => setView({zoom: ''})}
        >
          Reset
        </button>
      </div>
      {usable ? (
        <>
          {data.graph.truncatedNodes > 0 && (
            <p class="banner" data-testid="truncated">
              <Icon name="warning" />
              {`Too large to show whole: the ${formatCount(data.graph.truncatedNodes)} smallest nodes were cut. ` +
                'Their time still counts in the frames that called them. A shorter range or a filter shows them.'}
            </p>
          )}
          <Breadcrumbs graph={data.graph} zoom={zoom} />
          <Canvas data={data} />
          <Legend graph={data.graph} />
        </>
      ) : (
        <StateView error={data ? null : error} empty={data !== null} />
      )}
    </section>
  );
}
