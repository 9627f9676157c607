// Formats numbers for readers, always with their unit. The notation is fixed (1,234.5), so that a screenshot or a
// pasted value means the same everywhere.

// Three significant digits, without an exponent, trailing zeros kept: 1.20, 12.0, 120.
export function threeDigits(value: number): string {
  const magnitude = Math.abs(value);
  return value.toFixed(magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0);
}

export function formatCount(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',');
}

export function formatSamples(value: number): string {
  return `${formatCount(value)} ${value === 1 ? 'sample' : 'samples'}`;
}

// Time: ns, µs, ms, s, then minutes, hours and days with two parts.
export function formatDuration(ns: number): string {
  if (ns === 0) return '0 s';
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return `${threeDigits(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${threeDigits(ns / 1e6)} ms`;
  if (ns < 119.95e9) return `${threeDigits(ns / 1e9)} s`;
  const seconds = Math.round(ns / 1e9);
  if (seconds < 2 * 3600) return twoParts(seconds, 60, 'min', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 48 * 60) return twoParts(minutes, 60, 'h', 'min');
  return twoParts(Math.round(minutes / 60), 24, 'd', 'h');
}

function twoParts(value: number, base: number, large: string, small: string): string {
  const rest = value % base;
  return `${formatCount(Math.floor(value / base))} ${large}${rest ? ` ${rest} ${small}` : ''}`;
}

// Returns `part` as a percentage of `whole`. Never "0.00%" for more than nothing, never "100%" for less than the whole.
export function formatPercent(part: number, whole: number, digits = 2): string {
  if (whole <= 0 || part <= 0) return '0%';
  if (part >= whole) return '100%';
  const percent = (part / whole) * 100;
  const step = 10 ** -digits;
  if (percent < step / 2) return `<${step.toFixed(digits)}%`;
  if (percent > 100 - step / 2) return `>${(100 - step).toFixed(digits)}%`;
  return `${percent.toFixed(digits)}%`;
}

export function formatCores(cores: number): string {
  return `${cores < 0.1 && cores > 0 ? cores.toFixed(3) : threeDigits(cores)} ${cores === 1 ? 'core' : 'cores'}`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
  let unit = 0;
  while (bytes >= 1023.5 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return `${unit === 0 ? formatCount(bytes) : threeDigits(bytes)} ${units[unit]}`;
}

const two = (value: number) => value.toString().padStart(2, '0');

export function formatClock(ms: number): string {
  const date = new Date(ms);
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function formatDate(ms: number): string {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

// Names come from the observed machines and may contain any character. Control characters and characters that change
// the text direction are shown as visible escapes, so that no name can hide or reorder the text around it.
export function printable(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

// Formats a line of a source file: keeps its tabs and drops a carriage return at its end.
export function printableLine(text: string): string {
  return text.replace(/\r$/, '').split('\t').map(printable).join('\t');
}
