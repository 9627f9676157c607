// Values over time: CPU time in cores, other types per second. A drag across the timeline sets the range. A double
// click doubles it.
import {useEffect, useRef, useState} from 'preact/hooks';
import uPlot from 'uplot';
import type {EventMark, Rollout, TimelineAnswer} from '../api/types.ts';
import {eventMarks} from '../events.ts';
import {palettes} from '../flame/colors.ts';
import {groupMarks, type MarkGroup} from '../model/event_marks.ts';
import {formatClock, formatDate, formatSamples} from '../model/format.ts';
import {
  formatRate,
  formatTick,
  formatValue,
  isCpuTime,
  measureOf,
  measureTitle,
  rateOver,
  rateTitle,
  tickSteps,
  type Measure,
} from '../model/measure.ts';
import {type Mark, marksOf} from '../model/rollouts.ts';
import {absoluteRange, zoomedOut} from '../model/time_range.ts';
import {graphData, measure as graphMeasure, rollouts, setView, theme, timeline, view} from '../state.ts';
import {EventMarks} from './event_marks.tsx';
import {RolloutMarks} from './rollout_marks.tsx';

const chartHeight = 130;
const dragMin = 4; // pixels; less is a click
const marksApart = 8; // pixels
const eventLane = 11; // pixels below the plot, for the marks of process events
const plotPadding = 8; // pixels above the plot and to its right

// Returns the rate in a bucket, in the unit of the answer.
function rateOf(answer: TimelineAnswer, bucket: number): number {
  return rateOver(answer.cpu_ns[bucket] ?? 0, answer.step_ms, measureOf(answer));
}

// The starts of the buckets, and the end of the last bucket so that its step is drawn.
function toColumns(answer: TimelineAnswer): uPlot.AlignedData {
  const times = answer.cpu_ns.map((_, i) => answer.from + i * answer.step_ms);
  const scale = isCpuTime(measureOf(answer)) ? 1e-9 : 1; // to cores
  const rates = answer.cpu_ns.map((_, i) => rateOf(answer, i) * scale);
  return [
    [...times, answer.from + times.length * answer.step_ms],
    [...rates, rates.at(-1) ?? 0],
  ];
}

// The axis is as wide as its longest label. For cores, the chart formats the numbers itself.
function valueAxis(measure: Measure): Partial<uPlot.Axis> {
  if (isCpuTime(measure)) return {size: 46, space: 26};
  const steps = tickSteps(measure);
  return {
    size: (_, labels) => Math.max(46, 14 + 6.5 * Math.max(0, ...(labels ?? []).map((label) => label.length))),
    space: 20,
    values: (_, splits) => splits.map((value) => formatTick(value, measure.unit)),
    ...(steps && {incrs: steps}),
  };
}

function tickLabel(ms: number, stepMs: number): string {
  const clock = formatClock(ms);
  if (stepMs >= 86400e3) return formatDate(ms).slice(5);
  if (clock === '00:00:00') return formatDate(ms).slice(5);
  return stepMs >= 60e3 ? clock.slice(0, 5) : clock;
}

function chartOptions(
  width: number,
  measure: Measure,
  onHover: (bucket: number | null) => void,
  onDraw: (chart: uPlot) => void,
): uPlot.Options {
  const palette = palettes[theme.value];
  const font = '11px system-ui, sans-serif';
  const axis = {stroke: palette.axis, font, grid: {stroke: palette.grid, width: 1}, ticks: {show: false}};
  return {
    width,
    height: chartHeight,
    ms: 1,
    legend: {show: false},
    padding: [plotPadding, plotPadding, 0, 0],
    cursor: {
      y: false,
      points: {show: false},
      drag: {x: true, y: false, setScale: false},
      bind: {
        dblclick: () => () => {
          setView({...zoomedOut({from: view.value.from, to: view.value.to}, Date.now()), live: false});
          return null;
        },
      },
    },
    scales: {x: {time: true}, y: {range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1]}},
    axes: [
      {
        ...axis,
        size: 32,
        gap: 4 + eventLane,
        space: 80,
        values: (_, splits, __, ___, increment) => splits.map((ms) => tickLabel(ms, increment)),
      },
      {...axis, ...valueAxis(measure)},
    ],
    series: [
      {},
      {
        stroke: palette.accent,
        width: 1.5,
        fill: palette.area,
        points: {show: false},
        paths: uPlot.paths.stepped!({align: 1}),
      },
    ],
    hooks: {
      draw: [onDraw],
      setCursor: [
        (chart) => {
          const {left} = chart.cursor;
          if (left === undefined || left < 0) return onHover(null);
          const ms = chart.posToVal(left, 'x');
          const times = chart.data[0];
          let bucket = times.length - 2;
          while (bucket > 0 && times[bucket]! > ms) --bucket;
          onHover(bucket);
        },
      ],
      setSelect: [
        (chart) => {
          const {left, width: across} = chart.select;
          if (across < dragMin) return;
          const range = absoluteRange(chart.posToVal(left, 'x'), chart.posToVal(left + across, 'x'));
          chart.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
          setView({...range, live: false});
        },
      ],
    },
  };
}

