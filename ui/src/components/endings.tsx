// The processes that crashed, were killed or failed, newest first.
import type {ProcessEvent} from '../api/types.ts';
import {endings, endingsLoading, endingsMax, loadMoreEndings} from '../events.ts';
import type {EventMarkKind} from '../model/event_marks.ts';
import {formatBytes, formatCount, formatDate, formatDuration, printable} from '../model/format.ts';
import {
  endingText,
  isCrash,
  momentOf,
  placeOfProgram,
  processCount,
  programMatcherOf,
  programName,
} from '../model/process_events.ts';
import {selectProgram} from '../state.ts';
import {EventGlyph} from './event_glyph.tsx';
import {Icon} from './icons.tsx';

function glyphOf(event: ProcessEvent): EventMarkKind | null {
  if (event.oom_killed) return 'oom';
  return isCrash(event) ? 'crash' : null;
}

function Ending({event, now}: {event: ProcessEvent; now: number}) {
  const name = programName(event);
  const matcher = programMatcherOf(event);
  const glyph = glyphOf(event);
  const host = printable(event.host || event.node_id);
  const facts = [
    placeOfProgram(event),
    host && `host ${host}`,
    event.pid > 0 && `pid ${event.pid}`,
    event.run_ns > 0 && event.processes === 1 && `ran ${formatDuration(event.run_ns)}`,
    event.cpu_ns > 0 && `${formatDuration(event.cpu_ns)} of CPU time`,
    event.peak_rss_bytes > 0 && formatBytes(event.peak_rss_bytes),
  ].filter(Boolean);
  const several = event.processes > 1 ? `${processCount(event.processes)}, each ` : '';
  const path = printable(event.executable_path);
  return (
    <li data-testid="ending">
      <time dateTime={new Date(event.at).toISOString()} title={formatDate(event.at)}>
        {momentOf(event.at, now)}
      </time>
      <span class="ending-glyph">{glyph && <EventGlyph kind={glyph} />}</span>
      <p>
        {matcher ? (
          <button
            type="button"
            class="event-name"
            title={`Show only ${name}${path && `\n${path}`}`}
            data-testid="ending-choose"
            onClick={() => selectProgram(matcher)}
          >
            {name}
          </button>
        ) : (
          <span class="event-name" title={path}>
            {name}
          </span>
        )}
        <span class="event-words">{several + endingText(event)}</span>
        <span class="event-place" title={facts.join(' · ')}>
          {facts.join(' · ')}
        </span>
      </p>
    </li>
  );
}

function More({shown, hasNext}: {shown: number; hasNext: boolean}) {
  if (!hasNext) return null;
  if (shown >= endingsMax) {
    return (
      <p class="hint" data-testid="endings-limit">
        {`The newest ${formatCount(endingsMax)} are shown. Select a shorter time range to see older ones.`}
      </p>
    );
  }
  const loading = endingsLoading.value;
  return (
    <button
      type="button"
      class="button small-button"
      aria-disabled={loading}
      data-testid="endings-more"
      onClick={() => loading || loadMoreEndings()}
    >
      {loading ? 'Loading…' : 'Load more'}
    </button>
  );
}

export function Endings() {
  const {value: answer, error} = endings.value;
  const now = Date.now();
  return (
    <div class="endings-below">
      <h2>Crashes, OOM kills and failures</h2>
      {error && (
        <p class="banner" role="alert" data-testid="endings-error">
          <Icon name="warning" />
          {printable(error.message) + (answer ? ' (The data shown is older.)' : '')}
        </p>
      )}
      {!answer && !error && (
        <p class="hint" role="status">
          Loading…
        </p>
      )}
      {answer && answer.events.length === 0 && (
        <p class="hint" data-testid="endings-empty">
          No process crashed, was killed or failed in this time range.
        </p>
      )}
      {answer && answer.events.length > 0 && (
        <ul class="endings-list" data-testid="endings" tabIndex={0} aria-label="Crashes, OOM kills and failures">
          {answer.events.map((event, i) => (
            <Ending key={i} event={event} now={now} />
          ))}
        </ul>
      )}
      {answer && <More shown={answer.events.length} hasNext={answer.next !== ''} />}
    </div>
  );
}
