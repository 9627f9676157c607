// Where in one function the samples of this selection are: its lines, its source and its addresses. This replaces graph
// and table; Escape leads back to them.
import {useEffect, useRef, useState} from 'preact/hooks';
import type {LinesAnswer} from '../api/types.ts';
import {formatPercent, formatSamples, printable} from '../model/format.ts';
import {formatValue, measureOf} from '../model/measure.ts';
import {hasPlace, listingsOf, placeOf, sortLines, totalsOf, type LineTotals} from '../model/lines.ts';
import {comingSources, whyNoLines, whyNothing, type Why} from '../model/lines_words.ts';
import {functionLines, linesLoading} from '../lines.ts';
import {closeLines, graphData, loading, refresh, setView, shownName, symbols, view} from '../state.ts';
import {Icon} from './icons.tsx';
import {LineTable} from './line_table.tsx';
import {Listing, Textless} from './listing.tsx';
import {StateView} from './state_view.tsx';

function Explanation({title, why, testId}: {title: string; why: Why; testId: string}) {
  const openExecutables = () => {
    setView({executables: 'open'});
    void refresh();
    document.querySelector('.executables')?.scrollIntoView({block: 'start'});
  };
  return (
    <div class="state no-lines" data-testid={testId}>
      <h2>{title}</h2>
      <p>{why.reason}</p>
      <p>{why.advice}</p>
      <p class="state-actions">
        <button type="button" class="button" onClick={openExecutables}>
          Show Executables
        </button>
      </p>
    </div>
  );
}

// Moves the focus between the rows. Returns false if `key` leads to no row.
function moveFocus(section: HTMLElement, key: string): boolean {
  const rows = [...section.querySelectorAll<HTMLElement>('[data-testid="line-open"]')];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = {ArrowDown: at + 1, ArrowUp: Math.max(0, at - 1), Home: 0, End: rows.length - 1}[key];
  if (next === undefined || !rows[next]) return false;
  rows[next].focus();
  return true;
}

// For a smaller share, there is no banner: the table shows it.
const unplacedShareMin = 0.05;

function Known({answer, totals}: {answer: LinesAnswer; totals: LineTotals}) {
  const hottest = sortLines(answer.lines.filter(hasPlace), 'total')[0];
  const [revealed, setRevealed] = useState(view.value.line || (hottest ? placeOf(hottest) : ''));
  const why = whyNoLines(answer.lines, symbols.value.value);
  const {line} = view.value;
  useEffect(() => {
    if (line) setRevealed(line);
  }, [line]);
  if (totals.unplacedNs > 0 && answer.lines.every(({line: number}) => number === 0)) {
    return (
      <>
        {why && <Explanation title="No lines of this function are known" why={why} testId="no-lines" />}
        <LineTable lines={answer.lines} totals={totals} unit={measureOf(answer).unit} reveal={() => {}} />
      </>
    );
  }
  const {textless} = listingsOf(answer, new Set());
  const much = totals.unplacedNs >= unplacedShareMin * totals.totalNs;
  const withText = answer.sources.length > 0;
  const {unit} = measureOf(answer);
  const coming = comingSources(answer);
  return (
    <>
      {coming && (
        <p class="banner" role="status" data-testid="lines-coming">
          {coming}
        </p>
      )}
      {why && much && (
        <p class="banner" data-testid="lines-unplaced" title={why.advice}>
          <Icon name="warning" />
          {`${formatPercent(totals.unplacedNs, totals.totalNs, 1)} of this function’s total has no line. ${why.reason}`}
        </p>
      )}
      <div class={`lines-body${withText ? ' with-text' : ''}`}>
        <LineTable lines={answer.lines} totals={totals} unit={unit} reveal={setRevealed} />
        {withText ? (
          <Listing answer={answer} whole={totals.totalNs} revealed={revealed} />
        ) : (
          <Textless files={textless} whole={totals.totalNs} />
        )}
      </div>
    </>
  );
}

function Body() {
  const {value: answer, error} = functionLines.value;
  if (!answer) return <StateView error={error} empty={false} />;
  return (
    <>
      {error && (
        <p class="banner" role="alert" data-testid="lines-stale">
          <Icon name="warning" />
          {`${printable(error.message)} (The data shown is older.)`}
        </p>
      )}
      {answer.lines.length === 0 ? (
        <Explanation title="No lines to show" why={whyNothing(answer.function)} testId="lines-empty" />
      ) : (
        <Known key={`${answer.function} ${answer.executable}`} answer={answer} totals={totalsOf(answer.lines)} />
      )}
    </>
  );
}

function Sums({answer}: {answer: LinesAnswer}) {
  const {selfNs, totalNs, totalCount} = totalsOf(answer.lines);
  const {unit} = measureOf(answer);
  const whole = graphData.value.value?.total.ns ?? 0;
  return (
    <p class="lines-sums" data-testid="lines-sums">
      <b>{formatValue(totalNs, unit)}</b>
      {whole > 0 && ` · ${formatPercent(totalNs, whole, 1)} of the selection`}
      {` · ${formatSamples(totalCount)} · ${formatValue(selfNs, unit)} self`}
    </p>
  );
}

export function Lines() {
  const section = useRef<HTMLElement>(null);
  const {lines: name, linesIn, query} = view.value;
  const {value: answer} = functionLines.value;
  // Scrolls the section to the top of the window, until the content above it has its final height.
  const placed = useRef(false);
  const arrived = answer !== null && !loading.value;
  useEffect(() => {
    if (!placed.current) section.current!.scrollIntoView({block: 'start'});
    placed.current ||= arrived;
  }, [arrived]);
  useEffect(() => {
    section.current!.focus({preventScroll: true});
    const abort = new AbortController();
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (event.key === 'Escape') closeLines();
      // In the source, these keys scroll.
      else if (!section.current!.contains(target) || target.closest('.listing-scroll')) return;
      else if (!moveFocus(section.current!, event.key)) return;
      event.preventDefault();
    };
    document.addEventListener('keydown', onKeyDown, {signal: abort.signal});
    return () => {
      abort.abort();
      // Focuses the graph, from which most users come. It exists again in the next animation frame.
      requestAnimationFrame(() => document.querySelector<HTMLElement>('.flame canvas')?.focus({preventScroll: true}));
    };
  }, []);
  const full = printable(name);
  return (
    <section
      class="card lines"
      ref={section}
      tabIndex={-1}
      aria-label={`Lines of ${full}`}
      data-testid="lines"
      data-loading={linesLoading.value}
    >
      <div class="card-head">
        <button
          type="button"
          class="button"
          title="Back to the graph: Escape"
          data-testid="lines-close"
          onClick={closeLines}
        >
          <Icon name="back" />
          Graph
        </button>
        <h1 class="lines-name">
          Lines of <code title={full} data-testid="lines-name">{shownName(full)}</code>
        </h1>
        {linesIn && <span class="muted">{printable(linesIn)}</span>}
        {query.trim() !== '' && (
          <code class="lines-query" title={printable(query)} data-testid="lines-query">
            {printable(query)}
          </code>
        )}
        <span class="spring" />
        {answer && answer.lines.length > 0 && <Sums answer={answer} />}
      </div>
      <Body />
    </section>
  );
}