interface Plot {
  left: number; // pixels from the left edge of the chart
  width: number;
  from: number;
  to: number;
}

function plotOf(chart: uPlot): Plot {
  const {min = 0, max = 0} = chart.scales['x']!;
  return {left: chart.bbox.left / uPlot.pxRatio, width: chart.bbox.width / uPlot.pxRatio, from: min, to: max};
}

const pixelsOn = (plot: Plot) => (ms: number) => ((ms - plot.from) / (plot.to - plot.from)) * plot.width;

function marksOn(plot: Plot, all: readonly Rollout[]): Mark[] {
  return plot.to > plot.from ? marksOf(all, pixelsOn(plot), plot.width, marksApart) : [];
}

function eventsOn(plot: Plot, all: readonly EventMark[]): MarkGroup[] {
  return plot.to > plot.from ? groupMarks(all, pixelsOn(plot), plot.width, plotPadding) : [];
}

function Chart({answer, onHover}: {answer: TimelineAnswer; onHover: (bucket: number | null) => void}) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [plot, setPlot] = useState<Plot | null>(null);
  const currentTheme = theme.value;
  const measure = measureOf(answer);
  // The position of the plot between the axes is known only when the chart is drawn.
  const onDraw = (drawn: uPlot) =>
    setPlot((old) => {
      const now = plotOf(drawn);
      return old && JSON.stringify(old) === JSON.stringify(now) ? old : now;
    });
  useEffect(() => {
    const element = host.current!;
    const made = new uPlot(chartOptions(element.clientWidth, measure, onHover, onDraw), toColumns(answer), element);
    chart.current = made;
    const resizes = new ResizeObserver(() => made.setSize({width: element.clientWidth, height: chartHeight}));
    resizes.observe(element);
    return () => {
      resizes.disconnect();
      made.destroy();
    };
  }, [currentTheme]);
  useEffect(() => chart.current?.setData(toColumns(answer)), [answer]);
  const most = formatRate(Math.max(...answer.cpu_ns.map((_, i) => rateOf(answer, i)), 0), measure);
  const {title} = rateTitle(measure);
  const label = `${title} from ${formatClock(answer.from)} to ${formatClock(answer.to)}, at most ${most}`;
  const all = rollouts.value.value?.rollouts ?? [];
  const events = eventMarks.value.value?.marks ?? [];
  return (
    <div class="chart-frame">
      <div ref={host} class="chart" data-testid="timeline" role="img" aria-label={label} />
      {plot && <RolloutMarks marks={marksOn(plot, all)} offset={plot.left} />}
      {plot && <EventMarks groups={eventsOn(plot, events)} offset={plot.left} width={plot.left + plot.width} />}
    </div>
  );
}

function Readout({answer, bucket}: {answer: TimelineAnswer; bucket: number | null}) {
  const data = graphData.value.value;
  if (bucket !== null) {
    const from = answer.from + bucket * answer.step_ms;
    return (
      <span data-testid="timeline-readout">
        {`${formatClock(from)} – ${formatClock(from + answer.step_ms)}: ${formatRate(rateOf(answer, bucket), measureOf(answer))}, ` +
          formatSamples(answer.count[bucket] ?? 0)}
      </span>
    );
  }
  if (!data) return null;
  const {measure} = data.graph;
  const average = rateOver(data.total.ns, data.to - data.from, measure);
  const value = `${formatValue(data.total.ns, measure.unit)} of ${measureTitle(measure)}`;
  const whole = measure.isGauge ? `${value} on average` : `${formatRate(average, measure)} on average, ${value}`;
  return (
    <span data-testid="totals">
      {`${whole}, ${formatSamples(data.total.count)}`}
    </span>
  );
}

export function Timeline() {
  const [bucket, setBucket] = useState<number | null>(null);
  const {value: answer, error} = timeline.value;
  const measure = answer ? measureOf(answer) : graphMeasure.value;
  const {title, unit} = rateTitle(measure);
  return (
    <section class="card timeline" aria-label={`${title} over time`}>
      <div class="card-head">
        <h1 data-testid="timeline-title">
          {title} <span class="unit">{unit}</span>
        </h1>
        <p class="readout">{answer && <Readout answer={answer} bucket={bucket} />}</p>
        <p class="hint wide-only">Drag to select a range</p>
      </div>
      {answer && answer.cpu_ns.length > 0 && answer.step_ms > 0 ? (
        <Chart key={`${measure.type}:${measure.unit}`} answer={answer} onHover={setBucket} />
      ) : (
        <p class="chart-empty note">{answer ? 'No samples in this range.' : error ? 'No data' : 'Loading…'}</p>
      )}
    </section>
  );
}
