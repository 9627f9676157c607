// Owns the canvas: size, scrolling, zoom animation, pointer and keyboard. Draws at most once per animation frame, and
// only if something changed. Does not use Preact: the view (components/flame.tsx) passes data in and receives events.
import type {ColorMode, Theme} from './colors.ts';
import {nodeAt, type FlameGraph} from './graph.ts';
import {Renderer, rowHeight, rowOfDepth, type Scene, type Viewport} from './renderer.ts';

export interface Pointed {
  node: number;
  x: number; // CSS pixels within the window, where the tooltip belongs
  y: number;
}

export interface ControllerEvents {
  zoom(node: number): void;
  point(pointed: Pointed | null): void;
}

export interface ControllerOptions {
  orientation: 'icicle' | 'flame';
  colors: ColorMode;
  theme: Theme;
  matches: Uint8Array | null;
  labels: readonly string[]; // of the graph's names
}

const zoomMs = 180;

export class FlameController {
  private readonly renderer: Renderer;
  private readonly abort = new AbortController();
  private readonly resizes: ResizeObserver;
  private graph: FlameGraph | null = null;
  private options: ControllerOptions = {
    orientation: 'icicle',
    colors: 'executable',
    theme: 'light',
    matches: null,
    labels: [],
  };
  private zoomed = 0;
  private viewport: Viewport = {x: 0, width: 1};
  private animation: {from: Viewport; start: number} | null = null;
  private hovered = -1;
  private focused = -1;
  private touched = -1; // the frame of the first touch, which shows its tooltip; a second touch zooms
  private scheduled = 0;

  constructor(
    private readonly scroller: HTMLElement,
    private readonly spacer: HTMLElement,
    private readonly canvas: HTMLCanvasElement,
    private readonly events: ControllerEvents,
  ) {
    this.renderer = new Renderer(canvas.getContext('2d', {alpha: false})!);
    canvas.dataset.rowHeight = String(rowHeight);
    this.resizes = new ResizeObserver(() => this.resize());
    this.resizes.observe(scroller);
    const {signal} = this.abort;
    scroller.addEventListener('scroll', () => this.schedule(), {signal, passive: true});
    canvas.addEventListener('pointermove', (event) => this.onPointerMove(event), {signal});
    canvas.addEventListener('pointerleave', () => this.point(-1, 0, 0), {signal});
    canvas.addEventListener('click', (event) => this.onClick(event), {signal});
    canvas.addEventListener('keydown', (event) => this.onKey(event), {signal});
    canvas.addEventListener('blur', () => this.focus(-1), {signal});
  }

  dispose(): void {
    this.abort.abort();
    this.resizes.disconnect();
    cancelAnimationFrame(this.scheduled);
  }

  setGraph(graph: FlameGraph, zoom: number): void {
    this.graph = graph;
    this.hovered = this.focused = this.touched = -1;
    this.animation = null;
    this.zoomed = zoom;
    this.viewport = this.target();
    this.events.point(null);
    this.resize();
  }

  setOptions(options: ControllerOptions): void {
    const turned = options.orientation !== this.options.orientation;
    this.options = options;
    if (turned) this.resize();
    this.schedule();
  }

  zoomTo(node: number): void {
    if (!this.graph || node === this.zoomed) return;
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.animation = still ? null : {from: {...this.viewport}, start: performance.now()};
    this.zoomed = node;
    if (still) this.viewport = this.target();
    this.canvas.dataset.busy = String(this.animation !== null);
    this.resize();
    this.reveal(node);
  }

  // Returns the frame that a key press applies to: the focused frame, else the frame under the pointer, else the zoomed
  // frame.
  meant(): number {
    return this.focused >= 0 ? this.focused : this.hovered >= 0 ? this.hovered : this.zoomed;
  }

  private target(): Viewport {
    const graph = this.graph!;
    return {x: graph.start[this.zoomed]!, width: Math.max(1, graph.totalNs[this.zoomed]!)};
  }

  private scene(): Scene {
    const graph = this.graph!;
    return {
      graph,
      labels: this.options.labels,
      viewport: this.viewport,
      zoom: this.zoomed,
      orientation: this.options.orientation,
      rows: graph.deepest[this.zoomed]! + 1,
      scrollTop: this.scroller.scrollTop,
      width: this.canvas.clientWidth,
      height: this.canvas.clientHeight,
      pixelRatio: devicePixelRatio,
      theme: this.options.theme,
      colors: this.options.colors,
      matches: this.options.matches,
      hovered: this.hovered,
      focused: this.focused,
    };
  }

  // The canvas is only as large as the visible part; the spacer makes the scroll bar. A canvas for a stack of thousands
  // of frames would be larger than browsers allow.
  private resize(): void {
    if (!this.graph) return;
    const rows = this.graph.deepest[this.zoomed]! + 1;
    const content = rows * rowHeight;
    const atBottom = this.scroller.scrollTop + this.scroller.clientHeight >= this.scroller.scrollHeight - 2;
    this.spacer.style.height = `${content}px`;
    const width = this.scroller.clientWidth;
    const height = Math.min(this.scroller.clientHeight, content);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const deviceWidth = Math.round(width * devicePixelRatio);
    const deviceHeight = Math.round(height * devicePixelRatio);
    if (this.canvas.width !== deviceWidth) this.canvas.width = deviceWidth;
    if (this.canvas.height !== deviceHeight) this.canvas.height = deviceHeight;
    if (this.options.orientation === 'flame' && atBottom) this.scroller.scrollTop = content;
    const {dataset} = this.canvas;
    dataset.rows = String(rows);
    dataset.orientation = this.options.orientation;
    dataset.zoom = String(this.zoomed);
    this.schedule();
  }

