// Draws the rows of a flame graph that are in sight. Cost grows with what is wider than half a pixel, not with the size
// of the graph: each level is entered by binary search and left at the right edge.
import {css, frameColor, matchColor, palettes, type ColorMode, type Theme} from './colors.ts';
import {executableOf, firstEndingAfter, type FlameGraph} from './graph.ts';

export const rowHeight = 20; // CSS pixels; also the canvas's data-row-height
export const labelFont = '12px ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const widthMin = 0.5; // device pixels; narrower frames are not drawn
const labelPadding = 5;

export interface Viewport {
  x: number; // ns at the left edge
  width: number; // ns across
}

export interface Scene {
  graph: FlameGraph;
  viewport: Viewport;
  zoom: number;
  orientation: 'icicle' | 'flame';
  rows: number;
  scrollTop: number;
  width: number; // CSS pixels
  height: number;
  pixelRatio: number;
  theme: Theme;
  colors: ColorMode;
  matches: Uint8Array | null;
  hovered: number; // −1: none
  focused: number;
}

// The row, counted from the top, that shows frames of `depth`, and back: the mapping is its own inverse.
export function rowOfDepth(scene: Pick<Scene, 'orientation' | 'rows'>, depth: number): number {
  return scene.orientation === 'icicle' ? depth : scene.rows - 1 - depth;
}

// Shortens from the end. `characterWidth` holds for the fixed-width characters of ASCII; others are measured.
export function fitLabel(text: string, width: number, characterWidth: number, measure: (text: string) => number): string {
  const plain = /^[\x20-\x7e]*$/.test(text);
  if ((plain ? text.length * characterWidth : measure(text)) <= width) return text;
  if (plain) {
    const room = Math.floor(width / characterWidth) - 1;
    return room < 2 ? '' : `${text.slice(0, room)}…`;
  }
  const characters = Array.from(text);
  while (characters.length > 2) {
    characters.length = Math.min(characters.length - 1, Math.floor(characters.length * 0.9));
    const shorter = `${characters.join('')}…`;
    if (measure(shorter) <= width) return shorter;
  }
  return '';
}

export class Renderer {
  private readonly styles = new Map<string, string>();
  private styled: FlameGraph | null = null; // whose colours `styles` holds
  private characterWidth = 0;
  private readonly context: CanvasRenderingContext2D;

  constructor(context: CanvasRenderingContext2D) {
    this.context = context;
  }

  draw(scene: Scene): void {
    const {context} = this;
    if (this.styled !== scene.graph) this.styles.clear();
    this.styled = scene.graph;
    const palette = palettes[scene.theme];
    context.setTransform(scene.pixelRatio, 0, 0, scene.pixelRatio, 0, 0);
    context.fillStyle = palette.background;
    context.fillRect(0, 0, scene.width, scene.height);
    context.font = labelFont;
    context.textBaseline = 'middle';
    this.characterWidth ||= context.measureText('0'.repeat(100)).width / 100;
    const labels: {text: string; x: number; y: number; faded: boolean}[] = [];
    const first = Math.max(0, Math.floor(scene.scrollTop / rowHeight));
    const last = Math.min(scene.rows - 1, Math.floor((scene.scrollTop + scene.height) / rowHeight));
    for (let row = first; row <= last; ++row) this.drawRow(scene, row, labels);
    let fill = '';
    for (const label of labels) {
      const wanted = label.faded ? palette.fadedText : palette.text;
      if (wanted !== fill) context.fillStyle = fill = wanted;
      context.fillText(label.text, label.x, label.y);
    }
    this.outline(scene, scene.hovered, 1);
    this.outline(scene, scene.focused, 2);
  }

  private drawRow(scene: Scene, row: number, labels: {text: string; x: number; y: number; faded: boolean}[]): void {
    const {context} = this;
    const {graph, viewport, pixelRatio, width} = scene;
    const depth = rowOfDepth(scene, row);
    const level = graph.levels[depth];
    if (!level) return;
    const scale = width / viewport.width;
    const y = row * rowHeight - scene.scrollTop;
    const aboveZoom = depth < graph.depth[scene.zoom]!;
    const narrow = widthMin / pixelRatio;
    const end = viewport.x + viewport.width;
    let fill = '';
    for (let k = firstEndingAfter(graph, level, viewport.x); k < level.length; ++k) {
      const node = level[k]!;
      if (graph.start[node]! >= end) break;
      const frameWidth = graph.totalNs[node]! * scale;
      if (frameWidth < narrow) continue;
      const faded = aboveZoom || (scene.matches !== null && scene.matches[node] === 0);
      const wanted = this.fillOf(scene, node, faded);
      if (wanted !== fill) context.fillStyle = fill = wanted;
      // Edges on whole device pixels, and one of them left free between neighbours: crisp at every ratio.
      const left = Math.max(0, (graph.start[node]! - viewport.x) * scale);
      const right = Math.min(width, (graph.start[node]! - viewport.x) * scale + frameWidth);
      const x0 = Math.round(left * pixelRatio) / pixelRatio;
      const x1 = Math.round(right * pixelRatio) / pixelRatio;
      const gap = x1 - x0 > 3 ? 1 : 0;
      context.fillRect(x0, y, Math.max(1 / pixelRatio, x1 - x0 - gap), rowHeight - 1);
      const room = x1 - x0 - gap - 2 * labelPadding;
      if (room < 3 * this.characterWidth) continue;
      const text = fitLabel(graph.names[graph.name[node]!]!, room, this.characterWidth,
                            (candidate) => context.measureText(candidate).width);
      if (text !== '') labels.push({text, x: x0 + labelPadding, y: y + rowHeight / 2, faded});
    }
  }

  private fillOf(scene: Scene, node: number, faded: boolean): string {
    const {graph, theme, colors} = scene;
    if (scene.matches?.[node] === 1) return css(matchColor(theme));
    const executable = executableOf(graph, node);
    const kind = graph.kind[node]!;
    const key = `${theme} ${colors} ${faded} ${kind} ${executable}`;
    let style = this.styles.get(key);
    if (style === undefined) {
      style = css(frameColor({executable, kind, mode: colors, hues: graph.hues, theme, faded}));
      this.styles.set(key, style);
    }
    return style;
  }

  private outline(scene: Scene, node: number, thickness: number): void {
    if (node < 0 || node >= scene.graph.size) return;
    const {context} = this;
    const {graph, viewport, width} = scene;
    const scale = width / viewport.width;
    const x0 = Math.max(0, (graph.start[node]! - viewport.x) * scale);
    const x1 = Math.min(width, (graph.start[node]! + graph.totalNs[node]! - viewport.x) * scale);
    if (x1 <= x0) return;
    const y = rowOfDepth(scene, graph.depth[node]!) * rowHeight - scene.scrollTop;
    context.strokeStyle = palettes[scene.theme].outline;
    context.lineWidth = thickness;
    const inset = thickness / 2;
    context.strokeRect(x0 + inset, y + inset, Math.max(1, x1 - x0 - 1 - thickness), rowHeight - 1 - thickness);
  }
}
