// Details of the frame under the pointer, or of the frame that has the keyboard's focus.
import {useLayoutEffect, useRef} from 'preact/hooks';
import {css, frameColor} from '../flame/colors.ts';
import type {Pointed} from '../flame/controller.ts';
import {executableOf, kindOf, type FlameGraph} from '../flame/graph.ts';
import {formatCount, formatPercent} from '../model/format.ts';
import {formatValue, measureTitle} from '../model/measure.ts';
import {shownName, theme, view} from '../state.ts';

interface AmountProps {
  name: string;
  ns: number;
  count: number;
  graph: FlameGraph;
  zoom: number;
}

function Amount({name, ns, count, graph, zoom}: AmountProps) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td data-testid={`tooltip-${name.toLowerCase()}-time`}>{formatValue(ns, graph.measure.unit)}</td>
      <td data-testid={`tooltip-${name.toLowerCase()}-samples`}>{formatCount(count)}</td>
      <td data-testid={`tooltip-${name.toLowerCase()}-percent`}>{formatPercent(ns, graph.totalNs[0]!)}</td>
      {zoom > 0 && (
        <td data-testid={`tooltip-${name.toLowerCase()}-zoomed`}>{formatPercent(ns, graph.totalNs[zoom]!)}</td>
      )}
    </tr>
  );
}

export function Tooltip({graph, zoom, pointed}: {graph: FlameGraph; zoom: number; pointed: Pointed}) {
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
  const name = graph.names[graph.name[node]!]!;
  const place = graph.places[graph.name[node]!]!;
  const short = shownName(name);
  const executable = executableOf(graph, node);
  const kind = kindOf(graph, node);
  return (
    <div class="tooltip" ref={box} role="status" data-testid="tooltip" data-node={node}>
      <p class="tooltip-name" data-testid="tooltip-name">
        {short}
      </p>
      {short !== name && (
        <p class="tooltip-full" data-testid="tooltip-full">
          {name}
        </p>
      )}
      <p class="tooltip-origin">
        <span
          class="swatch"
          style={{
            background: css(
              frameColor({
                executable,
                kind,
                mode: view.value.colors,
                hues: graph.hues,
                theme: theme.value,
                faded: false,
              }),
            ),
          }}
        />
        {executable && <span data-testid="tooltip-executable">{executable}</span>}
        <span class="muted" data-testid="tooltip-kind">
          {kind.name}
        </span>
      </p>
      {place && (
        <p class="tooltip-full" data-testid="tooltip-place">
          {place}
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th />
            <th data-testid="tooltip-measure">{measureTitle(graph.measure)}</th>
            <th>samples</th>
            <th>of all</th>
            {zoom > 0 && <th>of zoomed</th>}
          </tr>
        </thead>
        <tbody>
          <Amount name="Total" ns={graph.totalNs[node]!} count={graph.totalCount[node]!} graph={graph} zoom={zoom} />
          <Amount name="Self" ns={graph.selfNs[node]!} count={graph.selfCount[node]!} graph={graph} zoom={zoom} />
        </tbody>
      </table>
      {node > 0 && <p class="tooltip-hint">Press L to show the lines of this function</p>}
    </div>
  );
}