  private schedule(): void {
    this.scheduled ||= requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.scheduled = 0;
    if (!this.graph) return;
    if (this.animation) {
      const target = this.target();
      const done = Math.min(1, Math.max(0, now - this.animation.start) / zoomMs);
      const eased = 1 - (1 - done) ** 3;
      const {from} = this.animation;
      const end = from.x + from.width + (target.x + target.width - from.x - from.width) * eased;
      const x = from.x + (target.x - from.x) * eased;
      this.viewport = done === 1 ? target : {x, width: end - x};
      if (done === 1) this.animation = null;
      else this.schedule();
    }
    const before = performance.now();
    this.renderer.draw(this.scene());
    this.canvas.dataset.drawMs = (performance.now() - before).toFixed(2);
    this.canvas.dataset.busy = String(this.animation !== null);
  }

  private nodeUnder(event: MouseEvent): number {
    if (!this.graph) return -1;
    const box = this.canvas.getBoundingClientRect();
    const scene = this.scene();
    const row = Math.floor((event.clientY - box.top + scene.scrollTop) / rowHeight);
    if (row < 0 || row >= scene.rows) return -1;
    const x = this.viewport.x + ((event.clientX - box.left) / scene.width) * this.viewport.width;
    return nodeAt(this.graph, rowOfDepth(scene, row), x);
  }

  private point(node: number, x: number, y: number): void {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.classList.toggle('over-frame', node >= 0);
      this.schedule();
    }
    this.events.point(node < 0 ? null : {node, x, y});
  }

  private onPointerMove(event: PointerEvent): void {
    if (event.pointerType !== 'touch') this.point(this.nodeUnder(event), event.clientX, event.clientY);
  }

  private onClick(event: MouseEvent): void {
    const node = this.nodeUnder(event);
    const touch = 'pointerType' in event && event.pointerType === 'touch';
    this.focus(-1);
    this.point(node, event.clientX, event.clientY);
    if (node < 0) return;
    if (touch && this.touched !== node) {
      this.touched = node;
      return;
    }
    this.touched = -1;
    this.events.zoom(node);
  }

  private onKey(event: KeyboardEvent): void {
    if (!this.graph || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Enter' || event.key === ' ') {
      if (this.focused >= 0) this.events.zoom(this.focused);
    } else if (event.key === 'Escape') {
      if (this.focused >= 0 && this.zoomed === 0) this.focus(-1);
      this.events.zoom(Math.max(0, this.graph.parent[this.zoomed]!));
    } else {
      const next = this.neighbour(event.key);
      if (next === null) return;
      this.focus(next);
    }
    event.preventDefault();
  }

  // Returns the frame that an arrow key or Home leads to from the focused frame. Returns null for other keys.
  private neighbour(key: string): number | null {
    const graph = this.graph!;
    const away = this.options.orientation === 'icicle' ? 'ArrowDown' : 'ArrowUp';
    const back = this.options.orientation === 'icicle' ? 'ArrowUp' : 'ArrowDown';
    if (!['ArrowDown', 'ArrowUp', 'ArrowLeft', 'ArrowRight', 'Home'].includes(key)) return null;
    const at = this.focused;
    if (at < 0 || key === 'Home') return this.zoomed;
    if (key === back) return Math.max(0, graph.parent[at]!);
    const level = graph.levels[graph.depth[at]! + (key === away ? 1 : 0)];
    if (!level) return at;
    if (key === away) {
      const child = level.find((node) => graph.parent[node] === at);
      return child ?? at;
    }
    const sibling = level[level.indexOf(at) + (key === 'ArrowRight' ? 1 : -1)];
    if (sibling === undefined) return at;
    const middle = graph.start[sibling]! + graph.totalNs[sibling]! / 2;
    const visible = middle > this.viewport.x && middle < this.viewport.x + this.viewport.width;
    return visible ? sibling : at;
  }

  private focus(node: number): void {
    if (node === this.focused) return;
    this.focused = node;
    this.schedule();
    if (node < 0) {
      this.events.point(null);
      return;
    }
    this.reveal(node);
    const scene = this.scene();
    const box = this.canvas.getBoundingClientRect();
    const scale = scene.width / this.viewport.width;
    const x = Math.max(0, (this.graph!.start[node]! - this.viewport.x) * scale);
    const y = (rowOfDepth(scene, this.graph!.depth[node]!) + 1) * rowHeight - scene.scrollTop;
    this.events.point({node, x: box.left + Math.min(x, box.width - 40), y: box.top + y});
  }

  private reveal(node: number): void {
    const scene = this.scene();
    const top = rowOfDepth(scene, this.graph!.depth[node]!) * rowHeight;
    if (top < scene.scrollTop) this.scroller.scrollTop = top;
    else if (top + rowHeight > scene.scrollTop + scene.height) this.scroller.scrollTop = top + rowHeight - scene.height;
  }
}
