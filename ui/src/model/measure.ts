// What the values of an answer measure, and how they are formatted. The sender of the samples chooses the names and
// units of types, so they are shown as text, with escapes, and cut.
import type {SampleType, TypesAnswer} from '../api/types.ts';
import {formatBytes, formatCores, formatCount, formatDuration, printable, threeDigits} from './format.ts';

export interface Measure {
  type: string;
  unit: string;
  isGauge?: true; // values are means over the time, not sums
}

export const cpuTime: Measure = {type: 'cpu', unit: 'nanoseconds'};

const wordMax = 32; // letters

// An answer of an earlier release has no type: its values are CPU time.
export function measureOf(answer: {
  type?: string | undefined;
  unit?: string | undefined;
  aggregation?: string | undefined;
}): Measure {
  const measure = {type: answer.type || cpuTime.type, unit: answer.unit || cpuTime.unit};
  return answer.aggregation === 'last' ? {...measure, isGauge: true} : measure;
}

export const isCpuTime = ({type, unit, isGauge}: Measure): boolean =>
  type === cpuTime.type && unit === cpuTime.unit && !isGauge;

export function shownWord(text: string): string {
  const letters = Array.from(printable(text));
  return letters.length > wordMax ? `${letters.slice(0, wordMax - 1).join('')}…` : letters.join('');
}

// Returns the words for use within a sentence: "CPU time", or the name of a type that is not built in.
export function measureTitle(measure: Measure): string {
  if (isCpuTime(measure)) return 'CPU time';
  if (measure.type === 'off_cpu' && measure.unit === 'nanoseconds') return 'time off the CPU';
  return shownWord(measure.type);
}

// Returns the same words for use as a label.
export function measureLabel(measure: Measure): string {
  const title = measureTitle(measure);
  return title === shownWord(measure.type) ? title : title[0]!.toUpperCase() + title.slice(1);
}

// Returns the title of a graph over time, and the unit of its axis.
export function rateTitle(measure: Measure): {title: string; unit: string} {
  if (isCpuTime(measure)) return {title: 'CPU use', unit: 'in cores'};
  if (measure.isGauge) return {title: measureLabel(measure), unit: `in ${shownWord(measure.unit)}`};
  const unit = measure.unit === 'nanoseconds' ? 'per second' : `in ${shownWord(measure.unit)} per second`;
  return {title: measureLabel(measure), unit};
}

const prefixes = ['', 'k', 'M', 'G', 'T', 'P', 'E'];

// 999, 1.20k, 12.0M.
export function formatScaled(value: number): string {
  if (value > 0 && value < 0.005) return '<0.01';
  let scaled = value;
  let prefix = 0;
  while (scaled >= 999.5 && prefix + 1 < prefixes.length) {
    scaled /= 1000;
    ++prefix;
  }
  return prefix === 0 && Number.isInteger(value) ? formatCount(value) : `${threeDigits(scaled)}${prefixes[prefix]}`;
}

// "12.3 s", "1.20 MiB", "12.3k objects".
export function formatValue(value: number, unit: string): string {
  const something = value > 0 && value < 0.5;
  if (unit === 'nanoseconds') return something ? '<1 ns' : formatDuration(value);
  if (unit === 'bytes') return something ? '<1 B' : formatBytes(value);
  return `${formatScaled(value)} ${shownWord(unit)}`;
}

// Converts a value that was measured over `ms` for `formatRate`: to a value per second. A gauge stays as it is.
export const rateOver = (value: number, ms: number, measure: Measure): number =>
  measure.isGauge ? value : value / (ms / 1e3);

// Formats a value per second: "1.84 cores" for CPU time, else "1.20 MiB/s". For a gauge: "1.20 MiB".
export function formatRate(perSecond: number, measure: Measure): string {
  if (measure.isGauge) return formatValue(perSecond, measure.unit);
  return isCpuTime(measure) ? formatCores(perSecond / 1e9) : `${formatValue(perSecond, measure.unit)}/s`;
}

const powers = (base: number, count: number) => Array.from({length: count}, (_, i) => base ** i);
const secondsNs = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200].map((s) => s * 1e9);
const daysNs = powers(10, 5).flatMap((days) => [1, 2, 5].map((digit) => digit * days * 86400e9));
const stepsNs = [...powers(10, 9).flatMap((ns) => [ns, 2 * ns, 5 * ns]), ...secondsNs, ...daysNs];

// Returns the distances that the marks of a rate axis may have: round numbers of its unit. undefined: decimal numbers.
export function tickSteps(measure: Measure): number[] | undefined {
  if (isCpuTime(measure)) return undefined;
  if (measure.unit === 'nanoseconds') return stepsNs;
  return measure.unit === 'bytes' ? powers(2, 64) : undefined;
}

// Formats the label of a mark on that axis: "1.5 MiB", "12k". The title has the full unit.
export function formatTick(perSecond: number, unit: string): string {
  const timeOrBytes = unit === 'nanoseconds' || unit === 'bytes';
  const text = timeOrBytes ? formatValue(perSecond, unit) : formatScaled(perSecond);
  return text.replace(/\.0+(?!\d)/, '').replace(/(\.\d*[1-9])0+(?!\d)/, '$1');
}

// Returns the key by which the page requests a type. Several types may share a name, and a sum and a gauge may share
// name and unit.
export function keyOf({name, unit, aggregation}: SampleType, offered: readonly SampleType[]): string {
  const hasTwin = offered.some(
    (other) => other.name === name && other.unit === unit && other.aggregation !== aggregation,
  );
  return `${name}:${unit}${hasTwin ? `:${aggregation ?? 'sum'}` : ''}`;
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';

export function typesOf({types}: TypesAnswer): SampleType[] {
  return types.filter(({name, unit}) => isText(name) && isText(unit));
}

// Returns the key of the type to request: of the choice, which is a name or a key. Without a choice: of CPU time, or of
// the first type if CPU time is not offered. '': the server's own default, which is CPU time.
export function askedType(choice: string, offered: readonly SampleType[]): string {
  if (choice !== '') {
    const named = offered.filter((type) =>
      [keyOf(type, offered), `${type.name}:${type.unit}`, type.name].includes(choice),
    );
    return named.length === 1 ? keyOf(named[0]!, offered) : choice;
  }
  const first = offered[0];
  return !first || offered.some((type) => isCpuTime(measureOf({...type, type: type.name}))) ? '' : keyOf(first, offered);
}
