// Colours of frames. All have about the same lightness per theme (OKLCH), so that no frame stands out, and text on
// every frame has a contrast of at least 4.5 to 1 (colors_test.ts).
import type {FrameKind} from './kind.ts';

export type Theme = 'light' | 'dark';
export type ColorMode = 'executable' | 'kind';

export interface Rgb {
  r: number; // 0 to 255
  g: number;
  b: number;
}

// OKLab to sRGB (Björn Ottosson's published matrices), clipped to the gamut.
export function oklch(lightness: number, chroma: number, hueDegrees: number): Rgb {
  const hue = (hueDegrees * Math.PI) / 180;
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const channel = (linear: number) => {
    const clipped = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
  };
  return {
    r: channel(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    g: channel(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    b: channel(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  };
}

export function css({r, g, b}: Rgb): string {
  return `rgb(${r} ${g} ${b})`;
}

// Kernel frames and the frames of language runtimes have hues of their own. Executables share the rest of the circle, in
// two lightnesses.
const kernelHue = 45;
const languageHues: Readonly<Record<string, number>> = {python: 88, jit: 15};
const hueFrom = 115;
const hueTo = 325; // short of the hue of search matches
const hueCount = 12;
const slotCount = 2 * hueCount;

// Executable → slot (hue, plus hueCount if darker), for the executables that must have distinct colours.
export type Hues = ReadonlyMap<string, number>;

function preferredSlot(executable: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < executable.length; ++i) hash = Math.imul(hash ^ executable.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  return (hash >>> 0) % hueCount;
}

// The name alone decides the colour, so that it stays the same from graph to graph. If two names of a graph have the
// same hue, the later in the alphabet gets another hue, as long as a hue is free.
export function assignHues(executables: readonly string[]): Hues {
  const slots = new Map<string, number>();
  const taken = new Set<number>();
  for (const executable of [...executables].sort()) {
    let slot = preferredSlot(executable);
    // Steps of 5 reach every hue, and begin with a distant one.
    for (let tries = 1; taken.has(slot) && tries < slotCount; ++tries) {
      slot = ((slot + 5) % hueCount) + (tries >= hueCount ? hueCount : 0);
    }
    taken.add(slot);
    slots.set(executable, slot);
  }
  return slots;
}

// Native and inlined code are the most frequent, and have fixed hues. For other kinds, a hash of the name chooses the
// hue.
function kindHue({name, color}: FrameKind): number {
  if (color === 'inlined') return 300;
  if (name === 'native') return 215;
  return hueFrom + preferredSlot(name) * ((hueTo - hueFrom) / (hueCount - 1));
}

// Returns true if the kind alone decides the colour of a frame, and not its executable.
export function hasOwnColor({color}: FrameKind): boolean {
  return color === 'kernel' || color === 'unknown' || color === 'root' || color in languageHues;
}

export interface FrameStyle {
  executable: string;
  kind: FrameKind;
  mode: ColorMode;
  hues: Hues;
  theme: Theme;
  faded: boolean; // a search runs and this frame does not match, or it lies above the zoomed frame
}

export function frameColor({executable, kind, mode, hues, theme, faded}: FrameStyle): Rgb {
  const dark = theme === 'dark';
  const lightness = dark ? 0.46 : 0.84;
  const fade = faded ? 0.25 : 1;
  const {color} = kind;
  if (color === 'root') return oklch(dark ? 0.34 : 0.9, 0.01, 220);
  if (color === 'unknown') return oklch(dark ? 0.4 : 0.86, 0, 0);
  if (color === 'kernel') return oklch(lightness, (dark ? 0.09 : 0.1) * fade, kernelHue);
  const languageHue = languageHues[color];
  if (languageHue !== undefined) return oklch(lightness, (dark ? 0.09 : 0.12) * fade, languageHue);
  const inlinedStep = dark ? -0.06 : 0.06;
  if (mode === 'kind') return oklch(lightness, 0.085 * fade, kindHue(kind));
  const slot = hues.get(executable) ?? preferredSlot(executable);
  const hue = hueFrom + (slot % hueCount) * ((hueTo - hueFrom) / (hueCount - 1));
  const own = lightness - (slot >= hueCount ? 0.05 : 0);
  return color === 'inlined' ? oklch(own + inlinedStep, 0.05 * fade, hue) : oklch(own, 0.09 * fade, hue);
}

export function matchColor(theme: Theme): Rgb {
  return theme === 'dark' ? oklch(0.5, 0.2, 350) : oklch(0.78, 0.16, 350);
}

export interface Palette {
  background: string;
  text: string;
  fadedText: string;
  outline: string;
  accent: string;
  grid: string;
  axis: string;
  area: string;
}

// The colours for canvases. styles/base.css has the same values for the rest of the page.
export const palettes: Record<Theme, Palette> = {
  light: {
    background: '#ffffff',
    text: '#14202b',
    fadedText: '#56626e',
    outline: '#0b1620',
    accent: '#0f6e84',
    grid: '#e8ecef',
    axis: '#5b6873',
    area: 'rgb(15 110 132 / 18%)',
  },
  dark: {
    background: '#161c22',
    text: '#eef3f6',
    fadedText: '#a7b3bd',
    outline: '#ffffff',
    accent: '#4fb8cf',
    grid: '#28313a',
    axis: '#93a1ad',
    area: 'rgb(79 184 207 / 20%)',
  },
};
