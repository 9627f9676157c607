import {css, frameColor} from '../flame/colors.ts';
import {largestExecutables, type FlameGraph} from '../flame/graph.ts';
import {Kind} from '../flame/kind.ts';
import {theme, view} from '../state.ts';

export function Legend({graph}: {graph: FlameGraph}) {
  const {colors} = view.value;
  const swatch = (executable: string, kind: number, label: string) => (
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
