// The colour of each frame. Colours are computed once per kind and executable; each frame stores only an index.
import {css, frameColor, matchColor, type ColorMode, type Rgb, type Theme} from './colors.ts';
import {executableOf, kindOf, type FlameGraph} from './graph.ts';
import type {FrameKind} from './kind.ts';

// Returns the colour as four bytes in memory, red first, independent of the byte order of the machine.
function toPixel({r, g, b}: Rgb): number {
  return new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0]!;
}

export class Paint {
  readonly graph: FlameGraph;
  private readonly classOf: Uint32Array; // by node: index into classes
  private readonly classes: {executable: string; kind: FrameKind}[] = [];
  private look = '';
  // Two colours for each class, plain and faded, then the colour of search matches. `fills` is for the canvas. `pixels`
  // has the same colours as pixels of an ImageData.
  fills: string[] = [];
  pixels = new Uint32Array(0);

  constructor(graph: FlameGraph) {
    this.graph = graph;
    this.classOf = new Uint32Array(graph.size);
    const known = new Map<number, number>();
    for (let i = 0; i < graph.size; ++i) {
      const key = graph.executable[i]! * 256 + graph.kind[i]!;
      let index = known.get(key);
      if (index === undefined) {
        index = this.classes.push({executable: executableOf(graph, i), kind: kindOf(graph, i)}) - 1;
        known.set(key, index);
      }
      this.classOf[i] = index;
    }
  }

  setLook(theme: Theme, mode: ColorMode): void {
    const look = `${theme} ${mode}`;
    if (look === this.look) return;
    this.look = look;
    const {hues} = this.graph;
    const color = (executable: string, kind: FrameKind, faded: boolean) =>
      frameColor({executable, kind, mode, hues, theme, faded});
    const colors = this.classes.flatMap(({executable, kind}) => [
      color(executable, kind, false),
      color(executable, kind, true),
    ]);
    colors.push(matchColor(theme));
    this.fills = colors.map(css);
    this.pixels = Uint32Array.from(colors, toPixel);
  }

  // Index into `fills` and `pixels`.
  fillOf(node: number, faded: boolean): number {
    return 2 * this.classOf[node]! + (faded ? 1 : 0);
  }

  get matchFill(): number {
    return this.fills.length - 1;
  }
}
