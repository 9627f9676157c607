import {css, frameColor, hasOwnColor} from '../flame/colors.ts';
import {largestExecutables, type FlameGraph} from '../flame/graph.ts';
import {knownKinds, type FrameKind} from '../flame/kind.ts';
import {theme, view} from '../state.ts';

export function Legend({graph}: {graph: FlameGraph}) {
  const {colors} = view.value;
  const swatch = (executable: string, kind: FrameKind, label: string) => (
    <li key={label}>
      <span
        class="swatch"
        style={{
          background: css(
            frameColor({executable, kind, mode: colors, hues: graph.hues, theme: theme.value, faded: false}),
          ),
        }}
      />
      {label}
    </li>
  );
  const present = new Set<number>(graph.kind);
  const kinds = graph.kinds.filter((kind, i) => present.has(i) && kind.color !== 'root');
  const ofFiles = kinds.filter((kind) => !hasOwnColor(kind));
  const others = kinds.filter((kind) => !ofFiles.includes(kind));
  const largest = largestExecutables(graph, 8);
  return (
    <ul class="legend">
      {colors === 'executable' && largest.map((executable) => swatch(executable, knownKinds[1]!, executable))}
      {colors === 'kind' && ofFiles.map((kind) => swatch('', kind, kind.name))}
      {others.map((kind) => swatch('', kind, kind.name))}
    </ul>
  );
}
