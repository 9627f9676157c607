import assert from 'node:assert/strict';
import {test} from 'node:test';
import {
  askedType,
  cpuTime,
  formatRate,
  formatScaled,
  formatTick,
  formatValue,
  isCpuTime,
  keyOf,
  measureLabel,
  measureOf,
  measureTitle,
  rateOver,
  rateTitle,
  shownWord,
  tickSteps,
  typesOf,
} from './measure.ts';

const bytes = {type: 'alloc_space', unit: 'bytes'};
const objects = {type: 'alloc_objects', unit: 'objects'};
const offCpu = {type: 'off_cpu', unit: 'nanoseconds'};

test('an answer without a type is CPU time', () => {
  assert.deepEqual(measureOf({}), cpuTime);
  assert.deepEqual(measureOf({type: '', unit: ''}), cpuTime);
  assert.deepEqual(measureOf({...bytes}), bytes);
  assert.ok(isCpuTime(measureOf({type: 'cpu'})));
  assert.ok(!isCpuTime({type: 'cpu', unit: 'cycles'}));
  assert.ok(!isCpuTime(offCpu));
});

test('values follow their unit', () => {
  const cases: [number, string, string][] = [
    [12.34e9, 'nanoseconds', '12.3 s'],
    [0.2, 'nanoseconds', '<1 ns'],
    [0, 'nanoseconds', '0 s'],
    [1536, 'bytes', '1.50 KiB'],
    [3 * 2 ** 50, 'bytes', '3.00 PiB'],
    [0.2, 'bytes', '<1 B'],
    [0, 'bytes', '0 B'],
    [999, 'objects', '999 objects'],
    [1234, 'objects', '1.23k objects'],
    [999_600, 'objects', '1.00M objects'],
    [0.25, 'objects', '0.25 objects'],
  ];
  for (const [value, unit, text] of cases) assert.equal(formatValue(value, unit), text);
  assert.equal(formatScaled(12.3e18), '12.3E');
  assert.equal(formatScaled(0.0001), '<0.01');
  assert.equal(formatScaled(0), '0');
});

test('names and units of samples are escaped and cut', () => {
  assert.equal(formatValue(1, 'obj\u202e\u001b[2J'), '1 obj\\u202e\\u001b[2J');
  assert.equal(shownWord('x'.repeat(33)), `${'x'.repeat(31)}…`);
  assert.equal(shownWord('🜁'.repeat(32)), '🜁'.repeat(32));
  assert.ok(Array.from(measureTitle({type: '\u0007'.repeat(1000), unit: 'bytes'})).length <= 32);
});

test('names each measure in words', () => {
  assert.equal(measureTitle(cpuTime), 'CPU time');
  assert.equal(measureTitle(offCpu), 'time off the CPU');
  assert.equal(measureTitle({type: 'cpu', unit: 'cycles'}), 'cpu');
  assert.equal(measureLabel(offCpu), 'Time off the CPU');
  assert.equal(measureLabel(bytes), 'alloc_space');
  assert.deepEqual(rateTitle(cpuTime), {title: 'CPU use', unit: 'in cores'});
  assert.deepEqual(rateTitle(offCpu), {title: 'Time off the CPU', unit: 'per second'});
  assert.deepEqual(rateTitle(bytes), {title: 'alloc_space', unit: 'in bytes per second'});
});

test('only rates of CPU time are in cores', () => {
  assert.equal(formatRate(1.84e9, cpuTime), '1.84 cores');
  assert.equal(formatRate(1.84e9, offCpu), '1.84 s/s');
  assert.equal(formatRate(3 * 2 ** 20, bytes), '3.00 MiB/s');
  assert.equal(formatRate(12_345, objects), '12.3k objects/s');
});

test('a gauge has no rate', () => {
  const inUse = measureOf({type: 'inuse_space', unit: 'bytes', aggregation: 'last'});
  assert.equal(rateOver(3 * 2 ** 20, 60_000, inUse), 3 * 2 ** 20);
  assert.equal(formatRate(3 * 2 ** 20, inUse), '3.00 MiB');
  assert.deepEqual(rateTitle(inUse), {title: 'inuse_space', unit: 'in bytes'});
  assert.equal(rateOver(120, 60_000, bytes), 2);
  assert.deepEqual(measureOf({...bytes, aggregation: 'sum'}), bytes);
});

test('an axis has round numbers of its unit', () => {
  assert.equal(tickSteps(cpuTime), undefined);
  assert.equal(tickSteps(objects), undefined);
  assert.ok(tickSteps(bytes)!.includes(2 ** 20));
  const steps = tickSteps(offCpu)!;
  assert.ok(steps.includes(500e6) && steps.includes(30e9) && steps.includes(3600e9));
  assert.deepEqual(steps, [...new Set(steps)].sort((a, b) => a - b));
  const cases: [number, string, string][] = [
    [0, 'bytes', '0 B'],
    [512 * 1024, 'bytes', '512 KiB'],
    [2 ** 20, 'bytes', '1 MiB'],
    [1.5 * 2 ** 20, 'bytes', '1.5 MiB'],
    [120e9, 'nanoseconds', '2 min'],
    [500e6, 'nanoseconds', '500 ms'],
    [20_000, 'objects', '20k'],
    [1_500, 'objects', '1.5k'],
    [0.5, 'objects', '0.5'],
    [200, 'objects', '200'],
  ];
  for (const [value, unit, text] of cases) assert.equal(formatTick(value, unit), text);
});

test('requests the choice, else CPU time, else the first type', () => {
  const cpu = {name: 'cpu', unit: 'nanoseconds'};
  const space = {name: 'alloc', unit: 'bytes'};
  const count = {name: 'alloc', unit: 'count'};
  assert.equal(askedType('', []), '');
  assert.equal(askedType('', [space, cpu]), '');
  assert.equal(askedType('', [space, count]), 'alloc:bytes');
  assert.equal(askedType('', [{name: 'cpu', unit: 'cycles'}]), 'cpu:cycles');
  assert.equal(askedType('alloc:count', [space, count]), 'alloc:count');
  assert.equal(askedType('alloc', [cpu, space]), 'alloc:bytes');
  assert.equal(askedType('nonsense', [cpu, space]), 'nonsense', 'the server says what is wrong with it');
  assert.equal(askedType('alloc', [space, count]), 'alloc', 'the server lists both');
  assert.equal(keyOf(space, [space, count]), 'alloc:bytes');
  const gauge = {...space, aggregation: 'last'};
  assert.equal(keyOf(gauge, [gauge]), 'alloc:bytes');
  assert.equal(keyOf(gauge, [space, gauge]), 'alloc:bytes:last');
  assert.equal(keyOf(space, [space, gauge]), 'alloc:bytes:sum');
  assert.equal(askedType('alloc:bytes:last', [space, gauge]), 'alloc:bytes:last');
  assert.equal(askedType('alloc:bytes', [gauge, space]), 'alloc:bytes', 'the server lists both');
  const gaugeOfCpu = {...cpu, aggregation: 'last'};
  assert.ok(!isCpuTime(measureOf({...gaugeOfCpu, type: 'cpu'})));
  assert.equal(askedType('', [gaugeOfCpu]), 'cpu:nanoseconds');
});

test('types without a name or a unit are not offered', () => {
  const odd = [{name: 'a', unit: 'b'}, {name: '', unit: 'b'}, {name: 'a', unit: 3}, {}] as {name: string; unit: string}[];
  assert.deepEqual(typesOf({types: odd}), [{name: 'a', unit: 'b'}]);
});
