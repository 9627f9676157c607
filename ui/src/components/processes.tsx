// The short-lived processes that ended in the range: one line. A button opens their programs, and below them the
// crashes, OOM kills and failures.
import {eventMarks, eventsLoading, eventsMissing, programs} from '../events.ts';
import {countMarks, markCountsText} from '../model/event_marks.ts';
import {formatCount, printable} from '../model/format.ts';
import {hasThreadFilter, setView, status, view} from '../state.ts';
import {Endings} from './endings.tsx';
import {Icon} from './icons.tsx';
import {ProgramTable} from './program_table.tsx';

const shortLived = 'Short-lived: a process that ran for less than 10 s';

function Line() {
  const {value: answer, error} = programs.value;
  if (eventsMissing.value) {
    return (
      <p class="readout" data-testid="processes-line">
        This reducer is older and has no process events.
      </p>
    );
  }
  if (!answer) {
    return (
      <p class="readout" role={error ? 'alert' : 'status'} data-testid="processes-line">
        {error ? printable(error.message) : 'Loading…'}
      </p>
    );
  }
  const {marks = [], truncated = false} = eventMarks.value.value ?? {};
  const counts = countMarks(marks);
  const {processes, failed} = answer.total;
  const ended = `${formatCount(processes)} short-lived ${processes === 1 ? 'process' : 'processes'}`;
  const parts = [processes > 0 ? ended : 'no short-lived process ended in this time range'];
  if (processes > 0 && failed > 0) parts.push(`${formatCount(failed)} failed`);
  const marked = markCountsText(counts);
  if (marked) parts.push(truncated ? `at least ${marked}` : marked);
  const level = counts.crash + counts.oom > 0 ? 'poor' : processes > 0 ? 'good' : '';
  return (
    <p class="executables-line" title={shortLived} data-testid="processes-line">
      <span class={`dot ${level}`} />
      <span>{parts.join(' · ')}</span>
    </p>
  );
}

// Says what to do if there is nothing to list.
function Empty() {
  const captured = status.value.value?.total.process_events?.captured;
  const filtered = view.value.query.trim() !== '';
  const advice =
    captured === 0
      ? 'No collector has sent process events yet. Check the version and --event-budget of kernel-collector.'
      : filtered
        ? 'No short-lived process that passes the filters ended in this time range. ' +
          'Clear the filters, or select a longer range.'
        : 'No short-lived process ended in this time range. Select a longer range.';
  return (
    <p class="note" data-testid="processes-empty">
      {advice}
    </p>
  );
}

function Body() {
  const {value: answer, error} = programs.value;
  return (
    <div class="processes-body" data-testid="processes-body">
      {answer && error && (
        <p class="banner" role="alert" data-testid="processes-stale">
          <Icon name="warning" />
          {`${printable(error.message)} (The data shown is older.)`}
        </p>
      )}
      {hasThreadFilter.value && (
        <p class="banner" data-testid="processes-threads">
          <Icon name="warning" />
          Filters of threads do not apply here: a process ends with all its threads.
        </p>
      )}
      {answer && answer.total.processes === 0 && answer.programs.length === 0 && <Empty />}
      {answer && answer.programs.length > 0 && <ProgramTable answer={answer} />}
      <Endings />
    </div>
  );
}

export function Processes() {
  const open = view.value.processes === 'open';
  return (
    <section
      class="card processes"
      aria-label="Processes"
      data-testid="processes"
      data-loading={eventsLoading.value}
    >
      <div class="card-head">
        <h1>Processes</h1>
        <Line />
        <span class="spring" />
        {!eventsMissing.value && (
          <button
            type="button"
            class="button"
            aria-expanded={open}
            data-testid="processes-details"
            onClick={() => setView({processes: open ? 'closed' : 'open'})}
          >
            {open ? 'Hide' : 'Show'}
            <Icon name="chevron" />
          </button>
        )}
      </div>
      {open && !eventsMissing.value && <Body />}
    </section>
  );
}
