import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  assignHues,
  css,
  frameColor,
  hasOwnColor,
  matchColor,
  oklch,
  palettes,
  type ColorMode,
  type Rgb,
  type Theme,
} from './colors.ts';
import {knownKinds, type FrameKind} from './kind.ts';
import {fitLabel} from './renderer.ts';

function luminance({r, g, b}: Rgb): number {
  const [red, green, blue] = [r, g, b].map((value) => {
    const channel = value / 255;
    return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high! + 0.05) / (low! + 0.05);
}

function parseHex(text: string): Rgb {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  return {r: r!, g: g!, b: b!};
}

const executables = [
  'truth',
  'nginx',
  'python3.11',
  'libc.so.6',
  'java',
  'node',
  'postgres',
  'bash',
  'sshd',
  'redis',
  'libz.so.1',
  'libcrypto.so.3',
  'a',
  'b',
  'c',
  'd',
];

const laterKinds = [
  {name: 'go', color: 'file'},
  {name: 'python', color: 'python'},
  {name: 'jit', color: 'jit'},
  {name: 'later', color: 'not known here'},
];

test('OKLCH conversion agrees with known colours', () => {
  assert.deepEqual(oklch(1, 0, 0), {r: 255, g: 255, b: 255});
  assert.deepEqual(oklch(0, 0, 0), {r: 0, g: 0, b: 0});
  const red = oklch(0.62796, 0.25768, 29.234);
  assert.ok(red.r > 252 && red.g < 4 && red.b < 4, css(red));
});

test('text on every frame has a contrast of at least 4.5', () => {
  const hues = assignHues(executables);
  for (const theme of ['light', 'dark'] as Theme[]) {
    const {text, fadedText} = palettes[theme];
    for (const mode of ['executable', 'kind'] as const) {
      for (const kind of [...knownKinds, ...laterKinds]) {
        for (const executable of executables) {
          const plain = frameColor({executable, kind, mode, hues, theme, faded: false});
          assert.ok(contrast(plain, parseHex(text)) >= 4.5, `${theme} ${mode} ${kind.name} ${executable}`);
          const faded = frameColor({executable, kind, mode, hues, theme, faded: true});
          assert.ok(contrast(faded, parseHex(fadedText)) >= 3, `faded ${theme} ${mode} ${kind.name} ${executable}`);
        }
      }
    }
    assert.ok(contrast(matchColor(theme), parseHex(text)) >= 4.5, `match ${theme}`);
  }
});

test('executables of one graph get different colours, the same in every order', () => {
  const hues = assignHues(executables);
  const color = (executable: string) =>
    css(frameColor({executable, kind: knownKinds[1]!, mode: 'executable', hues, theme: 'light', faded: false}));
  assert.equal(new Set(executables.map(color)).size, executables.length);
  assert.deepEqual(assignHues([...executables].reverse()), hues);
  assert.equal(assignHues(Array.from({length: 100}, (_, i) => `lib${i}`)).size, 100);
});

test('languages have colours of their own, whatever the file', () => {
  const hues = assignHues(executables);
  const color = (kind: FrameKind, executable: string, mode: ColorMode) =>
    css(frameColor({executable, kind, mode, hues, theme: 'light', faded: false}));
  const own = [...knownKinds, ...laterKinds].filter(hasOwnColor);
  assert.deepEqual(
    own.map(({name}) => name),
    ['everything', 'kernel', 'unknown', 'python', 'jit'],
  );
  const colors = own.map((kind) => color(kind, 'app.py', 'executable'));
  assert.equal(new Set(colors).size, own.length);
  assert.deepEqual(
    own.map((kind) => color(kind, 'other.py', 'kind')),
    colors,
  );
  for (const executable of executables) assert.ok(!colors.includes(color(knownKinds[1]!, executable, 'executable')));
});

test('labels are cut to their frame, by character, in every script', () => {
  const measure = (text: string) => Array.from(text).length * 12;
  assert.equal(fitLabel('function', 80, 7, measure), 'function');
  assert.equal(fitLabel('function', 40, 7, measure), 'func…');
  assert.equal(fitLabel('function', 20, 7, measure), '');
  assert.equal(fitLabel('функция', 84, 7, measure), 'функция');
  assert.equal(fitLabel('😀😀😀😀😀😀', 60, 7, measure), '😀😀😀😀…');
});
