import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {FlameController, type Pointed} from '../flame/controller.ts';
import {hasInterpretedCode, keyOf, pathTo, type FlameGraph} from '../flame/graph.ts';
import {formatClock, formatCount, formatDate} from '../model/format.ts';
import {graphData, labels, matches, openLines, setView, shownName, theme, view, zoomNode, type GraphData} from '../state.ts';
import {FlameSearch} from './flame_search.tsx';
import {Icon} from './icons.tsx';
import {Legend} from './legend.tsx';
import {Segmented} from './segmented.tsx';
import {StateView} from './state_view.tsx';
import {Tooltip} from './tooltip.tsx';

function Breadcrumbs({graph, zoom}: {graph: FlameGraph; zoom: number}) {
  const path = pathTo(graph, zoom);
  const full = (node: number) => graph.names[graph.name[node]!]!;
  // Of a deep path, the root and the last four frames are shown.
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

const linesOf = (graph: FlameGraph, node: number) =>
  openLines(graph.raw.names[graph.name[node]!]!, graph.raw.executables[graph.executable[node]!] ?? '');

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
    const abort = new AbortController();
    const onKeyDown = (event: KeyboardEvent) => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test((event.target as HTMLElement).tagName);
      if (event.key !== 'l' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const node = made.meant();
      if (node > 0) linesOf(current.current, node);
    };
    document.addEventListener('keydown', onKeyDown, {signal: abort.signal});
    return () => {
      abort.abort();
      made.dispose();
    };
  }, []);
  useLayoutEffect(() => controller.current!.setGraph(graph, zoom), [graph]);
  useLayoutEffect(
    () =>
      controller.current!.setOptions({
        orientation,
        colors,
        theme: currentTheme,
        matches: matching,
        labels: currentLabels,
      }),
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
            aria-label={'Flame graph. Arrow keys move between frames, Enter zooms, Escape zooms out, L shows lines.'}
          />
        </div>
      </div>
      {pointed && pointed.node < graph.size && <Tooltip graph={graph} zoom={zoom} pointed={pointed} />}
    </>
  );
}

export function Flame() {
  const {value: data, error} = graphData.value;
  const {orientation, colors, frames, group} = view.value;
  const zoom = zoomNode.value;
  const usable = data && data.total.ns > 0;
  const hasInterpreter = frames === 'all' || (data !== null && hasInterpretedCode(data.graph));
  return (
    <section class="card flame" aria-label="Flame graph">
      <div class="card-head">
        <h1>Flame graph</h1>
        <FlameSearch />
        <span class="spring" />
        <Segmented
          name="Group"
          title="What one frame stands for: a function, or one line of a function"
          value={group}
          choose={(value) => setView({group: value, zoom: ''})}
          choices={[
            ['function', 'Function'],
            ['line', 'Line'],
          ]}
        />
        {hasInterpreter && (
          <Segmented
            name="Frames"
            title="Code of interpreters: count it for the functions that it runs, or show its frames, too"
            value={frames}
            choose={(value) => setView({frames: value, zoom: ''})}
            choices={[
              ['function', 'Folded'],
              ['all', 'All'],
            ]}
          />
        )}
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
              {`The graph is too large: the ${formatCount(data.graph.truncatedNodes)} smallest frames were left out. ` +
                'Their samples still count in their callers. To see these frames, choose a shorter range or a filter.'}
            </p>
          )}
          {data.coveredFrom !== undefined && data.coveredFrom > data.from && (
            <p class="banner" data-testid="covered-from">
              <Icon name="warning" />
              {`Single samples before ${formatDate(data.coveredFrom)} ${formatClock(data.coveredFrom)} have expired. ` +
                'A filter of threads uses only single samples, so the graph begins at this time.'}
            </p>
          )}
          <div class="zoomed">
            <Breadcrumbs graph={data.graph} zoom={zoom} />
            {zoom > 0 && (
              <button
                type="button"
                class="button small-button"
                title="Show the lines of this function. Key L shows the lines of the function under the pointer"
                data-testid="zoomed-lines"
                onClick={() => linesOf(data.graph, zoom)}
              >
                <Icon name="lines" />
                Lines
              </button>
            )}
          </div>
          <Canvas data={data} />
          <Legend graph={data.graph} />
        </>
      ) : (
        <StateView error={data ? null : error} empty={data !== null} />
      )}
    </section>
  );
}
